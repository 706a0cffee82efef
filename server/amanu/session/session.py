"""One session: its parts and how events reach them; opening and closing; the user's decisions and settings.

A prompt becomes a turn in `prompts.py`. Everything a session does goes out by `emit`.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from amanu.context.mentions import without_mentions
from amanu.core.ending import Ending
from amanu.models import routing
from amanu.models.session_transport import Player
from amanu.permissions import offers
from amanu.session.built_files import BuiltFiles
from amanu.session.checkpoints import Checkpoints
from amanu.session.core import Assignment, SessionCore
from amanu.session.daemon_part import DaemonPart, parts_of
from amanu.session.events import Client
from amanu.session.export import SessionExport
from amanu.session.history import SHOWN_ITEMS
from amanu.session.mention_completion import MentionCompletion
from amanu.session.own_parts import OwnParts
from amanu.session.own_work import OwnWork
from amanu.session.paging import ItemPages
from amanu.session.parts import Parts
from amanu.session.patch import SessionPatch
from amanu.session.prompt_composer import PromptComposer
from amanu.session.prompts import Prompts
from amanu.session.queue import PromptQueue
from amanu.session.recording import SessionRecording
from amanu.session.restore import Restored
from amanu.session.retry import ChangeRetry, prompt
from amanu.session.review import SessionEdits
from amanu.session.review_preview import SessionPreview
from amanu.session.services import Services
from amanu.session.trust_state import SessionTrust
from amanu.session.turn_factory import TurnFactory
from amanu.storage.journal import Journal
from amanu.text.questions import late, late_report
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ItemCompleted,
    ItemStarted,
    SessionChanged,
    TurnEnded,
)
from amanu_protocol.items import Attachment, CommandSandbox, Effort, Mode, Question
from amanu_protocol.requests import (
    ApprovalResolveParams,
    ApprovalResolveResult,
    PromptSendParams,
    PromptSendResult,
    ProposalRetryParams,
    ProposalRetryResult,
    QuestionAnswerParams,
    QuestionAnswerResult,
    RewriteRefineParams,
    RewriteStartParams,
    SessionAttachResult,
)
from amanu_protocol.state import SessionState


class Session:
    """The requests of the protocol, one method each, here or in the part they are about, raising `AmanuError`. Made by
    `sessions.Sessions`."""

    def __init__(
        self,
        services: Services,
        journal: Journal,
        restored: Restored,
        parts: Sequence[DaemonPart],
        assignment: Assignment | None = None,
    ) -> None:
        """`parts` make the session's parts. With an `assignment`, it is the session of a sub-agent."""
        core = self.core = SessionCore(services, journal, restored, assignment)
        self.state, self.emit = core.state, core.emit
        self.approvals = core.approvals
        """For verdicts; answers go through `resolve_approval`."""
        self.last_used = time.monotonic()
        """When it was last asked for (`time.monotonic()`)."""
        self.trust = SessionTrust(core, self._trust_changed)
        core.proposal_listeners += [self.trust.on_proposal, core.approvals.on_proposal]
        self._built_files = BuiltFiles(core) if assignment is None else None
        self._own_work: OwnWork | None = None
        if assignment is None:
            self._own_work = OwnWork(core)
            self._work = self._own_work.shared
        else:
            self._work = assignment.work
        self.recording = SessionRecording(core, self._work.transport)
        core.work = self._work
        queue = PromptQueue(core, restored)
        environment = replace(
            core.tool_environment(self._work.feedback, queue.pictures), rename=self._work.checks.rename
        )
        self.own_parts = OwnParts(core, self._work, environment)
        core.parts = Parts([*self.own_parts.all, *parts_of(core, parts)])
        turn_factory = TurnFactory(core, queue, self.own_parts.title, environment)
        self.composer = PromptComposer(core, queue, self.own_parts, turn_factory, self._work.checks.find)
        self.edits = SessionEdits(core)
        self._retry = ChangeRetry(core, self.edits)
        self.previews = SessionPreview(core, self.edits)
        self.patches = SessionPatch(core, self.edits)
        self.mentions = MentionCompletion(core.workspace, self.own_parts.mcp.resources)
        self.checkpoints = Checkpoints(core, queue, self.edits)
        self._rewrite = turn_factory.rewrite
        self.prompts = Prompts(core, self.composer, self.trust, self.recording, self.checkpoints)
        self.pages = ItemPages(core)
        self.export = SessionExport(core)
        self._mode = self.state.mode
        self._answering = asyncio.Lock()
        """Held while an answer is taken: the next one is late."""
        core.emit.listeners.append(self._on_event)
        self._closing_events = restored.closing_events

    async def open(self, *, begins: bool = False) -> None:
        """Close what a crash left open; proposals that were open are open again. `begins`: the session is new."""
        if self.state.read_only:
            return
        for event, entry in self._closing_events:
            self.emit(event, entry)
        if self.core.journal.damage:
            self.core.notices.report_ending(None, Ending("failed", self.core.journal.damage, kind="storageError"))
        self._closing_events = []
        if self._own_work is not None:
            await self._own_work.open(begins=begins)
        await self.core.parts.open(begins=begins)
        self.composer.queue.report_waiting()
        if begins:
            for warning in self.core.services.settings.warnings if self.core.assignment is None else ():
                self.core.notices.report_on_session("settings", "warning", warning)

    async def interrupt(self) -> None:
        """End the running turn because the daemon stops; nothing starts any more."""
        self.core.access.closed = True
        await self.prompts.stop(daemon_stops=True)

    async def close(self, *, anyway: bool = False) -> None:
        """Cancel what runs and close the journal. Raises `AmanuError` (storageError) and stays open when something
        could not be saved; with `anyway` that is lost."""
        self.core.access.closed = True  # nothing starts any more
        await self.prompts.stop()
        await self.core.parts.stop()
        if self._own_work is not None:
            await self._own_work.stop()
        if self._built_files is not None:
            await self._built_files.close()
        await self.core.layer.close()
        await self.core.proposals.wait_until_settled()  # what the user just accepted reaches its file, and is recorded
        async with self.core.turn.starting:
            try:
                await self.core.journal.durable()
            except AmanuError:
                if not anyway:
                    self.core.access.closed = False
                    self.core.parts.resume()
                    raise
            if self._own_work is not None:
                await self._own_work.close()
            await self.core.parts.close()
            with contextlib.suppress(AmanuError):
                await self.core.journal.close()

    @property
    def idle(self) -> bool:
        """No client is attached, and nothing is running, not even in the background."""
        return (
            not self.running
            and self.core.assignment is None
            and self.core.parts.idle
            and not self.emit.attached
            and not self.core.turn.starting.locked()
        )

    @property
    def superseded(self) -> bool:
        """Another daemon has it open, and no client is attached here."""
        return self.state.read_only and not self.emit.attached

    @property
    def running(self) -> bool:
        return self.prompts.running

    # Watching ---------------------------------------------------------------------------------------

    def attach(self, client: Client, epoch: int | None, since_seq: int | None) -> SessionAttachResult:
        """The events the client missed, or the state when they are no longer in memory; the client gets all further
        events."""
        self.core.access.require_open()
        if client.ripgrep is not None:
            self.core.workspace.ripgrep = self.core.view.ripgrep = client.ripgrep
        from_seq = self.emit.attach(client)
        if epoch == self.emit.epoch and since_seq is not None:
            missed = self.emit.since(since_seq)
            if missed is not None:
                return SessionAttachResult(epoch=self.emit.epoch, from_seq=from_seq, events=missed)
        return SessionAttachResult(epoch=self.emit.epoch, from_seq=from_seq, state=self.view())

    def detach(self, client: Client) -> None:
        self.emit.detach(client)

    def view(self) -> SessionState:
        """The state as it is now, with the last `SHOWN_ITEMS` items."""
        return self.state.last(SHOWN_ITEMS)

    async def wait_for_turn(self, turn_id: str) -> TurnEnded:
        """How the running turn, or the one before it, ended: every turn ends, once, and this returns when every client
        has been told. Raises `AmanuError` staleTurn for any other turn."""
        last, running = self.state.last_turn, self.state.turn
        if last is not None and last.turn_id == turn_id:
            return last
        if running is None or running.turn_id != turn_id:
            raise AmanuError("staleTurn", "That turn is neither running nor the last one.")
        end: asyncio.Future[TurnEnded] = asyncio.get_running_loop().create_future()

        def listen(event: Event, position: int) -> None:
            if isinstance(event, TurnEnded) and event.turn_id == turn_id and not end.done():
                end.set_result(event)

        self.emit.listeners.append(listen)
        try:
            return await end
        finally:
            self.emit.listeners.remove(listen)

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve_approval(self, params: ApprovalResolveParams, client: Client) -> ApprovalResolveResult:
        self.core.access.require_writable()
        pending = self.approvals.pending(params.tool_call_id)
        if params.decision == "allow" and pending is not None and pending.approval.proposal_id is not None:
            await self.core.proposals.catch_up(
                pending.approval.proposal_id
            )  # its digest is of the files as they are now
        if params.decision == "allow":
            await self.approvals.catch_up(params.tool_call_id)
        result = self.approvals.resolve(params, client.name)
        if result.status == "resolved" and params.scope in ("workspace", "user"):
            self.core.services.on_rules_changed()
        await self.emit.durable()
        return result

    async def answer_question(self, params: QuestionAnswerParams, client: Client) -> QuestionAnswerResult:
        """Take a client's answer; the first one counts. If the turn that asked is gone, the answer is sent as a
        prompt; if that is refused, so is the answer, and the question stays open. Raises `AmanuError`
        (questionNotFound, invalidParams)."""
        self.core.access.require_writable()
        questions = self.core.questions
        async with self._answering:
            question = questions.open(params.question_id)
            if question is None:
                over = questions.over(params.question_id)
                return _answer_result("alreadyAnswered", over, late(over))
            answered = questions.read(question, params, client.name, self.core.services.secrets.mask_content)
            if not questions.awaited(question.item_id) and (answered.state == "answered" or answered.note):
                await self.prompts.send(
                    PromptSendParams(
                        session_id=params.session_id,
                        prompt_id=f"answer-{question.item_id}",
                        text=without_mentions(late_report(answered)),  # what the model wrote must attach nothing
                    ),
                    client,
                )
            answered = questions.settle(answered)
        await self.emit.durable()
        return _answer_result("answered", answered, answered.summary)

    def allow(self, rule: str) -> None:
        """Allow by rule for this session (`--allow`). Raises `AmanuError` (invalidRule)."""
        for allowed in offers.rules_of(rule, "--allow"):
            self.approvals.allow_in_session(allowed)

    async def send_prompt(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """A prompt of the user's. A session that rewrote lines becomes a chat by it."""
        if self.state.purpose == "rewrite":
            await self.continue_rewrite(client)
        return await self.prompts.send(params, client)

    async def retry(self, params: ProposalRetryParams, client: Client) -> ProposalRetryResult:
        """Have the model make open or conflicted changes again. If the prompt for that is refused, the model hears of
        it with the next one. Raises `AmanuError` (proposalConflict, and what a prompt raises)."""
        changes, proposals = self._retry.changes(params), self.core.proposals
        if changes is None:
            return ProposalRetryResult(status="tooSoon", proposal=proposals.get(params.proposal_id))
        sentence = await self._retry.reject(params.proposal_id, changes)
        turn_id, status = self.state.turn and self.state.turn.turn_id, "told"
        if sentence:
            said = prompt(params, sentence)
            told = await self.prompts.tell(said, client)
            result = told or await self.send_prompt(said, client)
            turn_id, status = result.turn_id, "told" if told else "queued" if result.status == "queued" else "started"
        return ProposalRetryResult(status=status, turn_id=turn_id, proposal=proposals.get(params.proposal_id))

    # Rewriting --------------------------------------------------------------------------------------

    async def rewrite(self, params: RewriteStartParams, client: Client) -> PromptSendResult:
        """Rewrite these lines. A known `promptId` changes nothing. Raises `AmanuError`, see the params."""
        known = params.prompt_id in self.composer.queue.prompt_ids
        attachments: list[Attachment] = [] if known else [await self._rewrite.begin(params)]
        return await self._send_rewrite(params, attachments, client)

    async def refine(self, params: RewriteRefineParams, client: Client) -> PromptSendResult:
        """Rewrite them once more; what is open of the last rewrite is rejected. Raises `AmanuError`, see the params."""
        self.core.access.require_writable()
        if not self._rewrite.active:
            raise AmanuError("staleTurn", "This rewrite is over.", hint="Continue in chat, or select the lines again.")
        if params.prompt_id not in self.composer.queue.prompt_ids:
            if self.state.turn is not None:
                await self.prompts.cancel(self.state.turn.turn_id)
            if self.state.last_turn is not None:
                await self.edits.reject_open([self.state.last_turn.turn_id], params.instruction)
            await self._rewrite.refine(params.instruction)
        return await self._send_rewrite(params, [], client)

    async def continue_rewrite(self, client: Client) -> None:
        """Make it a chat in the default mode, with the default model instead of the one for rewrites."""
        self._rewrite.end()
        if self.state.purpose == "rewrite":
            settings, registry = self.core.services.settings, self.core.services.registry
            default_model = routing.default(settings, registry, client.environment)
            chat_model = default_model if self.state.model_id == settings.routing.rewrite else None
            await self._set(SessionChanged(purpose="chat", model_id=chat_model))
            await self.set_mode(settings.mode)

    async def _send_rewrite(
        self, params: RewriteStartParams | RewriteRefineParams, attachments: list[Attachment], client: Client
    ) -> PromptSendResult:
        text = params.instruction
        text = f"Rewrite: {text}" if text.lstrip().startswith(("/", "!")) else text  # it names no command
        prompt = PromptSendParams(
            session_id=params.session_id, prompt_id=params.prompt_id, text=text, attachments=attachments
        )
        return await self.prompts.send(prompt, client)

    # Properties -------------------------------------------------------------------------------------

    async def rename(self, title: str) -> None:
        await self._set(SessionChanged(title=title))

    async def set_mode(self, mode: Mode) -> None:
        """Open questions are decided again. Raises `AmanuError` (invalidParams) in the session of a sub-agent at
        work."""
        if self.core.assignment is not None:
            raise AmanuError(
                "invalidParams",
                "A sub-agent works in the mode of the session it works for.",
                hint="Change the mode there.",
            )
        plan = self.core.plan.draft() if mode == "plan" else None
        is_entered = plan is not None and not self.core.plan.active
        await self._set(SessionChanged(mode=mode, plan=plan))
        if is_entered:
            self.core.jobs.report_going_on()

    async def set_model(self, model_id: str, client: Client) -> None:
        """Takes effect with the next turn. Raises `AmanuError` when there is no such model or no key for it."""
        self.core.access.require_writable()
        services = self.core.services
        info = await routing.check(model_id, services.settings, services.registry, client.environment)
        tier = self.own_parts.service_tier.on_model(info)
        await self._set(SessionChanged(model_id=model_id, service_tier=tier))
        doubt = None
        if model_id != routing.AUTO:
            doubt = await self.core.services.registry.doubt(model_id, client.environment)
        if doubt is not None:
            self.core.notices.report_on_session("modelDoubt", "warning", doubt)

    async def set_effort(self, effort: Effort) -> None:
        """Takes effect with the next turn."""
        await self._set(SessionChanged(effort=effort))

    async def record(self, path: str | None) -> None:
        """Record the exchanges with models to that new file; None ends the recording. Raises `AmanuError`:
        invalidParams, storageError."""
        self.core.access.require_writable()
        self.recording.record(path, self.core.environment)
        await self.emit.durable()

    def replay(self, player: Player) -> None:
        """From now on `player` answers instead of the models' services."""
        self.recording.line.player = player

    def set_sandbox(self, sandbox: CommandSandbox) -> None:
        """The sandbox that commands run in from now on: it has been tried."""
        if sandbox != self.state.sandbox and self.core.access.writable:
            self.emit(SessionChanged(sandbox=sandbox))

    async def _set(self, event: SessionChanged) -> None:
        self.core.access.require_writable()
        self.emit(event)
        if event.mode is not None:
            self.approvals.reconsider()
        self.core.list_changed()
        await self.emit.durable()

    # Events -------------------------------------------------------------------------------------

    def _on_event(self, event: Event, position: int) -> None:
        if isinstance(event, SessionChanged) and self.state.mode != self._mode:
            self._mode = self.state.mode
            self.core.parts.on_mode(self._mode)
        if isinstance(event, ApprovalRequested | ApprovalResolved) or (
            isinstance(event, ItemStarted | ItemCompleted) and isinstance(event.item, Question)
        ):
            self.core.list_changed()  # whether it waits for the user has changed

    def _trust_changed(self, taken_back: bool) -> None:
        self.approvals.reconsider()  # the workspace's rules count now, or no longer
        if taken_back and self._own_work is not None:
            self._own_work.stop_checkers()
        self.core.parts.on_trust(taken_back=taken_back)


def _answer_result(
    status: Literal["answered", "alreadyAnswered"], question: Question, summary: str
) -> QuestionAnswerResult:
    assert question.state != "open"
    return QuestionAnswerResult(status=status, outcome=question.state, client=question.client, summary=summary)
