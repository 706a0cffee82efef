"""Empty folders, kept for the next who needs some. To make one and remove it again takes a file system a fifth of a
millisecond, and many where others write a lot (the journal of ext4); to move it takes neither."""

import contextlib
import ctypes
import errno
import itertools
import os
from pathlib import Path

_HERE = -100  # AT_FDCWD
_NO_REPLACE = 1
_MOST = 64

_libc = ctypes.CDLL(None, use_errno=True)
_counter = itertools.count()


class Spares:
    """They lie in `folder`. It should be on the file system where they are needed; elsewhere they are made and removed.
    Not for two threads at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: list[Path] = []

    def make(self, path: Path) -> None:
        """Like `mkdir`: raises when something is there."""
        if self._ready:
            spare = self._ready.pop()
            try:
                _move(spare, path)
                return
            except FileExistsError:
                self._ready.append(spare)
                raise
            except OSError:  # another file system
                pass
        path.mkdir(mode=0o755)

    def remove(self, path: Path) -> None:
        """Like `rmdir`: raises when it is not an empty folder."""
        if len(self._ready) >= _MOST or os.listdir(path):  # noqa: PTH208
            path.rmdir()
            return
        spare = self._folder / f"{os.getpid()}-{next(_counter)}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _move(path, spare)
        except OSError:
            path.rmdir()
            return
        if os.listdir(spare):  # noqa: PTH208
            _move(spare, path)  # somebody put it there at this very moment
        else:
            self._ready.append(spare)

    def clean(self) -> None:
        """Remove all; another process that has some there makes new ones."""
        self._ready.clear()
        with contextlib.suppress(OSError):
            for each in self._folder.iterdir():
                with contextlib.suppress(OSError):
                    each.rmdir()


def _move(path: Path, to: Path) -> None:
    """Never over something: not even an empty folder, which may be another's or hold walls up."""
    try:
        move = _libc.renameat2
    except AttributeError:
        raise OSError(errno.ENOSYS, "there is no renameat2") from None
    if move(_HERE, os.fsencode(path), _HERE, os.fsencode(to), _NO_REPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(to))
