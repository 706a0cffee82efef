"""Every model of the shipped table with every effort a user may ask for: the strict services refuse nothing."""

import pytest

from amanu.core.conversation import Conversation, User
from amanu.core.model import Request
from amanu.core.model_families import EFFORTS, MODELS
from amanu_protocol.items import ModelInfo
from support.strict_services.http import Say
from support.vendors import TOOLS, VENDORS, answer, running

_ADDRESSES = {
    vendor.model_id.partition(":")[0]: vendor
    for vendor in VENDORS
    if vendor.name in ("anthropic", "gemini", "openai", "openrouter", "google-openai")
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.model_id)
async def test_every_effort_is_accepted(model: ModelInfo) -> None:
    vendor = _ADDRESSES[model.model_id.partition(":")[0]]
    async with running(vendor, [Say(text="Fine.")] * len(EFFORTS)) as (_, client):
        for effort in EFFORTS:
            asked = Request(model, "You help.", TOOLS, Conversation([User(text="Hello.")]), "s1", effort)
            assert (await answer(client, asked)).message.text == "Fine."
