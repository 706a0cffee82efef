"""The results as Markdown: how they came about, the goals, the ratios, the figures."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from bench.goals import FLOORS, full_title, verdicts
from bench.results import ROWS, Results, Row
from bench.subject import Subject

MET = {True: "met", False: "**missed**", None: "not measured"}


def report(how: str, subjects: Sequence[Subject], results: Results, notes: Iterable[str]) -> str:
    """The whole page."""
    ours = [each for each in subjects if each.name.startswith("Amanu")]
    others = [each for each in subjects if not each.name.startswith("Amanu")]
    parts = [
        how,
        "# How fast Amanu is\n\nGenerated. Medians; lower is better everywhere; subjects took turns within one run. "
        "Compare columns: absolute figures move with the machine.",
        _pace(results),
        "## Goals\n\n" + _table(("case", "subject", "figure", "goal", ""), _goals(ours, results)),
        "## Ratios\n\nAmanu's figure divided by the other's; the floor is the smallest agent on the same wire.\n\n"
        + _table(("case", "subject", "floor", *_peers(others)), _ratios(ours, others, results)),
        "## Figures\n\n" + _table(("case", "unit", *(each.name for each in subjects)), _figures(subjects, results)),
    ]
    problems = [*notes, *results.problems]
    if problems:
        parts.append("## Not measured\n\n" + "\n".join(f"- {each}" for each in problems))
    return "\n\n".join(parts) + "\n"


BASELINE = {
    "stream.wall": {"raw HTTP": 0.33, "genai": 2.5, "genai, raw history": 2.4, "anthropic": 1.1},
    "initialize": {"raw HTTP": 90, "genai": 404, "genai, raw history": 402, "anthropic": 669},
}
"""What the floors took when the goals were set, on an idle machine of the same kind."""


def _pace(results: Results) -> str:
    """How fast the machine was: goals in milliseconds mean the machine they were set on."""
    found = [
        value / before
        for row, floors in BASELINE.items()
        for name, before in floors.items()
        if (value := results.median(row, name)) is not None
    ]
    if not found:
        return "The floors were not measured, so how fast the machine was is not known."
    return (
        f"The floors took {statistics.median(found):.1f} times as long as when the goals were set: "
        "judge goals in milliseconds and seconds by that; ratios stand as they are."
    )


def _goals(ours: Sequence[Subject], results: Results) -> Iterator[Sequence[str]]:
    for each in verdicts(results, {subject.name: subject.wire for subject in ours}):
        yield each.what, each.subject, each.figure, each.goal, MET[each.met]


def _ratios(ours: Sequence[Subject], others: Sequence[Subject], results: Results) -> Iterator[Sequence[str]]:
    for row in ROWS:
        # Amanu's other ways to start are compared with the one way the others have.
        reference = row.key.removesuffix(".alone").removesuffix(".warm")
        for subject in ours:
            against = (FLOORS[subject.wire], *_peers(others))
            found = [results.ratio(row.key, subject.name, name, reference) for name in against]
            if any(ratio is not None for ratio in found):
                yield full_title(row.key), subject.name, *("–" if ratio is None else f"{ratio:.2g}" for ratio in found)


def _figures(subjects: Sequence[Subject], results: Results) -> Iterator[Sequence[str]]:
    for row in ROWS:
        found = [_figure(row, results.median(row.key, subject.name)) for subject in subjects]
        if any(each != "–" for each in found):
            yield full_title(row.key), row.unit, *found


def _figure(row: Row, value: float | None) -> str:
    return "–" if value is None else f"{value:,.{row.digits}f}"


def _peers(others: Sequence[Subject]) -> list[str]:
    return [each.name for each in others if not each.floor]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
