"""OpenAI's identity service for "Sign in with ChatGPT for open source", as strict as the standards it follows: PKCE, a
code and a refresh token are good for one use, and a second use revokes what came of them.

    service = OpenAIIdentityService()
    url = await service.start()   # the pages are below {url}/api/accounts
"""

import asyncio
import base64
import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from support.strict_services.http import Fault, Received, Refusal, Say, Service
from support.strict_services.refusals import Refused, need

FIRST = "dynamic_agent_client"
RESOURCE = "https://api.openai.com/v1"
PLAN = "chatgpt.tokens.use.direct"
SCOPE = f"openid profile email offline_access resource.invoke {PLAN}"
_AUTHORIZE = {
    "response_type", "client_id", "redirect_uri", "scope", "resource", "state", "nonce", "code_challenge",
    "code_challenge_method", "ext_agent_host_id", "agent_name_hint",
}  # fmt: skip
_TOKEN = {
    "authorization_code": {"grant_type", "code", "redirect_uri", "client_id", "code_verifier", "resource"},
    "refresh_token": {"grant_type", "refresh_token", "client_id", "resource"},
}

Answer = tuple[int, bytes, dict[str, str]]


@dataclass
class Family:
    """Everything that came of one sign-in."""

    client_id: str
    host_id: str
    redirect_uri: str
    challenge: str
    nonce: str
    revoked: bool = False
    access: dict[str, float] = field(default_factory=dict[str, float])
    """Access token → when it ends, by the service's clock."""


class OpenAIIdentityService(Service):
    """`refused` lists what it refused. What it says can be changed by its attributes."""

    vendor = "openai-identity"

    def __init__(self) -> None:
        super().__init__()
        self.consent = "allow"
        """Or `access_denied`, and other codes of errors: what the user answers."""
        self.scope: str | None = SCOPE
        """Of the answer; None: left out."""
        self.expires_in: Any = 3600
        self.callback: dict[str, str | None] = {}
        """Changes to the parameters of the redirect; None takes one out."""
        self.token: dict[str, Any] = {}
        """Changes to the answers with tokens; None takes a field out."""
        self.nonce: str | None = None
        """Of the id_token, in place of the right one."""
        self.email = "ada@example.org"
        self.faults: list[tuple[int, bytes]] = []
        """The next answers to token requests that would be right; the request is fulfilled all the same."""
        self.outages: list[tuple[int, bytes]] = []
        """The next answers to token requests, which are not even looked at."""
        self.ahead = 0.0
        """Seconds its clock is ahead."""
        self.pause = 0.0
        """Seconds before each answer."""
        self._codes: dict[str, Family] = {}
        self._refresh: dict[str, Family] = {}
        self._used: dict[str, Family] = {}
        """Codes and refresh tokens that were used."""
        self._issued: dict[str, str] = {}
        """Client id → the host it was issued for."""

    def valid(self, access_token: str) -> bool:
        """What the API asks it."""
        ends = [family.access.get(access_token, 0.0) for family in self._families() if not family.revoked]
        return any(end > time.monotonic() + self.ahead for end in ends)

    def revoke(self) -> None:
        """The user ends all sign-ins in their settings; access tokens last to their end."""
        for family in self._families():
            self._refresh = {token: each for token, each in self._refresh.items() if each is not family}

    @property
    def renewals(self) -> int:
        """How many times a refresh token was asked with."""
        return sum(b"grant_type=refresh_token" in request.body for request in self.requests)

    async def _reply(self, request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.pause)
        await super()._reply(request, writer)

    def other(self, request: Received) -> Answer:
        try:
            match request.method, request.path:
                case "GET", "/api/accounts/authorize":
                    return self._authorize(_single(request.query, _AUTHORIZE))
                case "POST", "/api/accounts/oauth/token":
                    if self.outages:
                        return (*self.outages.pop(0), {})
                    answer = self._token(request)
                    return (*self.faults.pop(0), {}) if self.faults else answer
                case _:
                    raise Refused("not_found", 404)
        except Refused as refused:
            code, _, words = str(refused).partition(": ")
            self.refused.append(str(refused))
            body = json.dumps({"error": code, "error_description": words or code}).encode()
            return refused.refusal.status, body, {}

    def _authorize(self, query: dict[str, str]) -> Answer:
        client_id, host_id = query["client_id"], query["ext_agent_host_id"]
        need(query["response_type"] == "code", "unsupported_response_type")
        need(re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", host_id), "invalid_request: host id")
        need(client_id == FIRST or self._issued.get(client_id) == host_id, "unauthorized_client")
        redirect = query["redirect_uri"]
        need(re.fullmatch(r"http://127\.0\.0\.1:\d+/auth/callback", redirect), "invalid_request: redirect_uri")
        need(query["scope"] == SCOPE, "invalid_scope")
        need(query["resource"] == RESOURCE, "invalid_target")
        need(len(query["state"]) >= 22 and len(query["nonce"]) >= 22, "invalid_request: state and nonce")
        need(query["state"] != query["nonce"], "invalid_request: state and nonce")
        need(query["code_challenge_method"] == "S256", "invalid_request: code_challenge_method")
        need(re.fullmatch(r"[\w-]{43}", query["code_challenge"]), "invalid_request: code_challenge")
        need(query["agent_name_hint"] == "Amanu", "invalid_request: agent_name_hint")
        if self.consent != "allow":
            return self._redirect(redirect, {"error": self.consent, "state": query["state"]})
        if client_id == FIRST:
            client_id = f"oaiapp_{secrets.token_hex(8)}"
            self._issued[client_id] = host_id
        code = secrets.token_urlsafe(24)
        self._codes[code] = Family(client_id, host_id, redirect, query["code_challenge"], query["nonce"])
        return self._redirect(redirect, {"code": code, "state": query["state"], "client_id": client_id})

    def _redirect(self, address: str, query: dict[str, str]) -> Answer:
        changed = {name: value for name, value in {**query, **self.callback}.items() if value is not None}
        return 302, b"", {"location": f"{address}?{urlencode(changed)}"}

    def _token(self, request: Received) -> Answer:
        kind = request.headers.get("content-type", "")
        need(kind == "application/x-www-form-urlencoded", "invalid_request: content-type")
        need("authorization" not in request.headers, "invalid_request: the client has no secret")
        asked = parse_qs(request.body.decode()).get("grant_type", [""])[0]
        need(asked in _TOKEN, "unsupported_grant_type")
        form = _single(request.body.decode(), _TOKEN[asked])
        need(form["resource"] == RESOURCE, "invalid_target")
        need(form["client_id"] in self._issued, "invalid_client")
        family = self._redeemed(form["code"] if asked == "authorization_code" else form["refresh_token"])
        need(form["client_id"] == family.client_id, "invalid_grant: of another client")
        if asked == "authorization_code":
            need(form["redirect_uri"] == family.redirect_uri, "invalid_grant: redirect_uri")
            need(re.fullmatch(r"[\w.~-]{43,128}", form["code_verifier"]), "invalid_grant: code_verifier")
            digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            need(digest.rstrip(b"=").decode() == family.challenge, "invalid_grant: code_verifier")
        return 200, json.dumps(self._tokens(family)).encode(), {"cache-control": "no-store"}

    def _redeemed(self, grant: str) -> Family:
        if (family := self._used.get(grant)) is not None:
            family.revoked = True
            need(False, "invalid_grant: used before, so everything that came of it is revoked")
        family = self._codes.pop(grant, None) or self._refresh.pop(grant, None)
        if family is None or family.revoked:
            raise Refused("invalid_grant: unknown or revoked")
        self._used[grant] = family
        return family

    def _tokens(self, family: Family) -> dict[str, Any]:
        access, refresh = f"access.{secrets.token_hex(24)}", f"refresh.{secrets.token_hex(24)}"
        lasts = float(min(self.expires_in, 3600)) if isinstance(self.expires_in, int) else 3600.0
        family.access[access] = time.monotonic() + self.ahead + lasts
        self._refresh[refresh] = family
        claims = {"email": self.email, "nonce": self.nonce or family.nonce}
        parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims)] + [b"unchecked"]
        answer: dict[str, Any] = {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "scope": self.scope,
            "id_token": ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts),
            **self.token,
        }
        return {name: value for name, value in answer.items() if value is not None}

    def _families(self) -> list[Family]:
        return [*self._codes.values(), *self._refresh.values(), *self._used.values()]

    # It generates nothing.

    def check(self, request: Received) -> Refusal | None:
        raise NotImplementedError

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        raise NotImplementedError

    def error_body(self, status: int, message: str, code: str) -> bytes:
        raise NotImplementedError

    def error_event(self, fault: Fault) -> bytes:
        raise NotImplementedError


def _single(text: str, names: set[str]) -> dict[str, str]:
    """A query or form of exactly these parameters, each once."""
    found = parse_qs(text, keep_blank_values=True, strict_parsing=True)
    need(found.keys() == names, f"invalid_request: {' '.join(sorted(found.keys() ^ names))}")
    need(all(len(values) == 1 for values in found.values()), "invalid_request: a parameter comes twice")
    return {name: values[0] for name, values in found.items()}
