"""A session's items as Markdown that only grows: what was written once is never written again."""

from collections.abc import Iterator

from amanu.text import wording
from amanu.text.display import visible
from amanu.text.markdown import fenced, prose
from amanu.text.sub_agents import agent_label, label_of, owner_of, started_agent
from amanu_protocol.events import Event, ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import (
    Answer,
    Approval,
    Citations,
    Item,
    Notice,
    Question,
    SubAgent,
    TodoList,
    ToolCall,
    UserMessage,
)
from amanu_protocol.requests import AuditQueryResult
from amanu_protocol.state import SessionState

AUDIT = "audit.md"
YOUR_TURN = "## Your turn"
"""The heading under which the user writes; nobody else's text can have it."""
_ENDED = ("succeeded", "failed", "cancelled", "rejected")
_MARKS = {"succeeded": "✓", "failed": "✗", "cancelled": "■", "rejected": "✗"}
_BOXES = {"pending": " ", "inProgress": " ", "done": "x", "cancelled": "-"}
_ERROR = 500


class Transcript:
    """What of a session was written. `new_text` is the only way on."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        """Items that were started and not completed."""
        self._written: list[str] = []
        """Items in their order, all that is to be said of them said."""
        self._partly = ""
        """The item that is being written as it comes, and how many of its characters are."""
        self._characters = 0
        self._nested: list[str] = []
        """Of these, what sub-agents did and nothing was said of yet: they go on whatever the session does."""
        self._under_amanu = False
        """The last heading is Amanu's."""
        self._in_list = False

    def restarted(self) -> "Transcript":
        """One that has written nothing yet, and knows what is open."""
        current = Transcript()
        current._open = self._open
        return current

    def on_event(self, event: Event) -> str:
        """Keep count of what is open. What a withdrawal makes to be said."""
        match event:
            case ItemStarted():
                self._open.add(event.item.item_id)
            case ItemCompleted():
                self._open.discard(event.item.item_id)
            case ItemsWithdrawn():
                return self._withdraw(set(event.item_ids))
            case _:
                pass
        return ""

    def new_text(self, state: SessionState) -> str:
        """What is to be appended now."""
        return "".join(self._new_parts(state))

    def _new_parts(self, state: SessionState) -> Iterator[str]:
        while len(self._written) < len(state.items):
            item = state.items[len(self._written)]
            if owner_of(item) is not None:
                self._written.append(item.item_id)
                self._nested.append(item.item_id)
                continue
            if not self._partly:
                yield from self._nested_lines(state)
            if self._grows(item):
                if isinstance(item, Answer):
                    yield from self._head(item)
                    yield self._part(item, whole=False)
                return
            if not isinstance(item, UserMessage):
                yield from self._head(item)
            yield from self._whole(item, started_agent(state.agents, item) if isinstance(item, ToolCall) else None)
            self._written.append(item.item_id)
            self._partly, self._characters = "", 0
        yield from self._nested_lines(state)

    def _nested_lines(self, state: SessionState) -> Iterator[str]:
        """A line for whatever of the sub-agents' work has ended."""
        for item_id in [*self._nested]:
            item = state.item(item_id)
            if item is None or self._grows(item) or (isinstance(item, Question) and item.state == "open"):
                continue
            self._nested.remove(item_id)
            yield from self._head(item, in_list=True)
            yield f"  - {_nested_line(item, state)}\n"

    def _grows(self, item: Item) -> bool:
        """Whether there will be more to write of it. A question stands as it was asked: nobody knows for how long."""
        if isinstance(item, ToolCall) and item.state not in _ENDED:
            return True
        return item.item_id in self._open and not isinstance(item, Question)

    def _head(self, item: Item, *, in_list: bool = False) -> Iterator[str]:
        if item.kind == "thought":
            return
        if self._in_list and not (in_list or isinstance(item, ToolCall)):
            self._in_list = False
            yield "\n"
        if not self._under_amanu:
            self._under_amanu = True
            yield "## Amanu\n\n"
        self._in_list = self._in_list or in_list

    def _whole(self, item: Item, agent: SubAgent | None) -> Iterator[str]:
        match item:
            case ToolCall() if agent is not None:
                self._in_list = True
                how = "in the background" if agent.background else agent.summary
                why = f": {_first_line(item.error)}" if item.error and agent.state == "failed" else ""
                task = f"{prose(agent_label(agent.name, agent.agent_id))}: {prose(agent.description)}"
                yield f"- {_MARKS.get(item.state, '·')} {task} ({prose(how)}){why}\n"
            case UserMessage():
                if self._in_list:
                    yield "\n"
                self._under_amanu = self._in_list = False
                yield f"## You\n\n{_safe(item.text.strip())}\n\n"
            case Answer() if item.agent_id is not None:
                pass  # what a sub-agent says on the way; its result is its call's
            case Answer():
                yield self._part(item, whole=True)
            case ToolCall():
                self._in_list = True
                error = f": {prose(item.error[:_ERROR])}" if item.error and item.state == "failed" else ""
                how = wording.describe_settled_call(item) if item.effect == "run" else ""
                suffix = f" ({prose(how)})" if how else ""
                indent = "" if item.agent_id is None else "  "
                yield f"{indent}- {_mark(item)} {prose(item.title)}{suffix}{error}\n"
            case TodoList():
                yield "".join(f"- [{_BOXES[todo.status]}] {prose(todo.text)}\n" for todo in item.todos)
                yield "\n"
            case Notice():
                lines = _safe(f"{item.level}: {item.text.strip()}").split("\n")
                yield "".join(f"> {line}\n" for line in lines) + "\n"
            case Question():
                yield f"> {prose(item.asker)} asks: {prose(item.title)}\n"
                yield f"> {prose(item.summary)}\n\n" if item.summary else "\n"
            case Citations():
                yield "Sources:\n\n" + "".join(
                    f"- {prose(source.title)} {prose(source.url)}\n" for source in item.sources
                )
                yield "\n"
            case _:
                pass

    def _part(self, item: Answer, *, whole: bool) -> str:
        """What is new of an answer: whole lines, so that no line is taken for another while it grows."""
        if self._partly != item.item_id:
            self._partly, self._characters = item.item_id, 0
        end = len(item.text) if whole else item.text.rfind("\n") + 1
        text = _safe(item.text[self._characters : end]) if end > self._characters else ""
        self._characters = max(end, self._characters)
        if not whole or not item.text:
            return text
        return text + ("\n" if item.text.endswith("\n") else "\n\n")

    def _withdraw(self, withdrawn: set[str]) -> str:
        affected = [item_id for item_id in self._written if item_id in withdrawn]
        self._written = [item_id for item_id in self._written if item_id not in withdrawn]
        self._nested = [item_id for item_id in self._nested if item_id not in withdrawn]
        self._open -= withdrawn
        partly = self._partly in withdrawn
        if partly:
            partly, self._partly, self._characters = self._characters > 0, "", 0
        return "\n*(Discarded: the request failed and is being retried.)*\n\n" if affected or partly else ""


def _nested_line(item: Item, state: SessionState) -> str:
    """What a sub-agent did, with its name."""
    label = prose(label_of(state.agents, owner_of(item) or ""))
    match item:
        case ToolCall():
            error = f": {_first_line(item.error)}" if item.error and item.state == "failed" else ""
            return f"{_mark(item)} {label}: {prose(item.title)}{error}"
        case Question():
            return f"{label} asks: {prose(item.title)} {prose(item.summary)}".rstrip()
        case Notice():
            return f"{label}, {item.level}: {_first_line(item.text)}"
        case Answer():
            return f"{label}: {_first_line(item.text)}"
        case _:
            return label


def _mark(call: ToolCall) -> str:
    return "!" if call.warns and call.state == "succeeded" else _MARKS.get(call.state, "·")


def _first_line(text: str) -> str:
    return prose(text.strip().partition("\n")[0][:_ERROR])


def question_text(approval: Approval) -> str:
    """What is asked about, in full, as a document."""
    lines = "".join(f"- {prose(line.text)}\n" for line in approval.lines)
    return f"# {prose(approval.title)}\n\n{fenced(visible(approval.detail))}\n\n{lines}"


def audit_text(result: AuditQueryResult) -> str:
    """Entries of the audit log as a document."""
    lines = "".join(f"- {prose(line.text)}\n" for line in result.lines)
    return f"# How Amanu's calls were decided\n\n{lines}"


def _safe(text: str) -> str:
    """Markdown as it was written, but for hidden characters and what would pass for our own heading."""
    return "\n".join(
        f"\\{line}" if line.strip().lower().startswith(YOUR_TURN.lower()) else line
        for line in visible(text).split("\n")
    )
