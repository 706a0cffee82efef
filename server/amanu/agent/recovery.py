"""Replies that are no proper answer, and what is done about each: one table, and pure functions over it.

Most of them are Gemini's and local servers'; the table is the same for all vendors. Published loops differ in one
row above all: a reply that spent its whole budget on thinking is never asked for again with the same budget.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from amanu.agent.written_calls import written_call
from amanu.core.ending import Ending
from amanu.core.listeners import Continue, StepRecord, TurnListener, TurnView
from amanu.core.model import EFFORTS, Breakage, Effort, ReplyCompleted, TokenUsage
from amanu.core.model_families import family
from amanu.core.notes import SystemNote
from amanu_protocol.items import ModelInfo

ReplyFault = Literal[
    Breakage,
    # failures the service itself reports, in mid-stream
    "errorEvent",
    # whole replies that are no end
    "refused",
    "spentThinking",
    "cutText",
    "cutCall",
    "emptyAfterResults",
    "writtenCall",
    "stoppedMidway",
    "unfinished",
    # forms a translator takes as they are meant
    "noCandidates",
    "noParts",
    "severalFinishes",
    "missingIndex",
    "objectArguments",
    "duplicateIds",
    "manyCalls",
]
"""`spentThinking`: the output limit was met before a word or a call · `cutText`, `cutCall`: met in the middle of one ·
`stoppedMidway`: it said what it would do next, and stopped · `unfinished`: it stopped without calling `finish_task`
where that was asked for · `writtenCall`: a call as text, which nothing runs."""

Treatment = Literal["accept", "retry", "nudge", "room", "continue", "split", "end"]
"""`accept`: the translator understands it · `retry`: withdrawn and asked for again · `nudge`: the same, and the model
is told what was wrong · `room`: withdrawn and asked for with a larger budget or less thinking, never with the same ·
`continue`: kept, and the model is asked to go on · `split`: its calls are answered with `CUT_CALL` · `end`: the turn
ends, what came of the reply is kept."""


@dataclass(frozen=True)
class Remedy:
    """What is done about one kind of reply."""

    treatment: Treatment
    limit: int = 0
    """Times in a row, without a whole step of calls between; what comes then is the kind's own end. Retries and nudges
    are counted by `models/retry.py`."""
    note: str = ""
    """What the model is told. It stays in the conversation, on record: the prefix of later requests must not change."""
    user_note: str = ""
    """What the user sees of it."""


CUT_CALL = (
    "Not run: the reply was cut at the output limit while it was written. "
    "Do the work in smaller pieces, one smaller call at a time."
)
NOT_WHOLE = "Not run: the reply was broken off."
_ANSWER = Remedy(
    "nudge",
    note="Your last reply held no answer: write your answer or make a tool call now.",
    user_note="The model gave no answer; it was told so.",
)
REMEDIES: Mapping[ReplyFault, Remedy] = MappingProxyType(
    {
        "broken": Remedy("retry"),
        "noFinish": Remedy("retry"),
        "errorEvent": Remedy("retry"),
        "thinkingOnly": _ANSWER,
        "empty": _ANSWER,
        "malformedCall": Remedy(
            "nudge",
            note="Your last tool call was malformed and was not run: make it again, with arguments that are one valid "
            "JSON object.",
            user_note="The model made a call that could not be read; it was told so.",
        ),
        "unexpectedCall": Remedy(
            "nudge",
            note="Your last reply called a tool that is not there: use only the tools you were given.",
            user_note="The model called a tool that is not there; it was told so.",
        ),
        "spentThinking": Remedy("room", 4),
        "cutText": Remedy(
            "continue",
            3,
            "Your reply was cut at the output limit. Go on exactly where it stopped, without repeating anything.",
            "The reply reached the model's output limit; going on from there.",
        ),
        "cutCall": Remedy("split", 2, CUT_CALL),
        "emptyAfterResults": Remedy(
            "continue", 3, "Please give your answer.", "The model said nothing after its work; it was asked to answer."
        ),
        "writtenCall": Remedy(
            "continue",
            1,
            "You wrote a tool call as text, and nothing was run. Make it with the tool-calling interface, by the name "
            "and the arguments of your tools; or, if you only meant to show it, say so in a sentence.",
            "The model wrote a tool call as text, where nothing runs it; it was told so.",
        ),
        "stoppedMidway": Remedy(
            "continue", 3, "Please continue.", "The model stopped in the middle of its work; it was asked to go on."
        ),
        "unfinished": Remedy(
            "continue",
            10,
            "If the task is done call finish_task, else go on. Nobody is there to answer questions.",
            "The model stopped without finishing the task; it was asked to go on.",
        ),
        "refused": Remedy("end"),
        "noCandidates": Remedy("accept"),
        "noParts": Remedy("accept"),
        "severalFinishes": Remedy("accept"),
        "missingIndex": Remedy("accept"),
        "objectArguments": Remedy("accept"),
        "duplicateIds": Remedy("accept"),
        "manyCalls": Remedy("accept"),
    }
)


NO_ROOM = Ending("failed", "The reply did not fit the model's output limit.", can_continue=True)
NO_ANSWER = Ending(
    "failed",
    f"The model sent {REMEDIES['emptyAfterResults'].limit + 1} empty replies in a row after its work, and no answer.",
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
FINAL_ENDINGS: Mapping[ReplyFault, Ending] = {
    "emptyAfterResults": NO_ANSWER,
    "writtenCall": WRITTEN,
    "cutText": NO_ROOM,
}
"""What becomes of a turn when a remedy was used as often as it may be."""


def reminder(fault: ReplyFault) -> SystemNote:
    """What the model is told of its reply."""
    return SystemNote(REMEDIES[fault].note, REMEDIES[fault].user_note)


def reply_fault(reply: ReplyCompleted, tools: Collection[str] = ()) -> ReplyFault | None:
    """What is odd about a reply that came whole, as far as the reply alone can tell, with the names of the tools that
    are there. A blank one that says it is whole gets here only after results (`models/retry.py`)."""
    has_text = bool(reply.message.text.strip())
    match reply.stop:
        case "refused":
            return "refused"
        case "outputLimit":
            return "cutCall" if reply.message.calls else "cutText" if has_text else "spentThinking"
        case "end" if not has_text and not reply.message.calls:
            return "emptyAfterResults"
        case "end" if not reply.message.calls and written_call(reply.message.text, tools):
            return "writtenCall"
        case _:
            return None


class RemedyCounts:
    """How often each remedy was used in a row."""

    def __init__(self) -> None:
        self._used: Counter[ReplyFault] = Counter()
        self._overflows = 0
        self._pauses = 0

    def allow(self, fault: ReplyFault) -> bool:
        """The remedy may be used once more; it is counted."""
        self._used[fault] += 1
        return self._used[fault] <= REMEDIES[fault].limit

    def on_step(self) -> None:
        """A whole step of calls: what was wrong before is over."""
        self._used.clear()

    def allow_overflow(self, most: int) -> bool:
        """A request was too long; it may be tried again after making room, so often in a row."""
        self._overflows += 1
        return self._overflows <= most

    def allow_pause(self, most: int) -> bool:
        """The service paused; it may do so that often in a row."""
        self._pauses += 1
        return self._pauses <= most

    def on_reply(self, *, paused: bool) -> None:
        """A reply came."""
        self._overflows = 0
        if not paused:
            self._pauses = 0


class FaultReminders(TurnListener):
    """Of one turn. A reply that has ended, but is no proper end: the model is told what it calls for. `tools` are the
    names of those that can be called."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._patience = RemedyCounts()

    async def after_step(self, turn: TurnView, step: StepRecord) -> None:
        self._patience.on_step()

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        fault = reply_fault(reply, self._tools)
        if fault is None:
            return None
        return Continue([reminder(fault)]) if self._patience.allow(fault) else FINAL_ENDINGS.get(fault, NO_ROOM)


# Room ----------------------------------------------------------------------------------------------------

LEAST_GAIN = 1.25
"""A budget that grows by less would change little; then it is the thinking that must shrink."""


@dataclass(frozen=True)
class ReplyBudget:
    """What a reply may take: `Request.max_output` and `Request.effort`."""

    max_output: int | None = None
    """None: as the family has it."""
    effort: Effort = "medium"

    def roomier(self, info: ModelInfo, used: TokenUsage) -> "ReplyBudget | None":
        """More room than the reply that took `used` had, different on the wire: the most the model can write if that is
        much more, else one level less thinking. None when neither can be."""
        facts = family(info.model_id)
        prompt = used.input + used.cache_read + used.cache_write
        had = min(info.max_output, self.max_output or facts.max_output)
        can = min(info.max_output, info.context_window - prompt)
        if can >= had * LEAST_GAIN:
            return ReplyBudget(can, self.effort)
        lower = EFFORTS[max(0, EFFORTS.index(self.effort) - 1)]
        if info.thinking and facts.efforts.get(lower) != facts.efforts.get(self.effort):
            return ReplyBudget(self.max_output, lower)
        return None

    @property
    def description(self) -> str:
        """For the user."""
        most = "" if self.max_output is None else f"up to {self.max_output:,} tokens, "
        return f"{most}{self.effort} thinking effort"
