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
from amanu.checks.language_server import LanguageServer, ServerDocument
from amanu.checks.linter import command_line, lint
from amanu.checks.process import CheckerProcess, CheckFailed, find, start
from amanu.config import CheckSettings as Settings
from amanu.sandbox.sandbox import Sandbox
from amanu.system.process_tree import without_secrets
from amanu.workspace.diagnostics import FindingsChange, compare_findings
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
"""Characters; type checkers take minutes for bigger ones, which no user wrote."""


@dataclass(frozen=True)
class TextChange:
    """A file whose text would become another. `before` None: it would be created."""

    path: Path
    old_text: str | None
    new_text: str


@dataclass(frozen=True)
class ReadyChecker:
    """A checker that is there, for a folder and an environment."""

    checker: Checker
    command: tuple[str, ...]
    root: Path
    roots: tuple[Path, ...]
    """All of the session, it among them."""
    environment: Mapping[str, str]
    readable: tuple[Path, ...]
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
    ) -> list[ReadyChecker]:
        """Those that know the language of one of the files, are installed and did not fail just now. Blocking."""
        ready_checkers: list[ReadyChecker] = []
        for checker in CHECKERS:
            enabled = self._settings.checkers.get(checker.name, True)
            matching = [path for path in paths if path.suffix.lower() in checker.languages]
            if enabled is False or not matching or not _has_beside(checker, matching, root):
                continue
            for command in checker.commands if enabled is True else (enabled,):
                program = find(command[0], environment, roots)
                if program is None:
                    continue
                line = (program, *command[1:])
                if self._failed.get((line, root), 0.0) <= time.monotonic():
                    own_home = environment.get("HOME", "")
                    caches = tuple(Path(own_home, cache) for cache in checker.caches if own_home)
                    variables = without_secrets(environment, self._key_variables) | {
                        variable: f"{own_home}{value[1:]}" if value.startswith("~") else value
                        for variable, value in checker.environment.items()
                    }
                    ready_checkers.append(ReadyChecker(checker, line, root, tuple(roots), variables, caches))
                break
        return ready_checkers

    async def check(
        self, ready: ReadyChecker, changes: Sequence[TextChange], others: Mapping[Path, str]
    ) -> dict[Path, FindingsChange]:
        """What the changes, all of them, do to the findings of each of their files; `others` are unsaved texts that
        stand. Raises `CheckFailed`. Cancelled, it leaves no process behind that is not `end`ed with the rest."""
        fitting = [change for change in changes if change.path.suffix.lower() in ready.checker.languages]
        too_big = [change for change in fitting if len(change.old_text or "") + len(change.new_text) > 2 * MAX_TEXT]
        if too_big:
            raise CheckFailed(f"{too_big[0].path.name} is too big to be checked.")
        async with self._turns:
            try:
                if ready.checker.reads == "lsp":
                    differences = await self._by_server(ready, fitting, others)
                else:
                    differences = await self._by_linter(ready, fitting)
            except CheckFailed:
                self._failed[ready.command, ready.root] = time.monotonic() + REST
                raise
        return await asyncio.to_thread(_differences, fitting, *differences)

    async def end(self, roots: Collection[Path] | None = None) -> None:
        """End the servers of those folders, by default all. Returns when they are gone."""
        for key in [key for key in self._kept if roots is None or key[1] in roots]:
            self._drop(key)
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    # Language servers -------------------------------------------------------------------------------

    async def _by_server(
        self, ready: ReadyChecker, changes: Sequence[TextChange], others: Mapping[Path, str]
    ) -> tuple[dict[Path, list[Finding]], dict[Path, list[Finding]]]:
        languages = ready.checker.languages
        changed = {change.path for change in changes}
        beside = {
            path: text for path, text in others.items() if path.suffix.lower() in languages and path not in changed
        }

        def documents(texts: Mapping[Path, str]) -> list[ServerDocument]:
            return [ServerDocument(path, languages[path.suffix.lower()], text) for path, text in texts.items()]

        old_texts = {change.path: change.old_text for change in changes if change.old_text is not None}
        new_texts = {change.path: change.new_text for change in changes}
        key, cached = await self._server(ready)
        async with cached.lock:
            cached.used = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):
                    await cached.server.show(documents({**beside, **old_texts}))
                    old_findings = await cached.server.findings(list(old_texts))
                    await cached.server.show(documents(new_texts))
                    new_findings = await cached.server.findings(list(new_texts))
            except TimeoutError:
                self._drop(key)
                raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None
            except CheckFailed:
                self._drop(key)
                raise
            finally:
                cached.server.hide()
                self._rest(key, cached)  # cancelled or not
        if await asyncio.to_thread(lambda: cached.server.process.memory) > MEMORY:
            self._drop(key)
        return old_findings, new_findings

    async def _server(self, ready: ReadyChecker) -> tuple[tuple[tuple[str, ...], Path], _Kept]:
        key = (ready.command, ready.root)
        cached = self._kept.get(key)
        if cached is not None and not cached.server.lost:
            if cached.going is not None:
                cached.going.cancel()
            return key, cached
        if cached is not None:
            self._drop(key)
        idle = sorted((entry.used, server_key) for server_key, entry in self._kept.items() if not entry.lock.locked())
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
        cached = self._kept[key] = _Kept(server, asyncio.Lock(), time.monotonic())
        return key, cached

    def _rest(self, key: tuple[tuple[str, ...], Path], cached: _Kept) -> None:
        if cached.going is not None:
            cached.going.cancel()
        if self._kept.get(key) is cached:
            cached.going = asyncio.get_running_loop().call_later(IDLE, self._idle, key)

    def _idle(self, key: tuple[tuple[str, ...], Path]) -> None:
        cached = self._kept.get(key)
        if cached is not None and not cached.lock.locked():
            self._drop(key)

    def _drop(self, key: tuple[tuple[str, ...], Path]) -> None:
        cached = self._kept.pop(key, None)
        if cached is not None:
            if cached.going is not None:
                cached.going.cancel()
            self._end(cached.server.end())

    def _end(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """It goes on when who began it is cancelled; `end` waits for it."""
        task = asyncio.create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _start(self, ready: ReadyChecker, command: Sequence[str]) -> CheckerProcess:
        return await start(self._sandbox, command, ready.root, ready.roots, ready.environment, ready.readable)

    # Linters ----------------------------------------------------------------------------------------

    async def _by_linter(
        self, ready: ReadyChecker, changes: Sequence[TextChange]
    ) -> tuple[dict[Path, list[Finding]], dict[Path, list[Finding]]]:
        try:
            async with asyncio.timeout(LIMIT):
                old_findings = {
                    change.path: await self._lint(ready, change.path, change.old_text)
                    for change in changes
                    if change.old_text
                }
                return old_findings, {
                    change.path: await self._lint(ready, change.path, change.new_text) for change in changes
                }
        except TimeoutError:
            raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None

    async def _lint(self, ready: ReadyChecker, path: Path, text: str) -> list[Finding]:
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
    return (path for folder in folders for pattern in patterns for path in folder.glob(pattern))


def _differences(
    changes: Sequence[TextChange],
    old_findings: Mapping[Path, list[Finding]],
    new_findings: Mapping[Path, list[Finding]],
) -> dict[Path, FindingsChange]:
    return {
        change.path: compare_findings(
            change.old_text or "", old_findings.get(change.path, []), change.new_text, new_findings.get(change.path, [])
        )
        for change in changes
    }
