"""A small LSP client that asks a language server, a child process, for its findings in texts that are not in files.

The server is somebody else's program: it may crash, send nonsense or too much, or not answer. Each of these is a
`CheckFailed`; after one the server cannot be used any more.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from amanu.checks.catalog import Checker
from amanu.checks.process import CheckerProcess, CheckFailed
from amanu.system.frames import BrokenStream, FrameReader, frame
from amanu.workspace.diagnostics import message_line
from amanu_protocol.base import LineRange
from amanu_protocol.items import Finding

START = 10.0
"""Seconds in which `initialize` must be answered."""
QUIET = 0.6
"""Seconds without a further publication after which the findings count as complete: many servers publish syntax errors
first and type errors later."""
MOST = 500
"""Findings taken of one file."""
_MAX_BODY = 8 << 20  # bytes of one message
_MAX_READ = 64 << 20  # bytes in one check; a server that sends more is flooding us
_MAX_MESSAGE = 2000  # characters of a finding's message
_MAX_INLINE = 64 * 1024  # bytes parsed in the event loop; more in a thread
_RETRY_CODES = {-32801, -32802, -32800}  # content modified, server cancelled, request cancelled: ask again
_SEVERITY = {1: "error", 2: "warning", 3: "information", 4: "hint"}


@dataclass(frozen=True)
class ServerDocument:
    """A text shown to a server as the file at `path`."""

    path: Path
    language: str
    text: str


class LanguageServer:
    """A running language server. It serves one check at a time."""

    def __init__(self, checker: Checker, process: CheckerProcess, root: Path) -> None:
        self.process = process
        self.languages = checker.languages
        self._checker = checker
        self._root = root
        self._ids = itertools.count(1)
        self._versions = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._open: dict[str, int] = {}
        """Documents by URI, with their version."""
        self._published: dict[str, list[Any]] = {}
        self._updated: set[str] = set()
        """Documents with findings published since texts were last shown."""
        self._publication = asyncio.Event()
        self._pulls = False
        self.renames = False
        """Whether it can rename symbols."""
        self._failure: CheckFailed | None = None
        self._read = 0
        self._reading = asyncio.create_task(self._listen())

    async def initialize(self) -> None:
        """Do the handshake. Raises `CheckFailed`."""
        folder = {"uri": self._root.as_uri(), "name": self._root.name}
        params = {
            "processId": None,  # inside its sandbox it cannot see our process, and would think we had died
            "clientInfo": {"name": "amanu"},
            "rootUri": folder["uri"],
            "rootPath": str(self._root),
            "workspaceFolders": [folder],
            "capabilities": {
                "general": {"positionEncodings": ["utf-16"]},
                "workspace": {
                    "configuration": True,
                    "workspaceFolders": True,
                    "workspaceEdit": {"documentChanges": True},
                },
                "textDocument": {
                    "synchronization": {},
                    "publishDiagnostics": {"versionSupport": True},
                    "diagnostic": {"dynamicRegistration": False},
                    "rename": {"dynamicRegistration": False},
                },
            },
        }
        try:
            async with asyncio.timeout(START):
                result = await self._ask("initialize", params)
                self._tell("initialized", {})
                if self._checker.settings:
                    self._tell("workspace/didChangeConfiguration", {"settings": self._checker.settings})
        except TimeoutError:
            raise CheckFailed(f"It did not start within {START:g} seconds.") from None
        capabilities = _dict(_dict(result).get("capabilities"))
        self._pulls = isinstance(capabilities.get("diagnosticProvider"), dict)
        self.renames = capabilities.get("renameProvider") not in (None, False)

    async def show(self, documents: Sequence[ServerDocument]) -> None:
        """Open the documents; those that are open get the new text. Raises `CheckFailed`."""
        self._updated.clear()
        self._read = 0
        for document in documents:
            uri, version = document.path.as_uri(), next(self._versions)
            if uri in self._open:
                identifier: dict[str, Any] = {"uri": uri, "version": version}
                self._tell(
                    "textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": document.text}]}
                )
            else:
                identifier = {"uri": uri, "version": version, "languageId": document.language, "text": document.text}
                self._tell("textDocument/didOpen", {"textDocument": identifier})
            self._open[uri] = version
        await self._drain()

    async def findings(self, paths: Sequence[Path]) -> dict[Path, list[Finding]]:
        """Its findings in these documents as they were last shown. Waits as long as it takes. Raises `CheckFailed`."""
        if not paths:
            return {}
        if self._pulls:
            return {path: await self._pull(path) for path in paths}
        uris = {path.as_uri() for path in paths}
        while not uris <= self._updated and await self._next(self._checker.silent):
            pass
        while await self._next(QUIET):
            pass
        return {path: self._read_findings(self._published.get(path.as_uri())) for path in paths}

    async def rename(self, path: Path, line: int, character: int, new_name: str) -> Any:
        """Its WorkspaceEdit for what is at that place (line from 0, UTF-16 units) of a document it is shown. Raises
        `CheckFailed`."""
        position = {"line": line, "character": character}
        params = {"textDocument": {"uri": path.as_uri()}, "position": position, "newName": new_name}
        return await self._ask_patiently("textDocument/rename", params)

    def hide(self) -> None:
        """Close all documents."""
        for uri in self._open:
            self._tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        self._open.clear()
        self._published.clear()

    @property
    def lost(self) -> bool:
        return self._failure is not None

    async def end(self) -> None:
        self._reading.cancel()
        await self.process.end()

    # Sending ----------------------------------------------------------------------------------------

    async def _pull(self, path: Path) -> list[Finding]:
        answer = await self._ask_patiently("textDocument/diagnostic", {"textDocument": {"uri": path.as_uri()}})
        return self._read_findings(_dict(answer).get("items"))

    async def _ask_patiently(self, method: str, params: Any) -> Any:
        for pause in (0.1, 0.3, 1.0, 3.0):
            answer = await self._ask(method, params)
            if answer is not _NOT_NOW:
                return answer
            await asyncio.sleep(pause)
        raise CheckFailed("It was too busy to answer.")

    async def _ask(self, method: str, params: Any) -> Any:
        """The result; `_NOT_NOW` when the server would answer later. Raises `CheckFailed`."""
        if self._failure is not None:
            raise self._failure
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        try:
            self._send({"id": number, "method": method, "params": params})
            await self._drain()
            return await future
        finally:
            self._answers.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # marks the exception as seen: `CheckFailed` may have been raised already

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._failure is None and not self.process.stdin.is_closing():
            text = json.dumps({"jsonrpc": "2.0", **message})  # as ASCII: half of a surrogate pair survives
            self.process.stdin.write(frame(text.encode()))

    async def _drain(self) -> None:
        try:
            await self.process.stdin.drain()
        except OSError:
            raise await self._gone() from None

    async def _next(self, limit: float | None) -> bool:
        """Wait for the next publication; False when none came within `limit` seconds. Raises `CheckFailed`."""
        if self._failure is not None:
            raise self._failure
        self._publication.clear()
        try:
            async with asyncio.timeout(limit):
                await self._publication.wait()
        except TimeoutError:
            return False
        if self._failure is not None:
            raise self._failure
        return True

    # Receiving --------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        frames = FrameReader(_MAX_BODY)
        try:
            while data := await self.process.stdout.read(65536):
                self._read += len(data)
                if self._read > _MAX_READ:
                    raise CheckFailed("Its output is too large.")
                for body in frames.feed(data):
                    if isinstance(body, BrokenStream):
                        raise CheckFailed(f"Its output is not valid LSP. {body.why}")
                    self._take(await _parsed(body))
                await asyncio.sleep(0)  # a flood must not starve the others
            self._fail(await self._gone())
        except CheckFailed as error:
            self._fail(error)
        except (OSError, ValueError, RecursionError):
            self._fail(CheckFailed("Its output cannot be read."))

    async def _gone(self) -> CheckFailed:
        return CheckFailed(await self.process.end_reason())

    def _fail(self, failure: CheckFailed) -> None:
        self._failure = self._failure or failure
        for future in self._answers.values():
            if not future.done():
                future.set_exception(failure)
        self._publication.set()

    def _take(self, message: Any) -> None:
        message = _dict(message)
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._answered(number, message)
        elif number is not None:
            self._reply(number, str(method), _dict(message.get("params")))
        elif method == "textDocument/publishDiagnostics":
            self._publish(_dict(message.get("params")))

    def _answered(self, number: Any, message: Mapping[str, Any]) -> None:
        future = self._answers.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if error is None:
            future.set_result(message.get("result"))
        elif _dict(error).get("code") in _RETRY_CODES:
            future.set_result(_NOT_NOW)
        else:
            future.set_exception(CheckFailed(f"It answered with an error: {str(_dict(error).get('message'))[:300]}"))

    def _reply(self, number: Any, method: str, params: Mapping[str, Any]) -> None:
        """Answer a request of the server: with settings or the folder; others are acknowledged or refused."""
        match method:
            case "workspace/configuration":
                items = cast("list[Any]", params.get("items")) if isinstance(params.get("items"), list) else []
                self._send({"id": number, "result": [self._setting(_dict(item).get("section")) for item in items]})
            case "workspace/workspaceFolders":
                folder = {"uri": self._root.as_uri(), "name": self._root.name}
                self._send({"id": number, "result": [folder]})
            case "client/registerCapability" | "client/unregisterCapability" | "window/workDoneProgress/create":
                self._send({"id": number, "result": None})
            case _ if method.endswith("/refresh") or method == "window/showMessageRequest":
                self._send({"id": number, "result": None})
            case _:
                self._send({"id": number, "error": {"code": -32601, "message": f"amanu does not support {method}"}})

    def _setting(self, section: Any) -> Any:
        value: Any = self._checker.settings
        for part in str(section or "").split("."):
            if part:
                value = _dict(value).get(part)
        return value

    def _publish(self, params: Mapping[str, Any]) -> None:
        """Take published findings, if they are about the text shown last; without a version they are taken to be."""
        uri = _spelling(params.get("uri"))
        document = next((candidate for candidate in self._open if _spelling(candidate) == uri), None)
        version, items = params.get("version"), params.get("diagnostics")
        if document is not None and isinstance(items, list) and version in (None, self._open[document]):
            self._published[document] = cast("list[Any]", items)
            self._updated.add(document)
            self._publication.set()

    def _read_findings(self, items: Any) -> list[Finding]:
        if not isinstance(items, list):
            return []
        findings = (_finding(_dict(item), self._checker.name) for item in cast("list[Any]", items)[:MOST])
        return [finding for finding in findings if finding is not None]


_NOT_NOW = object()


def _finding(item: Mapping[str, Any], name: str) -> Finding | None:
    """The finding, None when it is malformed."""
    span = _dict(item.get("range"))
    start, end = _dict(span.get("start")), _dict(span.get("end"))
    first, last = start.get("line"), end.get("line")
    if not isinstance(first, int) or first < 0:
        return None
    if not isinstance(last, int) or last < first:
        last = first
    if last > first and end.get("character") == 0:
        last -= 1
    severity = item.get("severity")
    code = item.get("code")
    return Finding.model_validate(
        {
            "lines": LineRange.numbered(first + 1, last + 1),
            "severity": _SEVERITY.get(severity if isinstance(severity, int) else 1, "error"),
            "message": message_line(str(item.get("message") or ""))[:_MAX_MESSAGE],
            "source": str(item.get("source") or name)[:80],
            "code": str(code)[:80] if isinstance(code, str | int) else "",
        },
        by_name=True,
    )


async def _parsed(body: bytes) -> Any:
    return json.loads(body) if len(body) < _MAX_INLINE else await asyncio.to_thread(json.loads, body)


def _spelling(uri: Any) -> str:
    """The path of a URI, unescaped: servers escape other characters than we do."""
    with contextlib.suppress(ValueError):
        return unquote(urlsplit(str(uri)).path)
    return ""


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
