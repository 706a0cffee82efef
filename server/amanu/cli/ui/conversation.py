"""The conversation for elsewhere: its last answer in the clipboard, all of it in a file."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from amanu.cli.agent_lines import LEVELS, mark_of
from amanu.cli.console import Console
from amanu.cli.text import one_line, stripped, visible
from amanu.cli.ui.sequences import LONGEST_COPY, clipboard, write_now
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu.text.sub_agents import owner_of
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Answer, Item, Notice, Question, ToolCall, UserMessage
from amanu_protocol.state import SessionState

_LONGEST_NAME = 60


class ConversationSlashCommands:
    """`/copy`, `/export` and `/edit`. Raise `AmanuError`."""

    def __init__(self, view: SessionView, console: Console) -> None:
        self._view = view
        self._console = console

    def copy(self) -> None:
        """The last answer, as the model wrote it."""
        answers = (item for item in reversed(self._view.state.items) if isinstance(item, Answer) and not item.agent_id)
        answer = next(answers, None)
        if answer is None:
            raise AmanuError("invalidParams", "There is no answer to copy yet.")
        write_now(clipboard(answer.text, os.environ))
        count = plural(len(answer.text), "character")
        self._console.line(("dim", f"copied: the last answer, {count}, if this terminal lets programs copy"))
        if len(answer.text.encode()) > LONGEST_COPY:
            self._console.line(("yellow", "It is long: some terminals copy none of it. /export writes it to a file."))

    async def export(self, name: str) -> None:
        """The whole conversation in a new file."""
        state = self._view.state
        target = _target(name, state)
        items = await self._all_items()
        text = _as_json(items) if target.suffix == ".json" else markdown(state, items)
        try:
            with target.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except FileExistsError:
            raise AmanuError("invalidParams", f"{target} exists. Nothing was written; choose another name.") from None
        except OSError as error:
            raise AmanuError("invalidParams", f"{target} cannot be written: {error.strerror}.") from None
        self._console.line(("dim", f"written: {visible(str(target))}"))

    def last_prompt(self) -> str:
        prompts = [item for item in self._view.state.items if isinstance(item, UserMessage)]
        if not prompts:
            raise AmanuError("invalidParams", "There is no prompt to edit yet.")
        return prompts[-1].text

    async def _all_items(self) -> list[Item]:
        items, has_more = [*self._view.state.items], self._view.state.has_earlier
        while has_more:
            params = r.HistoryPageParams(session_id=self._view.session_id, before_item_id=items[0].item_id, limit=1000)
            page = await self._view.client.request("amanu/history/page", params, r.HistoryPageResult)
            items[:0] = page.items
            has_more = page.has_earlier and bool(page.items)
        return items


def _target(name: str, state: SessionState) -> Path:
    """The file that is meant; without a name a new one here, after the session's title."""
    path = Path(name).expanduser() if name else Path()
    if name and not path.is_dir():
        return path.absolute()
    stem = re.sub(r"[^\w.-]+", "-", state.title.lower())[:_LONGEST_NAME].strip("-.") or "conversation"
    names = [stem, *(f"{stem}-{number}" for number in range(2, 100))]
    free = (each for each in names if not os.path.lexists(path / f"{each}.md"))
    return (path / f"{next(free, stem)}.md").absolute()


def _as_json(items: Sequence[Item]) -> str:
    return json.dumps([item.model_dump(mode="json") for item in items], indent=1) + "\n"


def markdown(state: SessionState, items: Sequence[Item]) -> str:
    """The conversation without thoughts and the work of sub-agents; of calls what they did and printed."""
    about = " · ".join([one_line(state.model_id), *map(one_line, state.roots)])
    blocks = (block for item in items if owner_of(item) is None for block in _blocks(item))
    return "\n\n".join([f"# {one_line(state.title) or 'Untitled'}", about, *blocks]) + "\n"


def _blocks(item: Item) -> Iterator[str]:
    match item:
        case UserMessage():
            yield f"## {'↪' if item.steer else '›'} {one_line(item.text, 80)}"
            if len(item.text) > 80 or "\n" in item.text:
                yield stripped(item.text)
        case Answer() if item.text.strip():
            yield stripped(item.text.strip("\n"))
        case ToolCall():
            yield f"- {mark_of(item)[1]} {one_line(item.title)}"
            shown = item.error if item.state == "failed" else item.output if item.effect == "run" else ""
            if shown and shown.strip():
                yield _fenced(stripped(shown.rstrip("\n")))
        case Notice():
            yield f"> {LEVELS[item.level][1]} {one_line(item.text, 1000)}"
        case Question():
            yield f"- ? {one_line(item.title)} {one_line(item.summary)}".rstrip()
        case _:
            pass


def _fenced(text: str) -> str:
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
