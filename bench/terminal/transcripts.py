"""Sessions of many items: ours as it would have put them on record, theirs by their record of one turn, repeated."""

import asyncio
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench import past
from bench.subject import Place

ITEMS = 10_000


def lengthen(name: str, place: Place, model: str, items: int = ITEMS) -> str:
    """Have a session of so many items; the home has one of one turn already. Returns its id."""
    match name:
        case "Amanu":
            session = uuid.uuid4().hex
            size = past.Size(items, 200, 2_000)
            asyncio.run(past.write(place.home / "amanu", session, place.workspace, model, size))
            return session
        case "Codex":
            file = next((place.home / ".codex" / "sessions").rglob("rollout-*.jsonl"))
            records = [json.loads(line) for line in file.read_text().splitlines()]
            session = records[0]["payload"]["id"]
            _write(file, codex(records, items))
            return session
        case _:
            file = next((place.home / ".gemini").rglob("session-*.jsonl"))
            records = [json.loads(line) for line in file.read_text().splitlines()]
            _write(file, gemini(records, items))
            return records[0]["sessionId"]


def codex(records: list[dict[str, Any]], items: int) -> Iterator[dict[str, Any]]:
    """Two items a turn: what was asked, and the answer."""
    of_turn = [each for each in records if _is_of_codex_turn(each)]
    turn_id = of_turn[0]["payload"]["turn_id"]
    yield from records
    for number in range(items // 2 - 1):
        text = (
            json.dumps(of_turn).replace(turn_id, str(uuid.UUID(int=number + 1))).replace("msg_bench", f"msg_{number}")
        )
        for at, record in enumerate(json.loads(text)):
            yield {**record, "ordinal": len(records) + number * len(of_turn) + at}


def _is_of_codex_turn(record: dict[str, Any]) -> bool:
    kind, payload = record["type"], record["payload"]
    if kind == "event_msg":
        return payload["type"] in ("task_started", "item_completed", "token_count", "task_complete")
    return (kind == "response_item" and payload.get("role") == "assistant") or "Are you there" in json.dumps(record)


def gemini(records: list[dict[str, Any]], items: int) -> Iterator[dict[str, Any]]:
    said = [each for each in records if each.get("type") in ("user", "gemini")]
    yield from records
    for number in range(items // 2 - 1):
        for each in said:
            yield {**each, "id": str(uuid.UUID(int=number * 2 + (each["type"] == "gemini")))}


def _write(file: Path, records: Iterable[dict[str, Any]]) -> None:
    text = re.sub(r"(?m)^\s+", "", "".join(f"{json.dumps(each)}\n" for each in records))
    file.write_text(text)
