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
from amanu.sandbox.file_tree import TooLarge, Tree, read_tree
from amanu.sandbox.filesystem_view import FilesystemView
from amanu.sandbox.git_settings import is_settings
from amanu.sandbox.protected_scan import identity
from amanu.sandbox.quarantine import PriorState, QuarantineResult, settle
from amanu.sandbox.self_test import Tier
from amanu.storage.errors import sync_folder

log = logging.getLogger(__name__)

_counter = itertools.count()


def prior_state(tier: Tier, need: SandboxRequirements, view: FilesystemView) -> tuple[PriorState, list[Path]]:
    """(What there is when a command begins; what of that the sandbox leaves open, and is too large to be kept.)"""
    contents, large = _contents(_left_open(tier, need, view))
    names = (*view.protected.names, *view.protected.executed_paths())
    prior = PriorState(
        roots=tuple(root for root in view.roots if root != Path("/")),
        home=view.home,
        repositories=view.protected.repositories,
        folders=view.protected.folders,
        identities={path: file_identity for path in names if (file_identity := identity(path)) is not None},
        contents=contents,
        settings=need.settings,
        checkout=need.checkout,
    )
    return prior, large


class CommandRecord:
    """One command's record."""

    def __init__(self, records: "CommandRecords", path: Path, prior: PriorState, handle: int) -> None:
        self._records = records
        self._path = path
        self._prior = prior
        self._result: QuarantineResult | None = None
        self.handle = handle
        """Who holds it holds the lock."""

    def settle(self) -> QuarantineResult:
        """Once the command has ended: put aside and back what must be. The same answer each time. Blocking."""
        if self._result is None:
            with self._records.lock():
                result = self._records.settle(self._prior)
                self._path.unlink(missing_ok=True)
                self._result = result.joined(self._records.take_unreported(self._prior.roots))
        return self._result

    def close(self) -> None:
        """It has ended, and perhaps nobody asked for what it left."""
        if self._result is None and (result := self.settle()):
            self._records.keep_unreported(self._prior.roots, result)


class CommandRecords:
    """In `folder`; what is put aside lies in folders below `aside`. Not for several threads but within `lock`."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self._folder = folder
        self._aside = aside
        self._unreported: list[tuple[tuple[Path, ...], QuarantineResult]] = []

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
    def begin(self, prior: PriorState) -> Generator[CommandRecord]:
        """Begin; in `lock`, and to be closed outside of it. Durable where contents are kept. Raises `OSError`."""
        for running in self._running_states():
            prior = prior.joined(running)
        path = self._folder / f"{os.getpid()}-{next(_counter)}.json"
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                file.write(json.dumps(prior.to_json()))
                file.flush()
                if prior.contents:
                    os.fsync(file.fileno())
                    sync_folder(self._folder)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            record = CommandRecord(self, path, prior, file.fileno())
            try:
                yield record
            finally:
                record.close()

    def settle(self, prior: PriorState) -> QuarantineResult:
        """In `lock`."""
        folder = self._aside / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        result = settle(prior, folder)
        if result.quarantined or result.restored or result.failed:
            log.info(
                "after a command: %d quarantined, %d restored, %d failed; %s",
                *(len(result.quarantined), len(result.restored), len(result.failed), result.folder),
            )
        return result

    def keep_unreported(self, roots: tuple[Path, ...], result: QuarantineResult) -> None:
        """For the next command there."""
        self._unreported.append((roots, result))

    def take_unreported(self, roots: tuple[Path, ...]) -> QuarantineResult:
        """What was kept for these roots; it is heard now."""
        result = QuarantineResult()
        for entry in [entry for entry in self._unreported if {*entry[0]} & {*roots}]:
            self._unreported.remove(entry)
            result = entry[1].joined(result)
        return result

    def _recover(self) -> None:
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(ValueError, LookupError, TypeError):  # cut off: its command never began
                    prior = PriorState.from_json(json.load(file))
                    if result := self.settle(prior):
                        self.keep_unreported(prior.roots, result)
                path.unlink(missing_ok=True)

    def _running_states(self) -> list[PriorState]:
        """Of commands that run; `_recover` has removed all others."""
        prior_states: list[PriorState] = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                prior_states.append(PriorState.from_json(json.loads(path.read_bytes())))
        return prior_states


def _left_open(tier: Tier, need: SandboxRequirements, view: FilesystemView) -> list[Path]:
    """What must be as before, and can be changed: links; git's settings, where that is the need; with Landlock all."""
    if tier == "landlock":
        return list(view.guarded)
    return [path for path in view.guarded if path.is_symlink() or (need.settings and is_settings(path))]


def _contents(paths: Iterable[Path]) -> tuple[dict[Path, Tree], list[Path]]:
    """(What was there, of that which is small enough to be kept; the rest.)"""
    trees: dict[Path, Tree] = {}
    large: list[Path] = []
    for path in paths:
        try:
            trees[path] = read_tree(path)
        except TooLarge:
            large.append(path)
    return trees, large
