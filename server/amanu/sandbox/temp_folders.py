"""Folders for commands' temporary files. The next daemon removes those of a killed one, whose records are not
locked."""

import contextlib
import fcntl
import itertools
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

_counter = itertools.count()


class TemporaryFolders:
    """The records of temporary folders, in `folder`: one file each, locked while its daemon lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def make(self, make: Callable[[], str]) -> Generator[Path]:
        """The folder that `make` creates, removed with its content on leaving, or by the next daemon. Blocking."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{os.getpid()}-{next(_counter)}"
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            folder = Path(make())
            file.write(str(folder))
            file.flush()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove the folders of dead daemons. Blocking."""
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                with contextlib.suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if folder := os.fsdecode(file.read()):
                        shutil.rmtree(folder, ignore_errors=True)
                    path.unlink(missing_ok=True)
