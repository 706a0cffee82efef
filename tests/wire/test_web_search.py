"""Searching the web through the model's own service: one request aside, with sources."""

from pathlib import Path
from typing import Any

import pytest

from amanu.agent import side_query
from amanu.config import Settings
from amanu.core.model import ModelError, TokenUsage, searches
from amanu.core.model_families import model_info
from amanu.models.catalogue import Catalogue
from amanu.models.credentials import Credentials
from amanu.models.registry import ModelRegistry
from amanu.models.vertex import VertexModel
from support.strict_services.http import Cite, Say
from support.vendor_sweeps import over_vendors
from support.vendors import KEY, VENDORS, Vendor, running

CITES = [
    Cite("Zebra", "https://z.example/"),
    Cite("Aardvark", "https://a.example/"),
    Cite("Zebra", "https://z.example/"),
]


async def search(vendor: Vendor, *script: Say) -> tuple[Any, list[Any], list[TokenUsage]]:
    """What is found, the bodies that were sent, and what they took."""
    used: list[TokenUsage] = []
    async with running(vendor, script) as (service, model):
        info = model_info(vendor.model_id)
        found = await side_query.search(model, info, "which animals dig", session_id="s1", count=used.append)
    return found, [each.json for each in service.requests], used


@over_vendors("search")
async def test_the_service_searches_the_web(vendor: Vendor) -> None:
    found, bodies, used = await search(vendor, Say(text="Aardvarks dig.", cites=CITES))
    assert found.text == "Aardvarks dig."
    assert [(source.title, source.url) for source in found.sources] == [
        ("Zebra", "https://z.example/"),
        ("Aardvark", "https://a.example/"),
    ]
    assert len(bodies) == len(used) == 1
    assert (used[0].searches, used[0].told_usd) in ((1, 0), (0, 0.021)), "OpenRouter tells what it costs"
    assert "function" not in str(bodies[0].get("tools"))


async def test_a_search_that_pauses_is_gone_on_with() -> None:
    claude = next(vendor for vendor in VENDORS if vendor.name == "anthropic")
    script = [Say(text="So far:", cites=CITES[:1], stop="paused"), Say(text="Aardvarks dig.", cites=CITES)]
    found, bodies, used = await search(claude, *script)
    assert found.text == "So far:\n\nAardvarks dig."
    assert len(found.sources) == 2
    assert len(used) == 2
    kinds = [block["type"] for block in bodies[1]["messages"][1]["content"]]
    assert kinds == ["server_tool_use", "web_search_tool_result", "text"]


async def test_a_search_that_is_refused_is_an_error() -> None:
    claude = next(vendor for vendor in VENDORS if vendor.name == "anthropic")
    with pytest.raises(ModelError, match="refused"):
        await search(claude, Say(text="No.", stop="refused"))


def test_the_registry_knows_who_searches(tmp_path: Path) -> None:
    registry = ModelRegistry(Settings(), Credentials(tmp_path / "auth.json"), tmp_path / "c", Catalogue(tmp_path / "m"))
    for vendor in VENDORS:
        assert registry.searches(vendor.model_id) == searches(vendor.model(KEY, "http://127.0.0.1:1")), vendor.name
        assert registry.searches(vendor.model_id) == ("search" not in vendor.lacks)
    assert not registry.searches("vertex:gemini-3-pro")
    assert not VertexModel.searches
