"""Requests that count towards a ChatGPT plan: what they carry, with which token, and what is said when they are
refused."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.config import EndpointSettings, Settings
from amanu.core.conversation import Conversation, User
from amanu.core.model import (
    AuthFailed,
    ModelError,
    Overloaded,
    QuotaExhausted,
    ReplyCompleted,
    Request,
    RequestRefused,
    ToolSpec,
)
from amanu.core.model_families import model_info
from amanu.core.tool import tool_schema
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu.models.retry import RetryPolicy, stream_with_retry
from amanu.tools.edits.apply_patch import ApplyPatch
from support.chatgpt_user import ChatGPTUser, chatgpt_user
from support.strict_services.http import Fault, Raw, Say, ToolUse
from support.strict_services.listing import ListingService
from support.strict_services.responses import Responses
from support.vendors import TOOLS, answer, results

MODEL = "openai:gpt-6.2-sol"
PATCH_TOOL = ToolSpec(
    "apply_patch", ApplyPatch.description, tool_schema(ApplyPatch.params), freeform=ApplyPatch.freeform
)


class SignedIn:
    """A user who has signed in, with the API that asks the identity service about tokens."""

    def __init__(self, user: ChatGPTUser, script: Any, folder: Path) -> None:
        self.user = user
        self.service = Responses(script, plan=user.service.valid)
        self.auth = Credentials(folder / "auth.json", user.secrets)
        self.registry = ModelRegistry(Settings(), self.auth, folder / "local.json", Catalogue(folder / "catalogue"))
        self.environment: dict[str, str] = {}

    async def ask(self, conversation: Conversation | None = None, tools: Any = (*TOOLS, PATCH_TOOL)) -> ReplyCompleted:
        model, _ = await self.registry.resolve(MODEL, self.environment)
        conversation = conversation or Conversation([User(text="Hello.")])
        return await answer(model, Request(model_info(MODEL), "You help.", tools, conversation, "s1", "high"))


@asynccontextmanager
async def signed_in(folder: Path, script: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[SignedIn]:
    async with chatgpt_user(folder) as user:
        await user.sign_in()
        monkeypatch.setenv("AMANU_OPENAI_AUTH_URL", user.address)
        at = SignedIn(user, script, folder)
        at.environment["OPENAI_BASE_URL"] = f"{await at.service.start()}/v1"
        try:
            yield at
        finally:
            await at.registry.close()
            await at.service.stop()


async def test_a_conversation_counts_towards_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Say(thought="Hm.", text="I look.", calls=[ToolUse("read_file", {"path": "a.py"})]), Say(text="Fine.")]
    async with signed_in(tmp_path, script, monkeypatch) as at:
        conversation = Conversation([User(text="Hello.")])
        first = await at.ask(conversation)
        conversation.append(first.message)
        conversation.append(results(first.message, "text"))
        second = await at.ask(conversation)
        body: dict[str, Any] = at.service.requests[1].json
    assert second.message.text == "Fine."
    assert (at.service.refused, at.service.lint) == ([], [])
    assert (body["store"], body["stream"], body["include"]) == (False, True, ["reasoning.encrypted_content"])
    assert [item["type"] for item in body["input"]][:2] == ["message", "reasoning"]
    assert {tool["type"] for tool in body["tools"]} == {"function", "custom"}


async def test_a_token_that_is_refused_is_renewed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with signed_in(tmp_path, [Say(text="One."), Say(text="Two.")], monkeypatch) as at:
        await at.ask()
        at.user.service.ahead = 4000.0  # its clock says the token has ended, ours does not
        reply = await at.ask()
        assert reply.message.text == "Two."
        assert (len(at.service.refused), at.user.service.renewals) == (1, 1)
        tokens = {request.headers["authorization"] for request in at.service.requests}
        assert len(tokens) == 2


async def test_two_requests_at_once_renew_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with signed_in(tmp_path, [Say(text="Warm."), Say(text="One."), Say(text="Two.")], monkeypatch) as at:
        await at.ask()
        at.user.service.ahead = 4000.0
        replies = await asyncio.gather(at.ask(), at.ask())
        assert {reply.message.text for reply in replies} == {"One.", "Two."}
        assert (len(at.service.refused), at.user.service.renewals) == (2, 1)


async def test_a_plan_is_never_asked_for_a_reply_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = [Fault("reset", after=2), Fault("reset", after=2), Say(text="Whole.")]
    async with signed_in(tmp_path, script, monkeypatch) as at:
        model, _ = await at.registry.resolve(MODEL, at.environment)
        asked = Request(model_info(MODEL), "You help.", TOOLS, Conversation([User(text="Hello.")]), "s1", "high")
        policy = RetryPolicy(first_delay=0.0)
        seen = [delta async for delta in stream_with_retry(model, asked, policy)]
    assert isinstance(seen[-1], ReplyCompleted) and seen[-1].message.text == "Whole."
    assert (at.service.refused, len(at.service.requests)) == ([], 3)


async def test_a_token_that_is_refused_again_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with signed_in(tmp_path, [Say(text="Never.")], monkeypatch) as at:
        at.service.plan = lambda token: False
        with pytest.raises(AuthFailed, match="Run: amanu auth login openai") as caught:
            await at.ask()
        assert (len(at.service.requests), at.user.service.renewals) == (2, 1)
    tokens = [request.headers["authorization"].split()[1] for request in at.service.requests]
    assert not any(token in repr(caught.value) + caught.value.details for token in tokens)


PREFIX = "subscription_sharing_"
CODES: dict[str, tuple[int, str, type[ModelError], str]] = {
    "user_not_eligible": (403, "", AuthFailed, "Sign in with another one"),
    "invalid_user": (401, "", AuthFailed, "amanu auth login openai"),
    "usage_limit_exceeded": (429, "7200", QuotaExhausted, "available again in 2 hours"),
    "usage_unavailable": (503, "", Overloaded, "right now"),
    "route_not_supported": (400, "", RequestRefused, "Choose another model"),
    "unsupported_capability": (400, "", RequestRefused, "does not include"),
    "something_new": (400, "", RequestRefused, "Choose another model"),
}


@pytest.mark.parametrize(("code", "told"), CODES.items(), ids=CODES)
async def test_a_refusal_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    told: tuple[int, str, type[ModelError], str],
) -> None:
    status, wait, kind, words = told
    headers = {"retry-after": wait} if wait else {}
    fault = Fault("status", status=status, code=PREFIX + code, message="No.", headers=headers)
    async with signed_in(tmp_path, [fault, fault], monkeypatch) as at:
        with pytest.raises(ModelError) as caught:
            await at.ask()
    assert type(caught.value) is kind
    assert words in caught.value.message and "No." in caught.value.message
    assert caught.value.retry_after == (float(wait) if wait else None)


async def test_a_limit_that_is_reached_in_mid_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"type": "error", "code": f"{PREFIX}usage_limit_exceeded", "message": "Limit."}
    script = [Raw([f"event: error\ndata: {json.dumps(error)}\n\n".encode()])]
    async with signed_in(tmp_path, script, monkeypatch) as at:
        with pytest.raises(QuotaExhausted):
            await at.ask()


async def test_the_plan_says_which_models_it_includes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        {"slug": "gpt-6.3-sol", "visibility": "list", "supported_in_api": True},
        {"slug": "gpt-6.2-sol", "visibility": "list", "supported_in_api": True},
        {"slug": "gpt-6.3-hidden", "visibility": "hide", "supported_in_api": True},
        {"slug": "gpt-6.3-chat", "visibility": "list", "supported_in_api": False},
    ]
    async with chatgpt_user(tmp_path) as user, ListingService("openai", {"models": said}).listening() as service:
        await user.sign_in()
        monkeypatch.setenv("AMANU_OPENAI_AUTH_URL", user.address)
        auth = Credentials(tmp_path / "auth.json", user.secrets)
        service.key = await auth.chatgpt.current()
        settings = Settings(base_urls={"openai": service.base_url})
        registry = ModelRegistry(settings, auth, tmp_path / "local.json", Catalogue(tmp_path / "catalogue"))
        done = await registry.catalogue.refresh(registry.listing_addresses({}))
        assert await registry.catalogue.refresh(registry.listing_addresses({})) == {}, "it was asked today"
        with_key = {"OPENAI_API_KEY": "sk-env-0001"}
        assert set(await registry.catalogue.refresh(registry.listing_addresses(with_key))) == {"openai"}
        listed = {info.model_id: info for info in await registry.list({})}
        await registry.close()
    assert done == {"openai": None}
    assert [name for name in listed if name.startswith("openai:gpt-6.3")] == ["openai:gpt-6.3-sol"]
    assert listed["openai:gpt-6.2-sol"].available
    assert listed["openai:gpt-6.2-astra"].unavailable == "Your ChatGPT plan does not include it."
    assert (listed["openai:gpt-6.3-sol"].available, listed["openai:gpt-6.3-sol"].input_price) == (True, 0)


# Key or sign-in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "stored", "gone", "used"),
    [
        ({}, None, False, "signIn"),
        ({}, "sk-stored-0001", False, "signIn"),
        ({"OPENAI_API_KEY": "sk-env-0001"}, "sk-stored-0001", False, "environment"),
        ({"OPENAI_API_KEY": " "}, None, False, "signIn"),
        ({}, "sk-stored-0001", True, "file"),
        ({}, None, True, "none"),
    ],
)
async def test_what_requests_are_made_with(
    tmp_path: Path, environment: dict[str, str], stored: str | None, gone: bool, used: str
) -> None:
    async with chatgpt_user(tmp_path) as user:
        await user.sign_in()
        auth = Credentials(tmp_path / "auth.json")
        auth.set("openai", stored)
        if gone:
            await user.tokens().forget()
        registry = ModelRegistry(Settings(), auth, tmp_path / "local.json", Catalogue(tmp_path / "catalogue"))
        (status,) = [each for each in auth.status(environment) if each.vendor == "openai"]
        (info,) = [each for each in await registry.list(environment) if each.model_id == MODEL]
        assert status.source == used
        assert status.account == (None if gone else "ada@example.org")
        assert info.available == (used != "none")
        assert info.input_price == (0 if used == "signIn" else 2)
        assert registry.known("openai:gpt-6.1-sol", environment).service_tiers == (
            {} if used == "signIn" else {"fast": 2, "flex": 0.5}
        )
        assert registry.default(environment) == (MODEL if used != "none" else None)
        if used != "none":
            model, _ = await registry.resolve(MODEL, environment)
            assert repr(model).startswith("ResponsesModel" if used == "signIn" else "OpenAIModel")
        await registry.close()


@pytest.mark.parametrize(
    ("address", "stored", "used"),
    [
        ("https://api.openai.com/v1/", None, "ResponsesModel"),
        ("http://127.0.0.1:9/v1", "sk-stored-0001", "OpenAIModel"),
        ("http://127.0.0.1:9/v1", None, None),
        ("https://gateway.test/v1", "sk-stored-0001", "OpenAIModel"),
        ("https://gateway.test/v1", None, None),
        ("https://api.openai.com.evil.test/v1", None, None),
    ],
)
async def test_a_gateway_is_given_no_token(tmp_path: Path, address: str, stored: str | None, used: str | None) -> None:
    async with chatgpt_user(tmp_path) as user:
        await user.sign_in()
    auth = Credentials(tmp_path / "auth.json")
    auth.set("openai", stored)
    registry = ModelRegistry(Settings(), auth, tmp_path / "local.json", Catalogue(tmp_path / "catalogue"))
    moved = {"OPENAI_BASE_URL": address}
    assert bool(registry.default(moved)) == bool(used)
    if used:
        assert repr((await registry.resolve(MODEL, moved))[0]).startswith(used)
    await registry.close()


async def test_an_endpoint_of_the_same_name_is_given_no_token(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as user:
        await user.sign_in()
    mine = EndpointSettings(base_url="http://127.0.0.1:9/v1", key_variable="MINE")
    settings = Settings.model_validate({"endpoints": {"openai": mine}})
    registry = ModelRegistry(
        settings, Credentials(tmp_path / "auth.json"), tmp_path / "local.json", Catalogue(tmp_path / "catalogue")
    )
    assert registry.default({}) is None
    await registry.close()
