"""Is it going round in circles? Three levels: the text as it streams, the calls of each step, a model's judgement.

The first alarm of a turn is told to the model, and the turn goes on; the second ends it. After an alarm everything
starts anew: the second one comes from what was done since.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from amanu.agent.loop_guard.call_cycles import CallCycles, Defaults
from amanu.agent.loop_guard.judge import LoopJudge
from amanu.agent.loop_guard.text_repetition import TextRepetition
from amanu.core.conversation import Assistant, Result
from amanu.core.ending import Ending
from amanu.core.listeners import Continue, Notes, StepRecord, TurnListener, TurnView
from amanu.core.model import ReplyCompleted, TextDelta, ThoughtDelta, ToolSpec
from amanu.core.notes import SystemNote

_WORDING = 160
"""Characters of what was repeated that are quoted."""
_SENTENCE = re.compile(r"[.!?:]\s+|[。！？]")
_BLANK = re.compile(r"\s+")
_REQUEST = 10_000
"""Characters of what the user said that are kept."""


@dataclass(frozen=True)
class Alarm:
    """A loop, in three wordings."""

    guidance: str
    """For the model."""
    notice: str
    """For the user, when the model was told."""
    reason: str
    """For the user, when it ends the turn."""


class LoopGuard(TurnListener):
    """Watches one turn, and each reply of it while it streams (`ReplyWatch`). `request` is what the user asked for."""

    def __init__(self, request: str, tools: Sequence[ToolSpec]) -> None:
        self._request = request[-_REQUEST:]
        self._cycles = CallCycles(_defaults(tools))
        self._judge = LoopJudge(request)
        self._texts: dict[type[TextDelta | ThoughtDelta], TextRepetition] = {}
        self._judging: asyncio.Task[str | None] | None = None
        self._strikes = 0
        self._heard = 0
        """Of `TurnView.steering`."""
        self._cut: Alarm | None = None
        """Why the reply was cut off."""

    async def before_request(self, turn: TurnView, step: int) -> None:
        self._listen(turn)

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | Ending | None:
        self._listen(turn)
        alarm = self.add_step(step.reply, step.results) or self._judgement(turn)
        return None if alarm is None else self._strike(alarm)

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        alarm, self._cut = self._cut, None
        if reply.stop != "cut" or alarm is None:
            return None
        answer = self._strike(alarm)
        return answer if isinstance(answer, Ending) else Continue(answer)

    def begin_reply(self) -> None:
        """A reply begins, or another attempt at it."""
        self._texts = {TextDelta: TextRepetition(self._request), ThoughtDelta: TextRepetition(self._request)}

    def on_text(self, delta: TextDelta | ThoughtDelta) -> bool:
        """A piece of the reply came; True when it repeats itself."""
        repeated = self._texts[type(delta)].feed(delta.text)
        if repeated is None:
            return False
        self._cut = _repetition(repeated, "text" if isinstance(delta, TextDelta) else "thought")
        return True

    def add_step(self, reply: Assistant, results: Sequence[Result]) -> Alarm | None:
        """The reply's calls have their results."""
        self._judge.add_step(reply, results)
        cycle = self._cycles.add_step(reply.calls, results)
        return None if cycle is None else _cycle(cycle)

    def _judgement(self, turn: TurnView) -> Alarm | None:
        """A judgement that has come since the last one. If it is time, another is asked for; the turn
        does not wait for it."""
        reason = None
        if self._judging is not None and self._judging.done():
            reason = self._judging.result()
            self._judging = None
        if self._judging is None and self._judge.due:
            self._judging = turn.start_task(self._judge.ask(turn.side_query))
        return None if reason is None else _judged(reason)

    def _listen(self, turn: TurnView) -> None:
        """What was done before the user said something may not be what they want now."""
        for text in turn.steering[self._heard :]:
            self._request = f"{self._request}\n{text}"[-_REQUEST:]
            self._reset()
        self._heard = len(turn.steering)

    def _strike(self, alarm: Alarm) -> Notes | Ending:
        """The first alarm of a turn is told to the model; the second ends it."""
        self._strikes += 1
        self._reset()
        if self._strikes > 1:
            return Ending("loop", alarm.reason, can_continue=True)
        return [SystemNote(alarm.guidance, alarm.notice)]

    def _reset(self) -> None:
        self._cycles.reset()
        self._judge.reset()
        if self._judging is not None:  # it is about what is settled
            self._judging.cancel()
            self._judging = None


def _repetition(repeated: str, kind: Literal["text", "thought"]) -> Alarm:
    begins = _SENTENCE.search(repeated) or _BLANK.search(repeated)  # a round is cut anywhere
    quoted = " ".join((repeated[begins.end() :] + repeated[: begins.end()] if begins else repeated).split())
    quoted = quoted if len(quoted) <= _WORDING else f"{quoted[: _WORDING - 1]}…"
    description = (
        f" The same words came over and over: “{quoted}”." if quoted else " The same few sentences came over and over."
    )
    opening = "You were repeating yourself" if kind == "text" else "Your thoughts went round in circles"
    return Alarm(
        guidance=f"{opening}, so your reply was stopped.{description} Do not begin with them again. Say once what "
        "matters, then take the next step of the task; if you cannot, tell the user what blocks you.",
        notice="The model repeated itself; its reply was stopped and it was told so.",
        reason="Stopped: the model repeated itself again after it was told.",
    )


def _cycle(description: str) -> Alarm:
    return Alarm(
        guidance=f"You have {description}. Doing it again will not help. Look at what the results say and do something "
        "else; if you wait for something, wait longer between two looks; if nothing is left to try, tell the user "
        "what blocks you.",
        notice=f"The model has {description}; it was told so.",
        reason=f"Stopped: the model went in circles again after it was told. It has {description}.",
    )


def _judged(reason: str) -> Alarm:
    because = reason.rstrip(".") or "the last steps brought nothing new"
    return Alarm(
        guidance=f"Your last steps were looked at, and they do not seem to bring the task forward: {because}. Think "
        "about what you know for certain. Then choose another way, or tell the user what blocks you.",
        notice=f"The model seems to be stuck; it was told so. ({because}.)",
        reason=f"Stopped: the model seems to be stuck, also after it was told. ({because}.)",
    )


def _defaults(tools: Sequence[ToolSpec]) -> Defaults:
    return {
        tool.name: {
            name: field["default"]
            for name, field in tool.parameters.get("properties", {}).items()
            if isinstance(field, dict) and "default" in field
        }
        for tool in tools
    }
