"""What waits in a session: queued prompts, steering, and decisions that the model has not been told about."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from amanu.context.editor import EditorContext
from amanu.context.images import Pictures, reference
from amanu.core.conversation import PendingSteering, Picture, SystemText, User
from amanu.session.core import SessionCore
from amanu.session.events import Client
from amanu.session.late_decisions import LATE_DECISION
from amanu.session.restore import Restored, note
from amanu.text.wording import describe_waiting
from amanu_protocol.events import Event, ItemCompleted, ItemStarted, ItemsWithdrawn, PromptQueued, PromptUnqueued
from amanu_protocol.items import Attachment, ImageAttachment, Notice, QueuedPrompt, UserMessage

WAITING = "promptsWait"
"""Code of the notice about queued prompts that nothing starts."""
LATE = "Later decisions about your earlier edits:"


@dataclass(frozen=True)
class Prompt:
    """A prompt with the client it was sent from, its environment then, and what the editor showed there."""

    prompt_id: str
    text: str
    attachments: list[Attachment]
    environment: Mapping[str, str]
    context: EditorContext | None = None
    client: Client | None = None
    """None: it was sent to another daemon, or nobody reads along."""


class PromptQueue:
    """Prompts wait for the turn to end; notes wait for the next request, where they go in as text after the tool
    results."""

    def __init__(self, core: SessionCore, restored: Restored) -> None:
        self._core = core
        self._emit = core.emit
        self._state = core.state
        self.prompt_ids = restored.prompt_ids
        """The ids of all prompts ever accepted: one that is sent again changes nothing."""
        self._prompts: dict[str, Prompt] = {}
        self._steering = list(restored.steering.values())
        self.is_open = False
        """The running turn asks the model for a further reply, which will hear what is said now."""
        self.late_decisions = restored.late_decisions
        core.emit.listeners.append(self._on_event)
        self.pictures = Pictures(core.journal, core.conversation, self._steering_pictures, self._queued_pictures)

    def _on_event(self, event: Event, position: int) -> None:
        self.late_decisions.on_event(self._state, event)

    def _proposal_report(self, proposal_id: str) -> str:
        """The fate of a proposal, for the model. It quotes lines of files, and the user."""
        proposals = self._core.proposals
        calls = proposals.get(proposal_id).tool_call_ids
        report = "\n".join(dict.fromkeys(proposals.report(call_id) for call_id in calls))
        return self._core.services.secrets.mask_content(report)

    def queue(self, prompt: Prompt) -> None:
        """Queue a prompt: it starts when the running turn has ended."""
        self._prompts[prompt.prompt_id] = prompt
        queued = QueuedPrompt(prompt_id=prompt.prompt_id, text=prompt.text, attachments=prompt.attachments)
        self._emit(PromptQueued(prompt=queued))

    def has(self, prompt_id: str) -> bool:
        return any(queued.prompt_id == prompt_id for queued in self._state.queue)

    def take_back(self, prompt_id: str) -> None:
        """Remove a prompt from the queue: it starts, or is not wanted. Unknown ids are fine."""
        if self.has(prompt_id):
            self._prompts.pop(prompt_id, None)
            self._emit(PromptUnqueued(prompt_id=prompt_id))

    def oldest(self, environment: Mapping[str, str]) -> Prompt | None:
        """The oldest queued prompt; it stays queued until it is taken back. One that survived a restart takes that
        `environment`."""
        if not self._state.queue:
            return None
        queued = self._state.queue[0]
        queued_prompt = self._prompts.get(queued.prompt_id)
        return queued_prompt or Prompt(queued.prompt_id, queued.text, queued.attachments, dict(environment))

    def report_waiting(self) -> None:
        """Say that queued prompts, and what was said into a turn that ended without hearing it, wait for the user's
        next prompt, unless that was the last to be said about prompts."""
        if not self._state.queue and not self._steering:
            return
        for item in reversed(self._state.items):
            if isinstance(item, UserMessage):
                break
            if isinstance(item, Notice) and item.code == WAITING:
                return
        unheard = [message.text for message, _ in self._steering]
        text = describe_waiting([prompt.text for prompt in self._state.queue], unheard)
        self._core.notices.report_on_session(WAITING, "info", text)

    def _queued_pictures(self) -> Iterator[Picture]:
        """The pictures attached to queued prompts."""
        for attachment in (item for queued in self._state.queue for item in queued.attachments):
            if isinstance(attachment, ImageAttachment) and (picture := reference(attachment)) is not None:
                yield picture

    def steer(self, message: UserMessage, model_message: User) -> None:
        """Add a message of the user to the running turn; `model_message` is how the model will get it."""
        self._steering.append((message, model_message))
        self._emit(ItemStarted(item=message), entry=PendingSteering(message=model_message))

    def waiting_steering(self, item_id: str) -> tuple[UserMessage, User] | None:
        """A steering message and how the model will get it; None when the model has it already, or it is unknown."""
        return next((entry for entry in self._steering if entry[0].item_id == item_id), None)

    def complete_steering(self, item_id: str) -> None:
        """The model gets that message in another way."""
        for message, _ in [entry for entry in self._steering if entry[0].item_id == item_id]:
            self._emit(ItemCompleted(item=message))
        self._steering = [entry for entry in self._steering if entry[0].item_id != item_id]

    def take_back_steering(self, item_id: str) -> bool:
        """Withdraw a steering message; returns False when the model already has it, or it is unknown."""
        remaining = [entry for entry in self._steering if entry[0].item_id != item_id]
        if len(remaining) == len(self._steering):
            return False
        self._steering = remaining
        self._emit(ItemsWithdrawn(item_ids=[item_id], reason="The message could not be saved."))
        return True

    def forget_turns(self, turn_ids: Collection[str]) -> None:
        """Drop the steering of turns that were taken out of the conversation."""
        self._steering = [entry for entry in self._steering if entry[0].turn_id not in turn_ids]

    def _steering_pictures(self) -> Iterator[Picture]:
        """The pictures of steering that no request has carried yet."""
        for _, model_message in self._steering:
            yield from model_message.pictures

    def take_notes(self) -> list[User]:
        """What the model must be told now, each once; recorded as told when this returns."""
        steering, self._steering = self._steering, []
        for message, model_message in steering:
            self._emit(ItemCompleted(item=message), entry=note(*model_message.parts))
        return [
            *(model_message for _, model_message in steering),
            *map(self._decision_note, self.late_decisions.proposals()),
        ]

    def close(self) -> None:
        """The model is done: what is said from now on is the next prompt."""
        self.is_open = False

    def _decision_note(self, proposal_id: str) -> User:
        text = f"{LATE}\n{self._proposal_report(proposal_id)}"
        version = next(proposal.version for proposal in self._state.proposals if proposal.proposal_id == proposal_id)
        notice = Notice(
            item_id=f"{proposal_id}.{version}.late",
            level="info",
            code=LATE_DECISION,
            text="The model now knows what you decided about its earlier edits.",
        )
        self._emit(ItemCompleted(item=notice), entry=note(SystemText(text=text)))
        return User(text=text, from_system=True)
