"""What is on record of a command while it runs: what of that which git, editors, shells and agents obey was there, and,
where the sandbox leaves it open, its content. A record is locked as long as its daemon, or the command's last process,
lives; one that is not is settled by the next command or daemon."""

import contextlib
import fcntl
import itertools
import json
import logging
import os
import secrets
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.file_tree import TooLarge, Tree, tree
from amanu.sandbox.filesystem_view import FilesystemView
from amanu.sandbox.git_settings import is_settings
from amanu.sandbox.protected_scan import identity
from amanu.sandbox.quarantine import PriorState, QuarantineResult, settle
from amanu.sandbox.self_test import Tier
from amanu.storage.errors import sync_folder

log = logging.getLogger(__name__)

_counter = itertools.count()


def before(tier: Tier, need: SandboxRequirements, seen: FilesystemView) -> tuple[PriorState, list[Path]]:
    """(What there is when a command begins; what of that the sandbox leaves open, and is too large to be kept.)"""
    contents, large = _contents(_left_open(tier, need, seen))
    names = (*seen.obeyed.names, *seen.obeyed.runs())
    found = PriorState(
        roots=tuple(each for each in seen.roots if each != Path("/")),
        home=seen.home,
        repositories=seen.obeyed.repositories,
        folders=seen.obeyed.folders,
        identities={path: known for path in names if (known := identity(path)) is not None},
        contents=contents,
        settings=need.settings,
        checkout=need.checkout,
    )
    return found, large


class CommandRecord:
    """One command's record."""

    def __init__(self, records: "CommandRecords", path: Path, before: PriorState, handle: int) -> None:
        self._records = records
        self._path = path
        self._before = before
        self._result: QuarantineResult | None = None
        self.handle = handle
        """Who holds it holds the lock."""

    def settle(self) -> QuarantineResult:
        """Once the command has ended: put aside and back what must be. The same answer each time. Blocking."""
        if self._result is None:
            with self._records.lock():
                found = self._records.settle(self._before)
                self._path.unlink(missing_ok=True)
                self._result = found.joined(self._records.unheard(self._before.roots))
        return self._result

    def close(self) -> None:
        """It has ended, and perhaps nobody asked for what it left."""
        if self._result is None and (found := self.settle()):
            self._records.keep_unheard(self._before.roots, found)


class CommandRecords:
    """In `folder`; what is put aside lies in folders below `aside`. Not for several threads but within `lock`."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self._folder = folder
        self._aside = aside
        self._unheard: list[tuple[tuple[Path, ...], QuarantineResult]] = []

    @contextmanager
    def lock(self) -> Generator[None]:
        """Look at a workspace and begin, or settle: one command at a time, of all daemons. What dead ones left is
        settled first. Blocking."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._recover()
            yield

    @contextmanager
    def kept(self, before: PriorState) -> Generator[CommandRecord]:
        """Begin; in `lock`, and to be closed outside of it. Durable where contents are kept. Raises `OSError`."""
        for other in self._living():
            before = before.joined(other)
        path = self._folder / f"{os.getpid()}-{next(_counter)}.json"
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                file.write(json.dumps(before.to_json()))
                file.flush()
                if before.contents:
                    os.fsync(file.fileno())
                    sync_folder(self._folder)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            found = CommandRecord(self, path, before, file.fileno())
            try:
                yield found
            finally:
                found.close()

    def settle(self, before: PriorState) -> QuarantineResult:
        """In `lock`."""
        folder = self._aside / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        found = settle(before, folder)
        if found.aside or found.back or found.failed:
            log.info(
                "after a command: %d put aside, %d put back, %d neither; %s",
                *(len(found.aside), len(found.back), len(found.failed), found.folder),
            )
        return found

    def keep_unheard(self, roots: tuple[Path, ...], found: QuarantineResult) -> None:
        """For the next command there."""
        self._unheard.append((roots, found))

    def unheard(self, roots: tuple[Path, ...]) -> QuarantineResult:
        """What was kept for these roots; it is heard now."""
        found = QuarantineResult()
        for each in [each for each in self._unheard if {*each[0]} & {*roots}]:
            self._unheard.remove(each)
            found = each[1].joined(found)
        return found

    def _recover(self) -> None:
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(ValueError, LookupError, TypeError):  # cut off: its command never began
                    before = PriorState.from_json(json.load(file))
                    if found := self.settle(before):
                        self.keep_unheard(before.roots, found)
                path.unlink(missing_ok=True)

    def _living(self) -> list[PriorState]:
        """Of commands that run; `_recover` has removed all others."""
        found: list[PriorState] = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                found.append(PriorState.from_json(json.loads(path.read_bytes())))
        return found


def _left_open(tier: Tier, need: SandboxRequirements, seen: FilesystemView) -> list[Path]:
    """What must be as before, and can be changed: links; git's settings, where that is the need; with Landlock all."""
    if tier == "landlock":
        return list(seen.guarded)
    return [each for each in seen.guarded if each.is_symlink() or (need.settings and is_settings(each))]


def _contents(paths: Iterable[Path]) -> tuple[dict[Path, Tree], list[Path]]:
    """(What was there, of that which is small enough to be kept; the rest.)"""
    found: dict[Path, Tree] = {}
    large: list[Path] = []
    for path in paths:
        try:
            found[path] = tree(path)
        except TooLarge:
            large.append(path)
    return found, large
