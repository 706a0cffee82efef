"""One connection through LSP: each method is one line into the sessions.

`Connection` is the `Client` of the sessions and the owner of everything that belongs to one editor: frames in,
protocol, outbox, open documents. Many connections share one `Sessions`.
"""

import asyncio
import contextlib
import importlib
import inspect
import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from amanu.context.editor import EditorContext
from amanu.core.session_part import Request
from amanu.frontends.lsp import document_messages as d
from amanu.frontends.lsp import handshake
from amanu.frontends.lsp.buffers import Buffers, EditorClient, path_of
from amanu.frontends.lsp.document_text import Position
from amanu.frontends.lsp.editor_queries import EditorLanguage
from amanu.frontends.lsp.errors import INVALID_REQUEST, PARSE_ERROR, unsupported_version
from amanu.frontends.lsp.flow_control import Credit
from amanu.frontends.lsp.jsonrpc import Protocol, RequestRoute
from amanu.frontends.lsp.message_weight import LARGE, MAX_VALUES, weigh
from amanu.frontends.lsp.model_host import EditorModelHost
from amanu.frontends.lsp.outbox import Outbox
from amanu.frontends.lsp.pulled_documents import PulledDocuments
from amanu.session.own_parts import OwnParts
from amanu.session.requests import DAEMON_REQUESTS, SESSION_REQUESTS
from amanu.system.frames import BrokenStream, FrameReader
from amanu.system.logs import CLIENT_CONNECTED
from amanu.text.display import one_line
from amanu.workspace.overlay import Editor
from amanu_protocol import requests as r
from amanu_protocol.events import EventMessage, SessionChanged
from amanu_protocol.items import Item

if TYPE_CHECKING:
    from amanu.frontends.lsp.plain.client import PlainClient
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions

HEADER_SECONDS = 10.0
"""A header that stays unfinished that long is no header: headers are written at once."""
BODY_SECONDS = 120.0
"""Without another byte of a message that was begun. What came of it, up to 64 MB, is kept as long."""
FAREWELL_SECONDS = 2.0
"""For what is unsent when a connection ends."""
WARM_SECONDS = 1.0
"""After `initialized`, until the likely vendor's SDK is imported. The import blocks the interpreter for up to a second;
a client that opens a session at once goes first, and that session imports what its model needs."""
PARENT_SECONDS = 2.0
"""Between two looks whether the editor's process is there."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Streams:
    """The two ends of a client's line."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: bytes = b""
    """Read from it already."""
    answered: bool = False
    """`initialize` was answered already (handshake.py)."""


class Connection:
    """One client, whose `environment` that is."""

    def __init__(self, sessions: "Sessions", streams: Streams, environment: Mapping[str, str]) -> None:
        self.name = ""
        self.environment: Mapping[str, str] = environment
        self.trusted_roots: Collection[str] | None = None
        self.ripgrep: str | None = None
        self.folders: dict[str, Path | None] = {}
        """Workspace folders by URI; None: not a path on this machine."""
        self.capabilities: Mapping[str, Any] = {}
        self.context: EditorContext | None = None
        """What the user looks at; None until the client says something of it."""
        self.protocol = Protocol()
        self.models = EditorModelHost(self.protocol.ask)
        self.buffers: Buffers | None = None
        self._editor: Editor | None = None
        """What the overlay knows of the client: its `buffers`, or what it shows when it is asked."""
        self.plain_client: PlainClient | None = None
        """For a client without a plugin of ours."""
        self._begin_plain: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What comes after its `initialize`."""
        self._sessions = sessions
        self._reader = streams.reader
        self._received = streams.received
        self._attached: dict[str, Session] = {}
        self._speaks_amanu = False
        self._credit = Credit()
        self._exit = False
        self._parent: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._outbox = Outbox(streams.writer, self._item)
        self.protocol.send = self._outbox.put
        self.protocol.mute_initialize = streams.answered
        self.protocol.admit = self._admit
        self.protocol.ended = self._on_exit
        self.protocol.plain = {
            "initialize": self._initialize,
            "initialized": self._initialized,
            "shutdown": self._shutdown,
        }
        self.protocol.routes = self._routes()
        self.protocol.documents = self._documents()

    async def run(self) -> int:
        """Serve until the client leaves. Returns the exit code LSP wants: 0 after `shutdown`, else 1. The writer
        stays open: `finish` closes it."""
        frames = FrameReader()
        try:
            data = self._received or await self._read(frames)
            while data:
                for frame in frames.feed(data):
                    if isinstance(frame, BrokenStream):
                        raise _UnreadableStream(frame.why)
                    duration = 0.0
                    if len(frame) < LARGE or await self._parsable(frame):
                        started_at = time.thread_time()  # of our own: a busy machine is not the client's doing
                        self.protocol.receive(frame)
                        duration = time.thread_time() - started_at
                    if self._exit:
                        return self._code
                    if self._begin_plain is not None:
                        await self._begin_plain()
                        self._begin_plain = None
                    await asyncio.sleep(self._credit.charge(duration))  # 0: a flood must not starve the others either
                data = await self._read(frames)
            return self._code
        except _UnreadableStream as error:
            log.warning("giving the connection up: %s", error)
            self.protocol.refuse(None, PARSE_ERROR, str(error))
            return 1
        except ConnectionError:
            return 1
        finally:
            self._close()

    async def _parsable(self, body: bytes) -> bool:
        """Whether a large message can be parsed without holding up everybody; else its sender is told."""
        for values in weigh(body):
            if values > MAX_VALUES:
                log.warning("a message of %d bytes with more than %d values was not read", len(body), MAX_VALUES)
                why = f"The message holds more than {MAX_VALUES:,} values."
                self.protocol.refuse(None, INVALID_REQUEST, why)
                return False
            await asyncio.sleep(0)
        return True

    async def _read(self, frames: FrameReader) -> bytes:
        seconds = HEADER_SECONDS if frames.in_header else BODY_SECONDS if frames.in_body else None
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.read(65536)
        except TimeoutError:
            subject = "A message header" if frames.in_header else "A message"
            raise _UnreadableStream(f"{subject} was started but never finished.") from None

    @property
    def _code(self) -> int:
        return 0 if self.protocol.state == "shutdown" else 1

    def _close(self) -> None:
        for task in (self._parent, self._warming):
            if task is not None:
                task.cancel()
        if self.plain_client is not None:
            self.plain_client.close()
        if self._editor is not None:
            self._sessions.overlay.remove(self._editor)
            self._sessions.disconnect(self)
        self._sessions.offered.remove(self.models)
        self.protocol.close()
        self._outbox.flush()  # before what `finish` writes

    # Client of the sessions -------------------------------------------------------------------------

    def send(self, message: EventMessage) -> None:
        self._outbox.event(message)
        if isinstance(message.event, SessionChanged) and message.event.closed:  # the last of it
            self._attached.pop(message.session_id, None)
            self._outbox.forget(message.session_id)

    def list_changed(self, session_id: str) -> None:
        self.protocol.send_notification("amanu/session/listChanged", r.SessionListChangedParams(session_id=session_id))

    def mcp_changed(self) -> None:
        self.protocol.send_notification("amanu/mcp/changed", r.Empty())

    # amanu/* ----------------------------------------------------------------------------------------

    def _routes(self) -> dict[str, RequestRoute]:
        sessions = self._sessions
        routes = {
            "amanu/session/create": RequestRoute(r.SessionCreateParams, self._create),
            "amanu/session/fork": RequestRoute(r.SessionForkParams, self._fork),
            "amanu/session/attach": RequestRoute(r.SessionAttachParams, self._attach),
            "amanu/session/detach": RequestRoute(r.SessionParams, self._detach),
            "amanu/rewrite/start": RequestRoute(r.RewriteStartParams, self._start_rewrite),
            "amanu/mention/complete": RequestRoute(
                r.MentionCompleteParams, lambda p: sessions.completion.mention(p, self.context), reads=True
            ),
            "amanu/model/offer": RequestRoute(
                r.ModelOfferParams, lambda p: sessions.offered.put(self.models, p.models)
            ),
            "amanu/model/part": RequestRoute(r.ModelPartParams, self.models.add_part),
            "amanu/event/ack": RequestRoute(r.EventAckParams, lambda p: self._outbox.acknowledge(p.session_id, p.seq)),
            "amanu/editor/contextChanged": RequestRoute(r.ContextChangedParams, self._context_changed),
        }
        for method, request in DAEMON_REQUESTS.items():
            routes[method] = self._about(sessions, request)
        for method, request in SESSION_REQUESTS.items():
            routes[method] = self._in_session(request)
        for part in sessions.parts:
            for method, request in part.requests().items():
                routes[method] = self._about(part, request)
        for kind in (*OwnParts.KINDS, *(part.session_part for part in sessions.parts)):
            for method, request in kind.requests().items():
                routes[method] = self._in_session(self._of_part(method, request))
        return routes

    def _about(self, target: object, request: Request) -> RequestRoute:
        """The route of a request that `target` answers."""
        return RequestRoute(request.params, lambda params: request.call(target, params, self), request.reads)

    def _of_part(self, method: str, request: Request) -> Request:
        """The request to a session that has its part answer this one."""
        return Request(
            request.params, lambda session, params, _: session.core.parts.ask(method, params, self), request.reads
        )

    def _in_session(self, request: Request) -> RequestRoute:
        """The route of a request that the session named in its params answers."""

        async def handler(params: Any) -> Any:
            session = await self._sessions.get(params.session_id)
            result = request.call(session, params, self)
            return await result if inspect.isawaitable(result) else result

        return RequestRoute(request.params, handler, request.reads)

    async def _create(self, params: r.SessionCreateParams) -> r.SessionResult:
        self._outbox.forget(params.session_id)
        result = await self._sessions.create(params, self)
        self._on_attached(params.session_id)
        return result

    async def _fork(self, params: r.SessionForkParams) -> r.SessionResult:
        self._outbox.forget(params.new_session_id)
        result = await self._sessions.fork(params, self)
        self._on_attached(params.new_session_id)
        return result

    async def _start_rewrite(self, params: r.RewriteStartParams) -> r.SessionResult:
        self._outbox.forget(params.session_id)
        result = await self._sessions.start_rewrite(params, self)
        self._on_attached(params.session_id)
        return result

    async def _attach(self, params: r.SessionAttachParams) -> r.SessionAttachResult:
        result = await self._sessions.attach(params, self)
        self._on_attached(params.session_id)
        self._outbox.forget(params.session_id)  # the result tells what was held back
        return result

    async def _detach(self, params: r.SessionParams) -> None:
        session = self._attached.pop(params.session_id, None)
        if session is not None:
            session.detach(self)
        self._outbox.forget(params.session_id)

    def _on_attached(self, session_id: str) -> None:
        """No await here: what the session says next must not overtake the reply."""
        session = self._sessions.opened(session_id)
        if session is not None:
            self._attached[session_id] = session

    def _context_changed(self, params: r.ContextChangedParams) -> None:
        self.context = (self.context or EditorContext()).changed(params)

    def _item(self, session_id: str, item_id: str) -> Item | None:
        session = self._attached.get(session_id)
        return None if session is None else session.state.item(item_id)

    def _admit(self) -> None:
        if not self._speaks_amanu:
            raise unsupported_version(handshake.declared_versions(self.capabilities))

    # LSP --------------------------------------------------------------------------------------------

    def _initialize(self, params: Any) -> dict[str, Any]:
        result = handshake.initialize_result(params)
        self.protocol.state = "running"
        self.capabilities = params["capabilities"]
        info = params.get("clientInfo")
        about = cast("dict[str, Any]", info) if isinstance(info, dict) else {}
        self.name = str(about.get("name") or "")
        log.info("%s%s", CLIENT_CONNECTED, one_line(f"{self.name} {about.get('version') or ''}")[:100])
        for folder in params.get("workspaceFolders") or ():
            self._add_folder(folder["uri"])
        process = params.get("processId")
        amanu = _dict(_dict(self.capabilities.get("experimental")).get("amanu"))
        self._speaks_amanu = handshake.protocol_version(self.capabilities) is not None
        if self._speaks_amanu:
            trusted_roots = amanu.get("trustedRoots")
            self.trusted_roots = (
                None if trusted_roots is None else tuple(root for root in trusted_roots if Path(root).is_absolute())
            )
            self.ripgrep = amanu.get("ripgrep")
            self._sessions.connect(self)
        options = _dict(_dict(params.get("initializationOptions")).get("environment"))
        self.environment = {**self.environment, **{key: str(value) for key, value in options.items()}}
        edits = _dict(_dict(self.capabilities.get("workspace")).get("workspaceEdit"))
        offers = amanu.get("editor") or ()
        client = EditorClient(
            self.name,
            self.protocol.ask,
            result["capabilities"]["positionEncoding"],
            own_apply=self._speaks_amanu and "apply" in offers,
            takes_edits=not self.name or _dict(self.capabilities.get("workspace")).get("applyEdit") is not False,
            versions=edits.get("documentChanges") is True,
            process=process,
            log=lambda line: self.protocol.send_notification("window/logMessage", {"type": 4, "message": line}),
        )
        on_change = self._sessions.overlay.notify_changed
        self.buffers = Buffers(client, on_change)
        is_plain = handshake.is_plain(params)
        is_pulled = self._speaks_amanu and "read" in offers and not is_plain
        self._editor = (
            PulledDocuments(client, self._places, on_change, self._attached.__contains__) if is_pulled else self.buffers
        )
        if self._speaks_amanu:
            self._editor.language = EditorLanguage(client, offers, self._editor, self._places)
        self._sessions.overlay.add(self._editor)
        if is_plain:
            if not self.folders and isinstance(params.get("rootUri"), str):
                self._add_folder(params["rootUri"])
            self._begin_plain = partial(self._serve_plain, client, self.buffers, handshake.options(params))
        if process is not None and alive(process):  # one we cannot see lives in another container
            self._parent = asyncio.create_task(self._watch(process))
        return result

    async def _serve_plain(self, client: EditorClient, buffers: Buffers, options: Mapping[str, Any]) -> None:
        """Runs before the client's next message is handled. It imports in a thread: other clients must not wait."""
        await asyncio.to_thread(importlib.import_module, "amanu.frontends.lsp.plain.client")
        from amanu.frontends.lsp.plain.client import PlainClient
        from amanu.frontends.lsp.plain.editor import PlainEditor
        from amanu.frontends.lsp.plain.features import Features

        editor = PlainEditor(client, buffers, self.capabilities, self.protocol.send_notification)
        model = options.get("model")
        model_id = model if isinstance(model, str) else None
        self.plain_client = PlainClient(self._sessions, self, editor, self.folders, model_id)
        self.protocol.features = features = Features()
        self.protocol.plain = {**self.protocol.plain, **self.plain_client.listen(features.server)}

    def _initialized(self, params: Any) -> None:
        self._warming = asyncio.create_task(self._warm())
        if self.plain_client is not None:
            self.plain_client.begin()

    async def _warm(self) -> None:
        """Import the likely vendor's SDK while the user still types. The one permitted stall."""
        await asyncio.sleep(WARM_SECONDS)
        await self._sessions.models.warm(self)

    def _shutdown(self, params: Any) -> None:
        self.protocol.state = "shutdown"
        self.protocol.cancel_reads()

    def _on_exit(self) -> None:
        self._exit = True

    async def _watch(self, process: int) -> None:
        while alive(process):  # noqa: ASYNC110  there is no event to wait for: it is not our child
            await asyncio.sleep(PARENT_SECONDS)
        log.info("the editor's process %d is gone", process)
        self._reader.feed_eof()

    def _documents(self) -> dict[str, RequestRoute]:
        return {
            "textDocument/didOpen": RequestRoute(d.DidOpenParams, self._opened),
            "textDocument/didChange": RequestRoute(d.DidChangeParams, self._changed),
            "textDocument/didClose": RequestRoute(
                d.DidCloseParams, lambda p: self._open_buffers().closed(p.text_document.uri)
            ),
            "textDocument/didSave": RequestRoute(
                d.DidSaveParams, lambda p: self._open_buffers().saved(p.text_document.uri)
            ),
            "workspace/didChangeWorkspaceFolders": RequestRoute(
                d.DidChangeWorkspaceFoldersParams, self._folders_changed
            ),
        }

    def _opened(self, params: d.DidOpenParams) -> None:
        document = params.text_document
        self._open_buffers().opened(document.uri, document.version, document.text)
        self._document_used(document.uri)

    def _changed(self, params: d.DidChangeParams) -> None:
        document = params.text_document
        self._open_buffers().changed(document.uri, document.version, map(_change, params.content_changes))
        self._document_used(document.uri)

    def _folders_changed(self, params: d.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            self.folders.pop(folder.uri, None)
        for folder in params.event.added:
            self._add_folder(folder.uri)

    def _document_used(self, uri: str) -> None:
        if self.plain_client is not None:
            self.plain_client.document_used(uri)

    def _open_buffers(self) -> Buffers:
        assert self.buffers is not None, "documents come after initialize"
        return self.buffers

    def _places(self) -> Iterator[Path]:
        """The folders the client has before it: its own, and those of the sessions it is attached to."""
        yield from filter(None, self.folders.values())
        for session in self._attached.values():
            yield from map(Path, session.state.roots)

    def _add_folder(self, uri: str) -> None:
        self.folders[uri] = path_of(uri)


async def finish(writer: asyncio.StreamWriter, trailer: bytes = b"") -> None:
    """Close a connection's writer once the client took what is unsent, or after two seconds."""
    writer.write(trailer)
    writer.close()
    try:
        async with asyncio.timeout(FAREWELL_SECONDS):
            await writer.wait_closed()
    except (TimeoutError, ConnectionError):
        writer.transport.abort()


async def connect_in_process(
    sessions: "Sessions", environment: Mapping[str, str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client's end of a connection to sessions of this process: the same protocol, no other process.

    Closing the writer ends the connection, as an editor's going away would.
    """
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    connection = Connection(sessions, Streams(reader, writer), environment)

    async def serve() -> None:
        await connection.run()
        await finish(writer)

    _keep(asyncio.create_task(serve()))
    return await asyncio.open_connection(sock=theirs)


_running: set[asyncio.Task[None]] = set()
"""Tasks nobody awaits, kept from being collected."""


def _keep(task: asyncio.Task[None]) -> None:
    _running.add(task)
    task.add_done_callback(_running.discard)


def alive(process: int) -> bool:
    """Whether a process of that id exists and is no zombie. Always True on Windows, where asking may end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    return True


class _UnreadableStream(Exception):
    """The stream has no frames any more."""


def _change(change: d.ContentChange) -> tuple[Position, Position, str] | str:
    if change.range is None:
        return change.text
    start, end = change.range.start, change.range.end
    return Position(start.line, start.character), Position(end.line, end.character), change.text


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
