"""What sub-agents do, printed below the line with which each began: a line each, with the agent's name, so that those
of several that work at once can be told apart."""

import shutil
from collections.abc import Sequence

from amanu.cli.console import Console, Span, Style
from amanu.cli.text import one_line
from amanu.text.sub_agents import agent_label, find_agent, label_of
from amanu_protocol.items import Answer, Item, Notice, Question, SubAgent, ToolCall
from amanu_protocol.state import SessionState

MARKS: dict[str, tuple[Style, str]] = {
    "succeeded": ("green", "✓"),
    "failed": ("red", "✗"),
    "cancelled": ("yellow", "■"),
    "rejected": ("yellow", "⊘"),
}
"""Of tool calls, by state."""
_WARNS: tuple[Style, str] = ("yellow", "!")
_CALL_STATES = {"completed": "succeeded", "cancelled": "cancelled", "interrupted": "cancelled"}
"""Of agents that did not fail: the marks of calls."""
LEVELS: dict[str, tuple[Style, str]] = {"info": ("dim", "·"), "warning": ("yellow", "!"), "error": ("red", "✗")}
"""Of notices."""
_INDENT = "  "
_LONGEST, _NARROWEST = 160, 40
"""Columns of a line, where no terminal says how wide it is, and at least."""


def mark_of(call: ToolCall) -> tuple[Style, str]:
    """The mark of a call that has ended."""
    return _WARNS if call.warns and call.state == "succeeded" else MARKS.get(call.state, ("dim", "·"))


class AgentLines:
    """The lines of one session's sub-agents."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: set[str] = set()

    def begin(self, agent: SubAgent) -> None:
        """The line with which it begins, once."""
        if agent.agent_id in self._begun:
            return
        self._begun.add(agent.agent_id)
        background = ("dim", "  in the background") if agent.background else ("", "")
        self._console.line(("cyan", "▸ "), ("bold", _name(agent)), ("", f": {_task(agent)}"), background)

    def end(self, agent: SubAgent, call: ToolCall) -> None:
        """The line with which it ends, and below it what went wrong, if something did."""
        style, mark = MARKS.get(_CALL_STATES.get(agent.state, call.state), ("dim", "·"))
        self._console.line(
            (style, f"{mark} "), ("bold", _name(agent)), ("", f": {_task(agent)}"), ("dim", f"  {agent.summary}")
        )
        if agent.state == "failed" and (why := _first_line(call.error or call.output)):
            self._console.line(("red", f"    {why}"))

    def show(self, item: Item, agent_id: str, state: SessionState, duration: str = "") -> None:
        """One item of an agent's work; `duration` is how long a call took, if that is known."""
        if (agent := find_agent(state.agents, agent_id)) is not None:
            self.begin(agent)
        spans = self._spans(item, state, duration)
        if spans:
            head = f"{_INDENT}{label_of(state.agents, agent_id)} "
            columns = max(_NARROWEST, shutil.get_terminal_size((_LONGEST, 0)).columns) - len(head) - 2
            self._console.line(("cyan", head), ("dim", "│ "), *_cut(spans, columns))

    def _spans(self, item: Item, state: SessionState, duration: str) -> list[Span]:
        match item:
            case ToolCall():
                style, mark = mark_of(item)
                title = one_line(item.title, _LONGEST)
                return [(style, f"{mark} "), ("", title), ("dim", f"  {duration}".rstrip()), *_outcome(item, state)]
            case Answer() if item.text.strip():
                return [("dim", _first_line(item.text))]
            case Notice():
                style, mark = LEVELS[item.level]
                return [(style, f"{mark} {_first_line(item.text)}")]
            case Question():
                return [
                    ("yellow", "? "), ("", one_line(item.title, _LONGEST)), ("dim", f"  {item.summary}".rstrip())
                ]  # fmt: skip
            case _:
                return []


def _outcome(call: ToolCall, state: SessionState) -> list[Span]:
    """What came of a call, where its line has room for it."""
    if call.state == "failed" and call.error:
        return [("red", f"  {_first_line(call.error)}")]
    if call.decision is not None and call.state == "rejected":
        return [("yellow", f"  {one_line(call.decision.summary or call.decision.outcome, _LONGEST)}")]
    proposal = next((proposal for proposal in state.proposals if proposal.proposal_id == call.proposal_id), None)
    if proposal is not None:
        states = [change.state for change in proposal.changes]
        added, removed = (sum(getattr(file, name) for file in proposal.files) for name in ("added", "removed"))
        counts = [f"{states.count(name)} {name}" for name in ("applied", "rejected", "conflicted") if name in states]
        return [("dim", "  " + ", ".join([f"+{added} −{removed}", *counts]))]
    if call.effect == "read" and call.state == "succeeded" and call.output and "\n" not in call.output:
        return [("dim", f"  {one_line(call.output, 100)}")]
    return []


def _cut(spans: Sequence[Span], columns: int) -> list[Span]:
    """As much of them as fits into so many columns, with a sign where something is missing."""
    from rich.cells import cell_len, set_cell_size

    if sum(cell_len(text) for _, text in spans) <= columns:
        return [*spans]
    columns -= 1
    fitting: list[Span] = []
    for style, text in spans:
        fitting.append((style, text if cell_len(text) <= columns else set_cell_size(text, columns)))
        columns -= cell_len(fitting[-1][1])
    return [*fitting, ("dim", "…")]


def _name(agent: SubAgent) -> str:
    return agent_label(agent.name, agent.agent_id)


def _task(agent: SubAgent) -> str:
    return one_line(agent.description, 100)


def _first_line(text: str) -> str:
    return one_line(next((line for line in text.splitlines() if line.strip()), ""), _LONGEST)
