"""Makes the turns of one session: what they all work with."""

from pathlib import Path

from amanu.agent import usage as spending
from amanu.agent.budget import Allowance
from amanu.agent.loop_guard.guard import Loops
from amanu.agent.system_prompt import Prompt, system_prompt
from amanu.agent.turn import Turn
from amanu.agent.window.window import Context
from amanu.checks.editor_feedback import EditorFeedback
from amanu.context.memory import ProjectMemory
from amanu.context.memory_files import MemoryFiles
from amanu.context.stale_files import Outdated
from amanu.core.model_families import family
from amanu.core.tool import Subject
from amanu.session.core import SessionCore
from amanu.session.model_choice import Choice, Choosing
from amanu.session.queue import PromptQueue
from amanu.session.status_note import SessionStatus
from amanu.storage.journal import MAX_BLOB
from amanu.tools.files.read_output import ID_LENGTH
from amanu.tools.finish_task import FinishTask
from amanu.tools.registry import make_tools
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo


class TurnFactory:
    """Of one session."""

    def __init__(self, core: SessionCore, inbox: PromptQueue, aftermath: EditorFeedback) -> None:
        self._services = services = core.services
        self._journal = core.journal
        self._conversation = conversation = core.conversation
        self._approvals = core.approvals
        self._state = state = core.state
        self._emit = core.emit
        self._workspace = workspace = core.workspace
        self._inbox = inbox
        self._aftermath = aftermath
        settings = services.settings
        environment = core.tool_environment(aftermath)
        self._tools = make_tools(environment, headless=services.headless, until_done=services.until_done)
        self._specs = [tool.spec() for tool in self._tools.values()]
        writers = [tool.name for tool in self._tools.values() if tool.effect == "write"]
        self.context = Context(conversation, settings.context, self._keep_output, writers)
        memory_files = MemoryFiles(workspace, services.home.memory, core.approvals.allowed, covers=core.covers)
        self.memory = ProjectMemory(memory_files, conversation, core.trusted)
        self._outdated = Outdated(workspace, conversation)
        self.status = SessionStatus(conversation, state, headless=services.headless)
        self.choosing = Choosing(settings, services.registry, services.availability, state)
        self._allowance = Allowance(settings.limits.cost_usd, settings.limits.session_cost_usd, state)

    def make(self, turn_id: str, said: str, choice: Choice) -> Turn:
        """The turn that answers what was `said`; the conversation ends with it already."""
        self._allowance.start_turn()
        model, info = choice.way.model, choice.way.info
        system = self._system(info)
        limits = self._services.settings.limits
        return Turn(
            turn_id=turn_id,
            session_id=self._state.session_id,
            model=model,
            info=info,
            system=system.text,
            system_for=lambda info: self._system(info).text,
            memory=system.memory,
            touched=self.memory.touched,
            outdated=self._between_steps,
            knows=self._workspace.seen.take_fresh,
            tools=self._tools,
            specs=self._specs,
            conversation=self._conversation,
            context=self.context,
            approvals=self._approvals,
            emit=self._emit,
            take_notes=self._inbox.take_notes,
            usage=self._state.usage or spending.NOTHING,
            allowance=self._allowance,
            ways=choice.ways,
            utility=choice.utility and (choice.utility.model, choice.utility.info),
            effort=self._services.settings.effort,
            loops=Loops(said, self._specs) if self._services.settings.loops else None,
            max_steps=limits.steps,
            max_seconds=limits.seconds,
            waited_before=self._approvals.waited,
            finishing=FinishTask.name if self._services.until_done else None,
        )

    async def news(self) -> tuple[str, str] | None:
        """What the model must hear of the files, and what the person is told of that: which it read are others now, and
        what its edits did to findings that came too late for their results."""
        found = [each for each in (await self._outdated.news(), await self._aftermath.late(self._readable)) if each]
        if not found:
            return None
        mask = self._services.secrets.mask_content
        return mask("\n\n".join(each[0] for each in found)), mask("\n".join(each[1] for each in found))

    async def _between_steps(self) -> tuple[str, str] | None:
        """`news`, and what changed in how the session is run."""
        news, status = await self.news(), self.status.news()
        if not status:
            return news
        shown = f"The model was told: the mode is {self._state.mode}."
        return (status, shown) if news is None else (f"{status}\n\n{news[0]}", f"{shown}\n{news[1]}")

    def _readable(self, path: Path) -> bool:
        return bool(self._approvals.allowed([Subject("read_file", "read", self._workspace.relative(path))]))

    async def _keep_output(self, text: str) -> str:
        """Keep what a tool returned where `read_output` finds it; "" when the disk does not take it."""
        try:
            kept = await self._journal.put_blob(text.encode("utf-8", "replace")[:MAX_BLOB])
        except AmanuError:
            return ""
        return kept.blob_id[:ID_LENGTH]

    def _system(self, info: ModelInfo) -> Prompt:
        return system_prompt(family(info.model_id).name, self._state.roots, self._conversation.memory)
