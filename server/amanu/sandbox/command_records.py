"""Records of running commands: which protected files (those git, editors, shells and agents obey) were there before,
and their content where the sandbox leaves them writable.

A record is locked while its daemon or the command's last process lives. A record that is not locked belongs to a killed
daemon, and is settled by the next command or daemon.
"""

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
    """What is there when a command begins; and the paths that the sandbox leaves writable but are too large to
    record."""
    contents, large = _contents(_left_open(tier, need, view))
    names = (*view.protected.names, *view.protected.executed_paths())
    prior = PriorState(
        roots=tuple(root for root in view.roots if root != Path("/")),
        home=view.home,
        repositories=view.protected.repositories,
        folders=view.protected.folders,
        identities={path: file_identity for path in names if (file_identity := identity(path)) is not None},
        contents=contents,
        settings=need.place.reach.git == "settings",
        checkout=need.place.reach.checks_out,
    )
    return prior, large


class CommandRecord:
    """The record of one command."""

    def __init__(self, records: "CommandRecords", path: Path, prior: PriorState, handle: int) -> None:
        self._records = records
        self._path = path
        self._prior = prior
        self._result: QuarantineResult | None = None
        self.handle = handle
        """Whoever holds this file descriptor holds the lock."""

    def accept(self, path: Path) -> None:
        """See `PriorState.accepting`; call within `CommandRecords.lock`."""
        self._prior = self._prior.accepting(path)
        with contextlib.suppress(OSError):
            self._path.write_text(json.dumps(self._prior.to_json()))  # the same file, so it stays locked

    def settle(self) -> QuarantineResult:
        """Quarantine and restore what must be, once the command has ended. Returns the same result each time.
        Blocking."""
        if self._result is None:
            with self._records.lock():
                result = self._records.settle(self._prior)
                self._path.unlink(missing_ok=True)
                self._result = result.joined(self._records.take_unreported(self._prior.roots))
        return self._result

    def close(self) -> None:
        """Settle the record if nobody did, and keep the result for the next command."""
        if self._result is None and (result := self.settle()):
            self._records.keep_unreported(self._prior.roots, result)


class CommandRecords:
    """The records in `folder`; quarantined files go to folders below `aside`. Thread-safe only within `lock`."""

    def __init__(self, folder: Path, aside: Path) -> None:
        self._folder = folder
        self._aside = aside
        self._running: list[CommandRecord] = []
        self._unreported: list[tuple[tuple[Path, ...], QuarantineResult]] = []

    @contextmanager
    def lock(self) -> Generator[None]:
        """Lock for scanning a workspace, beginning a record and settling: one command at a time across all daemons.
        Settles the records of dead daemons first. Blocking."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._recover()
            yield

    @contextmanager
    def begin(self, prior: PriorState) -> Generator[CommandRecord]:
        """Begin a record: enter within `lock`, leave outside of it. Durable where contents are kept. Raises
        `OSError`."""
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
            self._running.append(record)
            try:
                yield record
            finally:
                self._running.remove(record)
                record.close()

    def accept(self, path: Path) -> None:
        """Treat the path as it is now as its state before each command that runs here: Amanu has written it."""
        if self._running:
            with self.lock():
                for record in list(self._running):
                    record.accept(path)

    def settle(self, prior: PriorState) -> QuarantineResult:
        """Settle a prior state; call within `lock`."""
        folder = self._aside / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}"
        result = settle(prior, folder)
        if result.quarantined or result.restored or result.failed:
            log.info(
                "after a command: %d quarantined, %d restored, %d failed; %s",
                *(len(result.quarantined), len(result.restored), len(result.failed), result.folder),
            )
        return result

    def keep_unreported(self, roots: tuple[Path, ...], result: QuarantineResult) -> None:
        """Keep a result for the next command in the same roots."""
        self._unreported.append((roots, result))

    def take_unreported(self, roots: tuple[Path, ...]) -> QuarantineResult:
        """Take the results kept for these roots."""
        result = QuarantineResult()
        for entry in [entry for entry in self._unreported if {*entry[0]} & {*roots}]:
            self._unreported.remove(entry)
            result = entry[1].joined(result)
        return result

    def _recover(self) -> None:
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with contextlib.suppress(ValueError, LookupError, TypeError):  # truncated: its command never began
                    prior = PriorState.from_json(json.load(file))
                    if result := self.settle(prior):
                        self.keep_unreported(prior.roots, result)
                path.unlink(missing_ok=True)

    def _running_states(self) -> list[PriorState]:
        """The prior states of running commands; `_recover` has removed all others."""
        prior_states: list[PriorState] = []
        for path in self._folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
                prior_states.append(PriorState.from_json(json.loads(path.read_bytes())))
        return prior_states


def _left_open(tier: Tier, need: SandboxRequirements, view: FilesystemView) -> list[Path]:
    """The guarded paths that the sandbox leaves writable: links; git's settings, where required; with Landlock, all."""
    if tier == "landlock":
        return list(view.guarded)
    return [
        path for path in view.guarded if path.is_symlink() or (need.place.reach.git == "settings" and is_settings(path))
    ]


def _contents(paths: Iterable[Path]) -> tuple[dict[Path, Tree], list[Path]]:
    """The contents of the paths that are small enough to keep; and the paths that are too large."""
    trees: dict[Path, Tree] = {}
    large: list[Path] = []
    for path in paths:
        try:
            trees[path] = read_tree(path)
        except TooLarge:
            large.append(path)
    return trees, large
