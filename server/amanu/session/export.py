"""The conversation of a session as a text to keep, as Markdown or JSON."""

import asyncio
import json
import re
from collections.abc import Iterator, Sequence

from amanu.session.core import SessionCore
from amanu.text.sub_agents import owner_of
from amanu.text.terminal import one_line, stripped
from amanu.workspace.hunks import base_places
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import Answer, Hunk, Item, Notice, Proposal, ProposedFile, Question, ToolCall, UserMessage
from amanu_protocol.requests import SessionExportParams, SessionExportResult
from amanu_protocol.state import SessionState

PAGE = 100
"""Items that are read at once."""
_MARKS = {"succeeded": "✓", "failed": "✗", "cancelled": "■", "rejected": "⊘"}
_LEVELS = {"info": "·", "warning": "!", "error": "✗"}
_LONGEST_NAME = 60


class SessionExport:
    """The export of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    async def text(self, params: SessionExportParams) -> SessionExportResult:
        """Raises `AmanuError` (storageError)."""
        state = self._core.state.last(PAGE)
        items = list(state.items)
        while state.has_earlier and items:
            page = await self._core.history.page(self._core.state, self._core.journal, items[0].item_id, PAGE)
            if page is None:  # it was rewound meanwhile
                break
            items[:0], state.has_earlier = page
        write = markdown if params.format == "markdown" else as_json
        text = await asyncio.to_thread(lambda: self._core.services.secrets.mask_output(write(state, items)))
        return SessionExportResult(text=text, name=file_name(state.title))


def file_name(title: str) -> str:
    return re.sub(r"[^\w.-]+", "-", title.lower())[:_LONGEST_NAME].strip("-.") or "conversation"


def as_json(state: SessionState, items: Sequence[Item]) -> str:
    """The whole session: also thoughts, and the work of sub-agents."""
    whole = {
        "sessionId": state.session_id,
        "title": state.title,
        "roots": state.roots,
        "modelId": state.model_id,
        "items": [item.model_dump(mode="json") for item in items],
        "proposals": [proposal.model_dump(mode="json") for proposal in state.proposals],
    }
    return json.dumps(whole, indent=1) + "\n"


def markdown(state: SessionState, items: Sequence[Item]) -> str:
    """The conversation without thoughts and the work of sub-agents; of calls what was decided, what they printed and
    what they changed."""
    about = " · ".join([one_line(state.model_id), *map(one_line, state.roots)])
    changes = {call_id: proposal for proposal in state.proposals for call_id in proposal.tool_call_ids[:1]}
    blocks = (block for item in items if owner_of(item) is None for block in _blocks(item, changes.get(item.item_id)))
    return "\n\n".join([f"# {one_line(state.title) or 'Untitled'}", about, *blocks]) + "\n"


def _blocks(item: Item, proposal: Proposal | None) -> Iterator[str]:
    match item:
        case UserMessage():
            yield f"## {'↪' if item.steer else '›'} {one_line(item.text, 80)}"
            if len(item.text) > 80 or "\n" in item.text:
                yield stripped(item.text)
        case Answer() if item.text.strip():
            yield stripped(item.text.strip("\n"))
        case ToolCall():
            mark = "!" if item.warns and item.state == "succeeded" else _MARKS.get(item.state, "·")
            decided = f" ({one_line(item.decision.summary)})" if item.decision and item.decision.summary else ""
            yield f"- {mark} {one_line(item.title)}{decided}"
            shown = item.error if item.state == "failed" else item.output if item.effect == "run" else ""
            if shown and shown.strip():
                yield _fenced(stripped(shown.rstrip("\n")))
            yield from _changes(proposal)
        case Notice():
            yield f"> {_LEVELS[item.level]} {one_line(item.text, 1000)}"
        case Question():
            yield f"- ? {one_line(item.title)} {one_line(item.summary)}".rstrip()
        case _:
            pass


def _changes(proposal: Proposal | None) -> Iterator[str]:
    if proposal is None:
        return
    for file in proposal.files:
        yield _fenced(stripped("\n".join(_diff(file))), "diff")
    if proposal.rows:
        yield "\n".join(f"  - {one_line(row.path)}: {one_line(row.title)}, {row.state}" for row in proposal.rows)


def _diff(file: ProposedFile) -> Iterator[str]:
    yield f"--- {'/dev/null' if file.change == 'create' else one_line(file.path, 4096)}"
    yield f"+++ {'/dev/null' if file.change == 'delete' else one_line(file.new_path or file.path, 4096)}"
    for hunk, place in zip(file.hunks, base_places(file.hunks), strict=True):
        old, new = ([line.rstrip("\r\n") for line in split_lines(text)] for text in (hunk.old_text, hunk.new_text))
        after = hunk.proposed_lines.start
        yield f"@@ -{_range(place.start, len(old))} +{_range(after, len(new))} @@ {_outcome(hunk)}"
        yield from (f"-{line}" for line in old)
        yield from (f"+{line}" for line in new)


def _range(start: int, count: int) -> str:
    """As in a unified diff, where no lines are named by the line before them."""
    return f"{start + bool(count)}" if count == 1 else f"{start + bool(count)},{count}"


def _outcome(hunk: Hunk) -> str:
    return f"{hunk.state}: {one_line(hunk.reason)}" if hunk.reason else hunk.state


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
