"""Sessions that have been going on for long, written the way Amanu keeps them: what it would have put on record."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amanu.core.conversation import Assistant, Call, Entry, Native, Result, Text, Thinking, User
from amanu.home import find_home
from amanu.session import record_format
from amanu.storage.journal import Journal, Record
from amanu_protocol.base import LineRange
from amanu_protocol.events import (
    Event,
    ItemChanged,
    ItemCompleted,
    ItemStarted,
    ProposalChanged,
    SessionChanged,
    StepEnded,
    TurnEnded,
    TurnStarted,
    UsageChanged,
)
from amanu_protocol.items import Answer, Hunk, Proposal, ProposedFile, Thought, ToolCall, Usage, UserMessage

CALLS = 6
"""Of each turn; with prompt and answer it has 14 messages."""
TURN = 2 * CALLS + 2
EPOCH = 1_700_000_000_000

Kept = tuple[Event, Entry | None]


@dataclass(frozen=True)
class Size:
    """`messages` of the conversation; outputs of calls of `least` to `most` characters, small ones oftener."""

    messages: int
    least: int = 200
    most: int = 20_000


LONG = Size(2_000)
SHORT = Size(20)
HEAVY = Size(2_400, 29_000, 29_900)
"""About 60 MB of events and entries: the most that commands show, to user and model."""


async def write(
    home: Path, session_id: str, workspace: Path, model_id: str, size: Size, title: str = "A long one"
) -> int:
    """Put such a session into that AMANU_HOME. Returns how many characters its events and entries are."""
    folder = find_home({"AMANU_HOME": str(home)}).make().sessions / session_id
    journal = await Journal.open(folder)
    total = 0
    try:
        for seq, (event, entry) in enumerate(_Past(workspace, model_id, size, title).records()):
            event, text, private = record_format.write(event, entry)
            journal.append(Record(EPOCH, seq, EPOCH + seq, text, private))
            total += len(event.model_dump_json()) + len(private or "")
            if seq % 500 == 0:
                await journal.durable()
    finally:
        await journal.close()
    return total


class _Past:
    def __init__(self, workspace: Path, model_id: str, size: Size, title: str) -> None:
        self._workspace = workspace
        self._model_id = model_id
        self._size = size
        self._title = title
        self._random = random.Random(7)
        self._ids = (f"id-{n:06}" for n in itertools.count(1))
        words = [f"{stem}_{n}" for stem in ("read", "value", "order", "total", "item", "check") for n in range(40)]
        pool = (self._random.choice((*words, "=", "(", ")", "return", "if", "#")) for _ in range(150_000))
        lines = (" " * self._random.choice((0, 4, 8)) + " ".join(line) for line in _batches(pool, 9))
        self._text = "\n".join(lines)
        self._usage = Usage(
            input_tokens=0,
            cache_read_tokens=0,
            cache_write_tokens=0,
            output_tokens=0,
            thought_tokens=0,
            context_tokens=90_000,
            context_window=200_000,
        )

    def records(self) -> Iterator[Kept]:
        yield (
            SessionChanged(
                roots=[str(self._workspace)], title=self._title, mode="ask", model_id=self._model_id, trusted=True
            ),
            None,
        )
        for turn in range(max(1, self._size.messages // TURN)):
            yield from self._turn(turn)

    def _turn(self, turn: int) -> Iterator[Kept]:
        prompt_id = next(self._ids)
        turn_id = f"turn-{prompt_id}"
        yield TurnStarted(turn_id=turn_id, prompt_id=prompt_id, model_id=self._model_id), None
        said = self._some(300)
        item = UserMessage(item_id=prompt_id, turn_id=turn_id, text=said, attachments=[], steer=False)
        yield ItemCompleted(item=item), User(text=said)
        for step in range(1, CALLS + 1):
            edits = step == CALLS and turn % 3 == 0
            yield from self._step(turn_id, step, "edit_file" if edits else self._tool())
        answer = self._some(1_200)
        yield ItemCompleted(item=Answer(item_id=next(self._ids), turn_id=turn_id, text=answer)), None
        yield UsageChanged(usage=self._usage), None
        yield StepEnded(turn_id=turn_id, step=CALLS + 1), self._reply(None, answer, None)
        yield TurnEnded(turn_id=turn_id, reason="completed", message="", can_continue=False), None

    def _step(self, turn_id: str, step: int, tool: str) -> Iterator[Kept]:
        thought = self._some(400)
        thought_item = Thought(item_id=next(self._ids), turn_id=turn_id, subject="Looking", text=thought)
        yield ItemCompleted(item=thought_item), None
        call_id = next(self._ids)
        arguments: dict[str, Any] = {"path": f"src/part{step}/module.py", "purpose": self._some(60)}
        item = ToolCall(
            item_id=call_id,
            turn_id=turn_id,
            tool=tool,
            title=f"{tool} src/part{step}/module.py",
            effect="read",
            arguments={},
            state="validating",
            output="",
        )
        yield ItemStarted(item=item), None
        yield UsageChanged(usage=self._usage), None
        call = Call(call_id=call_id, tool=tool, arguments=arguments)
        yield StepEnded(turn_id=turn_id, step=step), self._reply(thought, "", call)
        item = item.model_copy(update={"arguments": arguments})
        if tool == "edit_file":
            proposal = self._proposal(turn_id, call_id)
            item = item.model_copy(update={"proposal_id": proposal.proposal_id})
            yield ProposalChanged(proposal=proposal), None
            yield ItemChanged(item=item.model_copy(update={"state": "awaitingApproval"})), None
            yield ProposalChanged(proposal=_applied(proposal)), None
        for state in ("scheduled", "executing"):
            yield ItemChanged(item=item.model_copy(update={"state": state})), None
        output = self._output()
        # Commands show the user what they show the model; readers only say how much they read.
        shown = output if tool == "run_shell_command" else f"{output.count(chr(10))} lines"
        done = item.model_copy(update={"state": "succeeded", "output": shown})
        yield ItemCompleted(item=done), Result(call_id=call_id, tool=tool, text=output)

    def _tool(self) -> str:
        if self._size.least > 10_000:
            return "run_shell_command"
        return self._random.choice(("read_file", "grep", "run_shell_command"))

    def _output(self) -> str:
        least, most = self._size.least, self._size.most
        text = self._some(round(least * (most / least) ** self._random.random()))
        return text if self._random.random() < 0.9 else f"{text}\n… cut"  # one odd character doubles a Python text

    def _some(self, characters: int) -> str:
        at = self._random.randrange(len(self._text) - characters)
        return self._text[at : at + characters]

    def _proposal(self, turn_id: str, call_id: str) -> Proposal:
        base = self._some(8_000)
        old = base[:100]
        hunk = Hunk(
            hunk_id=next(self._ids),
            lines=LineRange(start=0, end=2),
            proposed_lines=LineRange(start=0, end=2),
            old_text=old,
            new_text=old.upper(),
            state="pending",
            edited_by_user=False,
        )
        file = ProposedFile(
            path=str(self._workspace / "file1.txt"),
            change="edit",
            base_sha256="0" * 64,
            base_text=base,
            hunks=[hunk],
            added=2,
            removed=2,
            encoding="utf-8",
            final_newline=True,
            unsaved=False,
        )
        return Proposal(
            proposal_id=next(self._ids),
            turn_id=turn_id,
            tool_call_ids=[call_id],
            version=1,
            state="pending",
            files=[file],
        )

    def _reply(self, thought: str | None, text: str, call: Call | None) -> Assistant:
        parts = [
            *([Thinking(text=thought)] if thought else []),
            *([Text(text=text)] if text else []),
            *([call] if call else []),
        ]
        vendor, _, model = self._model_id.partition(":")
        wire, blocks = _NATIVE[vendor](thought, text, call)
        ids = {call.call_id: call.call_id} if call else {}
        name = self._model_id if vendor != "anthropic" else model
        return Assistant(parts=tuple(parts), native=Native(wire=wire, model=name, blocks=blocks, call_ids=ids))


def _applied(proposal: Proposal) -> Proposal:
    """Its next version: all of it in the file, and what is known of the base not told again."""
    files = [
        file.model_copy(
            update={
                "base_text": None,
                "hunks": [hunk.model_copy(update={"state": "applied"}) for hunk in file.hunks],
            }
        )
        for file in proposal.files
    ]
    return proposal.model_copy(update={"version": 2, "state": "settled", "files": files})


def _anthropic(thought: str | None, text: str, call: Call | None) -> tuple[str, Any]:
    content: list[dict[str, Any]] = []
    if thought:
        content.append({"type": "thinking", "thinking": thought, "signature": "c2lnbmF0dXJl" * 20})
    if text:
        content.append({"type": "text", "text": text})
    if call:
        content.append({"type": "tool_use", "id": call.call_id, "name": call.tool, "input": call.arguments})
    return "anthropic", {"content": content, "prefix": "0" * 32}


def _gemini(thought: str | None, text: str, call: Call | None) -> tuple[str, Any]:
    parts: list[dict[str, Any]] = []
    if thought:
        parts.append({"text": thought, "thought": True})
    if text:
        parts.append({"text": text})
    if call:
        parts.append({"functionCall": {"id": call.call_id, "name": call.tool, "args": call.arguments}})
    return "gemini", parts


def _chat(thought: str | None, text: str, call: Call | None) -> tuple[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": text or None}
    if call:
        function = {"name": call.tool, "arguments": "{}"}
        wire["tool_calls"] = [{"id": call.call_id, "type": "function", "function": function}]
    return "openai-compatible", wire


def _responses(thought: str | None, text: str, call: Call | None) -> tuple[str, Any]:
    items: list[dict[str, Any]] = []
    if thought:
        items.append({"type": "reasoning", "summary": [], "encrypted_content": "c2lnbmF0dXJl" * 20})
    if text:
        content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    if call:
        items.append({"type": "function_call", "call_id": call.call_id, "name": call.tool, "arguments": "{}"})
    return "openai-responses", items


_NATIVE: dict[str, Callable[[str | None, str, Call | None], tuple[str, Any]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openrouter": _chat,
    "openai": _responses,
}


def _batches(words: Iterator[str], count: int) -> Iterator[tuple[str, ...]]:
    while batch := tuple(itertools.islice(words, count)):
        yield batch
