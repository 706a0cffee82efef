"""Our own detectors, as the loop uses them; without the model's judgement, as for the others."""

from collections.abc import Sequence

from amanu.agent.loop_guard.guard import LoopGuard
from amanu.core.conversation import Assistant, Call, Result
from amanu.core.model import TextDelta, ThoughtDelta
from bench.loops.corpus import Called


class Amanu:
    def turn(self, request: str) -> None:
        self._loops = LoopGuard(request, ())

    def reply(self) -> None:
        self._loops.begin_reply()

    def said(self, kind: str, delta: str) -> bool:
        return self._loops.on_text(TextDelta(delta) if kind == "text" else ThoughtDelta(delta))

    def called(self, calls: Sequence[Called]) -> bool:
        asked = [Call(call_id=str(at), tool=each.tool, arguments=each.arguments) for at, each in enumerate(calls)]
        results = [
            Result(call_id=str(at), tool=each.tool, text=each.result, is_error=each.error)
            for at, each in enumerate(calls)
        ]
        return self._loops.add_step(Assistant(parts=tuple(asked)), results) is not None
