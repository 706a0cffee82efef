"""MCP servers over HTTP on loopback, of the SDK's; one of them asks who the user is, and is strict about it."""

import asyncio
import contextlib
import gc
import os
import secrets
import threading
import time
import warnings
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.elicitation import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types import ToolAnnotations
from pydantic import AnyHttpUrl, BaseModel

from support.free_port import free_port
from support.mcp_server import end_when, greet_when


@dataclass
class Authority:
    """An authorization server that knows one resource, whose tokens last `lasts` seconds; a code or a refresh token
    is good for one use, for the client that got it."""

    resource: str
    lasts: int = 3600
    deny: bool = False
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict[str, OAuthClientInformationFull])
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    refreshes: dict[str, RefreshToken] = field(default_factory=dict[str, RefreshToken])
    tokens: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])
    renewed: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        assert params.resource == self.resource, "a token is for one resource"
        assert params.state
        if self.deny:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        assert self.codes.pop(authorization_code.code).client_id == client.client_id
        return self._grant(authorization_code.client_id)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str], *rest: Any
    ) -> OAuthToken:
        assert self.refreshes.pop(refresh_token.token).client_id == client.client_id
        self.renewed += 1
        return self._grant(refresh_token.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self.tokens.get(token)
        return known if known is not None and (known.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def _grant(self, client_id: str) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        expires = int(time.time()) + self.lasts
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], expires_at=expires, resource=self.resource
        )
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[])
        return OAuthToken(access_token=access, expires_in=self.lasts, refresh_token=refresh)


class Name(BaseModel):
    name: str


def ask_name() -> Elicit[Name]:
    return Elicit("Who is it?", Name)


@contextlib.contextmanager
def web_server(
    *, signs_in: bool = False, json_response: bool = False, events: bool = False
) -> Generator[tuple[str, Authority]]:
    """Serve it on a thread; its address, and who signs users in. `events`: over HTTP as it was in 2024-11-05."""
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    address = f"{origin}/{'sse' if events else 'mcp'}"
    authority = Authority(address)
    auth = AuthSettings(
        issuer_url=cast(Any, origin),  # as a text it keeps its form
        resource_server_url=AnyHttpUrl(address),
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    server = MCPServer("web", auth=auth, auth_server_provider=cast(Any, authority)) if signs_in else MCPServer("web")

    @server.tool()
    async def echo(text: str, ctx: Context[Any, Any]) -> str:
        """Repeat a text."""
        await ctx.report_progress(1, 2, "half")
        return text

    @server.tool()
    def header(name: str, ctx: Context[Any, Any]) -> str:
        """A header of this request."""
        request: Any = ctx.request_context.request
        return request.headers.get(name, "none")

    @server.tool()
    def who() -> str:
        """Whose token came with this request."""
        token = get_access_token()
        return "nobody" if token is None else token.client_id

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def look() -> str:
        """Only look."""
        return "looked"

    opened, given_up = asyncio.Event(), asyncio.Event()

    @server.tool()
    async def wait(ctx: Context[Any, Any]) -> str:
        """Wait until somebody calls open_gate."""
        await ctx.report_progress(1, 2, "waiting")
        try:
            await opened.wait()
        except asyncio.CancelledError:
            given_up.set()
            raise
        return "opened"

    @server.tool()
    async def open_gate() -> str:
        """Let those go on who wait."""
        opened.set()
        return "open"

    @server.tool()
    async def cancelled() -> str:
        """Wait until one who waits was cancelled."""
        await given_up.wait()
        return "given up"

    @server.tool()
    def greet(
        answer: Annotated[AcceptedElicitation[Name] | DeclinedElicitation | CancelledElicitation, Resolve(ask_name)],
    ) -> str:
        """Ask the user for a name."""
        return f"{answer.action} {getattr(answer, 'data', None)!r}"

    server.tool()(greet_when)
    server.tool()(end_when)
    app = server.sse_app() if events else server.streamable_http_app(json_response=json_response)
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", lifespan="on", ws="none")
    running = uvicorn.Server(config)
    os.environ.setdefault("WEB_CONCURRENCY", "1")
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            time.sleep(0.01)
        yield address, authority
    finally:
        running.should_exit = running.force_exit = True
        thread.join()
        if events:  # the SDK's server leaves streams open where it is ended
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
