"""The agent's side of ACP: handles the client's requests by delegating to its sessions."""

import asyncio
import contextlib
import datetime
import os
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from amanu.client.connect import LocalCore, connect
from amanu.client.daemon_client import ClientProfile, DaemonClient, Disconnected
from amanu.client.session_view import SessionView, attach, create, mint
from amanu.frontends.acp.config_options import set_mode, set_option
from amanu.frontends.acp.errors import rpc_error
from amanu.frontends.acp.files import editor_requests
from amanu.frontends.acp.handshake import STORED_KEY, TERMINAL_AUTH, initialize_result
from amanu.frontends.acp.peer import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    Peer,
    Route,
    RpcError,
)
from amanu.frontends.acp.schema import (
    AuthenticateParams,
    ClientFeatures,
    HttpServer,
    ListParams,
    P,
    PromptParams,
    ReopenParams,
    SessionParams,
    SetConfigOptionParams,
    SetModeParams,
    SetupParams,
    StdioServer,
    blocks_of,
    mcp_servers_of,
    parse,
)
from amanu.frontends.acp.session import AcpSession
from amanu.system.missing_folder import missing_folder
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError

MAX_LISTED = 500
"""Sessions that `session/list` names, the latest."""
MAX_BACKLOG = 1_000_000
"""Unread bytes above which events are not acknowledged to the daemon, which then buffers further events."""
NO_KEY = "No model service has a key. Run `amanu auth set`, or set a variable such as ANTHROPIC_API_KEY."


class Output(Protocol):
    """What the client reads."""

    @property
    def backlog(self) -> int:
        """Bytes it has not read yet."""
        ...

    def write(self, line: bytes) -> None:
        """Send a line. Never waits."""
        ...


class Agent:
    """One client, and its sessions. `alone`: in this process, without the daemon."""

    def __init__(self, output: Output, *, alone: bool = False) -> None:
        self.features: ClientFeatures | None = None
        """What the client can do; None before `initialize`."""
        self._output = output
        self._core = LocalCore(os.environ) if alone or os.name == "nt" else None
        self._sessions: dict[str, AcpSession] = {}
        self._client: DaemonClient | None = None
        """A connection for what is about no open session."""
        self._connecting = asyncio.Lock()
        self._session_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By session: only one request at a time opens, closes or deletes it."""
        self.peer = Peer(output.write, self._routes())

    async def close(self) -> None:
        """The client is gone. Turns that run go on, and what waits for the user waits for other clients."""
        await self.peer.close()
        sessions, self._sessions = self._sessions, {}
        closing = [session.leave() for session in sessions.values()]
        if self._client is not None:
            closing.append(self._client.close())
        await asyncio.gather(*closing, return_exceptions=True)
        if self._core is not None:
            await self._core.close()

    def _routes(self) -> dict[str, Route]:
        return {
            "initialize": self._initialize,
            "authenticate": self._route(AuthenticateParams, self._authenticate),
            "session/new": self._route(SetupParams, self._new),
            "session/load": self._route(ReopenParams, self._load),
            "session/resume": self._route(ReopenParams, self._resume),
            "session/list": self._route(ListParams, self._list),
            "session/close": self._route(SessionParams, self._close),
            "session/delete": self._route(SessionParams, self._delete),
            "session/prompt": self._route(PromptParams, self._prompt),
            "session/cancel": self._route(SessionParams, self._cancel),
            "session/set_mode": self._route(SetModeParams, self._set_mode),
            "session/set_config_option": self._route(SetConfigOptionParams, self._set_config_option),
        }

    def _route(self, kind: type[P], handler: Callable[[P], Awaitable[dict[str, Any]]]) -> Route:
        async def route(params: Any) -> dict[str, Any]:
            if self.features is None:
                raise RpcError(INVALID_REQUEST, "The first request must be initialize.")
            try:
                return await handler(parse(kind, params))
            except AmanuError as error:
                raise rpc_error(error) from None
            except Disconnected as error:
                raise RpcError(INTERNAL_ERROR, f"{error} Try again.") from None

        return route

    # Methods -----------------------------------------------------------------------------------------

    async def _initialize(self, params: Any) -> dict[str, Any]:
        try:
            result = initialize_result(params)
        except TypeError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from None
        self.features = ClientFeatures.of(params)
        return result

    async def _authenticate(self, params: AuthenticateParams) -> dict[str, Any]:
        if params.method_id not in (STORED_KEY, TERMINAL_AUTH):
            available = f"{STORED_KEY}, {TERMINAL_AUTH}"
            raise RpcError(INVALID_PARAMS, f"Unknown login method {params.method_id!r}. Available: {available}.")
        client = await self._daemon()
        listed = await client.request("amanu/model/list", r.Empty(), r.ModelListResult)
        default = listed.default_model_id
        if default is None or any(model.model_id == default and not model.available for model in listed.models):
            raise RpcError(AUTH_REQUIRED, NO_KEY)  # a new session would not get a model; some need no key
        return {}

    async def _new(self, params: SetupParams) -> dict[str, Any]:
        roots = _roots_of(params)
        client = await self._connect(roots)
        try:
            view = await create(client, r.SessionCreateParams(session_id=mint(), roots=roots))
        except BaseException:
            await client.close()
            raise
        session = self._add_session(view)
        session.is_new = True
        async with self._closed_on_failure(session):
            await self._offer(session, params)
            described = await session.described()
            session.begin()
            return {"sessionId": view.session_id, **described}

    async def _load(self, params: ReopenParams) -> dict[str, Any]:
        async with self._session_locks[params.session_id]:
            session = await self._reopen(params)
            async with self._closed_on_failure(session):
                await self._offer(session, params)
                await session.replay()
                described = await session.described()
                session.begin()
                return described

    async def _resume(self, params: ReopenParams) -> dict[str, Any]:
        async with self._session_locks[params.session_id]:
            session = await self._reopen(params)
            async with self._closed_on_failure(session):
                await self._offer(session, params)
                session.updates.skip(session.view.state.items)
                described = await session.described()
                session.begin()
                return described

    async def _list(self, params: ListParams) -> dict[str, Any]:
        client = await self._daemon()
        asked = r.SessionListParams(root=params.cwd, limit=MAX_LISTED)
        listed = await client.request("amanu/session/list", asked, r.SessionListResult)
        # a session without a title has no prompt yet
        return {"sessions": [_info(summary) for summary in listed.sessions if summary.title]}

    async def _close(self, params: SessionParams) -> dict[str, Any]:
        async with self._session_locks[params.session_id]:
            session = self._session(params.session_id)
            with contextlib.suppress(AmanuError, Disconnected):
                await session.cancel()
            self._sessions.pop(params.session_id, None)
            await session.leave()
        return {}

    async def _delete(self, params: SessionParams) -> dict[str, Any]:
        async with self._session_locks[params.session_id]:
            session = self._sessions.pop(params.session_id, None)
            if session is not None:
                await session.close()
            client = await self._daemon()
            await client.request("amanu/session/delete", r.SessionParams(session_id=params.session_id), r.Empty)
        return {}

    async def _prompt(self, params: PromptParams) -> dict[str, Any]:
        return {"stopReason": await self._session(params.session_id).prompt(blocks_of(params))}

    async def _cancel(self, params: SessionParams) -> dict[str, Any]:
        await self._session(params.session_id).cancel()
        return {}

    async def _set_mode(self, params: SetModeParams) -> dict[str, Any]:
        await set_mode(self._session(params.session_id).view, params.mode_id)
        return {}

    async def _set_config_option(self, params: SetConfigOptionParams) -> dict[str, Any]:
        session = self._session(params.session_id)
        await set_option(session.view, params.config_id, params.value)
        return {"configOptions": await session.options()}

    # Inside ------------------------------------------------------------------------------------------

    @property
    def _features(self) -> ClientFeatures:
        assert self.features is not None, "no route is taken before `initialize`"
        return self.features

    def _session(self, session_id: str) -> AcpSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise RpcError(NOT_FOUND, f"Session {session_id!r} is not open here. Load or resume it first.")
        return session

    async def _reopen(self, params: ReopenParams) -> AcpSession:
        roots = _roots_of(params)
        client = await self._connect(roots)
        try:
            view = await attach(client, params.session_id)
            if not _is_same(view.state.roots[0], roots[0]):
                raise RpcError(INVALID_PARAMS, f"cwd: this session belongs to {view.state.roots[0]}.", {"path": "cwd"})
        except BaseException:
            await client.close()
            raise
        if (earlier := self._sessions.pop(params.session_id, None)) is not None:
            await earlier.close()
        return self._add_session(view)

    @contextlib.asynccontextmanager
    async def _closed_on_failure(self, session: AcpSession) -> AsyncGenerator[None]:
        """Close the session if the block fails: the client never learns of it."""
        try:
            yield
        except BaseException:
            self._sessions.pop(session.view.session_id, None)
            await session.leave()
            raise

    def _add_session(self, view: SessionView) -> AcpSession:
        view.is_behind = lambda: self._output.backlog > MAX_BACKLOG
        session = self._sessions[view.session_id] = AcpSession(view, self.peer, self._features, self._connect)
        return session

    async def _offer(self, session: AcpSession, params: SetupParams) -> None:
        servers: list[r.OfferedServer] = []
        for server in mcp_servers_of(params):
            try:
                servers.append(_offered(server))
            except ValidationError:
                session.rejected_servers.append(repr(server.name[:50]))
        await session.offer(servers)

    async def _daemon(self) -> DaemonClient:
        async with self._connecting:
            if self._client is None or self._client.lost.is_set():
                self._client = await self._connect([])
            return self._client

    async def _connect(self, roots: Sequence[str]) -> DaemonClient:
        profile = ClientProfile(self._features.name, editor_requests(self._features) if roots else ())
        return await connect(roots=roots, core=self._core, profile=profile)


def _offered(server: StdioServer | HttpServer) -> r.OfferedServer:
    if isinstance(server, HttpServer):
        headers = {header.name: header.value for header in server.headers}
        return r.OfferedServer(name=server.name, kind="http", url=server.url, headers=headers)
    env = {variable.name: variable.value for variable in server.env}
    return r.OfferedServer(name=server.name, kind="stdio", command=server.command, args=server.args, env=env)


def _roots_of(params: SetupParams) -> list[str]:
    """The folders of a session. Raises `RpcError` for one that is none."""
    for name, folder in (
        ("cwd", params.cwd),
        *(("additionalDirectories", each) for each in params.additional_directories),
    ):
        if not os.path.isdir(folder):  # noqa: PTH112  False for a name no system would take
            raise RpcError(INVALID_PARAMS, f"{name}: {missing_folder(folder)}", {"path": name})
        if not Path(folder).is_absolute():
            raise RpcError(INVALID_PARAMS, f"{name}: {folder!r} is not an absolute path.", {"path": name})
    return list(dict.fromkeys((params.cwd, *params.additional_directories)))


def _is_same(folder: str, other: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)


def _info(summary: r.SessionSummary) -> dict[str, Any]:
    updated = datetime.datetime.fromtimestamp(summary.updated_at / 1000, datetime.UTC)
    others = summary.roots[1:]
    return {
        "sessionId": summary.session_id,
        "cwd": summary.roots[0],
        **({"additionalDirectories": others} if others else {}),
        "title": summary.title or None,
        "updatedAt": updated.isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
