"""A model's judgement, for what no rule sees: the same idea in ever other words, fixes that change nothing.

Asked after many steps of a turn, then ever again, the sooner the surer the last answer was. What is almost surely stuck
is shown to a second model, the turn's own, with another question; only if both agree it counts. No answer, nonsense and
a failed request count as "not stuck": a judgement is never worth a turn.
"""

import asyncio
import importlib.resources
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from amanu.agent.side_query import SideQuery
from amanu.core.conversation import Assistant, Result
from amanu.core.model import ModelError

FIRST_AFTER = 30
"""Steps of a turn before the first question; few honest turns are longer."""
SOONEST, LATEST = 5, 15
"""Steps between two questions: the latter after "surely not stuck", the former after "perhaps"."""
SURE = 0.9
"""From here on both must have answered."""
STEPS = 20
"""Steps that are shown."""
SECONDS = 20.0
"""Both answers together. The turn goes on meanwhile."""
MAX_OUTPUT = 1024
"""Tokens of an answer, thoughts included."""

_STEP = 600  # characters of a step; 20 of them, the request and the instructions are some 4,000 tokens
_SAID, _CALL, _RESULT = 160, 160, 200
_REQUEST = 2000


@dataclass(frozen=True)
class LoopVerdict:
    reason: str
    stuck: float


class LoopJudge:
    """Keeps a digest of the last steps, for the conversation may be rewritten meanwhile."""

    def __init__(self, request: str) -> None:
        self._request = _short(request, _REQUEST)
        self._next = FIRST_AFTER
        self._steps: deque[str] = deque(maxlen=STEPS)

    def add_step(self, reply: Assistant, results: Sequence[Result]) -> None:
        lines = [f"says: {_short(reply.text, _SAID)}"] if reply.text.strip() else []
        for call, result in zip(reply.calls, results, strict=False):
            arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            outcome = "fails" if result.is_error else "gives"
            lines.append(f"calls {call.tool} {_short(arguments, _CALL)}")
            lines.append(f"  {outcome}: {_short(result.text, _RESULT)}")
        self._steps.append(_short("\n".join(lines), _STEP, line=False))
        self._next -= 1

    def reset(self) -> None:
        """What came before is settled."""
        self._steps.clear()
        self._next = max(self._next, LATEST)

    @property
    def due(self) -> bool:
        """It is time to ask."""
        return self._next <= 0

    async def ask(self, aside: SideQuery) -> str | None:
        """Why both models think it is stuck, or None. Raises nothing but `CancelledError`."""
        self._next = LATEST
        question = self._question()
        try:
            async with asyncio.timeout(SECONDS):
                first = parse_verdict(await aside(prompt("judge"), question, max_output=MAX_OUTPUT))
                if first is None:
                    return None
                self._next = SOONEST + round((LATEST - SOONEST) * (1 - first.stuck))
                if first.stuck < SURE:
                    return None
                second = parse_verdict(
                    await aside(prompt("judge-again"), question, max_output=MAX_OUTPUT, own_model=True)
                )
        except (ModelError, TimeoutError):
            return None
        return first.reason if second is not None and second.stuck >= SURE else None

    def _question(self) -> str:
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self._steps, 1))
        return f"The user asked:\n---\n{self._request}\n---\n\nThe agent's last steps:\n---\n{steps}\n---"


def parse_verdict(answer: str) -> LoopVerdict | None:
    """The last JSON object in an answer that says how much it is stuck, whatever stands around it."""
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


@cache
def prompt(name: str) -> str:
    """An instruction from `prompts/`."""
    return (importlib.resources.files("amanu.agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def _short(text: str, most: int, *, line: bool = True) -> str:
    """Its beginning and its end, in one line unless told otherwise. Looks at no more of it than it shows."""
    if len(text) > 4 * most:
        text = f"{text[: 2 * most]} … {text[-2 * most :]}"
    text = " ".join(text.split()) if line else text
    half = most // 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"
