"""The requests about one session's prompts: send, steer, unqueue, cancel, compact. Each prompt becomes a turn, at once
or from the queue; at most one turn runs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from amanu.context import slash_commands as commands
from amanu.context.images import PictureLimitReached
from amanu.core.agent import AgentRun
from amanu.core.conversation import User
from amanu.core.ending import Ending
from amanu.core.session_part import PromptBlocked
from amanu.session.checkpoints import Checkpoints
from amanu.session.core import SessionCore
from amanu.session.events import Client
from amanu.session.parts import PromptListeners
from amanu.session.prompt_composer import ComposedPrompt, PromptComposer
from amanu.session.queue import Prompt
from amanu.session.recording import SessionRecording
from amanu.session.trust_state import SessionTrust
from amanu.session.user_requests import user_request
from amanu.text import wording
from amanu.text.redaction import MASK
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted, TurnEnded, TurnStarted
from amanu_protocol.items import Attachment, ImageAttachment, UserMessage
from amanu_protocol.requests import (
    PromptSendParams,
    PromptSendResult,
    PromptSteerParams,
    SessionCompactResult,
    TurnCancelResult,
)

log = logging.getLogger(__name__)

MAX_QUEUED = 100
"""Queued prompts of one session; each is in the state that every client gets."""
CANCEL_SECONDS = 0.45
"""A cancel is acknowledged within half a second, also when a process takes longer to die."""

_HIDDEN = (
    f"Your prompt contained what looks like a key. {MASK} replaces it, for the model and in the saved session. Put the "
    "key into a file or an environment variable that your program reads, and refer to that instead."
)

_SEE_MESSAGE = "see the message"
"""What the user answers with a message that stands on its own."""


class Prompts:
    """One method per request, raising `AmanuError`."""

    def __init__(
        self,
        core: SessionCore,
        composer: PromptComposer,
        trust: SessionTrust,
        recording: SessionRecording,
        checkpoints: Checkpoints,
    ) -> None:
        self._core = core
        self._state = core.state
        self._approvals = core.approvals
        self._notices = core.notices
        self._emit = core.emit
        self._turn = core.turn
        self._require_writable = core.access.require_writable
        self._composer = composer
        self._queue = composer.queue
        self._prompt_ids = composer.queue.prompt_ids
        self._pictures = composer.pictures
        self._turn_factory = composer.turn_factory
        self._trust = trust
        self._recording = recording
        self._checkpoints = checkpoints
        self._answers = core.parts.answers()
        self._turn_client: Client | None = None
        """The client whose prompt began the last turn."""
        self._prompted_after_stop = False
        """A prompt came while the turn was stopping: the queue goes on right after it."""

    async def send(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """Start a turn, or queue behind what runs and waits. Returns when the prompt is on disk. A known `promptId`
        changes nothing, but if that prompt waits and no turn runs, the queue goes on. Raises `AmanuError`:
        invalidParams for a picture no model would take; turnInProgress for a sub-agent at work, after which its session
        is closed; storageError when it cannot be saved, and then it is as if it had never been sent."""
        if (request := commands.request(params.text, self._answers)) is not None:
            await self._answer(params.prompt_id, *request)
            return PromptSendResult(status="answered")
        if self._core.assignment is not None:
            hint = "Say it into its running turn, or send it when the sub-agent has ended."
            raise AmanuError("turnInProgress", "A sub-agent works on its task and takes no other prompt.", hint=hint)
        return await self.send_prompt(params, client)

    async def send_prompt(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """Send a prompt for the model, or the task of a sub-agent: `send` without the daemon's own commands."""
        text = self._core.services.secrets.mask_content(params.text)
        async with self._turn.starting:
            self._require_writable()
            is_known = params.prompt_id in self._prompt_ids
            if is_known:
                if self._queue.has(params.prompt_id):
                    await self._start_oldest(client.environment, params.prompt_id)
                result = self._sent(params.prompt_id)
            else:
                await self._emit.durable()  # if the disk takes nothing, it will not take the prompt
                result = await self._start_or_queue(params.model_copy(update={"text": text}), client)
                self._report_hidden_keys(params.text, text)
        if is_known:
            await self._emit.durable()
        else:
            await self._save_or_forget(params.prompt_id)
        return result

    async def _start_or_queue(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        if len(self._state.queue) >= MAX_QUEUED:
            raise AmanuError(
                "turnInProgress", f"The queue already holds {MAX_QUEUED} prompts.", hint="Remove some of them first."
            )
        attachments = await self._pictures.keep(params.attachments)
        self._require_writable()
        prompt = Prompt(params.prompt_id, params.text, attachments, dict(client.environment), client.context, client)
        if not self._turn and not self._state.queue:
            await self._start(prompt)
            return self._sent(prompt.prompt_id)
        self._prompt_ids.add(prompt.prompt_id)
        self._queue.queue(prompt)
        if self._turn:
            self._prompted_after_stop |= self._turn.stopping
            if self._reads_the_turn(client):
                self._approvals.finish_reviews(client.name, self._core.agent_id)
        else:
            await self._start_oldest(client.environment, prompt.prompt_id)
        return self._sent(prompt.prompt_id)

    def _sent(self, prompt_id: str) -> PromptSendResult:
        if self._queue.has(prompt_id):
            return PromptSendResult(status="queued")
        return PromptSendResult(status="started", turn_id=_turn_id(prompt_id))

    async def steer(self, params: PromptSteerParams, client: Client) -> None:
        """Add a message to the running turn: the model gets it after the tool results of its next request. It also
        answers what this model has asked and waits for: its questions, in other words, and a plan, which is sent back.
        What others ask (a sub-agent, a server) stays open. What no request will carry is queued."""
        self._require_writable()
        if self._turn_factory.rewrite.has_run(params.turn_id):  # its only step would never hear it
            raise AmanuError("staleTurn", "This turn only makes the edit.", hint="Send this as a new prompt.")
        focus = commands.compaction(params.text)
        if (request := commands.request(params.text, self._answers)) is not None:
            await self._answer(params.prompt_id, *request)
        elif (self._turn and not self._queue.is_open) or user_request(params.text, self._core) is not None:
            await self.send(PromptSendParams(**params.model_dump(exclude={"turn_id"})), client)
            return
        elif focus is not None:
            self._compact_in_turn(params, focus)
        elif params.prompt_id not in self._prompt_ids:
            attachments = await self._pictures.keep(params.attachments)
            plain = params.model_copy(update={"text": self._core.services.secrets.mask_content(params.text)})
            heard = await self._composer.expand(plain.text, attachments)
            self._require_writable()
            self._add_steering(plain, attachments, heard)
            self._report_hidden_keys(params.text, plain.text)
        try:
            await self._emit.durable()
        except AmanuError:
            if self._queue.take_back_steering(params.prompt_id):
                self._prompt_ids.discard(params.prompt_id)
            raise
        self._end_waits(params.prompt_id, client)

    async def tell(self, params: PromptSendParams, client: Client) -> PromptSendResult | None:
        """Say something into the running turn that answers nothing which that waits for. None: no request of a running
        turn will carry it."""
        turn = self._state.turn
        if (
            turn is None
            or not self._turn
            or not self._queue.is_open
            or self._turn_factory.rewrite.has_run(turn.turn_id)
        ):
            return None
        heard = await self._composer.expand(params.text, [])
        self._require_writable()
        steering = PromptSteerParams(**params.model_dump(), turn_id=turn.turn_id)
        self._add_steering(steering, [], heard)
        await self._emit.durable()
        return PromptSendResult(status="started", turn_id=turn.turn_id)

    def _end_waits(self, prompt_id: str, client: Client) -> None:
        """End what the model waits for with a steering message, unless it has heard that already or no longer listens.
        Only when the message is on disk: one that is given back to the user must not have answered."""
        waiting = self._queue.waiting_steering(prompt_id)
        if waiting is None or self._turn.stopping or not self._reads_the_turn(client):
            return
        message, heard = waiting
        questions, agent_id = self._core.questions, self._core.agent_id
        answers = bool(questions.waited_for(agent_id)) and heard == User(text=message.text)
        questions.decline(message.text if answers else _SEE_MESSAGE, client.name, agent_id)
        if answers:  # the model reads it in the result of what it asked; on record after that, or a crash could lose it
            self._queue.complete_steering(prompt_id)
        self._approvals.finish_reviews(client.name, agent_id)
        self._approvals.reject_plan(_SEE_MESSAGE, client.name, agent_id)

    def _reads_the_turn(self, client: Client) -> bool:
        """Whether what this client says ends what the turn waits for: it began the turn, or the client that did has
        left. Otherwise that client may be reading the question just now."""
        reader = self._turn_client
        return reader is None or reader is client or not self._emit.is_attached(reader)

    async def _answer(self, prompt_id: str, name: str, arguments: str) -> None:
        """Carry out a command of the daemon (`/memory`, `/mcp` …), once for each prompt: the model does not hear it."""
        self._require_writable()
        if prompt_id not in self._prompt_ids:
            self._prompt_ids.add(prompt_id)
            try:
                await self._answers[name](arguments)
            except BaseException:
                self._prompt_ids.discard(prompt_id)  # it may be sent again
                raise

    def _compact_in_turn(self, params: PromptSteerParams, focus: str) -> None:
        """Compact in the running turn: the message is shown, but the model does not get it."""
        if params.prompt_id in self._prompt_ids:
            return
        self._require_running(params.turn_id)
        self._prompt_ids.add(params.prompt_id)
        message = UserMessage(
            item_id=params.prompt_id, turn_id=params.turn_id, text=params.text, attachments=[], steer=True
        )
        self._emit(ItemCompleted(item=message))
        self._turn_factory.window.compact_soon(focus)

    def _report_hidden_keys(self, original: str, text: str) -> None:
        if text != original:
            self._notices.report_on_session("secretHidden", "warning", _HIDDEN)

    def _require_running(self, turn_id: str) -> None:
        if not self._turn or self._state.turn is None or self._state.turn.turn_id != turn_id:
            raise AmanuError("staleTurn", "That turn is over.", hint="Send this as a new prompt.")

    def _add_steering(self, params: PromptSteerParams, attachments: list[Attachment], heard: ComposedPrompt) -> None:
        if params.prompt_id in self._prompt_ids:
            return  # the same prompt was sent twice, and the other was faster
        self._require_running(params.turn_id)
        self._prompt_ids.add(params.prompt_id)
        message = UserMessage(
            item_id=params.prompt_id, turn_id=params.turn_id, text=params.text, attachments=attachments, steer=True
        )
        self._queue.steer(message, heard.message)
        self._composer.report_unsent(message, heard)

    async def unqueue(self, prompt_id: str) -> None:
        async with self._turn.starting:  # a prompt that is being started counts as started
            self._require_writable()
            self._queue.take_back(prompt_id)
        await self._emit.durable()

    async def cancel(self, turn_id: str) -> TurnCancelResult:
        """Stop the turn. When this returns nothing more is written, run or sent for it."""
        self._require_writable()
        if self._state.turn is None or self._state.turn.turn_id != turn_id:
            return TurnCancelResult(status="alreadyEnded")
        await self._turn.stop(CANCEL_SECONDS)
        return TurnCancelResult(status="cancelled")

    async def compact(self, focus: str, client: Client) -> SessionCompactResult:
        """Replace the older part of the conversation with a summary: now, or at the next step of the running turn.
        Raises `AmanuError` (modelNotFound, authRequired …)."""
        async with self._turn.starting:
            self._require_writable()
            if self._turn:
                self._turn_factory.window.compact_soon(focus)
                return SessionCompactResult(status="queued")
            text = f"/{commands.COMPACT} {focus}".rstrip()
            prompt = Prompt(f"compact-{self._emit.epoch}-{self._emit.seq}", text, [], dict(client.environment))
            await self._start(prompt)
        await self._save_or_forget(prompt.prompt_id)
        return SessionCompactResult(status="started")

    @property
    def running(self) -> bool:
        """Whether a turn is running."""
        return bool(self._turn)

    async def stop(self, *, daemon_stops: bool = False) -> None:
        """Cancel the turn and wait for its end; see `TurnTask.stop`."""
        if self._turn:
            await self._turn.stop(daemon_stops=daemon_stops)

    # ------------------------------------------------------------------------------------------------

    async def _save_or_forget(self, prompt_id: str) -> None:
        """Save the prompt, or take it back and raise `AmanuError` (storageError): a user who is told that it was not
        saved may send it again, so it must not run later. Nothing it led to has had an effect, for effects wait until
        it is on disk."""
        try:
            await self._emit.durable()
        except AmanuError:
            turn_id = _turn_id(prompt_id)
            self._queue.take_back(prompt_id)
            if self._state.turn is not None and self._state.turn.turn_id == turn_id:
                await self._turn.stop()
            with contextlib.suppress(AmanuError):  # another turn runs already, or the session was closed
                await self._checkpoints.forget(turn_id)
            self._prompt_ids.discard(prompt_id)
            raise

    async def _start(self, prompt: Prompt) -> str:
        """Start a turn for a prompt. Raises `AmanuError` (modelNotFound, authRequired …) before anything of it
        is on record."""
        was_trusted, parts = self._state.trusted, self._core.parts
        await asyncio.gather(self._trust.refresh(), parts.begin_turn())
        if self._state.trusted != was_trusted:
            await parts.begin_turn()
        choice = await self._turn_factory.model_chooser.choose(prompt.text, prompt.environment)
        info = choice.candidate.info
        self._core.environment.replace(prompt.environment)
        self._core.services.auth.learn(prompt.environment)
        focus = commands.compaction(prompt.text)
        request = user_request(prompt.text, self._core)
        listeners, context = PromptListeners(self._core.parts), ""
        if request is not None:
            added = [await listeners.begin(), await listeners.on_words(prompt.text, typed=prompt.text)]
            context = "\n\n".join(filter(None, added))
        await self._pictures.load()
        opening = None
        if focus is None and request is None:
            opening = await self._composer.compose(prompt, info.context_window)
        self._require_writable()
        turn_id = _turn_id(prompt.prompt_id)
        self._queue.take_back(prompt.prompt_id)
        self._prompt_ids.add(prompt.prompt_id)
        if not self._state.title and focus is None:
            self._composer.own.title.start(prompt.text)
        started = TurnStarted(turn_id=turn_id, prompt_id=prompt.prompt_id, model_id=info.model_id)
        self._emit(started, entry=opening and opening.memory)
        message = UserMessage(
            item_id=prompt.prompt_id,
            turn_id=turn_id,
            text=prompt.text,
            attachments=prompt.attachments,
            steer=False,
        )
        self._composer.model = info
        self._turn_client = prompt.client
        if opening is not None:
            self._composer.add_to_conversation(message, opening)
        elif request is not None:
            self._composer.add_request(message, request.text, context)
            listeners.told(opens_turn=True)
        else:
            self._emit(ItemCompleted(item=message))
        self._pictures.forget()
        if self._core.assignment is None:  # a sub-agent works in its parent's turn, whose approvals and ceilings go on
            self._approvals.start_turn()
        run, agent = (
            self._turn_factory.start_run(turn_id, prompt.text, info.context_window),
            self._turn_factory.agent(choice),
        )
        self._recording.hide(prompt.environment)
        self._queue.is_open = opening is not None
        if request is not None:
            work = agent.serve(run, request)
        else:
            work = agent.run(run) if focus is None else agent.compact(run, focus)
        with self._recording.line.used():
            self._turn.start(run, work, self._save_end, self._on_turn_end)
        self._core.list_changed()
        return turn_id

    async def _save_end(self, run: AgentRun, ending: Ending) -> None:
        """Have on disk what clients are told when this returns: that the turn has ended, and how."""
        if ending.reason not in ("completed", "cancelled", "interrupted", "hook"):  # of hooks the user has been told
            self._notices.report_ending(run.turn_id, ending)
        with contextlib.suppress(AmanuError):  # whoever needs it saved is told of that; the turn ends all the same
            await self._emit.save(_turn_ended(run, ending))

    async def _on_turn_end(self, run: AgentRun, ending: Ending) -> None:
        goes_on = self._prompted_after_stop or ending.reason == "completed"
        self._prompted_after_stop = False
        self._emit(_turn_ended(run, ending))
        self._core.plan.end_turn(run.turn_id)
        self._core.list_changed()
        if self._core.assignment is not None:
            return  # what is queued waits until it is a session of its own
        if goes_on:
            async with self._turn.starting:
                await self._start_oldest(self._core.environment)
        elif self._core.access.writable:
            self._queue.report_waiting()

    async def _start_oldest(self, environment: Mapping[str, str], sent: str = "") -> None:
        """Start the oldest queued prompt, if no turn runs: `environment` is for one whose own was lost. After a cancel
        or a failure all wait for the user's next prompt, which goes behind them. They wait, too, when the oldest cannot
        start now. One that can never start is given back to the user, and the next one starts; if it is the one just
        `sent`, that raises the `AmanuError`, as if no other had waited."""
        refused: AmanuError | None = None
        while not self._turn and self._core.access.writable:
            prompt = self._queue.oldest(environment)
            if prompt is None:
                break
            try:
                await self._start(prompt)
                break  # what is behind it follows when its turn is completed
            except (PictureLimitReached, PromptBlocked) as error:
                if prompt.prompt_id == sent:
                    refused = error
                    self._queue.take_back(sent)
                    self._prompt_ids.discard(sent)
                else:
                    self._give_back(prompt, error)
                continue
            except AmanuError as error:
                if self._core.access.writable:
                    self._notices.report_ending(None, Ending("failed", str(error), kind=error.kind))
            except Exception:
                log.exception("a queued prompt could not start")
                self._notices.report_ending(None, Ending("failed", "Internal error in Amanu; see `amanu logs`."))
            if self._core.access.writable:
                self._queue.report_waiting()
            break
        if refused is not None:
            raise refused

    def _give_back(self, prompt: Prompt, error: PictureLimitReached | PromptBlocked) -> None:
        """Remove a prompt that can never start from the queue; a notice returns all that the user typed."""
        with_it = [
            attachment.name if isinstance(attachment, ImageAttachment) else attachment.path
            for attachment in prompt.attachments
        ]
        attached = f"\nAttached: {', '.join(with_it)}" if with_it else ""
        text = f"{error} This prompt was removed from the queue without being sent:\n\n{prompt.text}{attached}"
        self._queue.take_back(prompt.prompt_id)
        self._notices.report_ending(None, Ending("failed", text, kind=error.kind))


def _turn_ended(run: AgentRun, ending: Ending) -> TurnEnded:
    return TurnEnded(
        turn_id=run.turn_id,
        reason=ending.reason,
        message=ending.message,
        can_continue=ending.can_continue,
        usage=wording.summarize_spend(run.spent),
    )


def _turn_id(prompt_id: str) -> str:
    return f"turn-{prompt_id}"
