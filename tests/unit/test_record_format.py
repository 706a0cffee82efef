"""What a record says is read as it was said, and a long output is in it once."""

import pytest

from amanu.core.conversation import ENTRY, Result
from amanu.session import record_format
from amanu.storage.journal import Record
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import ToolCall

LONG = 'line "of" many\n' * 50


def completed(output: str) -> ItemCompleted:
    call = ToolCall(
        item_id="c", turn_id="t", tool="grep", title="", effect="read", arguments={}, state="succeeded", output=output
    )
    return ItemCompleted(item=call)


@pytest.mark.parametrize(
    ("output", "text", "once"),
    [
        (LONG, LONG, True),
        (f"{LONG}é", f"{LONG}é", True),
        ("short", "short", False),
        ("", "", False),
        (LONG, f"{LONG}more", False),
        (f"{LONG}\ud800", f"{LONG}\ud800", False),  # what cannot be sent is made so in both
        ("3 lines", LONG, False),
    ],
)
def test_an_output_that_is_its_results_text_is_kept_once(output: str, text: str, once: bool) -> None:
    result = Result(call_id="c", tool="grep", text=text)
    event, written, private = record_format.write(completed(output), result)
    sound = output.replace("\ud800", "?")
    assert event == completed(sound)
    assert private is not None
    record = Record(1, 1, 0, written, private)
    assert record_format.read_event(record, ENTRY.validate_json(private)) == event
    assert record_format.read_event(record) == event, "also when its entry was rewound, and nobody has read it"
    assert (len(written) < len(event.model_dump_json())) == once


def test_an_event_without_an_entry_is_kept_whole() -> None:
    event, written, private = record_format.write(completed(LONG), None)
    assert private is None
    assert record_format.read_event(Record(1, 1, 0, written, None)) == event == completed(LONG)
