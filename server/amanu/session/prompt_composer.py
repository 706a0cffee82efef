"""Composes the message that opens a turn: the prompt with its slash command expanded, attachments and mentioned files;
and beside it the state of the editor, project memory and notes on changed files.

Composing comes first, takes its time and may fail; then all of it is added to the conversation at once.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from amanu.context import slash_commands as commands
from amanu.context.attachments import PromptMessage, with_attachments
from amanu.context.editor import EditorNotes, describe
from amanu.context.surroundings import Surroundings
from amanu.core.conversation import Memory, User
from amanu.core.rules import MCP
from amanu.models.image_layout import unseen
from amanu.session.command_lines import CommandLines, LineOutputs, report_lines
from amanu.session.core import SessionCore
from amanu.session.mention_lookup import Findings, MentionLookup
from amanu.session.own_parts import OwnParts
from amanu.session.parts import PromptListeners
from amanu.session.queue import Prompt, PromptQueue
from amanu.session.skills import CalledSkill, slash_command_folders, without_shadowed
from amanu.session.turn_factory import TurnFactory
from amanu.session.unasked_calls import UnaskedCalls
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Attachment, ModelInfo, UserMessage
from amanu_protocol.requests import Command


@dataclass(frozen=True)
class ComposedPrompt(PromptMessage):
    """A prompt as the model gets it, with what its slash command or skill did."""

    lines: LineOutputs = field(default_factory=LineOutputs)
    skill: str = ""
    """The skill that it activates."""
    listeners: PromptListeners = field(default_factory=lambda: PromptListeners(()))
    """The listeners that are yet to hear that the model has the prompt."""


@dataclass(frozen=True)
class OpeningMessage:
    """All that the model gets with the prompt that opens a turn."""

    prompt: ComposedPrompt
    editor_state: Mapping[str, str] | None
    """What the user's editor shows, by section."""
    surroundings: str
    """Where the model works; "" when nothing of it is new."""
    memory: Memory | None
    """The memory part of the system prompt, if it changes."""


class PromptComposer:
    """Composes the opening messages of one session."""

    def __init__(
        self, core: SessionCore, queue: PromptQueue, own: OwnParts, turn_factory: TurnFactory, find: Findings
    ) -> None:
        """`find`: see `MentionLookup`."""
        self._core = core
        self._services = core.services
        self._conversation = core.conversation
        self._workspace = core.workspace
        self._approvals = core.approvals
        self._notices = core.notices
        self._state = core.state
        self._emit = core.emit
        self.queue = queue
        self.turn_factory = turn_factory
        self.pictures = queue.pictures
        self._editor_notes = EditorNotes()
        self._find = find
        self.own = own
        self._surroundings = Surroundings(
            core.workspace, core.conversation, core.approvals.allowed, core.trusted, core.environment
        )
        self.model: ModelInfo | None = None
        """The model of the last turn."""

    async def compose(self, prompt: Prompt, window: int) -> OpeningMessage:
        """The opening message, for a model with a window of so many tokens. Raises `AmanuError` when the session has no
        room for a picture, and `PromptBlocked`."""
        heard = await self.expand(prompt.text, prompt.attachments, by_user=self._core.assignment is None)
        editor_state = prompt.context and await describe(prompt.context, self._workspace, self._approvals.allowed)
        editor_state = editor_state and {
            name: self._services.secrets.mask_content(section) for name, section in editor_state.items()
        }
        surroundings, _ = await asyncio.gather(self._surroundings.note(), self._core.parts.prepare_notes(window))
        return OpeningMessage(heard, editor_state, surroundings, self.own.memory.system)

    def prepare(self) -> None:
        """Do beforehand what the first turn of this process would do while its user waits: build the schemas of tools,
        compile expressions, and look at the surroundings once. Blocks."""
        self.turn_factory.prepare()
        self._surroundings.look()

    async def expand(self, text: str, attachments: Sequence[Attachment], *, by_user: bool = True) -> ComposedPrompt:
        """The prompt as the model gets it. `by_user`: parts are asked about its words, before anything they mention is
        read or run. Raises like `compose`."""
        mask = self._services.secrets.mask_content
        listeners = PromptListeners(self._core.parts)
        started = await listeners.begin()
        calls = UnaskedCalls(self._core, self.turn_factory.tools, listeners.calls)
        expanded, command, skill = await self._expand_command(text, calls)
        words = "\n\n".join([expanded.text, *([] if skill is None else [skill.text])])
        context = await listeners.on_words(words, typed=text) if by_user else ""
        lines = LineOutputs()
        if command is not None:
            lines = await CommandLines(calls).run(command.filled.lines)
            expanded = command.expanded([mask(output) for output in lines.outputs])
        look_up = MentionLookup(self._core, calls, self._find, self.own.mcp.read_resource)
        heard = await with_attachments(
            expanded, attachments, self._core.view, self.pictures, self._approvals.allowed, mask, look_up
        )
        if skill is not None:
            heard = heard.with_context(skill.text)
        heard = heard.with_context(started).with_context(context)
        activated = skill.name if skill is not None and skill.is_new else ""
        return ComposedPrompt(heard.message, (*heard.left_out, *lines.not_run), lines, activated, listeners)

    async def _expand_command(
        self, text: str, calls: UnaskedCalls
    ) -> tuple[commands.ExpandedPrompt, commands.SlashCommandPrompt | None, CalledSkill | None]:
        """The prompt with its slash command's text, in which `!{…}` lines stay as they are written; that command; or
        the skill it calls."""
        plain = commands.ExpandedPrompt(text, text, text)
        typed = text.strip()
        called = commands.invocation(typed)
        if called is None:
            return plain, None, None
        if called[0].startswith(MCP):
            return await self.own.mcp.expand_prompt(typed, calls), None, None
        command = await asyncio.to_thread(lambda: commands.look_up(typed, slash_command_folders(self._core)))
        if command is None:
            return plain, None, await self.own.skills.call(*called)
        if (folder := command.command.plugin_folder) is not None:
            self._workspace.guard.admit_folder(folder)
        return command.expanded([f"!{{{line.command}}}" for line in command.filled.lines]), command, None

    def list_slash_commands(self) -> list[Command]:
        """What a prompt may begin with, but for what is built in. Blocks."""
        return without_shadowed(
            commands.find_slash_commands(slash_command_folders(self._core)), self.own.skills.as_slash_commands
        )

    def add_request(self, user_message: UserMessage, text: str, context: str) -> None:
        """Add the user's request to the daemon, in the words for the model, with what parts add to it (`context`)."""
        message = User(text="\n\n".join(filter(None, (text, context))))
        self._emit(ItemCompleted(item=user_message), entry=message)
        self._conversation.append(message)

    def add_to_conversation(self, user_message: UserMessage, opening: OpeningMessage) -> None:
        """Add the user's message to the conversation, after the notes that were still waiting."""
        message = opening.prompt.message
        if opening.memory is not None:
            self._conversation.memory = opening.memory.text
        for unheard in self.queue.take_notes():
            self._conversation.add_notes(*unheard.parts)
        news = (
            self._editor_notes.note(opening.editor_state, self._conversation.generation) if opening.editor_state else ""
        )
        status = self.own.status.note_with_prompt()
        content = "\n\n".join(filter(None, [message.text, news, opening.surroundings, *self._core.parts.notes()]))
        message = message.model_copy(update={"text": content, "status": status})
        self._emit(ItemCompleted(item=user_message), entry=message)
        self._conversation.append(message)
        self.report_unsent(user_message, opening.prompt, opens_turn=True)
        self._core.parts.on_prompt(user_message)

    def report_unsent(self, user_message: UserMessage, heard: ComposedPrompt, *, opens_turn: bool = False) -> None:
        """Tell the user which attachments the model does not get, and what their command or skill did."""
        if heard.skill:
            self.own.skills.report_activated(heard.skill, user_message.turn_id)
        report_lines(heard.lines, user_message.turn_id, self._emit)
        heard.listeners.told(opens_turn=opens_turn)
        if heard.left_out:
            text = "\n".join(heard.left_out)
            self._notices.report_on_prompt(
                f"{user_message.item_id}.unsent", user_message.turn_id, "attachmentNotSent", text
            )
        model = self.model
        unseen_ones = [
            picture.name for picture in heard.message.pictures if model and unseen(picture.media_type, model)
        ]
        if model and unseen_ones:
            text = f"{model.name} cannot see {', '.join(unseen_ones)}; it is only told that there is a picture."
            self._notices.report_on_prompt(
                f"{user_message.item_id}.unseen", user_message.turn_id, "pictureNotSeen", text
            )
