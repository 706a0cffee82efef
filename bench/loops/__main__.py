"""`python -m bench.loops`: every detector at every case; prints the table and writes `bench/loops/results.md`."""

import argparse
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.loops.corpus import AFTERWARDS, HELD_OUT, TOKENS, Case, load
from bench.loops.detector import Detector
from bench.loops.fspec import Fspec
from bench.loops.gemini_cli import GeminiCli
from bench.loops.opencode import OpenCode
from bench.loops.ours import Amanu
from bench.loops.trial import Score, judge, score

DETECTORS: dict[str, Callable[[], Detector]] = {
    "Amanu": Amanu,
    "Gemini CLI": GeminiCli,
    "OpenCode": OpenCode,
    "fspec": Fspec,
}
SIZES = (1, TOKENS, 20, 40, 0)
OUTPUT = Path(__file__).with_name("results.md")

HEAD = ("detector", "precision", "recall", "F1", "false alarms", "misses", "delay, characters", "delay, steps", "µs/KB")
ABOUT = """\
Generated. Can the rules tell a loop from honest repetition? {cases} turns as data (`cases/`), {loops} of them loops; of
each the first alarm counts. Levels one and two only: what a model's judgement would add is not measured here, for no
test calls a model. Gemini CLI, OpenCode and fspec are their published rules, written anew from a description
(`gemini_cli.py`, `opencode.py`, `fspec.py`), not their programs; OpenCode looks at calls alone, fspec at text alone,
Gemini CLI at no thoughts. Texts are streamed 40 characters at a time, about as Gemini's service does, which is kindest
to Gemini CLI's rules.

*False alarms* are honest turns, and loops found before they began. *Delay* is the mean (and the median) from where a
loop begins until it is found, of those found: detectors that find less find the easy ones. *µs/KB* is the time for
1,024 characters of honest text in words and marks, in Python on this machine, for Gemini CLI and fspec that of our
rendering."""
HONEST = """\
## How far to trust it

- We wrote the cases and the detectors. {before} cases, {held} of them held out, were written and committed before there
  was a detector; the held-out ones ran when the detectors had settled. One of them (`h-repl`) was remembered while the
  rule for changing figures was made. The {after} under *afterwards* were made to fool ours: two did and led to changes
  (a command's description is no part of it; empty list points are no chant), one more to a longer memory for words.
- Precision on text was also tried on what nobody made up for this: 62 MB in 3,146 files (our own sources and documents,
  Python's library and its tests, package documents, `/usr/share`), each as one reply without a code block. One file
  was taken for a loop, a table of code points; a rule was narrowed for it, then none was.
- Where others are better: on the loops of text that both find, Gemini CLI and fspec are sooner (*How soon*): ours waits
  for more rounds, and for pages in code, tables and rules. OpenCode sees three equal calls two steps before us. They
  pay for it with the false alarms listed.
- Wider than the corpus: a user who asks for a short word a thousand times is taken for the victim of a loop (a whole
  sentence they asked for is not). That is why the first alarm only tells the model, why an ended turn can go on, and
  why all of it can be turned off.
- What ours misses is what rules cannot tell from honest work; it is the third level's to find."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.loops", description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    cases = load()
    scores = [score(name, make, cases) for name, make in DETECTORS.items()]
    page = "\n\n".join(_parts(cases, scores)) + "\n"
    print(page)
    if not arguments.no_write:
        OUTPUT.write_text(page, encoding="utf-8")
    return 0


def _parts(cases: Sequence[Case], scores: Sequence[Score]) -> Iterable[str]:
    held = [case for case in cases if case.source == HELD_OUT]
    after = [case for case in cases if case.source == AFTERWARDS]
    first = [case for case in cases if case not in held and case not in after]
    yield (
        f"<!-- `python -m bench.loops`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()} -->"
    )
    yield "# How well loops are seen"
    yield ABOUT.format(cases=len(cases), loops=sum(case.loop for case in cases))
    yield _table(HEAD, map(_row, scores))
    texts = [case for case in cases if any(step.said for turn in case.turns for step in turn) and not _calls(case)]
    calls = [case for case in cases if _calls(case)]
    yield "## By part of the corpus\n\nPrecision / recall, and in brackets false alarms and misses."
    parts = {"calls": calls, "text alone": texts, "written first": first, "held out": held, "afterwards": after}
    yield _table(
        ("detector", *(f"{name} ({len(some)})" for name, some in parts.items())),
        ([each.name, *(_short(each.of(some)) for some in parts.values())] for each in scores),
    )
    yield (
        "## How soon\n\nMean delay on the loops that both find: the other's, and in brackets ours. In characters of "
        "text, in steps of calls."
    )
    ours, *others = scores
    yield _table(("detector", "characters", "steps"), ([each.name, *_sooner(each, ours)] for each in others))
    yield (
        "## Does the size of deltas matter?\n\nCases of text whose verdict is not the same for deltas of 1, 20 and 40 "
        "characters, of words and marks, and for the whole reply in one."
    )
    yield _table(
        ("detector", f"of {len(texts)}"), ([name, str(_wavering(make, texts))] for name, make in DETECTORS.items())
    )
    yield "## What was wrong"
    for each in scores:
        yield f"**{each.name}**: false alarms {_names(each.false_alarms)}; misses {_names(each.misses)}"
    yield HONEST.format(before=len(first) + len(held), held=len(held), after=len(after))


def _calls(case: Case) -> bool:
    return any(step.calls for turn in case.turns for step in turn)


def _sooner(theirs: Score, ours: Score) -> Iterable[str]:
    for unit in ("characters", "steps"):
        pairs = [
            (getattr(one, unit), getattr(other, unit))
            for one, other in zip(theirs.outcomes, ours.outcomes, strict=True)
            if one.right and other.right and getattr(one, unit) is not None
        ]
        means = [statistics.mean(each) for each in zip(*pairs, strict=True)]
        yield f"{means[0]:,.0f} ({means[1]:,.0f}) on {len(pairs)}" if means else "–"


def _wavering(make: Callable[[], Detector], cases: Sequence[Case]) -> int:
    return sum(
        len({(found := judge(make(), case, size)).found and not found.early for size in SIZES}) > 1 for case in cases
    )


def _row(each: Score) -> Sequence[str]:
    return (
        each.name,
        f"{each.precision:.2f}",
        f"{each.recall:.2f}",
        f"{each.f1:.2f}",
        str(len(each.false_alarms)),
        str(len(each.misses)),
        _delay(each, "characters"),
        _delay(each, "steps"),
        f"{each.micros_per_kb:,.0f}",
    )


def _delay(each: Score, of: str) -> str:
    found = each.delay(of)
    return "–" if found is None else f"{found[0]:,.0f} ({found[1]:,.0f})"


def _short(each: Score) -> str:
    return f"{each.precision:.2f} / {each.recall:.2f} ({len(each.false_alarms)}, {len(each.misses)})"


def _names(names: Sequence[str]) -> str:
    return f"({len(names)}) {', '.join(names)}" if names else "none"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
