"""A client of the daemon: JSON-RPC over Content-Length frames, typed by the method table."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import ValidationError

from amanu import __version__
from amanu_protocol.base import Wire
from amanu_protocol.errors import AmanuError, ErrorData
from amanu_protocol.events import EventMessage
from amanu_protocol.methods import BY_NAME, PROTOCOL_VERSION
from amanu_protocol.requests import ClientCapabilities, ServerCapabilities

R = TypeVar("R", bound=Wire)

log = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601
REQUEST_FAILED = -32803
MAX_FRAME = 256 * 1024 * 1024
"""Bytes; a larger frame is a broken stream, not a message."""

TERMINAL = "terminal"
"""The client name recorded with decisions made in a terminal."""

OnRequest = Callable[[str, Any], Awaitable[Any]]
"""Takes a request of the daemon's (method, params); gives its result. Raises `LookupError` for a method it does not
know, anything else if it fails."""


class Disconnected(Exception):
    """The connection to the daemon was closed."""

    def __init__(self, why: str = "The connection to the daemon was closed.") -> None:
        super().__init__(why)


@dataclass(frozen=True)
class ClientProfile:
    """What a client says of itself."""

    name: str = TERMINAL
    editor: Sequence[Literal["read", "apply"]] = ()
    """The `amanu/editor/*` requests it answers."""


class DaemonClient:
    """One connection. `on_event` and `on_notification` are called in order and must not block."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, profile: ClientProfile = ClientProfile()
    ) -> None:
        self.profile = profile
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 1
        self._answering: set[asyncio.Task[None]] = set()
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self.on_event: Callable[[EventMessage], None] = _ignore
        self.on_notification: Callable[[str, Any], None] = _ignore_notification
        self.on_request: OnRequest = _refuse
        self.lost = asyncio.Event()
        """Set once the connection is gone, whoever ended it."""
        self.server: ServerCapabilities | None = None
        """What the daemon said of itself, after `initialize`."""
        self._reading = asyncio.create_task(self._read(), name="amanu-client")

    async def initialize(
        self,
        *,
        roots: Sequence[str] = (),
        trusted_roots: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ServerCapabilities:
        """Shake hands. Raises AmanuError `unsupportedVersion` when the daemon is no Amanu, or too old."""
        client_capabilities = ClientCapabilities(
            protocol=[PROTOCOL_VERSION],
            editor=[*self.profile.editor],
            trusted_roots=None if trusted_roots is None else list(trusted_roots),
        )
        answer = await self._ask(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": self.profile.name, "version": __version__},
                "rootUri": None,
                "workspaceFolders": [{"uri": Path(root).as_uri(), "name": root} for root in roots],
                "capabilities": {"experimental": {"amanu": client_capabilities.model_dump()}},
                "initializationOptions": {"environment": dict(environment)} if environment else {},
            },
        )
        server_capabilities = _server_capabilities(answer)
        self._send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        self.server = server_capabilities
        return server_capabilities

    async def request(self, method: str, params: Wire, result: type[R]) -> R:
        """Ask and wait. Raises AmanuError as the daemon sent it, Disconnected when no answer can come."""
        assert BY_NAME[method].result is result, f"{method} does not answer with {result.__name__}"
        return result.model_validate(await self._ask(method, params.model_dump(mode="json")))

    def notify(self, method: str, params: Wire) -> None:
        """Say something that has no answer; dropped when the connection is gone."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params.model_dump(mode="json")})

    def at_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """What else ends with this connection, last added first: a core in this process, say."""
        self._closers.append(closer)

    async def close(self) -> None:
        """Shut down as LSP requires and release all resources. Safe to call twice."""
        if not self.lost.is_set():
            with contextlib.suppress(AmanuError, Disconnected, TimeoutError):
                async with asyncio.timeout(2):
                    await self._ask("shutdown", None)
            self._send({"jsonrpc": "2.0", "method": "exit"})
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        tasks = (self._reading, *self._answering)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._closers:
            await self._closers.pop()()

    async def _ask(self, method: str, params: Any) -> Any:
        if self.lost.is_set():
            raise Disconnected
        number = self._next_id
        self._next_id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        self._send(message)
        try:
            return await future
        finally:
            self._waiting.pop(number, None)

    def _send(self, message: dict[str, Any]) -> None:
        if self.lost.is_set() or self._writer.is_closing():
            return
        body = json.dumps(message, separators=(",", ":")).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> None:
        try:
            while (message := await read_frame(self._reader)) is not None:
                self._receive(message)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a stream that broke has ended
        except Exception:
            log.exception("a message could not be handled")  # else it would look as if the daemon had gone
            raise
        finally:
            self.lost.set()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Disconnected())

    async def _answer(self, request_id: Any, method: str, params: Any) -> None:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            reply["result"] = await self.on_request(method, params)
        except LookupError:
            reply["error"] = {"code": METHOD_NOT_FOUND, "message": f"{method} is not supported by the client."}
        except Exception as error:
            reply["error"] = {"code": REQUEST_FAILED, "message": str(error) or type(error).__name__}
        self._send(reply)

    def _receive(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if isinstance(method, str):
            if "id" in message:
                answer = asyncio.create_task(self._answer(message["id"], method, message.get("params")))
                self._answering.add(answer)
                answer.add_done_callback(self._answering.discard)
            elif method == "amanu/event":
                with contextlib.suppress(ValidationError):  # an event newer than we are
                    self.on_event(EventMessage.model_validate(message.get("params")))
            else:
                self.on_notification(method, message.get("params"))
            return
        number = message.get("id")
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return
        if message.get("error") is not None:
            future.set_exception(_failure(message["error"]))
        else:
            future.set_result(message.get("result"))


async def read_frame(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None at a clean end. Raises ValueError for what is no frame."""
    length = None
    while True:
        line = await reader.readline()
        if not line:
            return None
        line = line.strip()
        if not line:
            break
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    if length is None or not 0 <= length <= MAX_FRAME:
        raise ValueError("a frame without a usable Content-Length")
    message: Any = json.loads(await reader.readexactly(length))
    if not isinstance(message, dict):
        raise ValueError("a frame that holds no message")
    return cast("dict[str, Any]", message)


def _server_capabilities(answer: Any) -> ServerCapabilities:
    """The daemon's capabilities in the answer to `initialize`. Raises AmanuError `unsupportedVersion` if it has none,
    or those of another version of the protocol."""
    with contextlib.suppress(KeyError, TypeError, ValidationError):
        capabilities = ServerCapabilities.model_validate(answer["capabilities"]["experimental"]["amanu"])
        if capabilities.protocol == PROTOCOL_VERSION:
            return capabilities
    raise AmanuError(
        "unsupportedVersion",
        f"The server that answered does not speak version {PROTOCOL_VERSION} of Amanu's protocol.",
        hint="Update Amanu, and end the daemon if an older one is still running.",
    )


def _failure(error: Any) -> AmanuError:
    message = str(error.get("message", "The request failed."))
    try:
        data = ErrorData.model_validate(error.get("data"))
    except ValidationError:
        return AmanuError("internalError", message)
    return AmanuError(data.kind, message, hint=data.hint, path=data.path, details=data.details)


def _ignore(message: EventMessage) -> None:
    pass


async def _refuse(method: str, params: Any) -> Any:
    raise LookupError


def _ignore_notification(method: str, params: Any) -> None:
    pass
