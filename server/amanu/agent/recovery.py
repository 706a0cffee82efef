"""Faulty replies, and what is done about each: one table, and pure functions over it.

Most of them come from Gemini and local servers, but the table is the same for all vendors. One row matters most: a
reply that spent its whole budget on thinking is never asked for again with the same budget.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from amanu.core.ending import Ending
from amanu.core.listeners import Continue, StepRecord, TurnListener, TurnView
from amanu.core.model import Breakage, ModelError, ReplyCompleted, RequestRefused, TokenUsage
from amanu.core.model_families import EFFORTS, family
from amanu.core.notes import SystemNote
from amanu_protocol.items import Effort, ModelInfo

ReplyFault = Literal[
    Breakage,
    # errors the service reports in mid-stream
    "errorEvent",
    # complete replies that do not end the turn properly
    "refused",
    "spentThinking",
    "cutText",
    "cutCall",
    "emptyAfterResults",
    "writtenCall",
    "stoppedMidway",
    "unfinished",
    # odd forms that a translator understands
    "noCandidates",
    "noParts",
    "severalFinishes",
    "missingIndex",
    "objectArguments",
    "duplicateIds",
    "manyCalls",
]
"""`spentThinking`: the output limit was reached before any text or call · `cutText`, `cutCall`: it was reached in the
middle of one · `stoppedMidway`: the model said what it would do next, and stopped · `unfinished`: it stopped without
calling `finish_task` where that is required · `writtenCall`: a call written as text, which nothing runs."""

Treatment = Literal["accept", "retry", "nudge", "widen", "continue", "split", "end"]
"""`accept`: the translator understands the reply · `retry`: withdraw it and ask again · `nudge`: the same, and tell the
model what was wrong · `widen`: withdraw it and ask again with a larger budget or less thinking, never with the same ·
`continue`: keep it and ask the model to go on · `split`: answer its calls with `CUT_CALL` · `end`: end the turn and
keep what there is of the reply."""


@dataclass(frozen=True)
class Remedy:
    """What is done about one kind of faulty reply."""

    treatment: Treatment
    limit: int = 0
    """How often in a row, with no completed step of calls in between; then the turn ends as `FINAL_ENDINGS` says.
    Retries and nudges are counted by `models/retry.py`."""
    note: str = ""
    """What the model is told. It stays in the conversation: the prefix of later requests must not change."""
    user_note: str = ""
    """What the user is told."""


CUT_CALL = (
    "Not run: your reply hit the output limit while you were writing this call. "
    "Do the work in smaller pieces, one smaller call at a time."
)
NOT_WHOLE = "Not run: the reply was cut off."
_ANSWER = Remedy(
    "nudge",
    note="Your last reply was empty. Write your answer or make a tool call now.",
    user_note="The model sent an empty reply and was asked to answer.",
)
REMEDIES: Mapping[ReplyFault, Remedy] = MappingProxyType(
    {
        "broken": Remedy("retry"),
        "noFinish": Remedy("retry"),
        "errorEvent": Remedy("retry"),
        "missingCalls": Remedy("retry"),
        "thinkingOnly": _ANSWER,
        "empty": _ANSWER,
        "malformedCall": Remedy(
            "nudge",
            note="Your last tool call was malformed and was not run. Make it again, with one valid JSON object as its "
            "arguments.",
            user_note="The model made a malformed tool call and was asked to correct it.",
        ),
        "unexpectedCall": Remedy(
            "nudge",
            note="Your last reply called a tool that does not exist. Use only the tools you were given.",
            user_note="The model called a tool that does not exist and was told to use the available ones.",
        ),
        "spentThinking": Remedy("widen", 4),
        "cutText": Remedy(
            "continue",
            3,
            "Your reply hit the output limit. Continue exactly where it stopped, without repeating anything.",
            "The reply hit the model's output limit; continuing from there.",
        ),
        "cutCall": Remedy("split", 2, CUT_CALL),
        "emptyAfterResults": Remedy(
            "continue",
            3,
            "Please give your answer.",
            "The model finished its calls without an answer and was asked for one.",
        ),
        "writtenCall": Remedy(
            "continue",
            1,
            "You wrote a tool call as text, so nothing was run. Make the call through the tool-calling interface, with "
            "the names and arguments of your tools. If you only meant to show it, say so in a sentence.",
            "The model wrote a tool call as text, which runs nothing, and was asked to make a real call.",
        ),
        "stoppedMidway": Remedy(
            "continue", 3, "Please continue.", "The model stopped in the middle of its work and was asked to continue."
        ),
        "unfinished": Remedy(
            "continue",
            10,
            "If the task is done, call finish_task; otherwise go on. Nobody is available to answer questions.",
            "The model stopped without finishing the task and was asked to go on.",
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


MAX_PAUSES = 20
"""How often in a row a service may pause its reply."""
MAX_OVERFLOWS = 3
"""How often in a row a request may be too long, each time after more room was made."""

ENDLESS_PAUSES = Ending("failed", f"The service paused its reply {MAX_PAUSES + 1} times in a row.", can_continue=True)
TOO_LONG = Ending("failed", "The reply does not fit into the model's output limit.", can_continue=True)
NO_ANSWER = Ending(
    "failed",
    f"The model finished its calls but then sent {REMEDIES['emptyAfterResults'].limit + 1} empty replies in a row.",
    can_continue=True,
    kind="providerError",
)
ONLY_WRITTEN_CALLS = Ending(
    "failed",
    "The model keeps writing tool calls as text, which runs nothing. Try another model.",
    can_continue=True,
    kind="providerError",
)
FINAL_ENDINGS: Mapping[ReplyFault, Ending] = {
    "emptyAfterResults": NO_ANSWER,
    "writtenCall": ONLY_WRITTEN_CALLS,
    "cutText": TOO_LONG,
}
"""The ending of the turn when a remedy has been used up; `TOO_LONG` for all others."""


def reminder(fault: ReplyFault, details: str = "") -> SystemNote:
    """The note that tells the model what was wrong with its reply."""
    return SystemNote(" ".join(filter(None, (REMEDIES[fault].note, details))), REMEDIES[fault].user_note)


def reply_fault(reply: ReplyCompleted) -> ReplyFault | None:
    """The fault of a complete reply, as far as the reply alone shows it. A blank reply gets this far only after
    results: any other is retried (`models/retry.py`)."""
    has_text = bool(reply.message.text.strip())
    match reply.stop:
        case "refused":
            return "refused"
        case "outputLimit":
            return "cutCall" if reply.message.calls else "cutText" if has_text else "spentThinking"
        case "end" if not has_text and not reply.message.calls:
            return "emptyAfterResults"
        case "end" if not reply.message.calls and reply.unmade_call:
            return "writtenCall"
        case _:
            return None


_ABOUT_PICTURES = re.compile(r"\b(image|picture|pdf|document|media|file_data|inline_?data)", re.I)
"""How services name what they refuse: "Could not process image", "The PDF specified was not valid"."""


def is_about_pictures(error: ModelError) -> bool:
    """Whether the service refused the request because of a picture or a document in it."""
    return isinstance(error, RequestRefused) and _ABOUT_PICTURES.search(error.message) is not None


class RemedyCounts:
    """Counts how often each remedy was used in a row. The `allow…` methods count one more use; False past the limit."""

    def __init__(self) -> None:
        self._used: Counter[ReplyFault] = Counter()
        self._overflows = 0
        self._pauses = 0

    def allow(self, fault: ReplyFault) -> bool:
        self._used[fault] += 1
        return self._used[fault] <= REMEDIES[fault].limit

    def on_step(self) -> None:
        """A step of calls is complete: earlier faults no longer count."""
        self._used.clear()

    def allow_overflow(self) -> bool:
        """A request was too long: may it be sent again, after room was made?"""
        self._overflows += 1
        return self._overflows <= MAX_OVERFLOWS

    def allow_pause(self) -> bool:
        """The service paused the reply: may it be asked to go on?"""
        self._pauses += 1
        return self._pauses <= MAX_PAUSES

    def on_reply(self, *, paused: bool) -> None:
        """A reply arrived."""
        self._overflows = 0
        if not paused:
            self._pauses = 0


class FaultReminders(TurnListener):
    """Tells the model what was wrong with a reply that ended without calls, and asks it again. Lives for one turn."""

    def __init__(self) -> None:
        self._remedies = RemedyCounts()

    async def after_step(self, turn: TurnView, step: StepRecord) -> None:
        self._remedies.on_step()

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        fault = reply_fault(reply)
        if fault is None:
            return None
        return (
            Continue([reminder(fault, reply.unmade_call)])
            if self._remedies.allow(fault)
            else FINAL_ENDINGS.get(fault, TOO_LONG)
        )


# What a reply may take
# ----------------------------------------------------------------------------------------------------

MIN_GAIN = 1.25
"""A budget that grows by a smaller factor would change little; less thinking helps more."""


@dataclass(frozen=True)
class ReplyBudget:
    """What a reply may take: `Request.max_output` and `Request.effort`."""

    max_output: int | None = None
    """Tokens; None: the model family's default."""
    effort: Effort = "medium"

    def wider(self, info: ModelInfo, used: TokenUsage) -> "ReplyBudget | None":
        """A budget that leaves more for the answer than that of the reply that used `used`, different on the wire: the
        most the model can write if that is much more, otherwise one level less thinking. None when neither is
        possible."""
        facts = family(info.model_id)
        current = min(info.max_output, self.max_output or facts.max_output)
        possible = min(info.max_output, info.context_window - used.prompt)
        if possible >= current * MIN_GAIN:
            return ReplyBudget(possible, self.effort)
        lower: list[Effort] = [effort for effort in facts.efforts if EFFORTS.index(effort) < EFFORTS.index(self.effort)]
        if info.thinking and lower and facts.effort_value(lower[-1]) != facts.effort_value(self.effort):
            return ReplyBudget(self.max_output, lower[-1])
        return None

    @property
    def description(self) -> str:
        """In words, for the user."""
        limit = "" if self.max_output is None else f"up to {self.max_output:,} tokens and "
        return f"{limit}{self.effort} thinking effort"
