"""A key is tried before it is kept: each vendor is asked as it wants to be, and what it says becomes a sentence."""

from pathlib import Path
from typing import Any

import pytest

from amanu.config import Settings
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu_protocol.errors import AmanuError
from support.free_port import free_port
from support.strict_services.listing import KEY, ListingService

LISTS: dict[str, Any] = {"gemini": {"models": []}, "openrouter": {"data": {"label": "mine"}}}
CREDIT = {"error": {"message": "Your credit balance is too low."}}
BAD_GOOGLE = {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}


def registry(folder: Path, **settings: Any) -> ModelRegistry:
    auth = Credentials(folder / "auth.json")
    return ModelRegistry(
        Settings.model_validate(settings), auth, folder / "local.json", Catalogue(folder / "catalogue")
    )


@pytest.mark.parametrize("vendor", ["anthropic", "gemini", "openai", "openrouter"])
@pytest.mark.parametrize(("key", "status"), [(KEY, "accepted"), ("sk-wrong-0123456789", "refused")])
async def test_every_vendor_is_asked_its_own_way(tmp_path: Path, vendor: str, key: str, status: str) -> None:
    async with ListingService(vendor, LISTS.get(vendor, {"data": []}), checking=True).listening() as service:
        models = registry(tmp_path, base_urls={vendor: service.base_url})
        result = await models.check_key(vendor, key, {})
        assert result.status == status and key not in result.summary
        assert len(service.requests) == 1
        await models.close()


@pytest.mark.parametrize(
    ("vendor", "code", "answer", "status", "words"),
    [
        ("gemini", 400, BAD_GOOGLE, "refused", "does not accept this key"),
        ("anthropic", 402, CREDIT, "accepted", "its credit or quota is used up"),
        ("openai", 403, {"error": {"message": "Not here."}}, "refused", "does not let it list models"),
        ("openai", 429, {"error": {"message": "Slow down."}}, "untested", "takes no more requests just now"),
        ("anthropic", 529, {"error": {"message": "Busy."}}, "untested", "could not say"),
    ],
)
async def test_what_the_service_says(
    tmp_path: Path, vendor: str, code: int, answer: Any, status: str, words: str
) -> None:
    async with ListingService(vendor, answer, code, checking=True).listening() as service:
        models = registry(tmp_path, base_urls={vendor: service.base_url})
        result = await models.check_key(vendor, KEY, {})
        assert result.status == status and words in result.summary
        await models.close()


async def test_without_a_network_the_key_is_neither_good_nor_bad(tmp_path: Path) -> None:
    models = registry(tmp_path, base_urls={"anthropic": f"http://127.0.0.1:{free_port()}"})
    result = await models.check_key("anthropic", KEY, {})
    assert result.status == "unreachable" and "Anthropic cannot be reached at 127.0.0.1" in result.summary
    await models.close()


@pytest.mark.parametrize("vendor", ["bedrock", "foundry"])
async def test_who_cannot_be_asked_is_named(tmp_path: Path, vendor: str) -> None:
    result = await registry(tmp_path).check_key(vendor, KEY, {})
    assert result.status == "untested" and "no way to test a key" in result.summary


async def test_the_key_in_use_is_tried_when_none_is_given(tmp_path: Path) -> None:
    async with ListingService("openai", {"data": []}, checking=True).listening() as service:
        models = registry(tmp_path, base_urls={"openai": service.base_url})
        assert (await models.check_key("openai", None, {"OPENAI_API_KEY": KEY})).status == "accepted"
        with pytest.raises(AmanuError, match="No key for OpenAI"):
            await models.check_key("openai", None, {})
        await models.close()


async def test_a_key_is_not_sent_unencrypted(tmp_path: Path) -> None:
    models = registry(tmp_path, base_urls={"openai": "http://models.example/v1"})
    with pytest.raises(AmanuError, match="unencrypted"):
        await models.check_key("openai", KEY, {})
