"""`protocol/fixtures/*.json` specify the fold for every language; this is the Python one."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from amanu_protocol.events import Event
from amanu_protocol.items import Item
from amanu_protocol.state import SessionState, fold

FIXTURES = sorted((Path(__file__).parents[3] / "protocol" / "fixtures").glob("*.json"))
EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_fold(path: Path) -> None:
    fixture = load(path)
    state = SessionState.model_validate(fixture["start"])
    assert state.model_dump(mode="json", by_alias=True) == fixture["start"], "the start is a whole state"
    for event in fixture["events"]:
        try:
            fold(state, EVENT.validate_python(event))
        except ValidationError:  # what clients do with what they do not know
            assert path.stem.startswith("unknown-")
    assert state.model_dump(mode="json", by_alias=True) == fixture["expected"], fixture["name"]
    for item in state.items:
        assert state.item(item.item_id) is item, "found by its id, wherever it moved"


def kinds(union: Any) -> set[str]:
    return {member.model_fields["kind"].default for member in get_args(get_args(union)[0])}


def test_every_kind_of_event_and_item_has_a_fixture() -> None:
    events = [event for path in FIXTURES for event in load(path)["events"]]
    assert kinds(Event) <= {event["kind"] for event in events}
    assert kinds(Item) <= {event["item"]["kind"] for event in events if "item" in event}


def test_fixtures_are_told_apart_by_name() -> None:
    names = [load(path)["name"] for path in FIXTURES]
    assert len(set(names)) == len(names) > 30
