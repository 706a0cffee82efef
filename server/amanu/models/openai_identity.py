"""OpenAI's identity service, as far as "Sign in with ChatGPT for open source" goes: OAuth 2.1 with PKCE for a client
that keeps no secret (RFC 6749, 7636, 8252, 8707). Requests and responses are documented at
developers.openai.com/siwc.
"""

import asyncio
import base64
import hashlib
import importlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from amanu.core.model import AuthFailed, ModelError, Overloaded, RequestRefused, StreamBroken
from amanu.models.errors import mask, retry_after, sentence, transport_error
from amanu.models.http import proxy_for, tls_for

ADDRESS = "https://auth.openai.com/api/accounts"
RESOURCE = "https://api.openai.com/v1"
"""The service that the tokens are for, and the only one outside this machine that gets them."""
PLAN_SCOPE = "chatgpt.tokens.use.direct"
"""Lets requests count towards the account's plan."""
SCOPES = f"openid profile email offline_access resource.invoke {PLAN_SCOPE}"
FIRST_CLIENT_ID = "dynamic_agent_client"
"""Until the service has issued one for this installation."""
CALLBACK_PATH = "/auth/callback"
TESTS_VARIABLE = "AMANU_OPENAI_AUTH_URL"
"""Moves `ADDRESS` to a service on this machine, for tests; any other address is ignored."""

TIMEOUT = 30.0
"""Seconds for one answer of the service."""
LIFETIME = 3600.0
"""Seconds an access token lasts when the service does not say."""
_SHORTEST, _LONGEST = 60.0, 24 * 3600.0
"""Bounds for a lifetime that the service states, in seconds: no constant renewal, and no token kept for years."""
_LARGEST = 256 * 1024
"""Bytes of an answer."""
_TOKEN = re.compile(r"[\x21-\x7e]{8,16384}")

ENDED = "Your ChatGPT sign-in has ended. Run: amanu auth login openai"


class SignInEnded(AuthFailed):
    """The refresh token is revoked, used up or too old: the user has to sign in again."""


@dataclass(frozen=True)
class TokenGrant:
    """The response to a token request. Scopes, account and nonce are None if the service did not state them."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    lifetime: float
    """Of the access token, in seconds from its receipt."""
    scopes: frozenset[str] | None = None
    account: str | None = None
    """E-mail address or name, for display only: its signature is not checked."""
    nonce: str | None = None


@dataclass(frozen=True)
class Authorization:
    """The values that tie a response to one attempt to sign in. They are random, and used once."""

    redirect_uri: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)
    """For PKCE: 86 characters; 43 to 128 are allowed."""


def tested_address(environment: Mapping[str, str]) -> str | None:
    """An identity service on this machine, which tests use in place of the real one; None otherwise."""
    moved = environment.get(TESTS_VARIABLE, "")
    address = urlsplit(moved)
    is_here = address.scheme == "http" and address.hostname == "127.0.0.1"
    return moved.rstrip("/") if is_here else None


class OpenAIIdentity:
    """The service at `address`, without a slash at its end; by default OpenAI's own, or the one for tests."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address or tested_address(os.environ) or ADDRESS

    def page(self, attempt: Authorization, client_id: str, host_id: str) -> str:
        """The address to open in a browser. `host_id` names this installation: `urn:uuid:…`, always the same."""
        challenge = hashlib.sha256(attempt.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": attempt.redirect_uri,
            "scope": SCOPES,
            "resource": RESOURCE,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "ext_agent_host_id": host_id,
            "agent_name_hint": "Amanu",
        }
        return f"{self.address}/authorize?{urlencode(query)}"

    async def exchange(self, attempt: Authorization, code: str, client_id: str) -> TokenGrant:
        """The tokens for the code the browser brought. Raises `ModelError`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": attempt.redirect_uri,
            "code_verifier": attempt.verifier,
        }
        grant = await self._ask(form, client_id)
        if grant.refresh_token is None:
            raise _unreadable("no refresh_token")
        return grant

    async def renew(self, refresh_token: str, client_id: str) -> TokenGrant:
        """New tokens. The refresh token is used up by that. Raises `ModelError`, `SignInEnded` among them."""
        return await self._ask({"grant_type": "refresh_token", "refresh_token": refresh_token}, client_id)

    async def _ask(self, form: Mapping[str, str], client_id: str) -> TokenGrant:
        """Bypasses `transport.py`, so that no recording contains it."""
        httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")
        tls = await asyncio.to_thread(tls_for, self.address)
        address = f"{self.address}/oauth/token"
        data = {**form, "client_id": client_id, "resource": RESOURCE}
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                httpx2.AsyncClient(verify=tls, proxy=proxy_for(address), trust_env=False, timeout=TIMEOUT) as http,
                http.stream("POST", address, data=data, headers={"accept": "application/json"}) as response,
            ):
                body = b""
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > _LARGEST:
                        raise _unreadable(f"more than {_LARGEST} bytes")
                if response.status_code == 200:
                    return _grant(body)
                raise _refused(response.status_code, body, response.headers, form)
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as error:
            timeout = httpx2.ReadTimeout("") if isinstance(error, TimeoutError) else error
            raise transport_error("openai", timeout, self.address, started=False) from None


def _grant(body: bytes) -> TokenGrant:
    answer = _object(body)
    access, refresh, scope = (answer.get(name) for name in ("access_token", "refresh_token", "scope"))
    if not isinstance(access, str) or not _TOKEN.fullmatch(access):
        raise _unreadable("no access_token")
    if refresh is not None and (not isinstance(refresh, str) or not _TOKEN.fullmatch(refresh)):
        raise _unreadable("refresh_token")
    scopes = frozenset(scope.split()) if isinstance(scope, str) else None
    claims = _claims(answer.get("id_token"))
    account = next((text for name in ("email", "name") if (text := _displayable(claims.get(name)))), None)
    nonce = claims.get("nonce")
    lifetime = _lifetime(answer.get("expires_in"))
    return TokenGrant(access, refresh, lifetime, scopes, account, nonce if isinstance(nonce, str) else None)


def _lifetime(stated: Any) -> float:
    try:
        seconds = float(stated)
    except (TypeError, ValueError, OverflowError):
        seconds = LIFETIME
    return min(max(seconds, _SHORTEST), _LONGEST) if seconds == seconds else LIFETIME


def _claims(token: Any) -> dict[str, Any]:
    """The payload of a JSON Web Token, its signature unchecked; empty if it has none that can be read."""
    try:
        payload = cast("str", token).split(".")[1]
        value: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (AttributeError, IndexError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _displayable(text: Any) -> str | None:
    return text[:254] if isinstance(text, str) and text.strip() and text.isprintable() else None


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise _unreadable("no JSON") from None
    if not isinstance(answer, dict):
        raise _unreadable("no JSON object")
    return cast("dict[str, Any]", answer)


def _unreadable(fault: str) -> ModelError:
    return StreamBroken(f"OpenAI's response to the sign-in could not be read: {fault}.", "openai")


def _refused(status: int, body: bytes, headers: Any, form: Mapping[str, str]) -> ModelError:
    """From `{"error": code, "error_description": words}` (RFC 6749, 5.2), or whatever else came."""
    try:
        answer = _object(body)
    except ModelError:
        answer = {}
    code: Any = answer.get("error")
    said: Any = answer.get("error_description")
    if isinstance(code, dict):
        of_api = cast("dict[str, Any]", code)
        code, said = of_api.get("code") or of_api.get("type"), of_api.get("message")
    words = str(said or code or f"HTTP {status}")
    for name in ("code", "code_verifier", "refresh_token"):
        words = mask(words, form.get(name))
    words = sentence(words)
    if status == 429 or status >= 500:
        message = f"OpenAI cannot start or renew a sign-in right now: {words}"
        return Overloaded(message, "openai", status, retry_after(headers))
    if code == "invalid_grant" and form["grant_type"] == "refresh_token":
        return SignInEnded(ENDED, "openai", status, details=words)
    if status in (400, 401, 403):
        return AuthFailed(
            f"OpenAI refused the sign-in: {words} Run: amanu auth login openai", "openai", status, details=words
        )
    return RequestRefused(f"OpenAI's sign-in service answered HTTP {status}: {words}", "openai", status)
