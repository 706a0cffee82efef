"""Messages in, exactly one reply out: JSON-RPC as LSP wants it.

Pygls' read loop, dispatch, bookkeeping of requests and error reporting are replaced here, because they leave requests
unanswered, mangle keys and leak (`tests/e2e/test_lsp_conformance.py` shows each on stock pygls). Its feature table and
the LSP types serve plain clients (`plain/features.py`). `amanu/*` params go raw → pydantic, results pydantic → JSON;
nothing else touches them.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from typing import Protocol as TypingProtocol

from pydantic import ValidationError

from amanu.frontends.lsp.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NOT_INITIALIZED,
    PARSE_ERROR,
    UnknownMethod,
    failure,
)
from amanu.frontends.lsp.handshake import BadParams
from amanu.frontends.lsp.wire import to_json
from amanu_protocol.base import Wire
from amanu_protocol.errors import REQUEST_FAILED, AmanuError
from amanu_protocol.methods import BY_NAME
from amanu_protocol.requests import Empty

MAX_OPEN = 1000
"""Requests of one client that wait for their answer at once."""
MAX_READING = 16
"""Requests without an effect that are worked on at once, of one client; the others wait. 900 lists of models at once
held everybody up for half a minute."""
_LONGEST_ID = 1000
"""Characters or digits. Python reads no integer above 4,300 digits, and writes none."""

Id = int | str
Handler = Callable[[Any], Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RequestRoute:
    """How a message with params of ours is handled. Requests are async, notifications are not.

    `reads`: it has no effect, so `$/cancelRequest` and the end of the connection cut it short. Others run to
    their end: an effect is never cut in half, and its reply tells what became of it.
    """

    params: type[Wire]
    handler: Callable[[Any], Any]
    reads: bool = False


class ClientError(Exception):
    """The client answered a request of ours with an error, or can answer no more."""


class Features(TypingProtocol):
    """Requests of LSP that only a plain client sends."""

    def call(self, method: str, params: Any, size: int) -> Callable[[], Any] | None:
        """The call to make, params (of a message of `size` bytes) checked; None when nothing handles it."""
        ...

    def is_request(self, method: str) -> bool:
        """Whether LSP wants an answer to it."""
        ...

    def as_json(self, value: Any) -> Any:
        """A value of LSP's types as plain JSON."""
        ...


class Protocol:
    """One connection's messages. Given by the owner after construction: `send`, `routes`, `admit`, `ended`."""

    def __init__(self) -> None:
        self.send: Callable[[bytes], None] = lambda body: None
        """Takes a message body."""
        self.routes: Mapping[str, RequestRoute] = {}
        """`amanu/*`."""
        self.documents: Mapping[str, RequestRoute] = {}
        """LSP's notifications of every client."""
        self.plain: Mapping[str, Handler] = {}
        """LSP methods that want their params as JSON."""
        self.features: Features | None = None
        """Of a plain client."""
        self.admit: Callable[[], None] = lambda: None
        """Raises when the client may not use `amanu/*`."""
        self.ended: Callable[[], None] = lambda: None
        """Called on `exit`."""
        self.state: Literal["new", "running", "shutdown"] = "new"
        self.mute_initialize = False
        """`initialize` was answered before we came (handshake.py)."""
        self._size = 0
        """Bytes of the message that is looked at."""
        self._open: dict[Id, asyncio.Task[None] | None] = {}
        self._reads: set[Id] = set()
        self._reading = asyncio.Semaphore(MAX_READING)
        self._background: set[asyncio.Task[Any]] = set()
        self._pending_requests: dict[str, asyncio.Future[Any]] = {}
        self._number = 0
        self._closed = False

    # in ---------------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Handle one message body. Never raises; every request in it is answered once, now or later."""
        self._size = len(body)
        try:
            message = json.loads(body, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self.refuse(_id_of(_leniently(body)), PARSE_ERROR, "The message is not JSON.")
            return
        if not isinstance(message, dict):
            problem = "Batches are not part of LSP." if isinstance(message, list) else "The message is not an object."
            self.refuse(None, INVALID_REQUEST, problem)
            return
        message = cast("dict[str, Any]", message)
        request_id = _id_of(message)
        if message.get("jsonrpc") != "2.0":
            self.refuse(request_id, INVALID_REQUEST, 'The message has no "jsonrpc": "2.0".')
        elif "method" not in message and ("result" in message or "error" in message):
            self._answered(message)
        elif not isinstance(method := message.get("method"), str):
            self.refuse(request_id, INVALID_REQUEST, "The message has no method.")
        elif "id" not in message:
            self._notified(method, message.get("params"))
        elif request_id is None:
            self.refuse(None, INVALID_REQUEST, "A request's id is a number without fraction or a string.")
        else:
            self._requested(request_id, method, message.get("params"))

    def _requested(self, id: Id, method: str, params: Any) -> None:
        if id in self._open:
            self.refuse(id, INVALID_REQUEST, "This id is already used by a pending request.")
            return
        if self.state == "new" and method != "initialize":
            self.refuse(id, NOT_INITIALIZED, "Send initialize first.")
            return
        if self.state == "shutdown":
            self.refuse(id, INVALID_REQUEST, "Only exit may follow shutdown.")
            return
        if self.state == "running" and method == "initialize":
            self.refuse(id, INVALID_REQUEST, "initialize was already sent.")
            return
        if params is not None and not isinstance(params, (dict, list)):
            self.refuse(id, INVALID_REQUEST, "The params of a request must be an object, a list, or absent.")
            return
        if len(self._open) >= MAX_OPEN and method != "shutdown":
            self.refuse(id, *_TOO_MANY)
            return
        self._open[id] = None
        try:
            call, reads = self._find(method, params)
        except Exception as error:
            self._fail(id, method, error)
            return
        if reads:
            self._reads.add(id)
        self._run(id, method, call)

    def _run(self, id: Id, method: str, call: Callable[[], Any]) -> None:
        """Call a handler: what is not a coroutine is done before the next message is looked at."""
        try:
            result = call()
        except Exception as error:
            self._fail(id, method, error)
            return
        if not inspect.isawaitable(result):
            self._reply(id, method, result)
            return
        task = asyncio.ensure_future(self._finish(id, method, result))
        self._open[id] = task
        task.add_done_callback(lambda _: self._cut_short(id, method))

    async def _finish(self, id: Id, method: str, result: Awaitable[Any]) -> None:
        try:
            if id in self._reads:
                async with self._reading:  # what waits here has no effect, so nothing that comes later misses one
                    value = await result
            else:
                value = await result
        except asyncio.CancelledError:
            self.refuse(id, CANCELLED, "Cancelled.")
            if inspect.iscoroutine(result):
                result.close()  # it may not have begun
            raise
        except Exception as error:
            self._fail(id, method, error)
            return
        # No await between the handler's end and its reply: what the handler causes comes after the reply.
        self._reply(id, method, value)

    def _cut_short(self, id: Id, method: str) -> None:
        if id in self._open:  # cancelled before its first step: no line of `_finish` has run
            self.refuse(id, CANCELLED, "Cancelled.")

    def _notified(self, method: str, params: Any) -> None:
        if method == "exit":
            self.ended()
            return
        if self.state != "running":
            log.info("notification %a dropped: connection is %s", method, self.state)
            return
        if self._is_request(method):
            log.info("request %a without an id dropped: nobody would hear what became of it", method[:100])
            return
        if method == "$/cancelRequest":
            self._cancel(cast("dict[str, Any]", params).get("id") if isinstance(params, dict) else None)
            return
        try:
            call, _ = self._find(method, params)
            result = call()
        except UnknownMethod:
            log.debug("notification %a is not known", method)
        except Exception as error:
            self._log(method, error)
        else:
            if inspect.isawaitable(result):
                task = asyncio.ensure_future(result)
                self._background.add(task)
                task.add_done_callback(lambda finished: self._notification_done(method, finished))

    def _notification_done(self, method: str, task: "asyncio.Future[Any]") -> None:
        self._background.discard(cast("asyncio.Task[Any]", task))
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._log(method, error)

    def _cancel(self, id: object) -> None:
        task = self._open.get(id) if isinstance(id, (int, str)) else None
        if task is not None and id in self._reads:
            task.cancel()

    def _find(self, method: str, params: Any) -> tuple[Callable[[], Any], bool]:
        """The call to make, params checked, and whether it only reads. Raises `UnknownMethod` or what is wrong."""
        route = self.routes.get(method)
        if route is not None:
            self.admit()
        else:
            route = self.documents.get(method)
        if route is not None:
            checked = route.params.model_validate({} if params is None else params, by_alias=True, by_name=False)
            return lambda: route.handler(checked), route.reads
        if method in self.plain:
            plain = self.plain[method]
            return lambda: plain(params), False
        call = None if self.features is None else self.features.call(method, params, self._size)
        if call is None:
            raise UnknownMethod(method)
        return call, True

    def _is_request(self, method: str) -> bool:
        """Whether the protocols define the method as a request. Without an id such a message is a client's mistake: if
        handled, it could initialize the connection again or answer a question, and the client would get no reply."""
        if method in BY_NAME:
            return BY_NAME[method].result is not None
        return method in _LIFECYCLE or (self.features is not None and self.features.is_request(method))

    # out --------------------------------------------------------------------------------------------

    def _reply(self, id: Id, method: str, result: Any) -> None:
        if method == "initialize" and self.mute_initialize:
            self._settle(id)
            return
        if result is None and method in self.routes:
            result = Empty()
        try:
            body = self._json(result)
        except Exception as error:
            self._fail(id, method, error)
            return
        self._settle(id)
        self.send(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (json.dumps(id).encode(), body))

    def _fail(self, id: Id, method: str, error: Exception) -> None:
        code, message, data = failure(method, error)
        if code == INTERNAL_ERROR or isinstance(error, OSError):
            self._log(method, error)
        self.refuse(id, code, message, data)

    def refuse(self, id: Id | None, code: int, message: str, data: Any = None) -> None:
        """Send an error reply; with id None to whoever sent what cannot be understood."""
        if id is not None:
            self._settle(id)
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        log.info("error reply %d to request %a", code, id)
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode())

    def _settle(self, id: Id) -> None:
        self._open.pop(id, None)
        self._reads.discard(id)

    def _json(self, value: Any) -> bytes:
        if isinstance(value, Wire):
            return to_json(value)
        return json.dumps(value, default=None if self.features is None else self.features.as_json).encode()

    async def ask(self, method: str, params: Any) -> Any:
        """Send a request to the client and wait for its result, as JSON. Raises `ClientError`.

        When the waiting ends early (time-out, cancellation) the client is told so, and nothing is kept.
        """
        if self._closed:
            raise ClientError("The client has disconnected.")
        self._number += 1
        id = f"amanu-{self._number}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending_requests[id] = future
        head = json.dumps({"jsonrpc": "2.0", "id": id, "method": method})
        self.send(b'%b,"params":%b}' % (head[:-1].encode(), self._json(params)))
        try:
            return await future
        except asyncio.CancelledError:
            self.send_notification("$/cancelRequest", {"id": id})
            raise
        finally:
            self._pending_requests.pop(id, None)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification to the client."""
        head = json.dumps({"jsonrpc": "2.0", "method": method})
        self.send(b'%b,"params":%b}' % (head[:-1].encode(), self._json(params)))

    def _answered(self, message: dict[str, Any]) -> None:
        future = self._pending_requests.get(message["id"]) if isinstance(message.get("id"), str) else None
        if future is None or future.done():
            log.debug("a response to nothing we asked")
        elif message.get("error") is None:
            future.set_result(message.get("result"))
        else:
            error: Any = message["error"]
            text = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else None
            future.set_exception(ClientError(str(text or "The client answered with an error.")))

    # end --------------------------------------------------------------------------------------------

    def cancel_reads(self) -> None:
        """Cut short what has no effect; the rest goes on."""
        for id in tuple(self._reads):
            self._cancel(id)

    def close(self) -> None:
        """The connection is gone: nobody answers what we asked, nobody hears what we reply."""
        self._closed = True
        self.cancel_reads()
        for task in tuple(self._background):
            task.cancel()
        for future in self._pending_requests.values():
            if not future.done():
                future.set_exception(ClientError("The client has disconnected."))
                future.exception()  # retrieved: whoever waited may be gone as well

    def _log(self, method: str, error: Exception) -> None:
        if isinstance(error, (BadParams, ValidationError, AmanuError)):
            log.warning("%s: %s", method, failure(method, error)[1])
        else:
            log.error("%s failed", method, exc_info=error)


_TOO_MANY = (REQUEST_FAILED, f"More than {MAX_OPEN} requests of this client are pending.")


_LIFECYCLE = ("initialize", "shutdown")
"""Requests of LSP that every client sends."""


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _leniently(body: bytes) -> Any:
    """What the body would say if its numbers were JSON's (NaN, infinities) and had an end; only good for its id."""
    try:
        return json.loads(body, parse_constant=_no_value, parse_int=_short)
    except (ValueError, RecursionError):
        return None


def _no_value(name: str) -> None:
    """In the place of a number that is none."""


def _short(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_ID else None


def _id_of(message: Any) -> Id | None:
    """The id of a request, if it has one that an answer can carry."""
    id: Any = cast("dict[str, Any]", message).get("id") if isinstance(message, dict) else None
    return id if type(id) in (int, str) and len(str(id)) <= _LONGEST_ID else None
