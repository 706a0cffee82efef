"""The strict services as clouds offer them: other paths, other proofs of who asks, the same rules for what is said.

    python -m support.strict_services.clouds bedrock --script FILE

A request that the cloud lets in is handed on as its maker's own service would have got it.
"""

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Received, Refusal, Service, main
from support.strict_services.refusals import Refused, need

ACCESS_TOKEN = "ya29.access-0123456789abcdefghij"
_VERTEX = r"/projects/shop-1/locations/(?:global|europe-west1)/publishers/"


def _bearer(request: Received) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not token or "x-api-key" in request.headers or "x-goog-api-key" in request.headers:
        raise Refused("Request is missing required authentication credential.", 401, "authentication_error")
    return token


def _token(request: Received) -> tuple[int, bytes] | None:
    """Google's sign-in service, for service accounts."""
    if request.path != "/token":
        return None
    answer = {"access_token": ACCESS_TOKEN, "expires_in": 3600, "token_type": "Bearer"}
    return 200, json.dumps(answer).encode()


def signature(headers: Mapping[str, str], names: str, body: bytes) -> str:
    """In the place of Amazon's: of the headers with these names (`a;b`) and of the body, without a secret."""
    values = "\n".join(headers.get(name, "") for name in names.split(";"))
    return hashlib.sha256(values.encode() + body).hexdigest()


class Bedrock(Anthropic):
    """With a Bedrock API key, or signed."""

    def check(self, request: Received) -> Refusal | None:
        signed = re.search(r"SignedHeaders=([^,]+), Signature=(\w+)", request.headers.get("authorization", ""))
        try:
            if signed is None:
                _bearer(request)
            elif signature(request.headers, signed[1], request.body) != signed[2]:
                raise Refused("The request signature we calculated does not match the one you provided.", 403)
            need(request.path == "/anthropic/v1/messages", f"Unknown path {request.path}")
            need(request.json["model"].startswith("anthropic."), "The provided model identifier is invalid.")
        except Refused as refused:
            return refused.refusal
        body = {**request.json, "model": request.json["model"].removeprefix("anthropic.")}
        request.path, request.body = "/v1/messages", json.dumps(body, separators=(",", ":")).encode()
        return super().check(request)


class Foundry(Anthropic):
    def check(self, request: Received) -> Refusal | None:
        try:
            if not request.headers.get("x-api-key") or "authorization" in request.headers:
                raise Refused("Access denied due to invalid subscription key.", 401, "authentication_error")
            need(request.path == "/anthropic/v1/messages", f"Unknown path {request.path}")
        except Refused as refused:
            return refused.refusal
        request.path = "/v1/messages"
        return super().check(request)


class VertexClaude(Anthropic):
    def other(self, request: Received) -> tuple[int, bytes] | None:
        return _token(request)

    def check(self, request: Received) -> Refusal | None:
        try:
            _bearer(request)
            found = re.fullmatch(
                rf"/v1{_VERTEX}anthropic/models/(claude-[\w.@-]+):(rawP|streamRawP)redict", request.path
            )
            body: dict[str, Any] = request.json
            if found is None:
                raise Refused(f"Unknown path {request.path}", 404)
            need(body.get("stream", False) == (found[2] == "streamRawP"), "stream: does not fit the method")
            need("model" not in body, "model: Extra inputs are not permitted")
            need(bool(body.pop("anthropic_version", "")), "anthropic_version: Field required")
        except Refused as refused:
            return refused.refusal
        request.headers["anthropic-version"] = "in the body"
        request.path = "/v1/messages"
        request.body = json.dumps({"model": found[1].replace("@", "-"), **body}, separators=(",", ":")).encode()
        return super().check(request)


class VertexGemini(Gemini):
    def other(self, request: Received) -> tuple[int, bytes] | None:
        return _token(request)

    def check(self, request: Received) -> Refusal | None:
        try:
            _bearer(request)
            found = re.fullmatch(rf"/v1beta1{_VERTEX}google(/models/gemini-[\w.-]+:\w+)", request.path)
            if found is None:
                raise Refused(f"Unknown path {request.path}", 404, "NOT_FOUND")
        except Refused as refused:
            return refused.refusal
        request.headers["x-goog-api-key"] = "let in"
        request.path = f"/v1beta{found[1]}"
        return super().check(request)


SERVICES: Mapping[str, type[Service]] = {
    "bedrock": Bedrock,
    "foundry": Foundry,
    "vertex-claude": VertexClaude,
    "vertex-gemini": VertexGemini,
}


if __name__ == "__main__":
    main(SERVICES[sys.argv.pop(1)])
