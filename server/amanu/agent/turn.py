"""What one turn works with: its model, tools, conversation, window, listeners and costs. The loop is in `loop.py`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from amanu.agent import side_query
from amanu.agent.fallback import REPLACEABLE, Candidate, Fallbacks
from amanu.agent.markup.quotes import Quotes
from amanu.agent.recovery import ReplyBudget
from amanu.agent.usage import Ledger
from amanu.agent.window.token_gauge import measure_head
from amanu.agent.window.window import MAX_SUMMARY, PIECE_SHARE, ContextWindow, StepContext
from amanu.core.agent import SystemPrompt
from amanu.core.conversation import Call, Conversation, Entry, PicturesRefused, Results, SystemText, User
from amanu.core.emit import Emit
from amanu.core.listeners import ReplyWatch, TurnListener
from amanu.core.model import Model, TokenUsage, ToolSpec, searches
from amanu.core.model_families import family, in_window
from amanu.core.notes import SystemNote
from amanu.core.tool import AgentLabel, AnyTool, SearchAnswer
from amanu.permissions.approvals import Approvals
from amanu.text import wording
from amanu_protocol.events import ItemCompleted, UsageChanged
from amanu_protocol.items import ModelInfo, ServiceTier, Spend

log = logging.getLogger(__name__)

T = TypeVar("T")

REFUSED = "The model's service refused a picture or document, so these are no longer sent:"
_TOOL_ANSWER = 2_000
"""Tokens of an answer that a tool asks for."""


@dataclass
class Turn:
    """Its conversation already ends with the user's prompt. Listeners see it as a `TurnView`."""

    turn_id: str
    session_id: str
    candidate: Candidate
    """The model that gets the next request."""
    system_prompt_for: Callable[[ModelInfo], SystemPrompt]
    tools: Mapping[str, AnyTool]
    conversation: Conversation
    context: ContextWindow
    approvals: Approvals
    emit: Emit
    ledger: Ledger
    listeners: Sequence[TurnListener] = ()
    """In the order they are asked, see `core/listeners.py`."""
    reply_watch: ReplyWatch | None = None
    fallbacks: Fallbacks = field(default_factory=Fallbacks)
    utility: Candidate | None = None
    """The model for side queries; None: the turn's own."""
    budget: ReplyBudget = field(default_factory=ReplyBudget)
    """The tokens that each reply may take. It grows for the rest of the turn when a reply was too long for it."""
    service_tier: ServiceTier = "standard"
    """The tier of its requests to models that have it; side queries go at the standard one."""
    label: AgentLabel | None = None
    """As in `AgentRun`."""
    progress: bool = False
    """The same as in `Request`."""
    user_may_pause: bool = False
    """As in `Request`: somebody reads what comes, and answers when they have."""
    closing_calls: Callable[[], Sequence[Call]] = tuple
    """Calls of `own_tools` to make when the model is done."""
    own_tools: Mapping[str, AnyTool] = field(default_factory=dict[str, AnyTool])
    """Tools that the model is not told of."""

    def __post_init__(self) -> None:
        self.specs: Sequence[ToolSpec] = self._specs(self.info)
        """The tools that are declared to `candidate`."""
        self.quotes = Quotes(self.tools)
        self.system = ""
        """The whole system prompt for `candidate`; set by `use_model`."""
        self.steering: list[str] = []
        self.told_names: set[str] = set()
        """The same as in `CallEnvironment`."""
        self._notice_count = 0
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def model(self) -> Model:
        return self.candidate.model

    @property
    def info(self) -> ModelInfo:
        return self.candidate.info

    @property
    def spent(self) -> Spend:
        return self.ledger.spent

    def learn_window(self, limit: int | None) -> None:
        """Believe the limit that a refusal names, if it can be one: of this model, for all turns to come."""
        if limit is None or not self.context.could_be(limit):
            return
        info = self.info
        self.fallbacks.availability.narrow(self.model, info, limit)
        self.use_model(replace(self.candidate, info=in_window(info, limit)))
        text = (
            f"Its service says that {info.name} takes up to {limit:,} tokens here, not {info.context_window:,}. "
            "Amanu keeps to that from now on."
        )
        self.add_note(SystemNote("", text, "windowLearnt"))

    def use_model(self, candidate: Candidate) -> None:
        """Send the following requests to that model."""
        info = candidate.info
        if info.model_id != self.info.model_id:
            self.budget = ReplyBudget(None, self.budget.effort)
        self.candidate = candidate
        self.specs = self._specs(info)
        prompt = self.system_prompt_for(info)
        self.system = prompt.text
        max_output = min(info.max_output, family(info.model_id).max_output)
        self.context.use_model(info, measure_head(prompt.text, prompt.memory, self.specs), max_output)

    def _specs(self, info: ModelInfo) -> Sequence[ToolSpec]:
        withheld = family(info.model_id).withheld if "apply_patch" in self.tools else ()
        return [tool.spec() for name, tool in self.tools.items() if name not in withheld]

    async def side_query(
        self,
        system: str,
        question: str,
        *,
        max_output: int,
        own_model: bool = False,
        whole: bool = False,
        once: bool = False,
    ) -> str:
        """Ask the utility model something outside the conversation, and count what it costs. `own_model`: ask the
        turn's model instead, which also answers when the utility model cannot. `whole`: an answer that was cut off is
        none. `once`: ask neither a second time nor another model. Raises `ModelError`."""
        candidate = (None if own_model else self.utility) or self.candidate
        try:
            return await side_query.ask(
                candidate.model,
                candidate.info,
                system,
                question,
                session_id=self.session_id,
                max_output=max_output,
                whole=whole,
                policy=side_query.ONCE if once else side_query.POLICY,
                count=partial(self.count_beside, candidate.info),
            )
        except REPLACEABLE:
            if own_model or once or self.utility is None:
                raise
            self.utility = None
            return await self.side_query(system, question, max_output=max_output, whole=whole)

    async def ask_utility(self, system: str, question: str) -> str:
        """`side_query`, for tools."""
        return await self.side_query(system, question, max_output=_TOOL_ANSWER)

    async def search_web(self, query: str) -> SearchAnswer | None:
        """What the service of the utility model, else of the turn's, finds on the web; None when neither searches.
        Raises `ModelError`."""
        candidates = [candidate for candidate in (self.utility, self.candidate) if candidate is not None]
        candidate = next((candidate for candidate in candidates if searches(candidate.model)), None)
        if candidate is None:
            return None
        count = partial(self.count_beside, candidate.info)
        return await side_query.search(candidate.model, candidate.info, query, session_id=self.session_id, count=count)

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start background work; it is cancelled when the turn ends."""
        task = asyncio.create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def end_turn(self) -> None:
        """Cancel the turn's background work and wait until it has ended."""
        self.context.end_turn()
        tasks = tuple(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def add_note(self, note: SystemNote | User) -> None:
        """Append the note to the conversation. A system note is put on record here, with a notice for the user; the
        user's own words already are on record."""
        if isinstance(note, User):
            self.conversation.add_notes(*note.parts)
            if not note.from_system:
                self.steering.append(note.text)
            return
        entry = None
        if note.text:
            entry = Results(results=(), notes=(SystemText(text=note.text, status=note.status),))
            self.conversation.add_notes(*entry.notes)
        self._emit_notice(note, entry)

    def _emit_notice(self, note: SystemNote, entry: Entry | None) -> None:
        self._notice_count += 1
        notice = note.notice(f"{self.turn_id}.notice{self._notice_count}", self.turn_id)
        self.emit(ItemCompleted(item=notice), entry=entry)

    def refuse_pictures(self) -> bool:
        """Take out the pictures and documents that no reply has followed yet: the service refused one of them, and does
        not say which. False if there are none."""
        entry = PicturesRefused(blob_ids=self.conversation.unanswered_pictures())
        if not entry.blob_ids:
            return False
        names = {
            picture.name: None for picture in self.conversation.iter_pictures() if picture.blob_id in entry.blob_ids
        }
        self.conversation.refuse_pictures(entry)
        self._emit_notice(SystemNote("", f"{REFUSED} {', '.join(names)}.", "pictureRefused", level="warning"), entry)
        return True

    async def _before_compaction(self, by_user: bool, focus: str) -> str | None:
        """Why a listener wants old messages to stay; None when none does."""
        for listener in self.listeners:
            try:
                objection = await listener.before_compaction(self, by_user=by_user, focus=focus)
            except Exception:
                log.exception("%s failed; the turn goes on without it", type(listener).__name__)
                continue
            if objection is not None:
                return objection
        return None

    def step_context(self, step: int, *, in_turn: bool = True) -> StepContext:
        """What the context window needs to make room before that step. `in_turn`: the turn goes on afterwards."""
        info = (self.utility or self.candidate).info
        max_output = min(MAX_SUMMARY, info.max_output)
        return StepContext(
            turn_id=self.turn_id,
            step=step,
            emit=self.emit,
            add_note=lambda text, user_text: self.add_note(SystemNote(text, user_text)),
            ask=lambda system, question: self.side_query(system, question, max_output=max_output),
            piece=int(info.context_window * PIECE_SHARE),
            in_turn=in_turn,
            before_compaction=self._before_compaction,
        )

    def count_beside(self, info: ModelInfo, used: TokenUsage) -> Spend:
        """Count a request that left nothing in the conversation, and tell the clients. Returns what it cost."""
        spend = self.ledger.count_beside(info, used)
        self.emit(UsageChanged(usage=wording.summarize_usage(self.ledger.usage)))
        return spend

    def emit_usage(self) -> None:
        """Tell the clients how full the window is, and what the session has spent."""
        self.ledger.usage = self.ledger.usage.model_copy(update={"context": self.context.context_use()})
        self.emit(UsageChanged(usage=wording.summarize_usage(self.ledger.usage)))
