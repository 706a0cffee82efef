"""What of a session's records can be found: titles, prompts, answers, calls, questions and changes, not thoughts nor
what commands printed."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from amanu.session.record_format import read_bare
from amanu.storage import journal_sqlite as journal_file
from amanu.storage.packing import unpack
from amanu.storage.search_index import LONGEST_TEXT, Place, Reading
from amanu_protocol.events import Event, ItemCompleted, ItemsWithdrawn, ProposalChanged, SessionRewound
from amanu_protocol.items import Answer, Item, Proposal, Question, ToolCall, UserMessage

BATCH = 250
"""Records that are read at once: about 10 ms of work, for which a search may have to wait."""
_LONGEST_SECRET = 4_000

_HEADS = tuple(f'{{"kind":"{kind}"'.encode() for kind in ("proposalChanged", "itemsWithdrawn", "sessionRewound"))
_ITEM = re.compile(rb'\{"kind":"itemCompleted","item":\{"kind":"(?:userMessage|answer|toolCall|question)"')
_ITEM_HEAD = b'{"kind":"itemCompleted"'

Mask = Callable[[str], str]


def read_places(folder: Path, roots: Sequence[str], mask: Mask, position: int, limit: int = BATCH) -> Reading:
    """What the records of that session's journal add, from behind that position on. Blocks. Nothing, if they cannot be
    read. Raises `sqlite3.Error`."""
    path = folder / journal_file.NAME
    if not path.exists():
        return Reading(position)
    db = journal_file.connect(path, "ro")
    try:
        if not journal_file.is_ours(db):
            return Reading(position)
        anew = journal_file.last_position(db) < position  # what was read is gone: the file is another
        rows = journal_file.after(db, 0 if anew else position, limit)
    finally:
        db.close()
    reading = Reading(rows[-1][0] if rows else position, records=len(rows), anew=anew, complete=len(rows) < limit)
    if anew and not rows:
        reading.position = 0
    for row in rows:
        if (event := _event(row[4])) is not None:
            _add(reading, event, row[3], roots, mask)
    return reading


def title_place(title: str, timestamp: int) -> Place:
    return Place("title", "title", "", "", timestamp, title)


def _event(packed: bytes) -> Event | None:
    """The event, if it is about something that can be found."""
    if not packed.startswith((_ITEM_HEAD, *_HEADS)):
        return None
    text = unpack(packed)
    if text.startswith(_ITEM_HEAD) and _ITEM.match(text) is None:
        return None
    try:
        return read_bare(text.decode("utf-8", "replace"))
    except ValidationError:
        return None


def _add(reading: Reading, event: Event, timestamp: int, roots: Sequence[str], mask: Mask) -> None:
    match event:
        case ItemCompleted(item=item):
            text = _masked("\n".join(filter(None, _texts(item))), mask)
            reading.places[item.item_id] = Place(
                item.item_id, item.kind, item.item_id, item.turn_id or "", timestamp, text
            )
        case ProposalChanged(proposal=proposal):
            for path, text in _changes(proposal):
                key = f"{proposal.proposal_id} {path}"
                call_id = next(iter(proposal.tool_call_ids), "")
                text = f"{_shown_path(path, roots)}\n{_masked(text, mask)}"
                reading.places[key] = Place(key, "change", call_id, proposal.turn_id, timestamp, text)
        case ItemsWithdrawn(item_ids=item_ids):
            for item_id in item_ids:
                reading.places.pop(item_id, None)
            reading.gone |= set(item_ids)
        case SessionRewound(turn_ids=turn_ids):
            gone = set(turn_ids)
            reading.places = {key: place for key, place in reading.places.items() if place.turn_id not in gone}
            reading.gone_turns |= gone
        case _:
            pass


def _masked(text: str, mask: Mask) -> str:
    """Cut after a text is masked: of a secret no part stays that is not known for one."""
    return mask(text[: LONGEST_TEXT + _LONGEST_SECRET])[:LONGEST_TEXT]


def _texts(item: Item) -> Iterator[str]:
    match item:
        case UserMessage(text=text) | Answer(text=text):
            yield text
        case ToolCall():
            command = item.arguments.get("command")
            is_told = isinstance(command, str) and command not in item.title
            yield from (item.title, str(command) if is_told else "", item.summary, item.error or "")
        case Question():
            yield item.title
            yield from (field.text for field in item.fields)
            yield from (answer if isinstance(answer, str) else json.dumps(answer) for answer in item.answers.values())
            yield item.note
        case _:
            pass


def _changes(proposal: Proposal) -> Iterator[tuple[str, str]]:
    for file in proposal.files:
        yield file.path, "\n".join(text for hunk in file.hunks for text in (hunk.new_text, hunk.old_text) if text)
    for row in proposal.rows:
        yield row.path, row.title


def _shown_path(path: str, roots: Sequence[str]) -> str:
    """The path without the root, whose words would be found in every change."""
    root = next((root for root in roots if path.startswith(f"{root}/")), None)
    return path if root is None else path[len(root) + 1 :]
