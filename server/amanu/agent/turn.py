"""The loop: ask the model → run its calls → feed the results back, until it is done or a limit is met."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from amanu.agent import next_speaker as speaker
from amanu.agent import side_query as ask
from amanu.agent import usage as spending
from amanu.agent.budget import Allowance
from amanu.agent.calls import AnyTool, Calls
from amanu.agent.fallback import REPLACEABLE, Ways, set_out
from amanu.agent.loop_guard.guard import Alarm, Loops
from amanu.agent.notes import hear, notice, refresh, remember, remind, tell
from amanu.agent.recovery import CUT_CALL, NOT_WHOLE, REMEDIES, Budget, Oddity, Patience, judged, result_of
from amanu.agent.request import Repeating, ask_model
from amanu.agent.window.token_gauge import head
from amanu.agent.window.window import LONGEST_SUMMARY, PIECE, Context, Step
from amanu.core.conversation import Assistant, Conversation, Result, Results, User
from amanu.core.emit import Emit
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    Done,
    Effort,
    Model,
    ModelError,
    Overloaded,
    RateLimited,
    TokenUsage,
    ToolSpec,
    Unreachable,
)
from amanu.core.model_families import family
from amanu.core.notes import Remembered
from amanu.permissions.approvals import Approvals
from amanu.text import wording
from amanu_protocol.errors import ErrorKind
from amanu_protocol.events import EndReason, ItemCompleted, UsageChanged
from amanu_protocol.items import Answer, ModelInfo, Spent, Usage

MAX_PAUSES = 20
"""Times in a row a service may say that it pauses and goes on when asked."""
MAX_OVERFLOWS = 3
"""Requests in a row that the service finds too long, each after more room was made."""


NOTHING_LEFT = "Nothing is left that could make room; begin a new session, or say less at once."


@dataclass(frozen=True)
class Ending:
    """Why the loop stopped."""

    reason: EndReason
    message: str = ""
    can_continue: bool = False
    kind: ErrorKind | None = None
    """Of a failure, for programs: is it the key, the address, the service?"""


NO_ROOM = Ending("failed", "The reply did not fit the model's output limit.", can_continue=True)
NO_ANSWER = Ending(
    "failed",
    f"The model sent {REMEDIES['emptyAfterResults'].most + 1} empty replies in a row after its work, and no answer.",
    can_continue=True,
    kind="providerError",
)


WRITTEN = Ending(
    "failed",
    "The model writes tool calls as text, where nothing runs them, also after it was told. "
    "Another model may do better.",
    can_continue=True,
    kind="providerError",
)
AT_LAST: Mapping[Oddity, Ending] = {"emptyAfterResults": NO_ANSWER, "writtenCall": WRITTEN, "cutText": NO_ROOM}
"""What becomes of a turn when a remedy was used as often as it may be."""


async def _nothing(paths: Collection[str]) -> None:
    pass


async def _none() -> None:
    pass


@dataclass
class Turn:
    """All that one turn works with. The conversation already ends with what the person said."""

    turn_id: str
    session_id: str
    model: Model
    info: ModelInfo
    system: str
    """The whole system prompt."""
    tools: Mapping[str, AnyTool]
    specs: Sequence[ToolSpec]
    conversation: Conversation
    context: Context
    approvals: Approvals
    emit: Emit
    take_notes: Callable[[], Sequence[User]]
    """What the person said or decided meanwhile, for the model; each note is handed over once."""
    usage: Usage
    """Of the session."""
    allowance: Allowance
    ways: Ways = field(default_factory=Ways)
    system_for: Callable[[ModelInfo], str] | None = None
    """The system prompt for another model; None: the same."""
    memory: str = ""
    """The part of `system` that is project memory."""
    touched: Callable[[Collection[str]], Awaitable[Remembered | None]] = _nothing
    """Asked after each step with calls, with the absolute paths they were about: the project memory of those."""
    outdated: Callable[[], Awaitable[tuple[str, str] | None]] = _none
    """Asked after each step with calls: what the model, and what the person hears of files that changed since the model
    read them, and of findings that came later than its edits."""
    knows: Callable[[], dict[str, tuple[str | None, str]]] = dict
    """Asked with each result, see `Result.knows`."""
    utility: tuple[Model, ModelInfo] | None = None
    """For questions aside; None: the turn's own model."""
    effort: Effort = "medium"
    loops: Loops | None = None
    """Watches for loops; None: the person wants none of it."""
    max_steps: int = 100
    max_seconds: float = 3600
    waited_before: float = 0.0
    """Seconds the session had waited for the person before this turn."""
    max_output: int | None = None
    """Of each reply, None: as the family has it. This and `effort` change for the rest of the turn when a reply came to
    nothing for want of room."""
    finishing: str | None = None
    """Name of the tool whose use ends the turn. With one, a reply without a call does not."""
    spent: Spent = spending.NOTHING_SPENT
    started: float = field(default_factory=time.monotonic)
    told: int = 0
    """Times something was said to the model in the daemon's name."""

    def pay(self, info: ModelInfo, used: TokenUsage) -> Spent:
        """Count what a request took."""
        took = spending.spent(info, used)
        self.spent = spending.both(self.spent, took)
        self.allowance.add(took.cost_usd)
        return took

    async def aside(self, system: str, question: str, *, max_output: int, own: bool = False) -> str:
        """Ask the utility model, or the turn's `own` (also when the other cannot be asked), something that is no part
        of the conversation; what it takes is counted. Raises `ModelError`."""
        model, info = (None if own else self.utility) or (self.model, self.info)
        try:
            answer, used = await ask.ask(
                model, info, system, question, session_id=self.session_id, max_output=max_output
            )
        except REPLACEABLE:
            if own or self.utility is None:
                raise
            self.utility = None
            return await self.aside(system, question, max_output=max_output)
        self.usage = spending.aside(self.usage, info, used)
        self.pay(info, used)
        self.emit(UsageChanged(usage=wording.used(self.usage)))
        return answer

    def use(self, model: Model, info: ModelInfo) -> None:
        """Ask that model from here on."""
        if info.model_id != self.info.model_id:
            self.max_output = None
            if self.system_for is not None:
                self.system = self.system_for(info)
        self.model, self.info = model, info
        most = min(info.max_output, family(info.model_id).max_output)
        self.context.use(info, head(self.system, self.memory, self.specs), most)

    def at(self, step: int, *, in_turn: bool = True) -> Step:
        """For what makes room before that step."""
        _, info = self.utility or (self.model, self.info)
        most = min(LONGEST_SUMMARY, info.max_output)
        return Step(
            turn_id=self.turn_id,
            step=step,
            emit=self.emit,
            tell=lambda text, shown: tell(self, step, text, shown),
            ask=lambda system, question: self.aside(system, question, max_output=most),
            piece=int(info.context_window * PIECE),
            in_turn=in_turn,
        )

    def show_use(self) -> None:
        """Tell how full the window is."""
        self.usage = self.usage.model_copy(update={"context": self.context.shown()})
        self.emit(UsageChanged(usage=wording.used(self.usage)))


async def run_turn(turn: Turn) -> Ending:
    """Run steps until the model is done. Cancelling the task stops it anywhere and leaves a valid conversation.
    Raises nothing but CancelledError for what models, tools and people do; a ModelError becomes an ending."""
    try:
        ending = await _run(turn)
        if turn.context.asked and await turn.context.make_room(turn.at(0, in_turn=False)):
            turn.show_use()
        return ending
    finally:
        turn.context.end_turn()
        if turn.loops is not None:
            await turn.loops.close()


async def _run(turn: Turn) -> Ending:
    turn.use(turn.model, turn.info)
    patience = Patience()
    overflows = pauses = 0
    step = 0
    while True:
        ending = _finished(turn, step) or _limit(turn, step)
        if ending is not None:
            return ending
        if step == 0:
            await set_out(turn)
        step += 1
        if await turn.context.make_room(turn.at(step)):
            turn.show_use()
            await refresh(turn, step)  # what a compaction took, and what was said meanwhile
            hear(turn)
        try:
            done = await ask_model(turn, step)
            overflows = 0
            pauses = pauses if done.stop == "paused" else 0
        except ContextTooLong as error:
            overflows += 1
            if overflows > MAX_OVERFLOWS or not await turn.context.overflowed(turn.at(step)):
                return Ending("failed", f"{error} {NOTHING_LEFT}", can_continue=True, kind="contextTooLong")
            turn.show_use()
            continue
        except ModelError as error:
            return Ending("failed", str(error), can_continue=True, kind=_kind(error))
        except Repeating as repeating:
            ending = _alarm(turn, step, repeating.alarm)
            if ending is not None:
                return ending
            continue
        if done.window_full:
            turn.context.filled()
        reply, odd = done.message, judged(done, turn.tools)
        if odd is not None:
            ending = await _mend(turn, step, done, odd, patience)
            if ending is not None:
                return ending
        elif reply.calls:
            patience.progress()
            ending = _look_back(turn, step, reply, await _run_calls(turn, step, reply))
            if ending is not None:
                return ending
        elif done.stop == "paused":
            pauses += 1
            if pauses > MAX_PAUSES and not hear(turn):
                return Ending("failed", f"The service paused {pauses} times in a row.", can_continue=True)
        elif not hear(turn):
            ending = await _stopped(turn, step, reply, patience)
            if ending is not None:
                return ending


async def _mend(turn: Turn, step: int, done: Done, odd: Oddity, patience: Patience) -> Ending | None:
    """What becomes of a reply that is no proper one (`recovery.py`). None: ask again."""
    match odd:
        case "refused":
            await _run_calls(turn, step, done.message, refusal=NOT_WHOLE)
            return Ending("refused", done.detail or "The model declined to answer.")
        case "cutCall":
            await _run_calls(turn, step, done.message, refusal=CUT_CALL)
            return None if patience.another(odd) else NO_ROOM
        case "spentThinking":
            budget = Budget(turn.max_output, turn.effort).roomier(turn.info, done.usage)
            if budget is None or not patience.another(odd):
                return NO_ROOM
            turn.max_output, turn.effort = budget.max_output, budget.effort
            text = f"The model spent its whole reply on thinking; asking again with {budget.words}."
            notice(turn, f"{step}.room", "info", "moreRoom", text)
        case _ if hear(turn):
            pass
        case _ if patience.another(odd):
            remind(turn, step, odd)
        case _:
            return AT_LAST.get(odd, NO_ROOM)
    return None


async def _stopped(turn: Turn, step: int, reply: Assistant, patience: Patience) -> Ending | None:
    """The model ended its reply without a call. None: it is not done."""
    if turn.finishing is not None:
        odd: Oddity = "unfinished"
        goes_on = True
    else:
        odd = "stoppedMidway"
        judge = partial(turn.aside, max_output=speaker.MAX_OUTPUT)
        midway = family(turn.info.model_id).may_stop_midway
        goes_on = await speaker.goes_on(turn.conversation, reply, judge, may_stop_midway=midway)
    if hear(turn):
        return None
    if goes_on and patience.another(odd):
        remind(turn, step, odd)
        return None
    if turn.finishing is not None:
        text = f"The model stopped {REMEDIES[odd].most + 1} times without calling {turn.finishing}."
        notice(turn, f"{step}.unfinished", "warning", "unfinished", text)
    return Ending("completed")


def _finished(turn: Turn, step: int) -> Ending | None:
    """The model said that the task is done, and how; its words are the turn's last answer."""
    done = None if turn.finishing is None else result_of(turn.conversation, turn.finishing)
    if done is None:
        return None
    summary = Answer(item_id=f"{turn.turn_id}.{step}.finished", turn_id=turn.turn_id, text=done.text)
    turn.emit(ItemCompleted(item=summary))
    return Ending("completed")


async def run_compaction(turn: Turn, focus: str) -> Ending:
    """A turn that does nothing but make room, by hand. Raises nothing but CancelledError."""
    turn.use(turn.model, turn.info)
    if await turn.context.compact(turn.at(1, in_turn=False), focus):
        turn.show_use()
    return Ending("completed")


def _kind(error: ModelError) -> ErrorKind:
    match error:
        case AuthFailed():
            return "authRequired"
        case Unreachable():
            return "modelUnavailable"
        case Overloaded() | RateLimited():
            return "overloaded"
        case _:
            return "providerError"


def _look_back(turn: Turn, step: int, reply: Assistant, results: Sequence[Result]) -> Ending | None:
    """After a step: is it going in circles?"""
    if turn.loops is None:
        return None
    alarm = turn.loops.step(reply, results) or turn.loops.judge(turn.aside)
    return None if alarm is None else _alarm(turn, step, alarm)


def _alarm(turn: Turn, step: int, alarm: Alarm) -> Ending | None:
    """The first of a turn is told to the model; the second ends it."""
    if turn.loops is None or not turn.loops.strike():
        return Ending("loop", alarm.reason, can_continue=True)
    tell(turn, step, alarm.told, alarm.notice)
    return None


def _limit(turn: Turn, steps: int) -> Ending | None:
    seconds = time.monotonic() - turn.started - (turn.approvals.waited - turn.waited_before)
    if steps >= turn.max_steps:
        return Ending("stepLimit", f"Stopped after {steps} steps.", can_continue=True)
    if seconds >= turn.max_seconds:
        return Ending("timeLimit", f"Stopped after {seconds:.0f} seconds.", can_continue=True)
    if (spent := turn.allowance.spent()) is not None:
        return Ending("costLimit", spent, can_continue=True)
    if (doubt := turn.allowance.doubt(turn.info)) is not None:
        notice(turn, "price", "warning", "costUnknown", doubt)
    return None


async def _run_calls(turn: Turn, step: int, reply: Assistant, *, refusal: str | None = None) -> Sequence[Result]:
    """One result per call; `refusal` is the answer to all of them instead of running any."""
    if not reply.calls:
        return ()
    calls = Calls(
        reply.calls,
        turn_id=turn.turn_id,
        step=step,
        tools=turn.tools,
        approvals=turn.approvals,
        emit=turn.emit,
        fitting=turn.context.fitting,
        knows=turn.knows,
    )
    try:
        if refusal is not None:
            calls.refuse(refusal)
        else:
            await calls.run()
    finally:  # whatever happened: one result per call, in order
        turn.conversation.append(Results(results=calls.results))
    await remember(turn, step, calls.touched)
    await refresh(turn, step)
    hear(turn)
    return calls.results
