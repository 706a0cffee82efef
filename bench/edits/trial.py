"""One matcher at one trial, and what came of all of them."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from bench.edits.corpus import Edit
from bench.edits.perturb import FOUND, REFUSED, Trial

Matcher = Callable[[str, str, str], str | None]
"""(text, old, new) → the file after the edit, None: refused."""
Verdict = Literal["right", "but for blanks", "refused", "wrong text", "wrong place"]


def judge(matcher: Matcher, trial: Trial) -> Verdict:
    """*But for blanks*: right, but for blanks at line ends or the final line end. *Wrong place*: something outside the
    place is not as it was, or there was no place at all. *Wrong text*: the place is right, what it says afterwards is
    not (indentation, line ends, lost lines)."""
    edited = matcher(trial.text, trial.old, trial.new)
    if edited is None:
        return "refused"
    if edited == trial.expected:
        return "right"
    if trial.expected is None:
        return "wrong place"
    if _without_blanks(edited) == _without_blanks(trial.expected):
        return "but for blanks"
    before, behind = trial.text[: trial.start], trial.text[len(trial.text) - trial.behind :]
    there = edited.startswith(before) and edited.endswith(behind) and len(edited) >= len(before) + len(behind)
    return "wrong text" if there else "wrong place"


def _without_blanks(text: str) -> str:
    return re.sub(r"[ \t]+(?=\r?\n|$)", "", text).rstrip("\r\n")


def trials(edits: Sequence[Edit], seed: int = 7) -> Iterator[tuple[str, Edit, Trial]]:
    """Every perturbation of every edit it applies to; not where the search text became, by chance, one that stands
    elsewhere to the letter."""
    for name, perturb in {**FOUND, **REFUSED}.items():
        for number, edit in enumerate(edits):
            trial = perturb(random.Random(f"{seed} {name} {number}"), edit)
            if trial is not None and number % 2:
                trial = _without_last_line_end(trial)
            if trial is not None and not (trial.expected is not None and _elsewhere(trial)):
                yield name, edit, trial


def _without_last_line_end(trial: Trial) -> Trial:
    """Some models write it and some do not, and some ladders mind."""
    old, new = trial.old.removesuffix("\n").removesuffix("\r"), trial.new.removesuffix("\n").removesuffix("\r")
    return replace(trial, old=old, new=new) if old != trial.old and new != trial.new else trial


def _elsewhere(trial: Trial) -> bool:
    at = trial.text.find(trial.old)
    place = range(trial.start, len(trial.text) - trial.behind + 1)
    return at >= 0 and not (at in place or at + len(trial.old) in place)


def score(matcher: Matcher, edits: Sequence[Edit]) -> dict[str, Counter[Verdict]]:
    counts: dict[str, Counter[Verdict]] = {}
    for name, _, trial in trials(edits):
        counts.setdefault(name, Counter())[judge(matcher, trial)] += 1
    return counts
