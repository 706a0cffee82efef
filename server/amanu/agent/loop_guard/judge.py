"""Asks a model whether a turn is stuck, for what no rule can see: the same idea in other words, fixes that change
nothing.

The utility model is asked after many steps of a turn, and then again and again: the surer it was, the sooner. When it
is almost sure, the turn's own model is asked too, with another question; only if both agree does it count. No answer,
nonsense and failed requests mean "not stuck": no turn ends on a doubtful judgement.
"""

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from amanu.agent.side_query import SideQuery
from amanu.agent.system_prompt import load_prompt
from amanu.core.conversation import Assistant, Result
from amanu.core.model import ModelError

FIRST_AFTER = 30
"""Steps of a turn before the first question; few turns that make progress are longer."""
SOONEST, LATEST = 5, 15
"""Steps between two questions: `SOONEST` after "surely stuck", `LATEST` after "surely not stuck"."""
SURE = 0.9
"""The score from which an answer counts as stuck."""
MAX_STEPS = 20
"""How many of the last steps are shown."""
SECONDS = 20.0
"""Time for both answers together. The turn goes on meanwhile."""
MAX_OUTPUT = 1024
"""Tokens of an answer, thoughts included."""

_STEP = 600  # characters per step; 20 steps, the request and the instructions take about 4,000 tokens
_SAID, _CALL, _RESULT = 160, 160, 200
_REQUEST = 2000


@dataclass(frozen=True)
class LoopVerdict:
    """A model's answer."""

    reason: str
    stuck: float
    """From 0, making progress, to 1, stuck."""


class LoopJudge:
    """Judges one turn. It keeps its own short record of the last steps: the conversation may be compacted meanwhile."""

    def __init__(self, request: str) -> None:
        self._request = _short(request, _REQUEST)
        self._next = FIRST_AFTER
        self._steps: deque[str] = deque(maxlen=MAX_STEPS)

    def add_step(self, reply: Assistant, results: Sequence[Result]) -> None:
        """Record a reply and the results of its calls."""
        lines = [f"says: {_short(reply.text, _SAID)}"] if reply.text.strip() else []
        for call, result in zip(reply.calls, results, strict=False):
            arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            outcome = "fails" if result.is_error else "gives"
            lines.append(f"calls {call.tool} {_short(arguments, _CALL)}")
            lines.append(f"  {outcome}: {_short(result.text, _RESULT)}")
        self._steps.append(_short("\n".join(lines), _STEP, line=False))
        self._next -= 1

    def reset(self) -> None:
        """Forget all steps so far."""
        self._steps.clear()
        self._next = max(self._next, LATEST)

    @property
    def due(self) -> bool:
        """It is time to ask."""
        return self._next <= 0

    async def ask(self, side_query: SideQuery) -> str | None:
        """Why both models think the turn is stuck; None when they do not. Raises only `CancelledError`."""
        self._next = LATEST
        question = self._question()
        try:
            async with asyncio.timeout(SECONDS):
                first = parse_verdict(await side_query(load_prompt("judge"), question, max_output=MAX_OUTPUT))
                if first is None:
                    return None
                self._next = SOONEST + round((LATEST - SOONEST) * (1 - first.stuck))
                if first.stuck < SURE:
                    return None
                second = parse_verdict(
                    await side_query(load_prompt("judge-again"), question, max_output=MAX_OUTPUT, own_model=True)
                )
        except (ModelError, TimeoutError):
            return None
        return first.reason if second is not None and second.stuck >= SURE else None

    def _question(self) -> str:
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self._steps, 1))
        return f"The user asked:\n---\n{self._request}\n---\n\nThe agent's last steps:\n---\n{steps}\n---"


def parse_verdict(answer: str) -> LoopVerdict | None:
    """The last JSON object in an answer that is a verdict, whatever stands around it; None if there is none."""
    decoder = json.JSONDecoder()
    verdict = None
    start = answer.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            verdict = _verdict(value) or verdict
        start = answer.find("{", end)
    return verdict


def _verdict(value: Any) -> LoopVerdict | None:
    if not isinstance(value, dict):
        return None
    fields = cast(dict[str, Any], value)
    stuck = fields.get("stuck")
    try:
        number = float(stuck) if isinstance(stuck, int | float | str) else -1.0
    except (ValueError, OverflowError):
        return None
    return LoopVerdict(_short(str(fields.get("reason", "")), 300), number) if 0 <= number <= 1 else None


def _short(text: str, most: int, *, line: bool = True) -> str:
    """The beginning and end of a text, `most` characters in all; on one line if `line`. Never scans much more than
    that."""
    if len(text) > 4 * most:
        text = f"{text[: 2 * most]} … {text[-2 * most :]}"
    text = " ".join(text.split()) if line else text
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"
