"""The daemon's own checkers: what a change would do to the findings of files, before it is in any of them.

Language servers stay for a while after a check, for the next one is quicker then; few at a time, and no longer than
somebody uses them.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amanu.checks.catalog import CHECKERS, Checker
from amanu.checks.language_server import Document, LanguageServer
from amanu.checks.linter import command_line, lint
from amanu.checks.process import CheckFailed, Process, find, start
from amanu.config import Checks as Settings
from amanu.sandbox.sandbox import Sandbox
from amanu.system.process_tree import without_secrets
from amanu.workspace.diagnostics import Difference, difference
from amanu_protocol.items import Finding

LIMIT = 15.0
"""Seconds of one check, starting not counted: who reads a question has decided by then."""
IDLE = 60.0
"""Seconds a server stays without use."""
MOST_SERVERS = 3
AT_ONCE = 2
MEMORY = 1 << 31
"""Bytes; a server that takes more is ended after its check."""
REST = 300.0
"""Seconds in which one that failed is not tried again."""
MAX_TEXT = 1_000_000
"""Characters; type checkers take minutes for bigger ones, which no person wrote."""


@dataclass(frozen=True)
class Change:
    """A file whose text would become another. `before` None: it would be created."""

    path: Path
    before: str | None
    after: str


@dataclass(frozen=True)
class Ready:
    """A checker that is there, for a folder and an environment."""

    checker: Checker
    command: tuple[str, ...]
    root: Path
    roots: tuple[Path, ...]
    """All of the session, it among them."""
    environment: Mapping[str, str]
    shown: tuple[Path, ...]
    """Caches it reads, outside the roots."""


@dataclass
class _Kept:
    server: LanguageServer
    lock: asyncio.Lock
    used: float
    going: asyncio.TimerHandle | None = None


class Checkers:
    """One per daemon. What it starts is the workspace's business too (settings, plugins): for trusted ones only, and
    held by the sandbox."""

    def __init__(self, settings: Settings, sandbox: Sandbox, key_variables: Collection[str] = ()) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._key_variables = key_variables
        self._kept: dict[tuple[tuple[str, ...], Path], _Kept] = {}
        self._failed: dict[tuple[tuple[str, ...], Path], float] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def enabled(self) -> bool:
        return self._settings.enabled

    async def held(self) -> bool:
        """Whether a sandbox works here: outside of one no checker is started."""
        return (await self._sandbox.proved()).tier != "none"

    def ready(
        self, paths: Sequence[Path], root: Path, roots: Sequence[Path], environment: Mapping[str, str]
    ) -> list[Ready]:
        """Those that know the language of one of the files, are installed and did not fail just now. Blocking."""
        found: list[Ready] = []
        for checker in CHECKERS:
            own = self._settings.checkers.get(checker.name, True)
            known = [path for path in paths if path.suffix.lower() in checker.languages]
            if own is False or not known or not _has_beside(checker, known, root):
                continue
            for command in checker.commands if own is True else (own,):
                program = find(command[0], environment, roots)
                if program is None:
                    continue
                line = (program, *command[1:])
                if self._failed.get((line, root), 0.0) <= time.monotonic():
                    own_home = environment.get("HOME", "")
                    shown = tuple(Path(own_home, each) for each in checker.caches if own_home)
                    given = without_secrets(environment, self._key_variables) | {
                        variable: f"{own_home}{value[1:]}" if value.startswith("~") else value
                        for variable, value in checker.environment.items()
                    }
                    found.append(Ready(checker, line, root, tuple(roots), given, shown))
                break
        return found

    async def check(
        self, ready: Ready, changes: Sequence[Change], others: Mapping[Path, str]
    ) -> dict[Path, Difference]:
        """What the changes, all of them, do to the findings of each of their files; `others` are unsaved texts that
        stand. Raises `CheckFailed`. Cancelled, it leaves no process behind that is not `end`ed with the rest."""
        fitting = [each for each in changes if each.path.suffix.lower() in ready.checker.languages]
        too_big = [each for each in fitting if len(each.before or "") + len(each.after) > 2 * MAX_TEXT]
        if too_big:
            raise CheckFailed(f"{too_big[0].path.name} is too big to be checked.")
        async with self._turns:
            try:
                if ready.checker.reads == "lsp":
                    found = await self._by_server(ready, fitting, others)
                else:
                    found = await self._by_linter(ready, fitting)
            except CheckFailed:
                self._failed[ready.command, ready.root] = time.monotonic() + REST
                raise
        return await asyncio.to_thread(_differences, fitting, *found)

    async def end(self, roots: Collection[Path] | None = None) -> None:
        """End the servers of those folders, by default all. Returns when they are gone."""
        for key in [key for key in self._kept if roots is None or key[1] in roots]:
            self._drop(key)
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    # Language servers -------------------------------------------------------------------------------

    async def _by_server(
        self, ready: Ready, changes: Sequence[Change], others: Mapping[Path, str]
    ) -> tuple[dict[Path, list[Finding]], dict[Path, list[Finding]]]:
        languages = ready.checker.languages
        changed = {each.path for each in changes}
        beside = {
            path: text for path, text in others.items() if path.suffix.lower() in languages and path not in changed
        }

        def documents(texts: Mapping[Path, str]) -> list[Document]:
            return [Document(path, languages[path.suffix.lower()], text) for path, text in texts.items()]

        old = {each.path: each.before for each in changes if each.before is not None}
        new = {each.path: each.after for each in changes}
        key, kept = await self._server(ready)
        async with kept.lock:
            kept.used = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):
                    await kept.server.show(documents({**beside, **old}))
                    before = await kept.server.findings(list(old))
                    await kept.server.show(documents(new))
                    after = await kept.server.findings(list(new))
            except TimeoutError:
                self._drop(key)
                raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None
            except CheckFailed:
                self._drop(key)
                raise
            finally:
                kept.server.hide()
                self._rest(key, kept)  # cancelled or not
        if await asyncio.to_thread(lambda: kept.server.process.memory) > MEMORY:
            self._drop(key)
        return before, after

    async def _server(self, ready: Ready) -> tuple[tuple[tuple[str, ...], Path], _Kept]:
        key = (ready.command, ready.root)
        kept = self._kept.get(key)
        if kept is not None and not kept.server.lost:
            if kept.going is not None:
                kept.going.cancel()
            return key, kept
        if kept is not None:
            self._drop(key)
        idle = sorted((each.used, other) for other, each in self._kept.items() if not each.lock.locked())
        for _, other in idle[: max(0, len(self._kept) - MOST_SERVERS + 1)]:
            self._drop(other)
        process = await self._start(ready, ready.command)
        server = LanguageServer(ready.checker, process, ready.root)
        try:
            await server.initialize()
        except BaseException:
            self._end(server.end())
            raise
        faster = self._kept.get(key)
        if faster is not None:  # another check of the same folder started one meanwhile
            self._end(server.end())
            return key, faster
        kept = self._kept[key] = _Kept(server, asyncio.Lock(), time.monotonic())
        return key, kept

    def _rest(self, key: tuple[tuple[str, ...], Path], kept: _Kept) -> None:
        if kept.going is not None:
            kept.going.cancel()
        if self._kept.get(key) is kept:
            kept.going = asyncio.get_running_loop().call_later(IDLE, self._idle, key)

    def _idle(self, key: tuple[tuple[str, ...], Path]) -> None:
        kept = self._kept.get(key)
        if kept is not None and not kept.lock.locked():
            self._drop(key)

    def _drop(self, key: tuple[tuple[str, ...], Path]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            if kept.going is not None:
                kept.going.cancel()
            self._end(kept.server.end())

    def _end(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """It goes on when who began it is cancelled; `end` waits for it."""
        task = asyncio.create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _start(self, ready: Ready, command: Sequence[str]) -> Process:
        return await start(self._sandbox, command, ready.root, ready.roots, ready.environment, ready.shown)

    # Linters ----------------------------------------------------------------------------------------

    async def _by_linter(
        self, ready: Ready, changes: Sequence[Change]
    ) -> tuple[dict[Path, list[Finding]], dict[Path, list[Finding]]]:
        try:
            async with asyncio.timeout(LIMIT):
                old = {each.path: await self._lint(ready, each.path, each.before) for each in changes if each.before}
                return old, {each.path: await self._lint(ready, each.path, each.after) for each in changes}
        except TimeoutError:
            raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None

    async def _lint(self, ready: Ready, path: Path, text: str) -> list[Finding]:
        command = command_line(ready.checker.reads, ready.command, path)
        process = await self._start(ready, command)
        try:
            return await lint(ready.checker.reads, process, text)
        finally:
            with contextlib.suppress(OSError):
                await asyncio.shield(self._end(process.end()))


def _has_beside(checker: Checker, paths: Sequence[Path], root: Path) -> bool:
    return not checker.beside or next(_near(checker.beside, paths, root), None) is not None


def _near(patterns: Sequence[str], paths: Sequence[Path], root: Path) -> Iterator[Path]:
    """The files with names of those patterns in the folders of the paths and above, up to the root."""
    folders = {folder for path in paths for folder in path.parents if folder == root or root in folder.parents}
    return (found for folder in folders for pattern in patterns for found in folder.glob(pattern))


def _differences(
    changes: Sequence[Change], before: Mapping[Path, list[Finding]], after: Mapping[Path, list[Finding]]
) -> dict[Path, Difference]:
    return {
        each.path: difference(each.before or "", before.get(each.path, []), each.after, after.get(each.path, []))
        for each in changes
    }
