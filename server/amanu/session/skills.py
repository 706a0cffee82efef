"""The skills of one session: which there are, what the model is told of them, and which are active.

The catalogue goes with a prompt, when it is new or the model may have lost it. An activated skill stays active for the
rest of the conversation: when a summary took its text away, it is told again, as it is now; a skill that is gone, or
that is no longer trusted, is not.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.context import skills as context
from amanu.context import slash_commands as commands
from amanu.context.extension_folders import ExtensionFolder, user_folders, workspace_folders
from amanu.context.plugins import plugin_folders
from amanu.context.skills import Skill, SkillScan
from amanu.context.slash_commands import BUILT_IN
from amanu.core.agent import AgentRun
from amanu.core.listeners import Notes, TurnListener, TurnView
from amanu.core.notes import SystemNote
from amanu.core.session_part import SessionPart, SlashCommand, Slot
from amanu.core.skills import ACTIVATE_SKILL, ActivatedSkill, active_skills, skill_texts
from amanu.core.tool import AnyTool, ToolError
from amanu.home import Home
from amanu.session.core import SessionCore
from amanu.text.amounts import plural
from amanu.text.fences import block
from amanu.tools.activate_skill import ActivateSkill
from amanu.tools.registry import may_use
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Notice, UserMessage
from amanu_protocol.requests import Command

LISTED = "skills"
ACTIVATED = "skillActivated"
WARNING = "skillWarning"
"""Codes of notices."""
KEPT = "The earlier conversation was shortened. These skills are still active:"
USAGE = "Usage: /skills"


@dataclass(frozen=True)
class CalledSkill:
    """A skill that the user's prompt begins with."""

    name: str
    text: str
    """What goes after the user's words."""
    is_new: bool


class SessionSkills(SessionPart, TurnListener):
    """Implements `core.skills.Skills`."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._conversation = core.conversation
        self._guard = core.workspace.guard
        self._scan = SkillScan()
        self._window = 0
        """Of the last turn's model, in tokens."""
        self._catalogue: str | None = None
        """As the model was last told in this process; None: not yet."""
        self._current: str | None = None
        """The catalogue that the note tells."""
        self._generation = core.conversation.generation
        self._told: dict[str, tuple[int, str]] = {}
        """Active skill → (generation, beginning of its text) as it was last told."""
        self._telling: dict[str, tuple[int, str]] = {}
        """The same of the note."""
        self._note = ""
        self._reported: set[str] = set()
        """Warnings that the user has read."""
        self._tool = ActivateSkill(self)

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [
            SlashCommand(
                "skills",
                "Show the skills: what each is for, where it is from, whether it is active",
                lambda part, arguments: part.answer(arguments),
            )
        ]

    def turn_tools(self, window: int) -> Sequence[AnyTool]:
        """The tool that activates skills, if there are any for the model."""
        return [self._tool] if any(skill.for_model for skill in self._scan.skills) else []

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [self]} if self._core.is_chat(run) else {}

    def as_slash_commands(self) -> list[Command]:
        """The skills that the user may call, as commands. Blocks."""
        skills = context.scan(self._folders()).skills
        return [command_of(skill) for skill in skills if skill.for_user]

    # Telling the model --------------------------------------------------------------------------------

    async def prepare_note(self, window: int) -> None:
        self._window = window
        await self._refresh()
        if self._generation != self._conversation.generation:
            self._generation, self._catalogue = self._conversation.generation, None
        self._note = "\n\n".join(filter(None, [self._catalogue_news(), await self._lost_skills()]))

    def note(self) -> str:
        """Lists the skills, and repeats active ones that were lost; "" if nothing of it is new."""
        self._count_as_told()
        return self._note

    def on_prompt(self, message: UserMessage) -> None:
        """Tell the user what is wrong with skills, each thing once."""
        self._note = ""
        news = [warning for warning in self._scan.warnings if warning not in self._reported]
        self._reported |= set(news)
        if news:
            self._core.notices.report_on_prompt(f"{message.item_id}.skills", message.turn_id, WARNING, "\n".join(news))

    async def before_request(self, turn: TurnView, step: int) -> Notes:
        if self._generation == self._conversation.generation:
            return ()
        self._generation, self._catalogue = self._conversation.generation, None
        await self._refresh()
        skills, text = await self._lost_skills(), self._catalogue_news()
        self._count_as_told()
        names = ", ".join(active_skills(self._conversation))
        notes = (
            [SystemNote(f"{KEPT}\n{skills}", f"The model was told its active skills again: {names}.")] if skills else []
        )
        if text:
            notes.append(SystemNote(text, "The model was told again which skills there are."))
        return notes

    def _count_as_told(self) -> None:
        """A prompt for which a note was prepared may be refused."""
        self._catalogue = self._current
        self._told |= self._telling

    def _catalogue_news(self) -> str:
        current = self._current = context.catalogue(self._scan.skills, self._window)
        if self._catalogue is None:
            self._catalogue = self._last_catalogue()
        if current == self._catalogue:
            return ""
        return current or block(context.KIND, context.NONE_LEFT)

    def _last_catalogue(self) -> str:
        """The last one in the conversation; "" for none."""
        start, end = f"<{context.KIND}>\n", f"\n</{context.KIND}>"
        for text in reversed(list(skill_texts(self._conversation))):
            if (at := text.rfind(start)) >= 0 and (stop := text.find(end, at)) >= 0:
                last = text[at : stop + len(end)]
                return "" if context.NONE_LEFT in last else last
        return ""

    async def _lost_skills(self) -> str:
        """The text of each active skill that the conversation does not hold as it is now."""
        texts: list[str] = []
        self._telling.clear()
        for name in active_skills(self._conversation):
            skill = self._scan.named(name)
            if skill is None:
                continue
            self._admit(skill)
            beginning = context.beginning(skill)
            state = (self._conversation.generation, beginning)
            if self._told.get(name) == state:
                continue
            self._telling[name] = state
            if not any(beginning in text for text in skill_texts(self._conversation)):
                texts.append(await asyncio.to_thread(context.content, skill))
        return "\n\n".join(texts)

    # Activating ---------------------------------------------------------------------------------------

    async def activate(self, name: str, turn_id: str) -> ActivatedSkill:
        await self._refresh()
        skill = self._scan.named(name.strip().removeprefix("/"))
        if skill is None or not skill.for_model:
            names = ", ".join(skill.name for skill in self._scan.skills if skill.for_model)
            raise ToolError(f"There is no skill {name!r}. Available: {names or 'none'}.")
        if self._is_told(skill):
            text = f"The skill {skill.name} is active already; follow its instructions above."
            return ActivatedSkill(skill.name, text, is_new=False)
        text = await self._text(skill)
        self.report_activated(skill.name, turn_id)
        return ActivatedSkill(skill.name, text, is_new=True)

    async def call(self, name: str, arguments: str) -> CalledSkill | None:
        """Activate the skill that the user's prompt names; None when it names none of theirs to call."""
        await self._refresh()
        skill = self._scan.named(name)
        if skill is None or not skill.for_user:
            return None
        stands_for = f"In the skill, $ARGUMENTS stands for: {arguments}" if "$ARGUMENTS" in skill.body else ""
        if self._is_told(skill):
            text = f"(The user calls the skill {skill.name}, which is active: follow its instructions above.)"
            return CalledSkill(skill.name, f"{text}\n{stands_for}".strip(), is_new=False)
        text = await self._text(skill)
        return CalledSkill(skill.name, "\n\n".join(filter(None, [text, stands_for])), is_new=True)

    def report_activated(self, name: str, turn_id: str) -> None:
        """Tell the user that the skill is active now."""
        skill = self._scan.named(name)
        where = "" if skill is None else f" ({skill.folder})"
        item_id = f"{turn_id}.{self._core.emit.seq}.{ACTIVATED}"
        text = f"The skill {name} is active{where}."
        notice = Notice(item_id=item_id, turn_id=turn_id, level="info", code=ACTIVATED, text=text)
        self._core.emit(ItemCompleted(item=notice))

    def _is_told(self, skill: Skill) -> bool:
        if skill.name not in active_skills(self._conversation):
            return False
        state = (self._conversation.generation, context.beginning(skill))
        return self._told.get(skill.name) == state or any(state[1] in text for text in skill_texts(self._conversation))

    async def _text(self, skill: Skill) -> str:
        self._admit(skill)
        self._told[skill.name] = (self._conversation.generation, context.beginning(skill))
        return await asyncio.to_thread(context.content, skill)

    def _admit(self, skill: Skill) -> None:
        """Let tools and commands read its files."""
        if skill.place.owner != "workspace":
            self._guard.admit_folder(skill.place.plugin_folder or skill.folder)

    # What there is ------------------------------------------------------------------------------------

    async def answer(self, arguments: str) -> None:
        """Answer `/skills`, in a notice."""
        if arguments:
            raise AmanuError("invalidParams", USAGE)
        await self._refresh()
        self._core.notices.report_on_session(LISTED, "info", self._summary())
        await self._core.emit.durable()

    def _summary(self) -> str:
        skills, active = self._scan.skills, active_skills(self._conversation)
        if not skills:
            return "\n".join(["There are no skills.", *self._scan.warnings, *self._untrusted()])
        lines = [f"{plural(len(skills), 'skill')}; with /NAME you activate one yourself."]
        lines += [_line(skill, is_active=skill.name in active) for skill in skills]
        tokens = len(context.catalogue(skills, self._window or 1_000_000)) // context.CHARACTERS_PER_TOKEN
        missing = context.left_out(skills, self._window) if self._window else 0
        lines.append(f"Their list takes about {tokens:,} tokens of each conversation.")
        lines += [f"{plural(missing, 'skill')} did not fit in it."] if missing else []
        return "\n".join([*lines, *self._scan.warnings, *self._untrusted()])

    def _untrusted(self) -> list[str]:
        return [] if self._core.trusted() else ["Skills of this folder are not used: it is not trusted."]

    async def _refresh(self) -> None:
        self._scan = await asyncio.to_thread(lambda: context.scan(self._folders()))

    def _folders(self) -> list[ExtensionFolder]:
        return skill_folders(self._core)


def skill_folders(core: SessionCore) -> list[ExtensionFolder]:
    """A trusted workspace's, the user's, then those of plug-ins: the one that is nearest to the work counts. None for a
    sub-agent that may not activate skills. Blocks."""
    if core.assignment is not None and not may_use(core.assignment.definition, ACTIVATE_SKILL):
        return []
    home, workspace = core.services.home, core.workspace
    own = workspace_folders("skill", workspace, core.approvals.allowed, core.covers) if core.trusted() else []
    return [*own, *user_skill_folders(home.skills), *plugin_folders(home.plugins, "skill")]


def user_skill_folders(own: Path) -> list[ExtensionFolder]:
    return user_folders("skill", [(own, context.FILE)], Path.home())


def slash_command_folders(core: SessionCore) -> list[ExtensionFolder]:
    """Of slash commands: the user's, then a trusted workspace's, which cannot take their names, then those of plug-ins.
    Blocks."""
    home, workspace = core.services.home, core.workspace
    theirs = workspace_folders("command", workspace, core.approvals.allowed, core.covers) if core.trusted() else []
    return [*user_slash_command_folders(home.slash_commands), *theirs, *plugin_folders(home.plugins, "command")]


def user_slash_command_folders(own: Path) -> list[ExtensionFolder]:
    return user_folders("command", [(own, "*.md"), (own, "*.toml")], Path.home())


def user_slash_commands(home: Home) -> list[Command]:
    """The commands and skills of the user and of plug-ins, for no particular workspace. Blocks."""
    folders = [*user_slash_command_folders(home.slash_commands), *plugin_folders(home.plugins, "command")]
    skills = [*user_skill_folders(home.skills), *plugin_folders(home.plugins, "skill")]
    return without_shadowed(
        commands.find_slash_commands(folders),
        lambda: [command_of(skill) for skill in context.scan(skills).skills if skill.for_user],
    )


def command_of(skill: Skill) -> Command:
    return Command(name=skill.name, description=skill.description, argument_hint=skill.argument_hint, source="skill")


def _line(skill: Skill, *, is_active: bool) -> str:
    whose = {"user": "yours", "workspace": "this project's", "plugin": f"of the plug-in {skill.place.plugin}"}
    marks = [whose[skill.place.owner], f"about {len(skill.body) // context.CHARACTERS_PER_TOKEN:,} tokens"]
    marks += ["active"] * is_active + ["only you can activate it"] * (not skill.for_model)
    marks += ["only the model activates it"] * (not skill.for_user)
    description = skill.description if len(skill.description) <= 160 else f"{skill.description[:159]}…"
    return f"- {skill.name} ({', '.join(marks)}): {description}"


def without_shadowed(listed: Sequence[Command], skills: Callable[[], Sequence[Command]]) -> list[Command]:
    """The commands, then the skills whose names no command has. Blocks."""
    names = {command.name for command in (*BUILT_IN, *listed)}
    return [*listed, *(skill for skill in skills() if skill.name not in names)]
