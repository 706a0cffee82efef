"""Makes the turns of one session: what they all work with."""

from collections.abc import Sequence

from amanu.agent import usage as spending
from amanu.agent.budget import Allowance, Budgets
from amanu.agent.finishing import UntilFinished
from amanu.agent.loop_guard.guard import LoopGuard
from amanu.agent.next_speaker import NextSpeaker
from amanu.agent.recovery import FaultReminders, ReplyBudget
from amanu.agent.steering import LastWords, Steering
from amanu.agent.system_prompt import SystemPrompt, system_prompt
from amanu.agent.turn import Turn
from amanu.agent.usage import Ledger
from amanu.agent.window.window import Context
from amanu.checks.editor_feedback import EditorFeedback
from amanu.context.memory import ProjectMemory
from amanu.context.memory_files import MemoryFiles
from amanu.core.listeners import TurnListener
from amanu.core.model_families import family
from amanu.core.notes import SystemNote
from amanu.session.core import SessionCore
from amanu.session.model_choice import Choice, Choosing
from amanu.session.queue import PromptQueue
from amanu.session.status_note import SessionStatus
from amanu.session.step_news import StepNews
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
        self._inbox = inbox
        settings = services.settings
        environment = core.tool_environment(aftermath)
        self._tools = make_tools(environment, headless=services.headless, until_done=services.until_done)
        writers = [tool.name for tool in self._tools.values() if tool.effect == "write"]
        self.context = Context(conversation, settings.context, self._keep_output, writers)
        memory_files = MemoryFiles(core.workspace, services.home.memory, core.approvals.allowed, covers=core.covers)
        self.memory = ProjectMemory(memory_files, conversation, core.trusted)
        self.status = SessionStatus(conversation, state, headless=services.headless)
        self._news = StepNews(core, aftermath, self.status)
        self.choosing = Choosing(settings, services.registry, services.availability, state)
        self._allowance = Allowance(settings.limits.cost_usd, settings.limits.session_cost_usd, state)

    def make(self, turn_id: str, prompt: str, choice: Choice) -> Turn:
        """The turn that answers that prompt of the user; the conversation ends with it already."""
        self._allowance.start_turn()
        settings = self._services.settings
        specs = [tool.spec() for tool in self._tools.values()]
        guard = LoopGuard(prompt, specs) if settings.loops else None
        return Turn(
            turn_id=turn_id,
            session_id=self._state.session_id,
            candidate=choice.candidate,
            prompt_for=self._system,
            tools=self._tools,
            conversation=self._conversation,
            context=self.context,
            approvals=self._approvals,
            emit=self._emit,
            ledger=Ledger(self._state.usage or spending.NOTHING, self._allowance),
            listeners=self._listeners(guard),
            watch=guard,
            fallbacks=choice.fallbacks,
            utility=choice.utility,
            budget=ReplyBudget(effort=settings.effort),
        )

    def _listeners(self, guard: LoopGuard | None) -> Sequence[TurnListener]:
        """Of one turn, in the order they are asked: limits before what a request costs; what the user says before what
        the daemon would say of a reply, and once more behind it, for that takes its time."""
        limits = self._services.settings.limits
        return [
            Budgets(limits.steps, limits.seconds, self._allowance, self._approvals),
            self.memory,
            self._news,
            Steering(self._inbox),
            FaultReminders(self._tools),
            *([] if guard is None else [guard]),
            UntilFinished(FinishTask.name) if self._services.until_done else NextSpeaker(),
            LastWords(self._inbox),
        ]

    async def news(self) -> SystemNote | None:
        """What the model must hear of the files with a prompt."""
        return await self._news.of_files()

    async def _keep_output(self, text: str) -> str:
        """Keep what a tool returned where `read_output` finds it; "" when the disk does not take it."""
        try:
            kept = await self._journal.put_blob(text.encode("utf-8", "replace")[:MAX_BLOB])
        except AmanuError:
            return ""
        return kept.blob_id[:ID_LENGTH]

    def _system(self, info: ModelInfo) -> SystemPrompt:
        return system_prompt(family(info.model_id).name, self._state.roots, self._conversation.memory)
