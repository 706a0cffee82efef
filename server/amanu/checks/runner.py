"""Runs the daemon's own checkers: what a change would do to the findings in its files, before it is applied.

Language servers keep running for a while after a check, because the next check is quicker then; only a few at a time,
and only while they are used.
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
from amanu.checks.workspace_edit import renamed_files
from amanu.config import CheckSettings as Settings
from amanu.sandbox.sandbox import Sandbox
from amanu.system.process_tree import without_secrets
from amanu.text.code_units import units
from amanu.workspace.diagnostics import FindingsChange, compare_findings
from amanu.workspace.overlay import CodePlace
from amanu_protocol.items import Finding
from amanu_protocol.requests import RenamedFile

LIMIT = 15.0
"""Seconds of one check, without starting: by then the user has read the question and decided."""
IDLE = 60.0
"""Seconds an unused server keeps running."""
MAX_SERVERS = 3
"""Language servers running at the same time."""
MAX_CHECKS = 2
"""Checks at the same time."""
MEMORY = 1 << 31
"""Bytes; a server that uses more is ended after its check."""
RETRY_AFTER = 300.0
"""Seconds in which a checker that failed is not tried again."""
MAX_TEXT = 1_000_000
"""Characters; type checkers take minutes for longer texts, which are rarely written by hand."""


@dataclass(frozen=True)
class TextChange:
    """A change of a file's text. `old_text` is None for a file that would be created."""

    path: Path
    old_text: str | None
    new_text: str


@dataclass(frozen=True)
class ReadyChecker:
    """An installed checker, for a root and an environment."""

    checker: Checker
    command: tuple[str, ...]
    root: Path
    roots: tuple[Path, ...]
    """All roots of the session, `root` among them."""
    environment: Mapping[str, str]
    readable: tuple[Path, ...]
    """Caches outside the roots that it may read."""


@dataclass
class _RunningServer:
    """A language server that is running."""

    server: LanguageServer
    lock: asyncio.Lock
    last_used: float
    idle_timer: asyncio.TimerHandle | None = None


class Checkers:
    """The checkers of a daemon. They load settings and plugins of the workspace: so they run in trusted workspaces
    only, and in the sandbox. `key_variables` are environment variables with secrets, which they do not get."""

    def __init__(self, settings: Settings, sandbox: Sandbox, key_variables: Collection[str] = ()) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._key_variables = key_variables
        self._servers: dict[tuple[tuple[str, ...], Path], _RunningServer] = {}
        self._failed: dict[tuple[tuple[str, ...], Path], float] = {}
        self._slots = asyncio.Semaphore(MAX_CHECKS)
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def enabled(self) -> bool:
        return self._settings.enabled

    async def sandboxed(self) -> bool:
        """Whether a sandbox works on this machine; without one no checker is started."""
        return (await self._sandbox.proved()).tier != "none"

    def ready(
        self, paths: Sequence[Path], root: Path, roots: Sequence[Path], environment: Mapping[str, str]
    ) -> list[ReadyChecker]:
        """The checkers for the languages of these files that are installed and have not failed recently. Blocking."""
        ready_checkers: list[ReadyChecker] = []
        for checker in CHECKERS:
            enabled = self._settings.checkers.get(checker.name, True)
            matching = [path for path in paths if path.suffix.lower() in checker.languages]
            if enabled is False or not matching or not _has_marker(checker, matching, root):
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
        """What the changes together do to the findings in each of their files; `others` are the texts of unsaved files.
        Raises `CheckFailed`. When cancelled it leaves no process that `end` does not end."""
        fitting = [change for change in changes if change.path.suffix.lower() in ready.checker.languages]
        too_big = [change for change in fitting if len(change.old_text or "") + len(change.new_text) > 2 * MAX_TEXT]
        if too_big:
            raise CheckFailed(f"{too_big[0].path.name} is too large to be checked.")
        async with self._slots:
            try:
                if ready.checker.reads == "lsp":
                    differences = await self._by_server(ready, fitting, others)
                else:
                    differences = await self._by_linter(ready, fitting)
            except CheckFailed:
                self._failed[ready.command, ready.root] = time.monotonic() + RETRY_AFTER
                raise
        return await asyncio.to_thread(_differences, fitting, *differences)

    async def rename(
        self, root: Path, place: CodePlace, new_name: str, texts: Mapping[Path, str]
    ) -> list[RenamedFile] | None:
        """What a language server that runs for that root would change to rename the symbol at that place; `texts` are
        those of its file and of unsaved ones. None: no such server runs; none is started. Raises `CheckFailed`."""
        path = place.path
        running_servers = [
            (key, running)
            for key, running in self._servers.items()
            if key[1] == root
            and running.server.renames
            and not running.server.lost
            and path.suffix.lower() in running.server.languages
        ]
        if not running_servers:
            return None
        key, running = running_servers[0]
        languages = running.server.languages
        shown = {path: text for path, text in texts.items() if path.suffix.lower() in languages}
        documents = [ServerDocument(path, languages[path.suffix.lower()], text) for path, text in shown.items()]
        async with running.lock:
            running.last_used = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):
                    await running.server.show(documents)
                    answer = await running.server.rename(path, place.line, units(place.before, "utf-16"), new_name)
            except TimeoutError:
                self._drop(key)
                raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None
            finally:
                running.server.hide()
                self._start_idle_timer(key, running)
        return renamed_files(answer, shown)

    async def end(self, roots: Collection[Path] | None = None) -> None:
        """End the servers of those roots, by default all. Returns when they are gone."""
        for key in [key for key in self._servers if roots is None or key[1] in roots]:
            self._drop(key)
        while self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)

    # Language servers -------------------------------------------------------------------------------

    async def _by_server(
        self, ready: ReadyChecker, changes: Sequence[TextChange], others: Mapping[Path, str]
    ) -> tuple[dict[Path, list[Finding]], dict[Path, list[Finding]]]:
        languages = ready.checker.languages
        changed = {change.path for change in changes}
        unchanged = {
            path: text for path, text in others.items() if path.suffix.lower() in languages and path not in changed
        }

        def documents(texts: Mapping[Path, str]) -> list[ServerDocument]:
            return [ServerDocument(path, languages[path.suffix.lower()], text) for path, text in texts.items()]

        old_texts = {change.path: change.old_text for change in changes if change.old_text is not None}
        new_texts = {change.path: change.new_text for change in changes}
        key, running = await self._server(ready)
        async with running.lock:
            running.last_used = time.monotonic()
            try:
                async with asyncio.timeout(LIMIT):
                    await running.server.show(documents({**unchanged, **old_texts}))
                    old_findings = await running.server.findings(list(old_texts))
                    await running.server.show(documents(new_texts))
                    new_findings = await running.server.findings(list(new_texts))
            except TimeoutError:
                self._drop(key)
                raise CheckFailed(f"No answer within {LIMIT:g} seconds.") from None
            except CheckFailed:
                self._drop(key)
                raise
            finally:
                running.server.hide()
                self._start_idle_timer(key, running)  # cancelled or not
        if await asyncio.to_thread(lambda: running.server.process.memory) > MEMORY:
            self._drop(key)
        return old_findings, new_findings

    async def _server(self, ready: ReadyChecker) -> tuple[tuple[tuple[str, ...], Path], _RunningServer]:
        key = (ready.command, ready.root)
        running = self._servers.get(key)
        if running is not None and not running.server.lost:
            if running.idle_timer is not None:
                running.idle_timer.cancel()
            return key, running
        if running is not None:
            self._drop(key)
        idle = sorted(
            (entry.last_used, server_key) for server_key, entry in self._servers.items() if not entry.lock.locked()
        )
        for _, idle_key in idle[: max(0, len(self._servers) - MAX_SERVERS + 1)]:
            self._drop(idle_key)
        process = await self._start(ready, ready.command)
        server = LanguageServer(ready.checker, process, ready.root)
        try:
            await server.initialize()
        except BaseException:
            self._end(server.end())
            raise
        faster = self._servers.get(key)
        if faster is not None:  # another check in the same root has started one meanwhile
            self._end(server.end())
            return key, faster
        running = self._servers[key] = _RunningServer(server, asyncio.Lock(), time.monotonic())
        return key, running

    def _start_idle_timer(self, key: tuple[tuple[str, ...], Path], running: _RunningServer) -> None:
        if running.idle_timer is not None:
            running.idle_timer.cancel()
        if self._servers.get(key) is running:
            running.idle_timer = asyncio.get_running_loop().call_later(IDLE, self._drop_idle, key)

    def _drop_idle(self, key: tuple[tuple[str, ...], Path]) -> None:
        running = self._servers.get(key)
        if running is not None and not running.lock.locked():
            self._drop(key)

    def _drop(self, key: tuple[tuple[str, ...], Path]) -> None:
        running = self._servers.pop(key, None)
        if running is not None:
            if running.idle_timer is not None:
                running.idle_timer.cancel()
            self._end(running.server.end())

    def _end(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """End something in a task of its own: it goes on when the caller is cancelled, and `end` waits for it."""
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


def _has_marker(checker: Checker, paths: Sequence[Path], root: Path) -> bool:
    return not checker.markers or next(_near(checker.markers, paths, root), None) is not None


def _near(patterns: Sequence[str], paths: Sequence[Path], root: Path) -> Iterator[Path]:
    """The files that match these globs in the folders of the paths and above, up to the root."""
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
