"""One detector at one case: found or not, how late, and at what cost."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.loops.corpus import TOKENS, Case, pieces
from bench.loops.detector import Detector


@dataclass(frozen=True)
class Outcome:
    case: Case
    found: bool
    early: bool = False
    """Found where there was no circle yet: a false alarm, whatever comes later."""
    characters: int | None = None
    """From where a text's circle began until it was found."""
    steps: int | None = None
    """The same of calls; the step it was found in counts."""

    @property
    def right(self) -> bool:
        return self.found == self.case.loop and not self.early


@dataclass(frozen=True)
class Score:
    name: str
    outcomes: Sequence[Outcome]
    micros_per_kb: float
    """Of streamed text, in microseconds per 1,024 characters."""

    @property
    def false_alarms(self) -> list[str]:
        return [each.case.name for each in self.outcomes if each.found and (each.early or not each.case.loop)]

    @property
    def misses(self) -> list[str]:
        return [each.case.name for each in self.outcomes if each.case.loop and (not each.found or each.early)]

    @property
    def hits(self) -> int:
        return sum(each.right for each in self.outcomes if each.case.loop)

    @property
    def precision(self) -> float:
        return _share(self.hits, self.hits + len(self.false_alarms))

    @property
    def recall(self) -> float:
        return _share(self.hits, sum(each.case.loop for each in self.outcomes))

    @property
    def f1(self) -> float:
        return _share(2 * self.precision * self.recall, self.precision + self.recall)

    def delay(self, name: str) -> tuple[float, float] | None:
        """Mean and median of "characters" or "steps" until found."""
        values = [value for each in self.outcomes if each.right and (value := getattr(each, name)) is not None]
        return (statistics.mean(values), statistics.median(values)) if values else None

    def of(self, cases: Sequence[Case]) -> "Score":
        """The same, of some of the cases."""
        names = {case.name for case in cases}
        return Score(self.name, [each for each in self.outcomes if each.case.name in names], self.micros_per_kb)


def score(name: str, make: Callable[[], Detector], cases: Sequence[Case]) -> Score:
    return Score(name, [judge(make(), case) for case in cases], cost(make, cases))


def judge(detector: Detector, case: Case, chunk: int | None = None) -> Outcome:
    """Play the case until the detector finds something. `chunk` overrides how its texts are streamed."""
    size = case.chunk if chunk is None else chunk
    circle = 0
    for turn in case.turns:
        detector.turn(case.request)
        for step in turn:
            circle += step.loop
            detector.reply()
            for said in step.said:
                at = 0
                for piece in pieces(said.text, size):
                    at += len(piece)
                    if detector.said(said.kind, piece):
                        begun = 0 if step.loop and said.loop_at is None else said.loop_at
                        late = None if begun is None else at - begun
                        return Outcome(case, True, late is None or late < 0, characters=late)
            if step.calls and detector.called(step.calls):
                return Outcome(case, True, not step.loop, steps=circle)
    return Outcome(case, False)


def cost(make: Callable[[], Detector], cases: Sequence[Case]) -> float:
    """Microseconds per 1,024 characters of honest text: what every reply pays. Processor time, the best of three."""
    texts = [
        said
        for case in cases
        if not case.loop
        for turn in case.turns
        for step in turn
        for said in step.said
        if len(said.text) > 1000
    ]
    best = float("inf")
    for _ in range(3):
        spent = 0.0
        for said in texts:
            detector = make()
            detector.turn("")
            detector.reply()
            chunks = list(pieces(said.text, TOKENS))
            begun = time.process_time()
            for chunk in chunks:
                detector.said(said.kind, chunk)
            spent += time.process_time() - begun
        best = min(best, spent)
    return best * 1e6 / (sum(len(said.text) for said in texts) / 1024)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
