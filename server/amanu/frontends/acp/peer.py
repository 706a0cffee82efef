"""JSON-RPC 2.0 over lines, both ways: ACP's transport on stdin and stdout."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from amanu.frontends.acp.handshake import MAX_LINE, mapping

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
CANCELLED, AUTH_REQUIRED, NOT_FOUND = -32800, -32000, -32002
"""The codes of https://agentclientprotocol.com/protocol/v1/schema#errorcode."""
CANCEL = "$/cancel_request"

Route = Callable[[Any], Awaitable[Any]]
"""Takes the params of a request or notification; gives the result. Raises `RpcError`."""


class RpcError(Exception):
    """An error as it goes over the wire, either way."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def as_json(self) -> dict[str, Any]:
        error = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


class ClientDisconnected(Exception):
    """The client is gone, so no answer will come."""


class Peer:
    """One connection. Requests begin in the order in which they come, and each runs in a task of its own."""

    def __init__(self, write: Callable[[bytes], None], routes: Mapping[str, Route]) -> None:
        self._write = write
        self._routes = routes
        self._received = bytearray()
        self._searched = 0
        """Bytes of `_received` that hold no line end."""
        self._overlong = False
        """Dropping the rest of a line that was too long."""
        self._next_id = 1
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self._notified: set[asyncio.Task[None]] = set()
        self.closed = False
        """The client is gone."""

    def feed(self, data: bytes) -> None:
        """Handle received bytes: complete lines at once, a partial line when its end arrives."""
        self._received += data
        while (end := self._received.find(b"\n", self._searched)) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._searched = 0
            if not self._overlong and line.strip():
                self._receive(line)
            self._overlong = False
        self._searched = len(self._received)
        if self._searched > MAX_LINE:
            if not self._overlong:
                self._refuse(None, INVALID_REQUEST, f"A message has more than {MAX_LINE:,} bytes.")
            self._overlong = True
            self._received.clear()
            self._searched = 0

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Ask the client and wait; if cancelled, withdraw the request from the client. Raises `RpcError` as the client
        sent it, `ClientDisconnected` when it is gone."""
        if self.closed:
            raise ClientDisconnected
        request_id, self._next_id = self._next_id, self._next_id + 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        self._send({"id": request_id, "method": method, "params": params})
        try:
            return await future
        except asyncio.CancelledError:
            self.notify(CANCEL, {"requestId": request_id})
            raise
        finally:
            self._waiting.pop(request_id, None)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say something that has no answer."""
        if not self.closed:
            self._send({"method": method, "params": params})

    async def close(self) -> None:
        """The client is gone: nothing is sent any more, and what runs for it ends."""
        self.closed = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ClientDisconnected())
        tasks = (*self._running.values(), *self._notified)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Inside ------------------------------------------------------------------------------------------

    def _receive(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            self._refuse(None, PARSE_ERROR, "This line is not valid JSON.")
            return
        if not isinstance(message, dict):
            self._refuse(None, INVALID_REQUEST, "A message must be an object; batches are not supported.")
            return
        tree = cast("dict[str, Any]", message)
        method, request_id = tree.get("method"), tree.get("id")
        if not isinstance(method, str):
            self._answered(request_id, tree)
        elif "id" not in tree:
            self._on_notification(method, tree.get("params"))
        elif not isinstance(request_id, int | str) or request_id in self._running:
            self._refuse(None, INVALID_REQUEST, "A request needs an id that is a number or a string, and not in use.")
        else:
            task = asyncio.create_task(self._handle(request_id, method, tree.get("params")))
            self._running[request_id] = task
            task.add_done_callback(lambda task: self._handled(request_id, task))

    def _answered(self, request_id: Any, message: Mapping[str, Any]) -> None:
        future = self._waiting.get(request_id) if type(request_id) is int else None
        if future is None or future.done():  # withdrawn meanwhile, or never asked
            return
        if "error" in message:
            error = mapping(message["error"])
            code = error.get("code")
            future.set_exception(RpcError(code if isinstance(code, int) else 0, str(error.get("message", ""))))
        else:
            future.set_result(message.get("result"))

    def _on_notification(self, method: str, params: Any) -> None:
        if method == CANCEL:
            request_id = mapping(params).get("requestId")
            task = self._running.get(request_id) if isinstance(request_id, int | str) else None
            if task is not None:
                task.cancel()
        elif (route := self._routes.get(method)) is not None:
            task = asyncio.create_task(self._call(route, params))
            self._notified.add(task)
            task.add_done_callback(self._notified.discard)

    async def _call(self, route: Route, params: Any) -> None:
        with contextlib.suppress(RpcError):  # a notification has no answer
            await route(params)

    async def _handle(self, request_id: int | str, method: str, params: Any) -> None:
        route = self._routes.get(method)
        if route is None:
            self._refuse(request_id, METHOD_NOT_FOUND, f"Unknown method {method!r}.")
            return
        try:
            result = await route(params)
        except RpcError as error:
            self._send({"id": request_id, "error": error.as_json()})
        except Exception as error:  # not its text: it may quote what it was given
            self._refuse(request_id, INTERNAL_ERROR, f"Internal error in Amanu ({type(error).__name__}).")
        else:
            self._send({"id": request_id, "result": result})

    def _handled(self, request_id: int | str, task: "asyncio.Task[None]") -> None:
        self._running.pop(request_id, None)
        if task.cancelled():  # perhaps before it began
            self._refuse(request_id, CANCELLED, "The request was cancelled.")

    def _refuse(self, request_id: int | str | None, code: int, message: str) -> None:
        self._send({"id": request_id, "error": RpcError(code, message).as_json()})

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self.closed:
            self._write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")
