"""Tells the model, with each prompt and after each step, what changed around its turn: files, late findings, the
session's mode, background commands, and whatever parts report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from amanu.checks.editor_feedback import EditorFeedback
from amanu.context.stale_files import StaleFiles
from amanu.core.agent import AgentRun
from amanu.core.conversation import Call, Result
from amanu.core.listeners import Notes, StepRecord, TurnListener, TurnView
from amanu.core.notes import SystemNote
from amanu.core.session_part import SessionPart, Slot
from amanu.core.tool import Subject
from amanu.session.core import SessionCore
from amanu.session.status_note import SessionStatus
from amanu.text.amounts import plural
from amanu_protocol.items import UserMessage


class StepNotes(SessionPart, TurnListener):
    """The notes of one session. They are repeated when the conversation was rewritten."""

    def __init__(self, core: SessionCore, feedback: EditorFeedback, status: SessionStatus) -> None:
        self._core = core
        self._stale = StaleFiles(core.view, core.conversation)
        self._conversation = core.conversation
        self._generation = core.conversation.generation
        self._workspace = core.workspace
        self._approvals = core.approvals
        self._mask = core.services.secrets.mask_content
        self._state = core.state
        self._jobs = core.jobs if core.assignment is None else None  # they are its parent's, who is told
        self._feedback = feedback
        self._status = status
        self._plan = core.plan
        self._changed: SystemNote | None = None
        """Goes with the next prompt."""

    async def prepare_note(self, window: int) -> None:
        before, now = self._changed, await self._files_note(every=True)
        if before is not None and now is not None and before.text not in now.text:  # the last prompt was refused
            now = SystemNote(f"{before.text}\n\n{now.text}", f"{before.user_text}\n{now.user_text}")
        self._changed = now or before

    def note(self) -> str:
        return "" if self._changed is None else f"<files_changed>\n{self._changed.text}\n</files_changed>"

    def on_prompt(self, message: UserMessage) -> None:
        if self._changed is not None:
            item_id, text = f"{message.item_id}.changed", self._changed.user_text
            self._core.notices.report_on_prompt(item_id, message.turn_id, "modelTold", text, level="info")
            self._changed = None

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [self]} if self._core.is_chat(run) else {}

    async def before_request(self, turn: TurnView, step: int) -> Notes:
        if step == 1 or self._generation == self._conversation.generation:
            self._generation = self._conversation.generation
            return ()
        return await self._collect_notes(rewritten=True)

    async def after_call(self, call: Call, result: Result) -> Result:
        known_files = self._workspace.shown_files.take_unrecorded()
        return result.model_copy(update={"known_files": known_files}) if known_files else result

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes:
        self._plan.begin_afresh(turn.turn_id, step.number)
        return await self._collect_notes()

    async def _files_note(self, *, every: bool) -> SystemNote | None:
        """Names files that the model read and that have changed (`every`: see `StaleFiles`), and findings that came too
        late for the results of its edits."""
        late = await self._feedback.collect_late(self._readable)
        notices = [news for news in (await self._stale.collect_note(every=every), late) if news]
        if not notices:
            return None
        texts, user_texts = zip(*notices, strict=True)
        return SystemNote(self._mask("\n\n".join(texts)), self._mask("\n".join(user_texts)))

    async def _collect_notes(self, *, rewritten: bool = False) -> Notes:
        """The notes on the session's status and on files, if they have changed."""
        self._generation = self._conversation.generation
        news = await self._files_note(every=rewritten)
        status, plan = self._status.note(), self._plan.note()
        notice = f"The model was told that the mode is {self._state.mode}."
        notes = [SystemNote(status, notice, status=True)] if status else []
        notes += [SystemNote(plan, "The model was given the approved plan.")] if plan else []
        own = [note for note in (news, self._jobs_note()) if note is not None]
        return [*notes, *own, *self._core.parts.notes_between_steps()]

    def _jobs_note(self) -> SystemNote | None:
        """Which background commands have ended since the model was told last."""
        if self._jobs is None or not (ended := self._jobs.end_notes()):
            return None
        return SystemNote("\n".join(ended), f"The model was told how {plural(len(ended), 'background command')} ended.")

    def _readable(self, path: Path) -> bool:
        return bool(self._approvals.allowed([Subject("read_file", "read", self._workspace.relative(path))]))
