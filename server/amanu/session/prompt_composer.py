"""How the model gets to hear the user: a command's text in its place, what they attached and mention, and what goes
with it unasked: their editor, project memory, files that are others now.

Everything is gathered first, which takes its time and may fail; then it is said, at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amanu.context import slash_commands as commands
from amanu.context.attachments import PromptMessage, with_attachments
from amanu.context.editor import EditorNews, describe
from amanu.context.images import Pictures
from amanu.context.memory import RecalledMemory
from amanu.core.notes import SystemNote
from amanu.models.image_layout import unseen
from amanu.session.core import SessionCore
from amanu.session.queue import Prompt, PromptQueue
from amanu.session.turn_factory import TurnFactory
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Attachment, ModelInfo, UserMessage


@dataclass(frozen=True)
class OpeningMessage:
    """All that the model hears with the prompt that opens a turn."""

    heard: PromptMessage
    editor_state: Mapping[str, str] | None
    """What the user's editor shows, by section."""
    recalled: RecalledMemory
    outdated: SystemNote | None
    """See `TurnFactory.news`."""


class PromptComposer:
    """Of one session."""

    def __init__(self, core: SessionCore, queue: PromptQueue, turn_factory: TurnFactory) -> None:
        self._services = core.services
        self._conversation = core.conversation
        self._workspace = core.workspace
        self._approvals = core.approvals
        self._covers = core.covers
        self._notices = core.notices
        self._state = core.state
        self._emit = core.emit
        self.queue = queue
        self.turn_factory = turn_factory
        self.pictures = Pictures(core.journal, core.conversation, queue.pictures, queue.queued_pictures)
        self._known = EditorNews()
        self.model: ModelInfo | None = None
        """Who hears it: that of the last turn."""

    async def gather(self, prompt: Prompt, window: int) -> OpeningMessage:
        """For a model with a window of so many tokens. Raises `AmanuError` when the session has no room for a
        picture."""
        heard = await self.hear(prompt.text, prompt.attachments)
        editor_state = prompt.context and await describe(prompt.context, self._workspace, self._approvals.allowed)
        editor_state = editor_state and {
            name: self._services.secrets.mask_content(section) for name, section in editor_state.items()
        }
        return OpeningMessage(
            heard, editor_state, await self.turn_factory.memory.recall(window), await self.turn_factory.news()
        )

    async def hear(self, text: str, attachments: Sequence[Attachment]) -> PromptMessage:
        """What the model gets of what the user said. Raises like `gather`."""
        expanded = commands.ExpandedPrompt(text, text)
        if text.startswith("/"):
            expanded = await asyncio.to_thread(commands.expand, text, self.command_sources)
        mask = self._services.secrets.mask_content
        allowed = self._approvals.allowed
        return await with_attachments(expanded, attachments, self._workspace, self.pictures, allowed, mask)

    @property
    def command_sources(self) -> list[commands.CommandSource]:
        """Where commands come from: the user's before a trusted workspace's, which cannot take their names."""
        workspace = self._workspace if self._state.trusted else None
        return commands.sources(self._services.home.commands, workspace, self._approvals.allowed, self._covers)

    def say(self, user_message: UserMessage, opening: OpeningMessage) -> None:
        """The user's words become part of the conversation, after what it had not heard yet."""
        message = opening.heard.message
        if opening.recalled.system is not None:
            self._conversation.memory = opening.recalled.system.text
        for unheard in self.queue.take_notes():
            self._conversation.add_notes(*unheard.parts)
        news = self._known.news(opening.editor_state, self._conversation.generation) if opening.editor_state else ""
        changed = opening.outdated and f"<files_changed>\n{opening.outdated.text}\n</files_changed>"
        recalled = opening.recalled.notice
        status = self.turn_factory.status.with_prompt()
        content = "\n\n".join(filter(None, [message.text, news, status, changed, recalled and recalled.text]))
        message = message.model_copy(update={"text": content})
        self._emit(ItemCompleted(item=user_message), entry=message)
        self._conversation.append(message)
        self.tell_left_out(user_message, opening.heard)
        if opening.outdated is not None:
            changes = opening.outdated.user_text
            self._notices.of_prompt(
                f"{user_message.item_id}.changed", user_message.turn_id, "modelTold", changes, level="info"
            )
        if recalled is not None:
            self._emit(ItemCompleted(item=recalled.notice(f"{user_message.item_id}.memory", user_message.turn_id)))

    def tell_left_out(self, user_message: UserMessage, heard: PromptMessage) -> None:
        """Tell the user what of their words the model is not sent."""
        if heard.left_out:
            text = "\n".join(heard.left_out)
            self._notices.of_prompt(f"{user_message.item_id}.unsent", user_message.turn_id, "attachmentNotSent", text)
        model = self.model
        unseen_ones = [
            picture.name for picture in heard.message.pictures if model and unseen(picture.media_type, model)
        ]
        if model and unseen_ones:
            text = f"{model.name} cannot see {', '.join(unseen_ones)}; it is told only that there is a picture."
            self._notices.of_prompt(f"{user_message.item_id}.unseen", user_message.turn_id, "pictureNotSeen", text)
