"""The entry for the ACP registry, by its schema (agentclientprotocol/registry, agent.schema.json)."""

import json
import re
from pathlib import Path

from amanu import __version__
from amanu.__main__ import VERBS

FOLDER = Path(__file__).parents[3] / "docs" / "editors" / "acp-registry"


def test_the_entry_is_of_this_version_and_starts_the_agent() -> None:
    entry = json.loads((FOLDER / "agent.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["version"] == __version__
    assert entry["name"] and entry["description"]
    assert entry["distribution"] == {"uvx": {"package": f"amanu=={__version__}", "args": ["acp"]}}
    assert "acp" in VERBS


def test_the_icon_has_the_size_and_colour_of_the_registry() -> None:
    icon = (FOLDER / "icon.svg").read_text("utf-8")
    assert 'width="16" height="16"' in icon
    assert "currentColor" in icon and "#" not in icon
