"""All that one turn works with, and the little it does to itself. The loop over it is `loop.py`."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from amanu.agent import side_query
from amanu.agent.fallback import REPLACEABLE, Candidate, Fallbacks
from amanu.agent.recovery import ReplyBudget
from amanu.agent.usage import Ledger
from amanu.agent.window.token_gauge import measure_head
from amanu.agent.window.window import LONGEST_SUMMARY, PIECE, ContextWindow, StepContext
from amanu.core.agent import SystemPrompt
from amanu.core.conversation import Conversation, Results, SystemText, User
from amanu.core.emit import Emit
from amanu.core.listeners import ReplyWatch, TurnListener
from amanu.core.model import Model, ToolSpec
from amanu.core.model_families import family
from amanu.core.notes import SystemNote
from amanu.core.tool import AnyTool
from amanu.permissions.approvals import Approvals
from amanu.text import wording
from amanu_protocol.events import ItemCompleted, UsageChanged
from amanu_protocol.items import ModelInfo, Spend

T = TypeVar("T")


@dataclass
class Turn:
    """The conversation already ends with what the user said. A `TurnView` for its listeners."""

    turn_id: str
    session_id: str
    candidate: Candidate
    """The model that is asked."""
    system_prompt_for: Callable[[ModelInfo], SystemPrompt]
    tools: Mapping[str, AnyTool]
    conversation: Conversation
    context: ContextWindow
    approvals: Approvals
    emit: Emit
    ledger: Ledger
    listeners: Sequence[TurnListener] = ()
    """Asked in this order, see `core/listeners.py`."""
    reply_watch: ReplyWatch | None = None
    fallbacks: Fallbacks = field(default_factory=Fallbacks)
    utility: Candidate | None = None
    """For questions aside; None: the turn's own model."""
    budget: ReplyBudget = field(default_factory=ReplyBudget)
    """Of each reply. It changes for the rest of the turn when a reply came to nothing for want of room."""

    def __post_init__(self) -> None:
        self.specs: Sequence[ToolSpec] = [tool.spec() for tool in self.tools.values()]
        self.system = ""
        """The whole system prompt; of the model that is asked, from `use` on."""
        self.steering: list[str] = []
        self._notices = 0
        self._beside: set[asyncio.Task[Any]] = set()

    @property
    def model(self) -> Model:
        return self.candidate.model

    @property
    def info(self) -> ModelInfo:
        return self.candidate.info

    @property
    def spent(self) -> Spend:
        return self.ledger.spent

    def use_model(self, candidate: Candidate) -> None:
        """Ask that model from here on."""
        info = candidate.info
        if info.model_id != self.info.model_id:
            self.budget = ReplyBudget(None, self.budget.effort)
        self.candidate = candidate
        prompt = self.system_prompt_for(info)
        self.system = prompt.text
        most = min(info.max_output, family(info.model_id).max_output)
        self.context.use_model(info, measure_head(prompt.text, prompt.memory, self.specs), most)

    async def side_query(self, system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        """Ask the utility model, or the turn's `own` (also when the other cannot be asked), something that is no part
        of the conversation; what it takes is counted. Raises `ModelError`."""
        candidate = (None if own_model else self.utility) or self.candidate
        try:
            answer, used = await side_query.ask(
                candidate.model, candidate.info, system, question, session_id=self.session_id, max_output=max_output
            )
        except REPLACEABLE:
            if own_model or self.utility is None:
                raise
            self.utility = None
            return await self.side_query(system, question, max_output=max_output)
        self.ledger.count_side_query(candidate.info, used)
        self.emit(UsageChanged(usage=wording.summarize_usage(self.ledger.usage)))
        return answer

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Work beside the turn, cancelled at its end."""
        task = asyncio.create_task(coroutine)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def end_turn(self) -> None:
        """Nothing is done for the turn any more when this returns."""
        self.context.end_turn()
        for task in (beside := tuple(self._beside)):
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)

    def add_note(self, note: SystemNote | User) -> None:
        """Put it at the end of the conversation. The daemon's words are put on record here, with a notice; the user's
        are on record."""
        if isinstance(note, User):
            self.conversation.add_notes(*note.parts)
            if not note.from_system:
                self.steering.append(note.text)
            return
        self._notices += 1
        entry = None
        if note.text:
            entry = Results(results=(), notes=(SystemText(text=note.text),))
            self.conversation.add_notes(*entry.notes)
        notice = note.notice(f"{self.turn_id}.notice{self._notices}", self.turn_id)
        self.emit(ItemCompleted(item=notice), entry=entry)

    def step_context(self, step: int, *, in_turn: bool = True) -> StepContext:
        """For what makes room before that step."""
        info = (self.utility or self.candidate).info
        most = min(LONGEST_SUMMARY, info.max_output)
        return StepContext(
            turn_id=self.turn_id,
            step=step,
            emit=self.emit,
            add_note=lambda text, shown: self.add_note(SystemNote(text, shown)),
            ask=lambda system, question: self.side_query(system, question, max_output=most),
            piece=int(info.context_window * PIECE),
            in_turn=in_turn,
        )

    def emit_usage(self) -> None:
        """Tell how full the window is."""
        self.ledger.usage = self.ledger.usage.model_copy(update={"context": self.context.context_use()})
        self.emit(UsageChanged(usage=wording.summarize_usage(self.ledger.usage)))
