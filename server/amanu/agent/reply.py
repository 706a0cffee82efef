"""Turns one model reply into visible items while it streams: deltas → items."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from amanu.agent.calls import call_item
from amanu.agent.live_calls import LiveCalls
from amanu.agent.thought_sections import ThoughtSections
from amanu.core.conversation import Assistant, Call, Text
from amanu.core.emit import Emit
from amanu.core.foreign_calls import our_name
from amanu.core.model import CallDelta, CallStarted, ReplyCompleted, TextDelta, TextWasThought, ThoughtDelta
from amanu.core.tool import AnyTool
from amanu_protocol.events import ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import Answer, Citations, Thought


class ReplyItems:
    """The thought, answer and tool-call items of one request. They are withdrawn when an attempt fails and another
    follows, and when a listener replaces the reply."""

    def __init__(self, turn_id: str, step: int, tools: Mapping[str, AnyTool], emit: Emit) -> None:
        self._turn_id = turn_id
        self._ids: Iterator[str] = (f"{turn_id}.{step}.{n}" for n in itertools.count(1))
        self._tools = tools
        self._emit = emit
        self._live_calls = LiveCalls(emit)
        self._open: Thought | Answer | None = None
        self._sections = ThoughtSections()
        self._text: list[str] = []
        self._item_ids: list[str] = []
        self._answer: list[str] = []

    def add_delta(self, delta: TextDelta | ThoughtDelta | TextWasThought | CallStarted | CallDelta) -> None:
        """Show one delta."""
        match delta:
            case TextDelta(text=text):
                self._answer.append(text)
                if text.strip():
                    self._write_thought(self._sections.end())
                self._write(Answer, text)
            case ThoughtDelta(text=text):
                self._write_thought(self._sections.feed(text))
            case TextWasThought():
                self._turn_into_thought()
            case CallStarted(call_id=call_id, tool=name):
                self._close()
                self._item_ids.append(call_id)
                tool = self._tools.get(our_name(name, self._tools))
                item = call_item(self._turn_id, Call(call_id=call_id, tool=name, arguments={}), tool)
                self._emit(ItemStarted(item=item))
                self._live_calls.begin(item, tool and tool.live_call())
            case CallDelta(call_id=call_id, text=text):
                self._live_calls.write(call_id, text)

    def withdraw(self, reason: str) -> None:
        """Withdraw everything that has been shown: something else takes its place."""
        self._live_calls.drop()
        if self._item_ids:
            self._emit(ItemsWithdrawn(item_ids=self._item_ids, reason=reason))
        self._open = None
        self._sections = ThoughtSections()
        self._item_ids = []
        self._text = []
        self._answer = []

    def finish(self, end: ReplyCompleted) -> Assistant:
        """The reply is complete; its sources become an item of their own after the answer. Returns its message."""
        self._close()
        self._live_calls.end()
        if end.sources:
            sources = sorted(set(end.sources), key=lambda source: (source.title, source.url, source.quote))
            self._emit(ItemCompleted(item=Citations(item_id=next(self._ids), turn_id=self._turn_id, sources=sources)))
        return end.message

    def cut(self, reason: str) -> Assistant | None:
        """The reply was cancelled or failed for good: the text the user saw stays, calls that were begun do not.
        Returns the message to keep, None when there was no text."""
        self._close()
        self._live_calls.drop()
        call_ids = [item_id for item_id in self._item_ids if not item_id.startswith(f"{self._turn_id}.")]
        if call_ids:
            self._emit(ItemsWithdrawn(item_ids=call_ids, reason=reason))
        text = "".join(self._answer)
        return Assistant(parts=(Text(text=text),), cut=True) if text.strip() else None

    def _turn_into_thought(self) -> None:
        """The answer shown so far becomes a thought."""
        text = "".join(self._answer).strip()
        self.withdraw("It was a thought.")
        if text:
            self._write(Thought, text)
            self._complete()

    def _write_thought(self, pieces: Iterable[tuple[bool, str]]) -> None:
        for begins, text in pieces:
            if begins:
                self._complete()
            self._write(Thought, text)

    def _write(self, kind: type[Answer] | type[Thought], text: str) -> None:
        if not isinstance(self._open, kind):
            if not text.strip():
                return  # blank lines between blocks are no item
            self._complete()
            item_id = next(self._ids)
            self._open = (
                Answer(item_id=item_id, turn_id=self._turn_id, text="")
                if kind is Answer
                else Thought(item_id=item_id, turn_id=self._turn_id, subject="", text="")
            )
            self._item_ids.append(item_id)
            self._emit(ItemStarted(item=self._open))
        self._text.append(text)
        self._emit.delta(self._open.item_id, text)

    def _close(self) -> None:
        """Complete the open item, with what was held back of a thought."""
        self._write_thought(self._sections.end())
        self._complete()

    def _complete(self) -> None:
        if self._open is None:
            return
        text = "".join(self._text)
        update = {"text": text, "subject": subject(text)} if isinstance(self._open, Thought) else {"text": text}
        self._emit(ItemCompleted(item=self._open.model_copy(update=update)))
        self._open = None
        self._text = []


def subject(thought: str) -> str:
    """The first bold heading of a thought, "" if there is none (Gemini and GPT models write `**Subject**`)."""
    match = re.search(r"\*\*(.+?)\*\*", thought)
    return match.group(1).strip() if match else ""
