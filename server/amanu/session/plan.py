"""The plan of one session: a Markdown file beside its journal, which the model writes in plan mode and the user edits,
approves or rejects.

Mode and plan are the daemon's state and are told to the model from there, never left to its memory: a summary neither
loses an approved plan nor makes one up. What is told of an approved plan are the bytes that were approved, whatever has
become of the file since.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from amanu.agent.window import compaction
from amanu.agent.window.window import COMPACTED
from amanu.core.conversation import Compacted, Conversation, Results, SystemText, User
from amanu.core.session_part import SessionPart
from amanu.permissions.approvals import Approvals
from amanu.session.events import EventStream
from amanu.session.jobs import SessionJobs
from amanu.session.plan_steps import plan_steps
from amanu.session.todos import Todos
from amanu.storage.journal import Journal
from amanu.text.fences import block
from amanu.text.wording import is_finished
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, ApprovalResolved, Event, ItemCompleted, SessionChanged, TurnEnded
from amanu_protocol.items import Mode, Notice, PlanDocument, Todo

NAME = "plan.md"
QUIET = 0.1
"""Seconds without a change after which a plan that waits for approval is asked about anew."""
USER_WORDS = 8_000
"""Tokens of the user's own words that a fresh context keeps."""
_ABOUT = "The user approved this plan. Carry it out; where it turns out to be wrong, say so before you depart from it."
_FRESH = (
    "The conversation before this point was planning. The user approved the plan and chose to go on without that "
    "conversation. The user's own messages were:"
)


class SessionPlan(SessionPart):
    """Implements `core.plan_mode.PlanMode`."""

    def __init__(
        self,
        journal: Journal,
        emit: EventStream,
        conversation: Conversation,
        approvals: Approvals,
        workspace: Workspace,
        todos: Todos,
        jobs: SessionJobs,
    ) -> None:
        self._path = workspace.guard.plan or journal.folder / NAME
        self._journal = journal
        self._emit = emit
        self._conversation = conversation
        self._approvals = approvals
        self._overlay = workspace.overlay
        self._todos = todos
        self._jobs = jobs
        self._approved_text: str | None = None
        self._told_in: int | None = None
        """The conversation's generation in which the approved plan was told; None: not told yet."""
        self._fresh_context = False
        """The conversation is to be replaced by the plan after this step."""
        self._todos_revision = 0
        """The to-do list's when the plan was approved or brought back: an earlier list says nothing of this plan."""
        self._stop_watching: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        emit.listeners.append(self._on_event)

    @property
    def path(self) -> Path:
        return self._path

    @property
    def active(self) -> bool:
        return self._emit.state.mode == "plan"

    def draft(self) -> PlanDocument:
        """The plan as it is when planning begins."""
        return PlanDocument(path=str(self._path), state="draft")

    def enter(self) -> None:
        self._emit(SessionChanged(mode="plan", plan=self.draft()))
        self._jobs.report_going_on()
        self._approvals.reconsider()

    def go_back(self, mode: Mode) -> None:
        """Return to the mode from before a plan was approved: the conversation goes back to that time."""
        self._emit(SessionChanged(mode=mode))
        if self.active:
            self._jobs.report_going_on()
        self._approvals.reconsider()

    async def approve(self, text: str, mode: Mode, *, fresh_context: bool) -> None:
        blob = await self._journal.put_blob(text.encode("utf-8", "surrogatepass"))
        turn = self._emit.state.turn
        turn_id = "" if turn is None else turn.turn_id
        plan = PlanDocument(path=str(self._path), state="approved", digest=blob.blob_id, turn_id=turn_id)
        self._approved_text, self._told_in, self._fresh_context = text, None, fresh_context
        self._todos_revision = self._todos.revision
        self._emit(SessionChanged(mode=mode, plan=plan))
        if steps := plan_steps(text):
            self._todos.set([Todo(text=step, status="pending") for step in steps])
        self._approvals.reconsider()

    async def open(self, *, begins: bool) -> None:
        await self.restore()

    async def restore(self) -> None:
        """Take up the plan of a session that is opened again, or that was rewound."""
        plan = self._emit.state.plan
        self._approved_text, self._fresh_context = None, False
        self._todos_revision = self._todos.revision
        if plan is None or plan.state != "approved":
            return
        try:
            data = await self._journal.get_blob(plan.digest)
        except AmanuError:  # gone with the session's blobs: the conversation may still have it
            return
        self._approved_text = data.decode("utf-8", "surrogatepass")
        self._told_in = self._conversation.generation if self._is_told() else None

    def end_turn(self, turn_id: str) -> None:
        """A turn has ended, however it did: what was left to do after its last step is done now, and a plan whose steps
        are all done is over."""
        self.begin_afresh(turn_id, 0)
        plan, todos = self._emit.state.plan, self._todos.last
        if plan is None or plan.state != "approved" or self._todos.revision == self._todos_revision:
            return
        if todos and is_finished(todos):
            self._emit(SessionChanged(plan=plan.model_copy(update={"state": "done"})))

    # Telling the model --------------------------------------------------------------------------------

    def note(self) -> str:
        """The approved plan, once, and again when the conversation was rewritten; "" when nothing is to be told. It
        counts as told when this returns. In plan mode, which a rewind to an approved plan does not leave, it waits."""
        if self.active or self._approved_text is None or self._told_in == self._conversation.generation:
            return ""
        self._told_in = self._conversation.generation
        return self._block()

    def begin_afresh(self, turn_id: str, step: int) -> None:
        """After the step in which a plan was approved: if the user wanted that, put it in the place of the
        conversation. Between steps only."""
        if not self._fresh_context or self._approved_text is None:
            return
        self._fresh_context = False
        extracted = compaction.extract(list(self._conversation), self._conversation.compacted, ())
        words = compaction.fit_user_texts(extracted.user_texts, USER_WORDS)[0]
        entry = Compacted(
            replaced=len(self._conversation),
            text="\n\n".join([_FRESH, *words, self._block()]),
            snapshot="",
            user_texts=tuple(extracted.user_texts),
            files=extracted.files,
            replies=extracted.replies,
            skills=extracted.skills,
        )
        self._conversation.compact(entry)
        self._told_in = self._conversation.generation
        text = "Fresh context: from the conversation so far, the model keeps only your messages and the approved plan."
        notice = Notice(item_id=f"{turn_id}.{step}.fresh", turn_id=turn_id, level="info", code=COMPACTED, text=text)
        self._emit(ItemCompleted(item=notice), entry=entry)

    def _block(self) -> str:
        return block("approved_plan", f"{_ABOUT}\n\n{self._approved_text}")

    def _is_told(self) -> bool:
        text = self._block()
        for message in self._conversation:
            match message:
                case User() if text in message.text:
                    return True
                case Results(notes=notes) if any(isinstance(note, SystemText) and text in note.text for note in notes):
                    return True
                case _:
                    pass
        return False

    # A plan that waits for approval -------------------------------------------------------------------

    def _on_event(self, event: Event, position: int) -> None:
        match event:
            case ApprovalRequested(approval=approval) if approval.document is not None:
                if self._stop_watching is None:
                    call_id = approval.tool_call_id
                    self._stop_watching = self._overlay.watch(self._path, lambda: self._schedule(call_id))
            case SessionChanged(plan=PlanDocument(state="draft" | "done")):
                self._approved_text, self._fresh_context = None, False
            case ApprovalResolved() | TurnEnded():
                if self._stop_watching is not None and not self._awaits_approval():
                    self._stop()
            case _:
                pass

    def _awaits_approval(self) -> bool:
        return any(approval.document is not None for approval in self._emit.state.approvals)

    def _schedule(self, call_id: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(QUIET, self._catch_up, call_id)

    def _catch_up(self, call_id: str) -> None:
        self._timer = None
        task = asyncio.create_task(self._approvals.catch_up(call_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        self._stop()

    def _stop(self) -> None:
        """Stop watching the file."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
