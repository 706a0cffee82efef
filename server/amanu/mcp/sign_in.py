"""Signing in to servers elsewhere (OAuth), with the SDK's provider.

Tokens are kept by the server's address and its issuer, in <config>/mcp-auth.json (0600), with what is needed to renew
them after a restart.
"""

import time
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from pydantic import AnyUrl, ValidationError

from amanu.mcp.link import Link
from amanu.models.oauth_callback import CallbackListener
from amanu.system.private_file import PrivateFile

CALLBACK_PATH = "/mcp/callback"
WAIT_SECONDS = 300.0
"""That the user may take in their browser."""
NEEDED = "It wants you to sign in."


class TokenStore:
    """What is kept of the sign-in to one server: `TokenStorage` of the SDK, and the rest."""

    def __init__(self, file: PrivateFile, address: str) -> None:
        self._file = file
        self._address = address

    def entry(self) -> dict[str, Any]:
        """What is kept; empty if nothing is. Raises `AmanuError` (storageError, permissionDenied)."""
        entry = self._file.read().get(self._address)
        return dict(entry) if isinstance(entry, dict) else {}  # pyright: ignore[reportUnknownArgumentType]

    def update(self, **values: Any) -> None:
        self._file.write({**self._file.read(), self._address: {**self.entry(), **values}})

    def forget(self) -> None:
        self._file.write({key: value for key, value in self._file.read().items() if key != self._address})

    async def get_tokens(self) -> OAuthToken | None:
        return _parsed(OAuthToken, self.entry().get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires = None if tokens.expires_in is None else time.time() + tokens.expires_in
        self.update(tokens=tokens.model_dump(mode="json", exclude_none=True), expires_at=expires)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _parsed(OAuthClientInformationFull, self.entry().get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        issuer = str(client_info.issuer or "")
        if issuer != self.entry().get("issuer"):  # tokens of one issuer are not for another
            self.forget()
        self.update(issuer=issuer, client=client_info.model_dump(mode="json", exclude_none=True))


class ServerAuth(OAuthClientProvider):
    """Adds the token that is kept, and renews it. Without a `Browser` nobody is asked: that the user is needed is noted
    on the link."""

    def __init__(self, address: str, store: TokenStore, link: Link, browser: "Browser | None" = None) -> None:
        redirect = "http://127.0.0.1/" if browser is None else browser.address
        super().__init__(
            address,
            OAuthClientMetadata(redirect_uris=[AnyUrl(redirect)], client_name="Amanu"),
            store,
            None if browser is None else browser.show,
            None if browser is None else browser.answer,
        )
        self._store = store
        self._link = link
        self._browser = browser
        self.failure = ""
        """Why a sign-in failed."""

    async def _initialize(self) -> None:
        """Also what the SDK forgets: when the token ends, and where to renew it."""
        await super()._initialize()
        entry, context = self._store.entry(), self.context
        context.oauth_metadata = _parsed(OAuthMetadata, entry.get("metadata"))
        context.auth_server_url = entry.get("issuer") or None
        context.token_expiry_time = entry.get("expires_at")
        if self._browser is not None and context.client_info is not None:
            addresses = [str(uri) for uri in context.client_info.redirect_uris or ()]
            if self._browser.address not in addresses:  # the port is another each time, and was registered
                context.client_info = None

    def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        return self._with_kept_token(request) if self._browser is None else self._with_user(request)

    async def _with_kept_token(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Waits for the answer without the lock, as the SDK's own flow does not: a call may take minutes, and all
        others of the server, the news that it was cancelled too, would wait for it."""
        context = self.context
        async with context.lock:
            if not self._initialized:
                await self._initialize()
            context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
            if not context.is_token_valid() and context.can_refresh_token():
                answer = yield await self._refresh_token()
                self._initialized = await self._handle_refresh_response(answer)
            if context.is_token_valid():
                self._add_auth_header(request)
        sent = request.headers.get("authorization")
        response = yield request
        if response.status_code == 401:  # it ended early, or our clock is slow
            async with context.lock:
                self._add_auth_header(request)  # another request may have renewed it meanwhile
                renewed = request.headers.get("authorization") != sent
                if not renewed and context.can_refresh_token():
                    answer = yield await self._refresh_token()
                    if renewed := await self._handle_refresh_response(answer):
                        self._add_auth_header(request)
            if renewed:
                response = yield request
        if response.status_code == 401 or _wants_more(response):
            self._link.wants_sign_in = NEEDED  # the request has failed, others go on

    async def _with_user(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                outgoing = await flow.asend((yield outgoing))
                if outgoing is request and self.context.oauth_metadata is not None:
                    self._store.update(metadata=self.context.oauth_metadata.model_dump(mode="json", exclude_none=True))
        except StopAsyncIteration:
            return
        except OAuthFlowError as error:
            self.failure = str(error)
            raise
        finally:
            await flow.aclose()


class Browser:
    """The user's browser, and the page of ours that it comes back to. `open_page` shows the user an address."""

    def __init__(self, listener: CallbackListener, open_page: Callable[[str], None]) -> None:
        self._listener = listener
        self._open_page = open_page
        self._state = ""

    @property
    def address(self) -> str:
        return self._listener.address

    async def show(self, address: str) -> None:
        self._state = parse_qs(urlsplit(address).query)["state"][0]
        if urlsplit(address).scheme not in ("http", "https"):
            raise OAuthFlowError("its sign-in page is not on the web")
        self._open_page(address)

    async def answer(self) -> AuthorizationCodeResult:
        try:
            callback = await self._listener.received(self._state, WAIT_SECONDS)
        except TimeoutError:
            raise OAuthFlowError(f"nobody signed in within {WAIT_SECONDS / 60:.0f} minutes") from None
        if callback.error:
            raise OAuthFlowError(f"the authorization server answered {callback.error}")
        return AuthorizationCodeResult(code=callback.code, state=self._state, iss=callback.issuer or None)


def _wants_more(response: httpx2.Response) -> bool:
    """Whether the server refuses because the user must grant more (RFC 6750, section 3.1)."""
    return response.status_code == 403 and "insufficient_scope" in response.headers.get("www-authenticate", "")


def _parsed(model: Any, value: Any) -> Any:
    """None for what is not there, or was kept by another version."""
    try:
        return None if value is None else model.model_validate(value)
    except ValidationError:
        return None
