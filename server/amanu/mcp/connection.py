"""One server that runs, or one connection: started when it is needed, stopped when it is not.

A task of its own (`_own`) enters and leaves the SDK's client, since both must happen in one task; calls are sent by the
tasks of those who make them. A server that ends is started again when it is next needed, after a while, and at most
three times in a row.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
from httpx2 import HTTPError
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from amanu import __version__
from amanu.core.tool import ToolError
from amanu.mcp import convert
from amanu.mcp.elicitation import elicit
from amanu.mcp.errors import first, root_cause
from amanu.mcp.link import Link, OpenStreams
from amanu.mcp.model import CallAnswer, CallClient, Content, ServerPrompt, ServerResource, ServerState
from amanu.mcp.paging import all_pages, listing_of
from amanu.mcp.pins import Listing
from amanu.mcp.process import StartFailed
from amanu.mcp.server_log import ServerLog

log = logging.getLogger(__name__)

BACK_OFF = (1.0, 2.0, 4.0)
"""Seconds before a server that has ended is started again; after the last of them it has failed."""
STEADY = 60.0
"""Seconds after which an end is not taken for a failure of the start."""
SETTLE = 0.3
"""Seconds between a server's word that its tools changed and the look at them: servers say so for each of them."""
GIVE_UP = 600.0
"""Seconds after which a start is given up for good."""
_CLOSE = 10.0
_SIGN_IN = "The MCP server {} cannot be used until the user has signed in to it."

T = TypeVar("T")

_current: "ContextVar[_Call | None]" = ContextVar("_current", default=None)
"""The request that the running task has sent."""


@dataclass(frozen=True)
class Timing:
    """In seconds; `config.ServerTable` says what each means."""

    start: float = 60
    call: float = 300
    idle: float = 600


@dataclass
class _Call:
    """A request under way."""

    client: CallClient
    deadline: asyncio.Timeout
    silence: float
    asking: int = 0
    """Questions to the user that are open: the server waits for them, not we for it."""
    of_tool: bool = False
    """It calls a tool."""
    given_up: bool = False
    """It ended before the server answered it."""
    over: bool = False
    """It ended, one way or the other; progress that came with its answer may still be told."""

    def sign_of_life(self) -> None:
        if not self.over and not self.deadline.expired():
            self.deadline.reschedule(None if self.asking else asyncio.get_running_loop().time() + self.silence)


@dataclass
class Connection:
    """A server as it is reached. `changed` is called when `state`, `reason` or `listing` is another."""

    name: str
    open: OpenStreams
    roots: Sequence[Path]
    timing: Timing
    log: ServerLog
    changed: Callable[[], None]
    is_users: bool = True
    """The user's own file configures it, not a workspace's."""
    session_id: str = ""
    """As in `ServerConfig`."""
    state: ServerState = "configured"
    reason: str = ""
    listing: Listing | None = None
    """What it lists; None before it has run."""
    _client: Client | None = None
    _link: Link = field(default_factory=Link)
    """Of the latest start."""
    _owner: asyncio.Task[None] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _relist: asyncio.Event = field(default_factory=asyncio.Event)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when the state changes."""
    _calls: list[_Call] = field(default_factory=list[_Call])
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when a call ends or a question is held back."""
    _held: int = 0
    """The number of questions whose call is not known yet."""
    _is_ambiguous: bool = False
    """The server has asked without naming the call: from then on its tools are called one at a time."""
    _waiting: int = 0
    _used: float = 0
    _legacy: bool = False
    """Ask as the older revisions want at once."""
    _falls: int = 0
    """Ends in a row that came too soon."""
    _rest_until: float = 0

    # What callers use -------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it, if it does not run."""
        if self._owner is None or self._owner.done():
            self._stop.clear()
            self._used = time.monotonic()
            self._owner = asyncio.create_task(self._own(), name=f"mcp server {self.name}")

    def start_anew(self) -> None:
        """Start it although it has failed."""
        self._falls, self._rest_until = 0, 0
        if self.state in ("failed", "needsSignIn"):
            self._move("configured")
        self.start()

    async def stop(self) -> None:
        """End it; it stays to be used again. Whoever waits for it hears of it."""
        self._stop.set()
        if self._owner is not None:
            await asyncio.wait({self._owner}, timeout=_CLOSE if self._client is not None else 0)
            while not self._owner.done():
                self._owner.cancel()
                await asyncio.wait({self._owner}, timeout=_CLOSE)
        self._move("configured")

    async def call_tool(self, name: str, arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
        async def send(to: Client, call: _Call) -> types.CallToolResult:
            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                if call.over:
                    return
                call.sign_of_life()
                client.progress(convert.progress_text(progress, total, message))

            return await to.call_tool(name, dict(arguments), progress_callback=progressed)

        return convert.call_answer(await self._request(send, client))

    async def list_resources(self) -> Sequence[ServerResource]:
        resources = self._request(lambda to, _: all_pages(to.list_resources, lambda page: page.resources))
        return [convert.server_resource(item) for item in await resources]

    async def read_resource(self, uri: str) -> Sequence[Content]:
        result = await self._request(lambda to, _: to.read_resource(uri))
        return [convert.resource_content(part) for part in result.contents]

    async def list_prompts(self) -> Sequence[ServerPrompt]:
        prompts = self._request(lambda to, _: all_pages(to.list_prompts, lambda page: page.prompts))
        return [convert.server_prompt(item) for item in await prompts]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        result = await self._request(lambda to, _: to.get_prompt(name, dict(arguments)))
        return convert.prompt_text(result.messages)

    async def ready(self) -> Client:
        """Start it if need be, and wait until it can be used. Raises `ToolError`."""
        self._waiting += 1
        try:
            while (client := self._client) is None:
                if self.state == "failed":
                    raise ToolError(f"The MCP server {self.name} cannot be used. {self.reason}")
                if self.state == "needsSignIn":
                    raise ToolError(_SIGN_IN.format(self.name))
                self.start()
                await self._moved.wait()
            return client
        finally:
            self._waiting -= 1

    # Requests ---------------------------------------------------------------------------------------

    async def _request(self, send: Callable[[Client, _Call], Awaitable[T]], caller: CallClient | None = None) -> T:
        """Send a request of the SDK's. Raises `ToolError`."""
        to = await self._ready_for(caller)
        link = self._link
        self._used = time.monotonic()
        silence = self.timing.call
        deadline = asyncio.timeout(silence)
        call = _Call(caller or CallClient(), deadline, silence, of_tool=caller is not None)
        self._calls.append(call)
        _current.set(call)
        try:
            async with deadline:
                return await send(to, call)
        except asyncio.CancelledError:
            call.given_up = True
            raise
        except TimeoutError:
            call.given_up = True
            raise ToolError(
                f"The MCP server {self.name} has shown no progress for {silence:g} seconds, so the call was given up."
            ) from None
        except MCPError as error:
            if link.wants_sign_in:
                link.end(link.wants_sign_in)
                raise ToolError(_SIGN_IN.format(self.name)) from None
            if error.code == types.CONNECTION_CLOSED:
                raise ToolError(await self._loss(link)) from None
            raise ToolError(
                f"The MCP server {self.name} answered with an error: {convert.error_text(error.error)}"
            ) from None
        except (ValidationError, RuntimeError, OSError, ExceptionGroup) as error:
            log.info("mcp server %s: %s", self.name, root_cause(error))
            raise ToolError(f"The answer of the MCP server {self.name} cannot be used: {root_cause(error)}") from None
        finally:
            call.over = True
            self._calls.remove(call)
            self._used = time.monotonic()
            self._tell_of_calls()

    async def _ready_for(self, caller: CallClient | None) -> Client:
        """Wait until it can be used, by a call of that caller. Raises `ToolError`."""
        told = False
        while True:
            client = await self.ready()
            if caller is None or not self._is_ambiguous or not any(call.of_tool for call in self._calls):
                return client
            if not told:
                caller.progress(f"Waits for another call of {self.name} to end.")
                told = True
            await self._ended.wait()

    def _tell_of_calls(self) -> None:
        self._ended.set()
        self._ended = asyncio.Event()

    async def _loss(self, link: Link) -> str:
        """Why the connection was lost under a request, as a sentence."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await link.explained.wait()
        return f"The MCP server {self.name} ended during the call. {link.reason}".rstrip()

    # The task that owns the client --------------------------------------------------------------------

    async def _own(self) -> None:
        while not self._stop.is_set():
            if (rest := self._rest_until - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(rest):
                        await self._stop.wait()
                continue
            began = time.monotonic()
            self._link = Link()
            try:
                await self._serve(self._link)
                self._move("configured")
                return
            except _Over as over:
                if self._stop.is_set():
                    self._move("configured")
                    return
                if over.state is not None:
                    self._move(over.state, over.reason)
                    return
                self._legacy = not over.was_ready and not self._legacy
                self._falls = self._falls + 1 if not over.was_ready or time.monotonic() - began < STEADY else 1
                if self._falls > len(BACK_OFF):
                    again = "It was restarted several times; restart it once that is fixed."
                    self._move("failed", f"{over.reason} {again}")
                    return
                self._rest_until = time.monotonic() + BACK_OFF[self._falls - 1]
                if over.was_ready and not self._waiting:
                    self._move("configured", over.reason)
                    return
                self._move("starting", f"{over.reason} It is being restarted.")

    async def _serve(self, link: Link) -> None:
        """Start it and keep it until it is stopped or idle. Raises `_Over` when that was not our wish."""
        if self.state != "starting":
            self._move("starting")
        loop = asyncio.get_running_loop()
        late = loop.call_later(self.timing.start, self._late)
        over: _Over | None = None
        was_ready = False
        try:
            async with asyncio.timeout(GIVE_UP) as patience, self._new_client(link) as client:
                self.listing = await listing_of(client)
                patience.reschedule(None)
                late.cancel()
                was_ready = True
                self._client = client
                self._move("ready")
                try:
                    await self._until_over(client, link)
                finally:
                    self._client = None
        except* StartFailed as group:
            over = _Over(str(first(group)), "failed")
        except* TimeoutError:
            over = over or _Over(f"It did not answer within {GIVE_UP:.0f} seconds.", "failed")
        except* Exception as group:
            if over is None:
                error = first(group)
                if not isinstance(error, MCPError | OSError | HTTPError | _Ended | RuntimeError | ValidationError):
                    log.warning("mcp server %s", self.name, exc_info=error)
                over = _Over(f"It could not be reached: {error}".rstrip(".") + ".")
        finally:
            late.cancel()
        if over is not None:
            over.was_ready = was_ready
            over.reason = link.wants_sign_in or link.reason or over.reason
            over.state = "needsSignIn" if link.wants_sign_in else over.state
            raise over

    def _new_client(self, link: Link) -> Client:
        return Client(
            self.open(link),  # pyright: ignore[reportArgumentType]
            # A server that ended at the first, unknown request of the newest revision is asked as the older ones want.
            mode="legacy" if self._legacy else "auto",
            client_info=types.Implementation(name="amanu", version=__version__),
            list_roots_callback=self._list_roots,
            elicitation_callback=self._elicit,
            logging_callback=self._logged,
            message_handler=self._received,
            cache=None,
        )

    async def _until_over(self, client: Client, link: Link) -> None:
        """Return when it is to be stopped; raise `_Ended` when it has ended by itself."""
        listening: asyncio.Task[Any] = asyncio.create_task(self._listen(client))
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(event.wait()) for event in (self._stop, link.ended)]
        try:
            while True:
                relist = asyncio.create_task(self._relist.wait())
                idle = max(0.05, self.timing.idle - (time.monotonic() - self._used))
                await asyncio.wait({*waits, relist}, timeout=idle, return_when=asyncio.FIRST_COMPLETED)
                relist.cancel()
                if link.ended.is_set():
                    raise _Ended
                if self._stop.is_set():
                    return
                if self._relist.is_set():
                    await asyncio.sleep(SETTLE)
                    self._relist.clear()
                    self.listing = await listing_of(client)
                    self._move("ready")
                elif not self._calls and time.monotonic() - self._used >= self.timing.idle:
                    return
        finally:
            for task in (*waits, listening):
                task.cancel()
            await asyncio.gather(*waits, listening, return_exceptions=True)

    async def _listen(self, client: Client) -> None:
        """Hear of changed tools as the newest revision tells of them."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        pause = 1.0
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for event in events:
                        if isinstance(event, ToolsListChanged):
                            self._relist.set()
            except MCPError as error:
                if error.code in (types.METHOD_NOT_FOUND, types.CONNECTION_CLOSED):
                    return
            except (SubscriptionLost, TimeoutError):
                pass
            await asyncio.sleep(pause)
            pause = min(60.0, 2 * pause)
            self._relist.set()  # what happened meanwhile is not told again

    def _late(self) -> None:
        self._move("failed", f"It has not started within {self.timing.start:g} seconds; Amanu still waits for it.")

    def _move(self, state: ServerState, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._moved.set()
        self._moved = asyncio.Event()
        self.changed()

    # What the server asks and tells -------------------------------------------------------------------

    async def _list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(
            {"roots": [{"uri": root.as_uri(), "name": root.name} for root in self.roots]}
        )

    async def _elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        call = await self._call_asked_about()
        if call is None:
            return types.ElicitResult(action="cancel")
        call.asking += 1
        call.sign_of_life()
        try:
            return await elicit(self.name, params, call.client)
        finally:
            call.asking -= 1
            call.sign_of_life()

    async def _call_asked_about(self) -> _Call | None:
        """The call that a question which has just come is about; None when that cannot be known. The newest revision
        asks in the answer to a call, and a server reached by its address in the stream of a call: both in a task of
        that call. Otherwise the question is held back until only one call is left that it can be about."""
        call = _current.get()
        if call is not None and call in self._calls:
            return call
        self._is_ambiguous = True
        asked_in = [*self._calls]
        self._held += 1
        try:
            while len(left := [call for call in asked_in if call in self._calls]) > 1:
                if self._held >= len(left):  # each of them may wait for an answer
                    self._tell_of_calls()
                    return None
                await self._ended.wait()
        finally:
            self._held -= 1
        if any(call.given_up for call in asked_in):
            return None  # a server may go on asking for a call that was cancelled
        return next(iter(left), None)

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.log.write(f"({params.level}) {convert.as_text(params.data)}\n")

    async def _received(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()


class _Ended(Exception):
    """The server ended by itself."""

    def __str__(self) -> str:
        return "the connection ended"


class _Over(Exception):
    def __init__(self, reason: str, state: ServerState | None = None) -> None:
        self.reason = reason
        self.state: ServerState | None = state
        """Where starting it again would not help."""
        self.was_ready = False
