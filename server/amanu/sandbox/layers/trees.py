"""Move a whole folder into the workspace, or back out of it: by one rename, or, between file systems, by a copy that is
renamed. Whatever a kill interrupts, one of the two places has all of it. Everything here blocks."""

import contextlib
import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.sandbox.layers.apply import ApplyError, NotWritten, WorkspaceChanged, opened_parent
from amanu.sandbox.layers.copying import copy_folder
from amanu.sandbox.layers.layer import LayerError, LayerRoot, explained
from amanu.sandbox.layers.transfer import strip
from amanu.sandbox.layers.untrusted_files import TEMPORARY, opened_folder, remove, status
from amanu.storage.errors import sync_file_system


@dataclass(frozen=True)
class TreeMove:
    """A folder that comes into the workspace, or leaves it."""

    root: LayerRoot
    name: str
    """Relative to the root."""
    stored: Path
    """Its place outside the workspace."""
    comes_in: bool
    token: str
    """Part of the temporary names, noted so that they are found after a kill."""

    def apply(self) -> None:
        """Raises `ApplyError` if the folder stays where it was."""
        try:
            if self.comes_in:
                _strip_all(self.stored)
                sync_file_system(self.stored)
            with self._opened() as (folder, name, store):
                self._move_in(folder, name, store) if self.comes_in else self._move_out(folder, name, store)
        except (OSError, LayerError) as error:
            raise NotWritten(explained(error)) from None

    def finish(self) -> None:
        """Finish what a killed daemon has begun."""
        if self.comes_in or os.path.lexists((self.root.path / self.name).with_name(self._ours)):
            with contextlib.suppress(ApplyError):
                self.apply()

    @property
    def _ours(self) -> str:
        return f".{self.token}{TEMPORARY}"

    @contextmanager
    def _opened(self) -> Generator[tuple[int, str, int]]:
        with (
            opened_parent(self.root, self.name, make=self.comes_in) as (folder, name),
            opened_folder(self.stored.parent) as store,
        ):
            yield folder, name, store
            for each in (folder, store):
                with contextlib.suppress(OSError):  # some file systems cannot
                    os.fsync(each)

    def _move_in(self, folder: int, name: str, store: int) -> None:
        remove(self._ours, folder)
        if status(name, folder) is not None:  # a rename would replace an empty folder
            raise WorkspaceChanged
        try:
            os.rename(self.stored.name, name, src_dir_fd=store, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._copy_in(folder, name, store)
            with contextlib.suppress(OSError):
                remove(self.stored.name, store)

    def _copy_in(self, folder: int, name: str, store: int) -> None:
        try:
            copy_folder(self.stored.name, store, self._ours, folder)
            sync_file_system(self.root.path)
            if status(name, folder) is not None:  # copying took a while
                raise WorkspaceChanged
            os.rename(self._ours, name, src_dir_fd=folder, dst_dir_fd=folder)
            with contextlib.suppress(OSError):
                os.fsync(folder)
        except BaseException:
            remove(self._ours, folder)
            raise

    def _move_out(self, folder: int, name: str, store: int) -> None:
        if status(self._ours, folder) is None:
            remove(self.stored.name, store)  # whatever a copy into the workspace left of it
            try:
                os.rename(name, self.stored.name, src_dir_fd=folder, dst_dir_fd=store)
                return
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
            os.rename(name, self._ours, src_dir_fd=folder, dst_dir_fd=folder)
        try:
            if status(self.stored.name, store) is None:  # else a killed daemon has copied it
                self._copy_out(folder, store)
        except BaseException:
            os.rename(self._ours, name, src_dir_fd=folder, dst_dir_fd=folder)
            raise
        with contextlib.suppress(OSError):
            remove(self._ours, folder)

    def _copy_out(self, folder: int, store: int) -> None:
        part = f".tmp-{self.token}"
        remove(part, store)
        copy_folder(self._ours, folder, part, store)
        sync_file_system(self.stored.parent)
        os.rename(part, self.stored.name, src_dir_fd=store, dst_dir_fd=store)


def _strip_all(folder: Path) -> None:
    """Remove what the overlay has noted on a folder of ours and on all that is in it. Raises `OSError`."""
    for place, folders, names in os.walk(folder):
        with opened_folder(place) as handle:
            for name in (".", *folders, *names):
                strip(name, handle)
