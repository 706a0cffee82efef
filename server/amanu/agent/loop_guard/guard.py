"""Detects loops on three levels: in the text as it streams, in the calls of each step, and by a model's judgement.

The first alarm of a turn is told to the model, and the turn goes on; the second ends the turn. After an alarm all
detectors are reset, so the second one comes from what was done since.
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

_MAX_QUOTE = 160
"""Characters quoted of what was repeated."""
_SENTENCE = re.compile(r"[.!?:]\s+|[。！？]")
_BLANK = re.compile(r"\s+")
_MAX_REQUEST = 10_000
"""Characters kept of what the user said."""


@dataclass(frozen=True)
class Alarm:
    """A loop was detected; described in three wordings."""

    guidance: str
    """For the model."""
    notice: str
    """For the user, when the model was told of it."""
    reason: str
    """For the user, when the alarm ends the turn."""


class LoopGuard(TurnListener):
    """Watches one turn, and each of its replies while it streams (`ReplyWatch`). `request` is what the user asked
    for."""

    def __init__(self, request: str, tools: Sequence[ToolSpec]) -> None:
        self._request = request[-_MAX_REQUEST:]
        self._cycles = CallCycles(_defaults(tools))
        self._judge = LoopJudge(request)
        self._texts: dict[type[TextDelta | ThoughtDelta], TextRepetition] = {}
        self._judging: asyncio.Task[str | None] | None = None
        self._strikes = 0
        self._steering_count = 0
        """How much of `TurnView.steering` was taken into account."""
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
        """A piece of the reply arrived; True when the text repeats itself."""
        repeated = self._texts[type(delta)].feed(delta.text)
        if repeated is None:
            return False
        self._cut = _repetition(repeated, "text" if isinstance(delta, TextDelta) else "thought")
        return True

    def add_step(self, reply: Assistant, results: Sequence[Result]) -> Alarm | None:
        """Watch a reply and the results of its calls; an alarm when the calls go in cycles."""
        self._judge.add_step(reply, results)
        cycle = self._cycles.add_step(reply.calls, results)
        return None if cycle is None else _cycle(cycle)

    def _judgement(self, turn: TurnView) -> Alarm | None:
        """An alarm when a judgement has arrived that says so. When it is time for the next one, request it in the
        background: the turn does not wait."""
        reason = None
        if self._judging is not None and self._judging.done():
            reason = self._judging.result()
            self._judging = None
        if self._judging is None and self._judge.due:
            self._judging = turn.start_task(self._judge.ask(turn.side_query))
        return None if reason is None else _judged(reason)

    def _listen(self, turn: TurnView) -> None:
        """When the user said something, forget the steps before it: they may want something else now."""
        for text in turn.steering[self._steering_count :]:
            self._request = f"{self._request}\n{text}"[-_MAX_REQUEST:]
            self._reset()
        self._steering_count = len(turn.steering)

    def _strike(self, alarm: Alarm) -> Notes | Ending:
        """The first alarm of a turn becomes a note to the model, the second ends the turn."""
        self._strikes += 1
        self._reset()
        if self._strikes > 1:
            return Ending("loop", alarm.reason, can_continue=True)
        return [SystemNote(alarm.guidance, alarm.notice)]

    def _reset(self) -> None:
        self._cycles.reset()
        self._judge.reset()
        if self._judging is not None:  # it is about steps that no longer count
            self._judging.cancel()
            self._judging = None


def _repetition(repeated: str, kind: Literal["text", "thought"]) -> Alarm:
    start = _SENTENCE.search(repeated) or _BLANK.search(repeated)  # a round may begin in mid-sentence
    quoted = " ".join((repeated[start.end() :] + repeated[: start.end()] if start else repeated).split())
    quoted = quoted if len(quoted) <= _MAX_QUOTE else f"{quoted[: _MAX_QUOTE - 1]}…"
    description = (
        f" The same words came over and over: “{quoted}”." if quoted else " The same few sentences came over and over."
    )
    opening = "You were repeating yourself" if kind == "text" else "Your thoughts were going in circles"
    return Alarm(
        guidance=f"{opening}, so your reply was stopped.{description} Do not start with them again. Say what matters "
        "once, then take the next step of the task. If you cannot, tell the user what blocks you.",
        notice="The model kept repeating itself. Its reply was stopped, and it was told to move on.",
        reason="Stopped: the model kept repeating itself after it was told to move on.",
    )


def _cycle(description: str) -> Alarm:
    return Alarm(
        guidance=f"You have {description}. Doing it again will not help. Read the results and try something else. If "
        "you are waiting for something, check less often. If nothing is left to try, tell the user what blocks you.",
        notice=f"The model has {description}. It was told to try something else.",
        reason=f"Stopped: the model kept going in circles after it was told to stop. It has {description}.",
    )


def _judged(reason: str) -> Alarm:
    because = reason.rstrip(".") or "they brought nothing new"
    return Alarm(
        guidance=f"A review of your last steps found no progress on the task: {because}. Think about what you know for "
        "certain. Then try another approach, or tell the user what blocks you.",
        notice=f"The model seems to be stuck. It was told to try another approach. ({because}.)",
        reason=f"Stopped: the model still seems to be stuck after it was told. ({because}.)",
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
