"""The hooks of one session: runs those whose moment has come, records them in the audit log, and shows the user what
they said, what they changed, and which are off and why."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from amanu.core.ending import Ending
from amanu.core.session_part import PromptBlocked
from amanu.hooks.audit import record_run
from amanu.hooks.dispatch import run_hooks
from amanu.hooks.hooks import Hooks
from amanu.hooks.matching import matches
from amanu.hooks.model import Event as HookEvent
from amanu.hooks.model import HookDecision, HookMoment, HookOutcome, HookRun, HookView
from amanu.hooks.report import off_sentence
from amanu.hooks.runner import HookPlace, HookRunner
from amanu.session.core import Assignment, SessionCore
from amanu.session.notices import RUNNING, Level
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, Event, ItemChanged, ItemCompleted, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import Approval, Mode, Notice, Question, ToolCall

CODE = "hook"
"""The code of the notices."""
OFF = "hooksOff"
SHOWN_AFTER = 0.3
"""Seconds after which the user is shown that hooks are running."""

_MODES: Mapping[Mode, str] = {
    "plan": "plan",
    "ask": "default",
    "acceptEdits": "acceptEdits",
    "draft": "draft",
    "auto": "auto",
}
"""Mode → its name for hooks: that of Claude Code, if it has such a mode."""


@dataclass(frozen=True)
class AgentIdentity:
    """The identity of the agent that a session belongs to, if it works for another session."""

    agent_id: str
    agent_type: str


class SessionHooks:
    """Methods raise nothing unless cancelled, except where they say so: a hook that fails counts as `Hook.on_failure`
    says."""

    def __init__(self, core: SessionCore, configured_hooks: Hooks) -> None:
        self._core = core
        self.configured_hooks = configured_hooks
        self._state = core.state
        self._emit = core.emit
        self._runner = HookRunner()
        self.agent = None if core.assignment is None else _identity(core.assignment)
        """The agent of a sub-agent's session: then `Stop` is `SubagentStop`, and `SessionStart` is `SubagentStart`."""
        self._executing: set[str] = set()
        self._asked: set[str] = set()
        self._background: set[asyncio.Task[HookOutcome]] = set()
        self._running: set[asyncio.Task[HookOutcome]] = set()
        self.ending: Ending | None = None
        """The ending that a hook wants after a prompt's calls; the turn takes it once."""
        self._begun = False
        self._start_context = ""
        self._reported: frozenset[str] = frozenset()
        self._reported_ignored: set[tuple[str, str]] = set()
        self._count = 0
        core.emit.listeners.append(self._on_event)

    async def views(self) -> list[HookView]:
        """All hooks, as they stand now. Raises `AmanuError` (storageError)."""
        hooks, workspace = self.configured_hooks, self._core.workspace
        trusted, home = self._core.trusted(), self._core.environment.get("HOME", "")
        if not self._may_be_configured():
            return []  # the usual case: no call waits for a thread
        return await asyncio.to_thread(lambda: hooks.views(workspace, trusted=trusted, home=home))

    def program_files(self) -> list[Path]:
        """The files of the workspace that approved hooks run. Blocks for an instant."""
        if not self._may_be_configured():
            return []
        try:
            workspace, trusted = self._core.workspace, self._core.trusted()
            return self.configured_hooks.program_files(workspace, trusted=trusted, home=str(Path.home()))
        except AmanuError:  # none of them runs
            return []

    def _may_be_configured(self) -> bool:
        workspace, trusted = self._core.workspace, self._core.trusted()
        configured = self.configured_hooks.configured(workspace, trusted=trusted)
        return configured or self._core.services.home.plugins.is_dir()

    async def listening(self, event: HookEvent) -> bool:
        """Whether a hook of that event may run."""
        with contextlib.suppress(AmanuError):
            return any(view.state == "on" and view.hook.event == event for view in await self.views())
        return False

    async def run(self, moment: HookMoment, turn_id: str | None = None) -> HookOutcome:
        """Run the hooks of that moment, and show the user their messages. If the hooks cannot be read, that is shown,
        and the user is asked about every call."""
        try:
            views = await self.views()
        except AmanuError as error:
            self._notice("warning", f"No hook runs: {error}", turn_id)
            return HookOutcome("ask" if moment.call else "none", f"the hooks cannot be read: {error}", "Amanu")
        self._report_off(views)
        moment = self._with_agent(moment)
        due = [view for view in views if view.state == "on" and matches(view.hook, moment)]
        if not due:
            return HookOutcome()

        def on_run(run: HookRun, decision: HookDecision) -> None:
            call_id = None if moment.call is None else moment.call.call_id
            record_run(self._core.audit, run, decision, call_id)

        showing = asyncio.create_task(self._show_running(due, moment, turn_id))
        running = asyncio.create_task(run_hooks(due, moment, self._place(), self._runner, on_run))
        self._running.add(running)
        try:
            await asyncio.wait({running})
        finally:
            self._running.discard(running)
            running.cancel()
            showing.cancel()
            await asyncio.gather(running, showing, return_exceptions=True)
        if running.cancelled():
            return HookOutcome("deny", "the session is being closed.", "Amanu")
        outcome = self._masked(running.result())
        for message in outcome.messages:
            self._notice("info", message, turn_id)
        for label, sentence in outcome.ignored:
            self.report_ignored(label, sentence, turn_id)
        return outcome

    # Moments of a session ---------------------------------------------------------------------------

    async def submit_prompt(self, text: str, *, typed: str) -> str:
        """Run the hooks of a prompt that the user sends. Returns what they add for the model, "" for nothing. `typed`:
        the prompt as typed, before the text of a command took its place. Raises `PromptBlocked`."""
        about: dict[str, JsonValue] = {"prompt": text}
        if typed != text:
            about["typed_prompt"] = typed
        outcome = await self.run(HookMoment("UserPromptSubmit", about))
        if outcome.action == "deny" or outcome.ends:
            raise _blocked(outcome.reason or outcome.end_reason or "it gave no reason.")
        return self.context(outcome)

    async def begin(self) -> str:
        """Run the `SessionStart` hooks, once after the session is opened. Returns what they tell the model, until it
        has been told; "" for nothing."""
        if not self._begun:
            self._begun = True
            source = "resume" if len(self._core.conversation) else "startup"
            moment = HookMoment("SessionStart", {"source": source, "model": self._state.model_id}, source)
            self._start_context = self.context(await self.run(moment))
        return self._start_context

    def on_prompt_told(self, ending: Ending | None, *, opens_turn: bool) -> None:
        """A prompt has reached the model, with what `begin` returned. `ending`: how the turn is to end, if a hook that
        heard of the prompt's calls wants that."""
        self._start_context = ""
        self.ending = ending or (None if opens_turn else self.ending)

    async def end(self) -> None:
        """The session is being closed: stop hooks that still run, then run its `SessionEnd` hooks, if it has begun."""
        for task in (*self._running, *self._background):
            task.cancel()
        await asyncio.gather(*self._running, *self._background, return_exceptions=True)
        if self._begun and self.agent is None:
            self._begun = False
            reason = "exit" if self._core.services.headless else "other"
            await self.run(HookMoment("SessionEnd", {"reason": reason}, reason))

    def executed(self, call_id: str) -> bool:
        """Whether that call has been started and has not ended yet."""
        return call_id in self._executing

    # What the user and the model get ----------------------------------------------------------------

    def context(self, outcome: HookOutcome, turn_id: str | None = None) -> str:
        """The blocks in which the hooks' context goes to the model; the user is shown it, too."""
        if not outcome.contexts:
            return ""
        self._notice("info", "A hook added context for the model.", turn_id, detail="\n\n".join(outcome.contexts))
        return "\n\n".join(block("hook_context", text) for text in outcome.contexts)

    def report(self, text: str, turn_id: str | None = None, level: Level = "info") -> None:
        """Tell the user what a hook changed."""
        self._notice(level, text, turn_id)

    def report_ignored(self, label: str, sentence: str, turn_id: str | None) -> None:
        """Tell the user, once, which parts of a hook's answer Amanu does not support."""
        if (label, sentence) not in self._reported_ignored:
            self._reported_ignored.add((label, sentence))
            self._notice("warning", f"Amanu ignored a part of what the hook {label} answered. {sentence}", turn_id)

    def mask(self, text: str) -> str:
        """The text without secrets."""
        return self._core.services.secrets.mask_output(text)

    def _masked(self, outcome: HookOutcome) -> HookOutcome:
        """The outcome without secrets, since its texts go to the model and the clients."""
        mask = self._core.services.secrets.mask_output
        output = outcome.updated_output
        return replace(
            outcome,
            reason=mask(outcome.reason),
            contexts=tuple(map(mask, outcome.contexts)),
            messages=tuple(map(mask, outcome.messages)),
            updated_output=output and mask(output),
            end_reason=mask(outcome.end_reason),
        )

    def _notice(self, level: Level, text: str, turn_id: str | None, detail: str = "", code: str = CODE) -> None:
        if self._state.read_only:
            return
        item = Notice(item_id=self._item_id(), turn_id=turn_id, level=level, code=code, text=text, detail=detail)
        self._emit(ItemCompleted(item=item))

    def _item_id(self) -> str:
        self._count += 1
        return f"hook.{self._emit.epoch}.{self._count}"

    def _report_off(self, views: list[HookView]) -> None:
        """Tell the user which hooks are off, if more or others are than when they were last told."""
        off = [view for view in views if view.state in ("new", "changed", "untrusted", "invalid")]
        key = frozenset(f"{view.state} {view.digest} {view.reason} {view.hook.label}" for view in off)
        if key - self._reported:
            self._notice("warning", off_sentence(off), None, code=OFF)
        self._reported = key

    async def _show_running(self, due: list[HookView], moment: HookMoment, turn_id: str | None) -> None:
        """Show that hooks are running for as long as this task runs, if that is long enough to be noticed."""
        await asyncio.sleep(SHOWN_AFTER)
        if self._state.read_only:
            return
        labels = ", ".join(dict.fromkeys(one_line(view.hook.label) for view in due))
        text = f"Running hooks ({moment.event}): {labels} …"
        item = Notice(item_id=self._item_id(), turn_id=turn_id, level="info", code=RUNNING, text=text)
        self._emit(ItemStarted(item=item))
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._emit(ItemsWithdrawn(item_ids=[item.item_id], reason="The hooks have ended."))

    # Inside -----------------------------------------------------------------------------------------

    def _place(self) -> HookPlace:
        settings = self._core.services.settings
        return HookPlace(
            self._core.services.sandbox,
            self._core.workspace,
            dict(self._core.environment),
            settings.key_variables,
            self._state.session_id,
            permission_mode=_MODES[self._core.mode],
            now=datetime.now(UTC).isoformat(),
            without_sandbox=settings.sandbox.without == "accept",
        )

    def _with_agent(self, moment: HookMoment) -> HookMoment:
        if self.agent is None:
            return moment
        about: dict[str, JsonValue] = {"agent_id": self.agent.agent_id, "agent_type": self.agent.agent_type}
        match moment.event:
            case "Stop":
                return HookMoment("SubagentStop", {**moment.about, **about}, self.agent.agent_type)
            case "SessionStart":
                return HookMoment("SubagentStart", about, self.agent.agent_type)
            case _:
                return HookMoment(moment.event, {**moment.about, **about}, moment.subject, moment.call, moment.gemini)

    def _on_event(self, event: Event, position: int) -> None:
        match event:
            case ItemChanged(item=ToolCall() as item) if item.state == "executing":
                self._executing.add(item.item_id)
            case ItemCompleted(item=ToolCall() as item):
                self._executing.discard(item.item_id)
            case ApprovalRequested(approval=approval) if approval.tool_call_id not in self._asked:
                self._asked.add(approval.tool_call_id)
                self._notify(_permission_moment(approval))
            case ItemStarted(item=Question() as item):
                about: dict[str, JsonValue] = {"message": item.title, "notification_type": "elicitation_dialog"}
                self._notify(HookMoment("Notification", about, "elicitation_dialog"))
            case _:
                pass

    def _notify(self, moment: HookMoment) -> None:
        """Run the hooks of a notification in the background."""
        if self._core.access.writable:
            task = asyncio.create_task(self.run(moment))
            self._background.add(task)
            task.add_done_callback(self._background.discard)


def _blocked(reason: str) -> PromptBlocked:
    stop = "" if reason.endswith((".", "!", "?", "…")) else "."  # more may be said after it
    return PromptBlocked(f"A hook refused this prompt, so it was not sent: {reason}{stop}")


def _identity(assignment: Assignment) -> AgentIdentity:
    return AgentIdentity(assignment.label.agent_id, assignment.definition.name)


def _permission_moment(approval: Approval) -> HookMoment:
    message = f"Amanu needs your permission: {approval.title}"
    kind = {"run": "exec", "write": "edit"}.get(approval.effect, "info")
    details: dict[str, JsonValue] = {"type": kind, "title": approval.title, "command": approval.detail}
    return HookMoment(
        "Notification",
        {"message": message, "title": "Amanu", "notification_type": "permission_prompt"},
        "permission_prompt",
        gemini={"notification_type": "ToolPermission", "details": details},
    )
