"""A session's events as text on a terminal or in a pipe.

Everything is printed once and for good, in blocks; what is still moving (the block being written, the tool that
runs, a countdown) is in `status` and `tail`, for whoever owns the last lines of the screen.
"""

import math
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import PurePath

from amanu.cli.agent_lines import LEVELS, MARKS, AgentLines, mark_of
from amanu.cli.blocks import Blocks
from amanu.cli.console import Console, Span, Style
from amanu.cli.diff import DiffView, is_long_file, show_check, show_conflicts, show_proposal
from amanu.cli.long_text import printed
from amanu.cli.open_draft import describe_open_draft
from amanu.cli.question import show_lines
from amanu.cli.status_line import Activity, elapsed, spinner
from amanu.cli.text import Stripper, cut, one_line, stripped
from amanu.cli.usage import rest_line
from amanu.client.daemon_client import TERMINAL
from amanu.core.ending import DAEMON_STOPPED
from amanu.text.amounts import plural, seconds, token_count
from amanu.text.sub_agents import asked_by, doing, label_of, owner_of, started_agent, working
from amanu.text.wording import describe_decision, describe_settled_call, sandbox_line
from amanu_protocol.events import (
    AgentChanged,
    EndReason,
    Event,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    PromptQueued,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    SessionRewound,
    StepEnded,
    TurnEnded,
    TurnRouted,
    TurnStarted,
)
from amanu_protocol.items import (
    Answer,
    Citations,
    CommentAttachment,
    ImageAttachment,
    Item,
    Line,
    Mode,
    Notice,
    Proposal,
    Question,
    Thought,
    TodoList,
    ToolCall,
    UserMessage,
)
from amanu_protocol.labels import TRUST
from amanu_protocol.state import SessionState

WITHDRAWN = "… that attempt was discarded ({reason}), trying again"
OUTPUT_LINES, OWN_OUTPUT_LINES = 8, 200
"""Lines shown of a command of the model's, and of one of the user's; the whole stays in the session."""

SUCCESS = "Exit code: 0"
"""The last line of what a command prints, which the mark of the call says as well."""
CHARACTERS_PER_TOKEN = 4
"""About."""
_SEPARATOR = " · "
_LIVE_END = 4000
"""Characters of a live edit that are looked at for its last lines."""
_SIGN: dict[str, Style] = {"+": "green", "-": "red"}

_TODO: dict[str, tuple[Style, str]] = {
    "pending": ("", "☐"),
    "inProgress": ("cyan", "▸"),
    "done": ("dim", "☑"),
    "cancelled": ("dim", "☒"),
}
_ENDED: dict[EndReason, tuple[Style, str]] = {
    "cancelled": ("yellow", "Stopped."),
    "stepLimit": ("yellow", "Stopped at the step limit."),
    "timeLimit": ("yellow", "Stopped at the time limit."),
    "costLimit": ("yellow", "Stopped at the cost limit."),
    "loop": ("yellow", "Stopped: the model was repeating itself."),
    "refused": ("yellow", "The model declined to continue."),
    "hook": ("yellow", "Stopped by a hook."),
    "failed": ("red", "The turn failed."),
    "interrupted": ("red", DAEMON_STOPPED),
}


class Renderer:
    """Feed it every event after it was folded. `answers` False leaves answers out (someone else prints them);
    `thoughts` False prints only their subjects; `details_hint` is how a user gets to what stands behind a notice,
    `trust` to what trust enables, `expand_hint` to all of what is shown in part; `background_hint` is the key that puts
    a command in the background."""

    def __init__(
        self,
        console: Console,
        *,
        answers: bool = True,
        thoughts: bool = True,
        details_hint: str = "",
        trust: str = "",
        expand_hint: str = "",
        background_hint: str = "",
    ) -> None:
        self.console = console
        self._answers = answers
        self._thoughts = thoughts
        self._details_hint = details_hint
        self._trust = trust
        self._expand_hint = expand_hint
        self._background_hint = background_hint
        self._streams: dict[str, tuple[Blocks, Stripper, Style]] = {}
        self._received: dict[str, int] = {}
        """Characters of a stream that were fed to it."""
        self._started_at: dict[str, int] = {}
        """When a tool call began to execute, milliseconds since the epoch."""
        self._printed: set[str] = set()
        """Items of which something was printed already."""
        self._closed: set[str] = set()
        """Items of this turn that were printed for good."""
        self._discarded = ""
        """The reason why the printed part of an attempt no longer counts; "" once the user was told."""
        self._adopted: str | None = None
        """A text that was found half written; whether more of it comes is not known."""
        self._in_turn = False
        self.modes_by_key: list[Mode] = []
        """Modes that the user has just chosen by a key: the status line shows them, and no line of the transcript."""
        self._agents = AgentLines(console)
        self._shown_proposals: dict[str, int] = {}
        self._shown_checks: set[str] = set()
        self._turn_started_at = 0
        self._written_tokens = 0
        """Tokens of this turn's complete replies."""
        self._written_characters = 0
        """Characters of the reply that is not complete."""

    def show(self, message: EventMessage, state: SessionState) -> None:
        """Draw one event; `state` has it folded in."""
        self._close_adopted(message.event)
        self._tell_discarded(message.event)
        self._count_written(message.event, state)
        match message.event:
            case ItemStarted(item=item) | ItemChanged(item=item):
                self._open(item, message.at)
            case ItemDelta(item_id=item_id, text=text):
                self._stream(item_id, text)
            case ItemCompleted(item=item):
                self._complete(item, message.at, state)
            case ItemsReplaced(items=items, withdrawn=withdrawn):
                self._withdraw(withdrawn, "too much output at once")
                for item in items:
                    self._replace(item, message.at, state)
            case ItemsWithdrawn(item_ids=item_ids, reason=reason):
                self._withdraw(item_ids, reason)
            case SessionRewound(turn_ids=turn_ids):
                gone = "the last turn" if len(turn_ids) == 1 else f"the last {len(turn_ids)} turns"
                self.console.line(("yellow", f"The conversation continues from before {gone}."))
            case TurnStarted():
                self._in_turn = True
                self._turn_started_at = message.at
            case TurnRouted() as routed if not _announced_by_notice(state):
                self.console.line(("dim", f"→ {one_line(routed.model_id)}: {one_line(routed.reason)}"))
            case TurnEnded() as ended:
                self._end(ended, message.at, state)
            case RetryChanged(retry=retry) if retry is not None:
                void = "What it wrote is discarded. " if self._discarded else ""
                self._discarded = ""
                self.console.line(("yellow", f"↻ {one_line(retry.reason)} {void}Attempt {retry.attempt} follows."))
            case AgentChanged(agent=agent) if agent.state == "running":
                self._agents.begin(agent)
            case PromptQueued(prompt=prompt):
                self.console.line(("dim", f"queued: {one_line(prompt.text)}"))
            case ProposalChanged(proposal=proposal) if proposal.proposal_id in self._shown_proposals:
                self._show_checks(proposal, state)
            case SessionChanged(closed=True) if state.parent_session_id is not None:
                self.console.line(("dim", "The sub-agent has ended."))
            case SessionChanged() as change:
                self._changed(change)
            case _:
                pass

    def show_todos(self, state: SessionState) -> None:
        """The to-do list as it stands."""
        item = next((item for item in reversed(state.items) if isinstance(item, TodoList)), None)
        if item is None:
            self.console.line(("dim", "No to-dos."))
            return
        self._printed.discard(item.item_id)
        self._show_todos(item)

    def show_items(self, items: list[Item], state: SessionState) -> None:
        """What a session already holds. Of a running turn, what still moves is left moving."""
        self._in_turn = state.turn is not None
        for item in items:
            match item:
                case _ if item.item_id in self._closed:
                    pass
                case Thought() | Answer() if self._in_turn and item is _last(state):
                    self._open(item, 0)
                    self._stream(item.item_id, item.text[self._received.get(item.item_id, 0) :])
                    self._adopted = item.item_id
                case ToolCall() if self._in_turn and item.state not in MARKS:
                    pass
                case _:
                    self._complete(item, 0, state)

    def resume(self, state: SessionState) -> None:
        """The state came whole, instead of events that were missed: draw what was not printed yet."""
        if not self._in_turn:
            return
        prompts = (index for index, item in enumerate(state.items) if isinstance(item, UserMessage) and not item.steer)
        self.show_items(state.items[max(prompts, default=0) :], state)
        if state.turn is None and state.last_turn is not None:
            self._end(state.last_turn, 0, state)

    def tail(self, lines: int, state: SessionState, clock_time: float | None = None) -> list[Span]:
        """The end of the block being written, of what a command prints, or of the edit being written, for a live
        view."""
        for blocks, _, style in reversed(self._streams.values()):
            if style == "":
                return [("", line) for line in blocks.last_lines(lines)]
        if printing := [call for call in _running(state) if call.output.strip()]:
            return self._command_tail(printing[-1], lines, time.time() if clock_time is None else clock_time)
        edit = _live_edit(state)
        if edit is None:
            return []
        title = f"{one_line(edit.title)} · being written"
        return [("bold", title), *((_SIGN.get(line[:1], "dim"), line) for line in _live_lines(edit, lines - 1))]

    def expanded(self, state: SessionState) -> str:
        """All that was shown in part since the last prompt, in full, the newest last; if that is nothing, since an
        earlier one. "" for nothing at all."""
        sections: list[str] = []
        for item in reversed(state.items):
            title, text = _in_full(item, state)
            if text:
                sections.append(f"── {title}\n\n{text}")
            if sections and isinstance(item, UserMessage) and not item.steer:
                break
        return "\n\n".join(reversed(sections))

    def _command_tail(self, call: ToolCall, lines: int, clock_time: float) -> list[Span]:
        figures = (*_seconds_since(self._started_at.get(call.item_id, 0), clock_time), *self._background([call]))
        title = Activity("▸", one_line(call.title), figures).line(shutil.get_terminal_size().columns)
        return [("bold", title), *(("dim", line) for line in _live_lines(call, lines - 1, "    "))]

    def status(self, state: SessionState, clock_time: float | None = None) -> Activity | None:
        """The present activity; None when there is none. `clock_time` in seconds since the epoch."""
        clock_time = time.time() if clock_time is None else clock_time
        if state.retry is not None:
            when = elapsed(math.ceil(state.retry.at / 1000 - clock_time))
            return Activity("↻", one_line(state.retry.reason), (f"attempt {state.retry.attempt} in {when}",))
        for asked in (*state.approvals, *state.questions):
            return Activity("?", f"{asked_by(asked)}{one_line(asked.title)}")
        if state.turn is None:
            return None
        calls = [call for call in _running(state) if started_agent(state.agents, call) is None]
        agents = [agent for agent in working(state.agents) if not agent.background]
        if titles := [*(one_line(call.title) for call in calls), *map(doing, agents)]:
            since = [self._started_at[call.item_id] for call in calls if call.item_id in self._started_at]
            figures = _seconds_since(min([*since, *(agent.started_at for agent in agents)], default=0), clock_time)
            if not any(call.output.strip() for call in calls):  # else it stands beside what one prints
                figures += self._background(running_commands(state))
            return Activity(spinner(clock_time), _SEPARATOR.join(titles), figures)
        edit = _live_edit(state)
        lines = () if edit is None else (plural(edit.output.count("\n"), "line"),)
        figures = (*lines, *_seconds_since(self._turn_started_at, clock_time), *self._tokens_written())
        return Activity(spinner(clock_time), self._what_the_model_does(state), figures)

    def _background(self, calls: Iterable[ToolCall]) -> tuple[str, ...]:
        """The key, if it can put one of these in the background."""
        can = self._background_hint and any(call.movable for call in calls)
        return (f"{self._background_hint} background",) if can else ()

    def _what_the_model_does(self, state: SessionState) -> str:
        last = _last(state)
        if isinstance(last, Notice) and last.code == "compacting":
            return "compacting"
        if isinstance(last, Notice) and last.code == "hookRunning":
            return one_line(last.text)
        edit = _live_edit(state)
        if edit is not None:
            return one_line(edit.title)
        for item in reversed(_recent(state)):
            if isinstance(item, Thought) and item.item_id in self._streams:
                return one_line(item.subject or _live_subject(item.text))
            if isinstance(item, Answer) and item.item_id in self._streams:
                return "writing"
        return one_line(state.todos_summary) or "working"

    def _tokens_written(self) -> tuple[str, ...]:
        """This turn's tokens, as far as known; the reply that is being written is estimated."""
        count = self._written_tokens + self._written_characters // CHARACTERS_PER_TOKEN
        return (f"~{token_count(count)} tokens",) if count else ()

    def _count_written(self, event: Event, state: SessionState) -> None:
        match event:
            case TurnStarted():
                self._written_tokens = self._written_characters = 0
            case StepEnded(usage=usage):
                counted = 0 if usage is None else usage.output_tokens + usage.thought_tokens
                self._written_tokens += counted or self._written_characters // CHARACTERS_PER_TOKEN
                self._written_characters = 0
            case ItemsWithdrawn():
                self._written_characters = 0
            case ItemDelta(item_id=item_id, text=text):
                item = state.item(item_id)
                if item is not None and owner_of(item) is None and not _executes(item):
                    self._written_characters += len(text)
            case _:
                pass

    def _close_adopted(self, event: Event) -> None:
        """Whatever comes after a text found half written ends it, unless it is about that text itself, or is a
        sub-agent's, who works meanwhile."""
        match event:
            case ItemStarted(item=item) | ItemCompleted(item=item) if owner_of(item) is not None:
                pass
            case ItemStarted(item=item) | ItemCompleted(item=item) if self._adopted not in (None, item.item_id):
                stream = self._streams.pop(self._adopted, None)
                if stream is not None:
                    blocks, stripper, style = stream
                    self._close_text(self._adopted, blocks, stripper, style)
                self._adopted = None
            case _:
                pass

    def _tell_discarded(self, event: Event) -> None:
        """Once it goes on without a word about a retry, which would tell it."""
        match event:
            case ItemStarted() | ItemCompleted() | ItemsReplaced() | TurnEnded() | RetryChanged(retry=None):
                if self._discarded:
                    self.console.line(("yellow", WITHDRAWN.format(reason=one_line(self._discarded).rstrip("."))))
                self._discarded = ""
            case _:
                pass

    # One kind each -----------------------------------------------------------------------------------

    def _open(self, item: Item, timestamp: int) -> None:
        match item:
            case ToolCall() if item.state == "executing":
                self._started_at.setdefault(item.item_id, timestamp)
            case Thought() | Answer() if item.item_id not in self._streams and owner_of(item) is None:
                self._started_at[item.item_id] = timestamp
                style: Style = "dim" if isinstance(item, Thought) else ""
                self._streams[item.item_id] = (Blocks(), Stripper(), style)
                self._stream(item.item_id, item.text)
            case UserMessage():  # steering: complete only when the model has heard it
                self._show_user_message(item)
            case _:
                pass

    def _show_nested(self, item: Item, agent_id: str, timestamp: int, state: SessionState) -> None:
        started_at = self._started_at.pop(item.item_id, None)
        duration = "" if started_at is None else seconds((timestamp - started_at) / 1000)
        self._agents.show(item, agent_id, state, duration)

    def _show_user_message(self, message: UserMessage) -> None:
        if message.item_id not in self._printed:
            self._printed.add(message.item_id)
            self.console.line(("heading", "↪ " if message.steer else "› "), ("bold", stripped(message.text)))
            for attachment in message.attachments:  # files are mentioned in the text
                if isinstance(attachment, ImageAttachment):
                    self.console.line(("dim", f"  with the image {one_line(attachment.name)}"))
                elif isinstance(attachment, CommentAttachment):
                    location = f"{attachment.path}:{attachment.lines.first}"
                    self.console.line(("dim", f"  {one_line(location)}: {one_line(attachment.comment)}"))

    def _stream(self, item_id: str, text: str) -> None:
        if item_id not in self._streams:
            return
        self._received[item_id] = self._received.get(item_id, 0) + len(text)
        blocks, stripper, style = self._streams[item_id]
        for block in blocks.feed(stripper.feed(text)):
            self._block(item_id, block, style)

    def _block(self, item_id: str, block: str, style: Style) -> None:
        if not (self._thoughts if style else self._answers):
            return
        self._printed.add(item_id)
        self.console.markdown(block, style)

    def _complete(self, item: Item, timestamp: int, state: SessionState) -> None:
        if item.item_id in self._closed and isinstance(item, Thought | Answer):
            return
        if self._in_turn:
            self._closed.add(item.item_id)
        if (agent_id := owner_of(item)) is not None:
            self._show_nested(item, agent_id, timestamp, state)
            return
        match item:
            case Thought() | Answer():
                self._complete_text(item)
            case ToolCall():
                self._tool(item, timestamp, state)
            case UserMessage():
                self._show_user_message(item)
            case TodoList():
                self._show_todos(item)
            case Notice():
                style, mark = LEVELS[item.level]
                hint = f" ({self._details_hint})" if item.detail and self._details_hint else ""
                text = stripped(item.text).replace("\n", "\n  ")  # below its first line
                self.console.line((style, f"{mark} {text}"), ("dim", hint))
            case Question():
                self.console.line(
                    ("yellow", "? "), ("bold", one_line(item.title)), ("dim", f"  {item.summary}".rstrip())
                )
            case Citations():
                for number, source in enumerate(item.sources, 1):
                    label = f"{one_line(source.title)} {one_line(source.url, 2000)}".strip()
                    self.console.line(("dim", f"  [{number}] {label}"))
                    if source.quote:
                        self.console.line(("dim", f"      “{one_line(source.quote)}”"))

    def _show_todos(self, item: TodoList) -> None:
        """The list, once: afterwards the calls' lines say how far it is."""
        if item.item_id not in self._printed:
            self._printed.add(item.item_id)
            for todo in item.todos:
                style, mark = _TODO[todo.status]
                self.console.line((style, f"  {mark} {one_line(todo.text)}"))

    def _complete_text(self, item: Thought | Answer) -> None:
        self._open(item, 0)
        self._stream(item.item_id, item.text[self._received.pop(item.item_id, 0) :])  # the final form counts
        blocks, stripper, style = self._streams.pop(item.item_id)
        self._close_text(item.item_id, blocks, stripper, style)
        if isinstance(item, Thought) and not self._thoughts and item.subject:
            self.console.line(("dim", f"… {one_line(item.subject)}"))

    def _close_text(self, item_id: str, blocks: Blocks, stripper: Stripper, style: Style) -> None:
        self._received.pop(item_id, None)
        self._closed.add(item_id)
        for block in (*blocks.feed(stripper.end()), *blocks.end()):
            self._block(item_id, block, style)

    def _tool(self, call: ToolCall, timestamp: int, state: SessionState) -> None:
        self._printed.add(call.item_id)
        if (agent := started_agent(state.agents, call)) is not None:
            self._started_at.pop(call.item_id, None)
            self._agents.begin(agent)
            if not agent.background or call.state != "succeeded":
                self._agents.end(agent, call)
            return
        style, mark = mark_of(call)
        spans: list[Span] = [(style, f"{mark} "), ("", one_line(call.title))]
        started_at = self._started_at.pop(call.item_id, None)
        if started_at is not None:
            spans.append(("dim", f"  {seconds((timestamp - started_at) / 1000)}"))
        if call.effect == "read" and call.state == "succeeded" and call.output and "\n" not in call.output:
            spans.append(("dim", f"  {one_line(call.output, 100)}"))
        if call.decision is not None and call.state == "rejected":
            spans.append(("yellow", f"  {decision_text(call)}"))
        self.console.line(*spans)
        if call.effect == "run" and call.state != "rejected" and (how := describe_settled_call(call, TERMINAL)):
            alone = call.sandbox is not None and call.sandbox.tier == "none"
            show_lines([Line(tone="warning" if alone else "plain", text=how)], self.console, "    ")
        if call.error and call.state == "failed":
            self.console.line(("red", indent(stripped(call.error))))
        elif call.proposal_id is not None and not _is_new_plan(call.proposal_id, state):
            self.show_diff(call.proposal_id, state, ended_call=call)
        if call.effect == "run" and call.output.strip():
            self._show_output(call, state)

    def _show_output(self, call: ToolCall, state: SessionState) -> None:
        """The end of it: of the user's own command as much as they may want to read."""
        is_own = _is_users_own(call, state)
        text = stripped(call.output).rstrip("\n")
        lines = (text.removesuffix(SUCCESS).rstrip("\n") if is_own else text).split("\n")
        hidden = len(lines) - (OWN_OUTPUT_LINES if is_own else OUTPUT_LINES)
        if hidden > 0:
            hint = f"; {self._expand_hint} shows all" if self._expand_hint else ""
            self.console.line(("dim", f"    … {plural(hidden, 'earlier line')}{hint}"))
        if any(lines):
            self.console.verbatim(("" if is_own else "dim", indent("\n".join(lines[max(0, hidden) :]))))

    def show_diff(self, proposal_id: str, state: SessionState, *, ended_call: ToolCall | None = None) -> None:
        """The proposal in full, the first time; afterwards only what became of it. `ended_call` is its call, once that
        has ended: then what was left open is said, too."""
        proposal = _proposal(proposal_id, state)
        if proposal is None:
            return
        is_new = self._shown_proposals.get(proposal_id) is None
        if is_new:
            known_reason = (
                ended_call.decision.reason if ended_call is not None and ended_call.decision is not None else None
            )
            plan_folders = filter(None, (_plan_folder(file.path, state) for file in proposal.files))
            view = DiffView(shortened=ended_call is not None and bool(self._expand_hint), hint=self._expand_hint)
            show_proposal(self.console, proposal, [*state.roots, *plan_folders], known_reason, view=view)
        self._shown_proposals[proposal_id] = proposal.version
        self._show_checks(proposal, state)
        changes = proposal.changes
        counts = {name: sum(each.state == name for each in changes) for name in ("applied", "rejected", "conflicted")}
        if ended_call is not None or any(counts.values()):
            parts = [f"{count} {name}" for name, count in counts.items() if count]
            still_open = len(changes) - sum(counts.values())
            parts += [f"{still_open} {'drafted' if proposal.draft else 'open'}"] if still_open else []
            noun = "change" if proposal.rows else "hunk"
            self.console.line(("dim", f"  {plural(len(changes), noun)}: {', '.join(parts)}"))
            if not is_new:
                show_conflicts(self.console, proposal, state.roots)
            for file in proposal.files:
                if file.unsaved:
                    self.console.line(("yellow", f"  {one_line(file.path)} is changed in the editor, not saved"))

    def forget_diff(self, proposal_id: str) -> None:
        """It has changed: show it in full once more."""
        self._shown_proposals.pop(proposal_id, None)

    def _show_checks(self, proposal: Proposal, state: SessionState) -> None:
        """What checkers have said since: it comes later than the question."""
        for file in proposal.files:
            for check in file.checks:
                key = f"{proposal.proposal_id} {file.path} {check.model_dump_json()}"
                if check.state != "running" and key not in self._shown_checks:
                    self._shown_checks.add(key)
                    show_check(self.console, file, check, state.roots)

    def _replace(self, item: Item, timestamp: int, state: SessionState) -> None:
        """An item as it is now, instead of deltas that were left out."""
        match item:
            case Thought() | Answer() if item.item_id in self._streams:
                self._streams.pop(item.item_id)
                self._received.pop(item.item_id, None)
                if item.item_id in self._printed:
                    self.console.line(("dim", "… (parts were skipped; here is the whole text)"))
                self._open(item, timestamp)
            case _:
                self._open(item, timestamp)
                if isinstance(item, ToolCall) and item.state in MARKS:
                    self._complete(item, timestamp, state)

    def _withdraw(self, item_ids: list[str], reason: str) -> None:
        any_shown = False
        for item_id in item_ids:
            self._started_at.pop(item_id, None)
            self._received.pop(item_id, None)
            tail = self._streams.pop(item_id, None)
            self._closed.discard(item_id)
            any_shown = any_shown or item_id in self._printed or (tail is not None and bool(tail[0].tail.strip()))
            self._printed.discard(item_id)
        if any_shown:
            self._discarded = reason

    def _end(self, ended: TurnEnded, timestamp: int, state: SessionState) -> None:
        self._streams.clear()
        self._received.clear()
        self._started_at.clear()
        self._printed.clear()
        self._closed.clear()
        self._adopted = None
        self._in_turn = False
        if ended.reason != "completed":
            style, text = _ENDED[ended.reason]
            last = _last(state)
            already_shown = ended.message == text or (isinstance(last, Notice) and last.text == ended.message)
            self.console.line((style, text if already_shown else f"{text} {stripped(ended.message)}".rstrip()))
            if ended.can_continue:
                self.console.line(("dim", "Send another prompt to continue."))
        self.show_open_draft(state)
        duration = seconds((timestamp - self._turn_started_at) / 1000) if self._turn_started_at and timestamp else ""
        self._turn_started_at = 0
        parts = [duration]
        if ended.usage is not None and (ended.usage.input_tokens or ended.usage.output_tokens):
            parts.append(ended.usage.summary)
        if state.usage is not None and state.usage.context_tokens:
            parts.append(rest_line(state.usage, ended.usage))
        if any(parts):
            self.console.line(("dim", " · ".join(filter(None, parts))))

    def show_open_draft(self, state: SessionState) -> None:
        """That something drafted is not applied, and what to do about it."""
        if left := describe_open_draft(state, in_chat=self._answers):  # `amanu run` prints answers elsewhere
            self.console.line(("yellow", left))

    def _changed(self, change: SessionChanged) -> None:
        if change.mode in self.modes_by_key:
            self.modes_by_key.remove(change.mode)
        elif change.mode is not None:
            self.console.line(("dim", f"mode: {change.mode}"))
        if change.model_id is not None:
            self.console.line(("dim", f"model: {one_line(change.model_id)}"))
        if change.effort is not None:
            self.console.line(("dim", f"thinking effort: {change.effort}"))
        if change.trust_changed:
            self.console.line(("yellow", f"{TRUST['changed']}{f' ({self._trust})' if self._trust else ''}"))
        if change.sandbox is not None and change.sandbox.tier == "none":
            self.console.line(("red", one_line(sandbox_line(change.sandbox).text, 400)))


def _announced_by_notice(state: SessionState) -> bool:
    """The daemon has just said it in the conversation itself."""
    last = _last(state)
    return isinstance(last, Notice) and last.code == "fallback"


def _proposal(proposal_id: str | None, state: SessionState) -> Proposal | None:
    return next((proposal for proposal in state.proposals if proposal.proposal_id == proposal_id), None)


def _is_new_plan(proposal_id: str, state: SessionState) -> bool:
    """Whether it is the first version of the plan: the question about it shows all of it."""
    files = [file for proposal in state.proposals if proposal.proposal_id == proposal_id for file in proposal.files]
    return [file.change for file in files] == ["create"] and _plan_folder(files[0].path, state) is not None


def _plan_folder(path: str, state: SessionState) -> str | None:
    """The folder of the plan, if the path is the plan's: beside the session's journal, in no workspace."""
    whole = PurePath(path)
    is_plan = path == state.plan.path if state.plan is not None else whole.parts[-2:] == (state.session_id, "plan.md")
    return str(whole.parent) if is_plan else None


def decision_text(call: ToolCall) -> str:
    """Why a call was rejected, and by what."""
    decision = call.decision
    if decision is None or decision.by == "user" or not decision.reason:
        return one_line(describe_decision(decision, TERMINAL), 400)
    reason = one_line(decision.reason, 400)
    if reason.lower().startswith(decision.outcome):  # "Denied by a rule: …" says it already
        return reason[0].lower() + reason[1:]
    return f"{decision.outcome}: {reason}"


def indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip("\n").split("\n"))


def _is_users_own(call: ToolCall, state: SessionState) -> bool:
    """Whether it is a command that the user gave, as `! COMMAND`."""
    prompts = (item for item in _recent(state) if isinstance(item, UserMessage) and item.turn_id == call.turn_id)
    prompt = next((prompt.text.lstrip() for prompt in prompts if not prompt.steer), "")
    return prompt.startswith("!") and not prompt.startswith(("!!", "!["))


def _live_subject(thought: str) -> str:
    """The last bold heading so far: some models write one above each stretch of a thought."""
    subjects = re.findall(r"\*\*(.+?)\*\*", thought[-2000:])
    return subjects[-1] if subjects else "thinking"


def _seconds_since(started_at: int, clock_time: float) -> tuple[str, ...]:
    """A figure, or none if it is not known when it began: 0."""
    return (elapsed(clock_time - started_at / 1000),) if started_at else ()


def _in_full(item: Item, state: SessionState) -> tuple[str, str]:
    """Title and text of what is shown in part: a call's output, a thought, what stands behind a notice; "" for the text
    where nothing is left out."""
    owner = owner_of(item)
    whose = "" if owner is None else f"{label_of(state.agents, owner)}: "
    match item:
        case ToolCall() if (proposal := _proposal(item.proposal_id, state)) and any(map(is_long_file, proposal.files)):
            title, text = item.title, printed(lambda console: show_proposal(console, proposal, state.roots))
        case ToolCall():
            title, text = item.title, "\n\n".join(filter(None, [item.error, item.output]))
        case Thought():
            title, text = item.subject or "Thought", item.text
        case Notice():
            title, text = item.text, item.detail
        case Answer() if owner is not None:  # of which only the first line is shown
            title, text = "says", item.text
        case _:
            title, text = "", ""
    return one_line(f"{whose}{title}"), stripped(text).strip("\n")


def _live_lines(call: ToolCall, count: int, before: str = "") -> list[str]:
    """The last lines of what can be seen of a call, each with that before it; cut, so that their title stays."""
    columns = shutil.get_terminal_size().columns
    lines = stripped(call.output[-_LIVE_END:]).expandtabs().splitlines()[-count:]
    return [cut(before + line, columns) for line in lines]


def running_commands(state: SessionState) -> list[ToolCall]:
    """The commands that calls wait for, those of sub-agents as well."""
    calls = (item for item in _recent(state) if isinstance(item, ToolCall) and _executes(item))
    return [call for call in calls if call.effect == "run"]


def _running(state: SessionState) -> list[ToolCall]:
    """The session's own calls that run."""
    return [item for item in _recent(state) if isinstance(item, ToolCall) and _executes(item) and not item.agent_id]


def _executes(item: Item) -> bool:
    return isinstance(item, ToolCall) and item.state == "executing"


def _live_edit(state: SessionState) -> ToolCall | None:
    """The edit that is being written, if something of it can be seen."""
    last = _last(state)
    return last if isinstance(last, ToolCall) and last.state == "validating" and last.output else None


def _last(state: SessionState) -> Item | None:
    """The last item of the session's own: sub-agents in the background go on whatever it does."""
    return next((item for item in reversed(_recent(state)) if owner_of(item) is None), None)


def _recent(state: SessionState) -> list[Item]:
    """The last items are the ones that move; older ones are not looked at for a status line."""
    return state.items[-32:]
