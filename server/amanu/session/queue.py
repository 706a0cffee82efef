"""What waits for its moment in a session: queued prompts, steering, decisions the model has not heard of."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from amanu.context.editor import EditorContext
from amanu.context.images import reference
from amanu.core.conversation import PendingSteering, Picture, SystemText, User
from amanu.session.core import SessionCore
from amanu.session.late_decisions import LATE_DECISION
from amanu.session.restore import Restored, note
from amanu_protocol.events import ItemCompleted, ItemStarted, ItemsWithdrawn, PromptQueued, PromptUnqueued
from amanu_protocol.items import Attachment, ImageAttachment, Notice, QueuedPrompt, UserMessage

LATE = "What has become of earlier edits since then:"


@dataclass(frozen=True)
class Prompt:
    """What a user sent, with the environment of the client they sent it from, and what they saw there."""

    prompt_id: str
    text: str
    attachments: list[Attachment]
    environment: Mapping[str, str]
    context: EditorContext | None = None


class PromptQueue:
    """Prompts wait for the turn to end; notes wait for the next request, where they go in as text after the tool
    results."""

    def __init__(self, core: SessionCore, restored: Restored) -> None:
        self._core = core
        self._emit = core.emit
        self._state = core.state
        self.prompt_ids = restored.prompt_ids
        """Of all prompts that were ever taken: one that is sent again changes nothing."""
        self._prompts: dict[str, Prompt] = {}
        self._steering = list(restored.steering.values())
        self._unheard = core.late_decisions

    def _report_on(self, proposal_id: str) -> str:
        """For the model, what became of a proposal."""
        proposals = self._core.proposals
        calls = proposals.get(proposal_id).tool_call_ids
        return "\n".join(dict.fromkeys(proposals.report(call_id) for call_id in calls))

    def queue(self, prompt: Prompt) -> None:
        """The prompt starts when the running turn has ended."""
        self._prompts[prompt.prompt_id] = prompt
        queued = QueuedPrompt(prompt_id=prompt.prompt_id, text=prompt.text, attachments=prompt.attachments)
        self._emit(PromptQueued(prompt=queued))

    def has(self, prompt_id: str) -> bool:
        return any(queued.prompt_id == prompt_id for queued in self._state.queue)

    def take_back(self, prompt_id: str) -> None:
        """The prompt is not in the queue any more: it starts, or is not wanted. Unknown ids are fine."""
        if self.has(prompt_id):
            self._prompts.pop(prompt_id, None)
            self._emit(PromptUnqueued(prompt_id=prompt_id))

    def next(self, environment: Mapping[str, str], first: str | None = None) -> Prompt | None:
        """The queued prompt `first`, else the oldest; it stays queued until it is taken back. One that survived a
        restart takes that `environment`."""
        queued = next((prompt for prompt in self._state.queue if prompt.prompt_id == first), None)
        if queued is None and self._state.queue:
            queued = self._state.queue[0]
        if queued is None:
            return None
        queued_prompt = self._prompts.get(queued.prompt_id)
        return queued_prompt or Prompt(queued.prompt_id, queued.text, queued.attachments, dict(environment))

    def queued_pictures(self) -> Iterator[Picture]:
        """Those attached to the prompts of the queue."""
        for attachment in (item for queued in self._state.queue for item in queued.attachments):
            if isinstance(attachment, ImageAttachment) and (picture := reference(attachment)) is not None:
                yield picture

    def steer(self, message: UserMessage, model_message: User) -> None:
        """The user says something into the running turn; `said` is how the model will get it."""
        self._steering.append((message, model_message))
        self._emit(ItemStarted(item=message), entry=PendingSteering(message=model_message))

    def take_back_steering(self, item_id: str) -> bool:
        """It is not said into the turn any more; False when the model has it already, or it is unknown."""
        remaining = [entry for entry in self._steering if entry[0].item_id != item_id]
        if len(remaining) == len(self._steering):
            return False
        self._steering = remaining
        self._emit(ItemsWithdrawn(item_ids=[item_id], reason="It could not be saved."))
        return True

    def forget(self, turn_ids: Collection[str]) -> None:
        """Those turns never happened: what was said into them is not said any more."""
        self._steering = [entry for entry in self._steering if entry[0].turn_id not in turn_ids]

    def pictures(self) -> Iterator[Picture]:
        """Those of the steering that no request carried yet."""
        for _, model_message in self._steering:
            yield from model_message.pictures

    def take_notes(self) -> list[User]:
        """What the model must hear now, each once; on record as heard when this returns."""
        steering, self._steering = self._steering, []
        for message, model_message in steering:
            self._emit(ItemCompleted(item=message), entry=note(*model_message.parts))
        return [*(model_message for _, model_message in steering), *map(self._decision_note, self._unheard.proposals())]

    def _decision_note(self, proposal_id: str) -> User:
        text = f"{LATE}\n{self._report_on(proposal_id)}"
        version = next(proposal.version for proposal in self._state.proposals if proposal.proposal_id == proposal_id)
        notice = Notice(
            item_id=f"{proposal_id}.{version}.late",
            level="info",
            code=LATE_DECISION,
            text="The model is told what has become of its earlier edits since then.",
        )
        self._emit(ItemCompleted(item=notice), entry=note(SystemText(text=text)))
        return User(text=text, from_system=True)
