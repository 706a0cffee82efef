"""Lines as protocol 3 named them, in journals: `startLine` and `endLine`, from 1 and inclusive."""

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from amanu_protocol.base import MOST
from amanu_protocol.events import Event
from amanu_protocol.items import Attachment, Check, Finding

EVENT = """{
  "kind": "itemCompleted",
  "item": {
    "kind": "userMessage", "itemId": "u1", "turnId": "t1", "text": "look", "steer": false,
    "attachments": [
      {"kind": "file", "path": "a.py", "startLine": null, "endLine": null},
      {"kind": "file", "path": "a.py", "startLine": 3, "endLine": 5},
      {"kind": "selection", "path": "a.py", "startLine": 2, "endLine": 2, "text": "b\\n"},
      {"kind": "comment", "path": "a.py", "startLine": 1, "endLine": 2, "text": "a\\nb\\n", "comment": "Why?"}
    ]
  }
}"""
"""Text as version 3 wrote it, but for the white space."""
CHECK = """{
  "checker": "ruff", "about": "proposed", "state": "done", "fixed": 0, "summary": "adds 1 error",
  "added": [{"startLine": 7, "endLine": 9, "severity": "error", "message": "no", "source": "ruff", "code": "F1"}]
}"""


def test_attachments_and_findings_of_old_journals() -> None:
    event = TypeAdapter[Event](Event).validate_json(EVENT)
    lines = [each["lines"] for each in json.loads(event.model_dump_json())["item"]["attachments"]]
    assert lines == [None, {"start": 2, "end": 5}, {"start": 1, "end": 2}, {"start": 0, "end": 2}]
    assert "startLine" not in event.model_dump_json()
    (finding,) = Check.model_validate_json(CHECK).added
    assert (finding.lines.first, finding.lines.last) == (7, 9)
    again = TypeAdapter[Event](Event).validate_json(event.model_dump_json())
    assert again == event


@pytest.mark.parametrize(
    ("old", "lines"),
    [
        ({"startLine": 4}, (3, 4)),
        ({"startLine": 4, "endLine": None}, (3, 4)),
        ({"startLine": 4, "endLine": 2}, (3, 4)),  # nothing checked them
        ({"startLine": -1, "endLine": 2**70}, (0, MOST)),
        ({"startLine": 2**70, "endLine": 0}, (MOST - 1, MOST)),
        ({"startLine": 9, "endLine": 9, "lines": {"start": 1, "end": 2}}, (1, 2)),
        ({}, None),
        ({"startLine": "x", "endLine": 2}, None),
        ({"lines": {"start": 2, "end": 1}}, None),
        ({"lines": {"start": -1, "end": 1}}, None),
        ({"lines": {"start": 0, "end": MOST + 1}}, None),
    ],
)
def test_whatever_they_were(old: dict[str, object], lines: tuple[int, int] | None) -> None:
    try:
        found = Finding.model_validate({"severity": "error", "message": "no", **old}).lines
    except ValidationError:
        assert lines is None
        return
    assert (found.start, found.end) == lines


def test_a_file_without_lines_is_whole() -> None:
    attachment = TypeAdapter[Attachment](Attachment).validate_python({"kind": "file", "path": "a.py"})
    assert attachment.model_dump() == {"kind": "file", "path": "a.py", "lines": None}
