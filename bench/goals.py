"""What is promised (the issue's *Speed* section and "the figures to beat"), and whether a run kept it."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.results import BY_KEY, Results

FLOORS = {
    "anthropic": "anthropic",
    "gemini": "genai, raw history",
    "chat": "raw HTTP",
    "responses": "raw HTTP, Responses",
}
"""The smallest agent on each wire."""


@dataclass(frozen=True)
class Goal:
    """A row's value may be at most `factor` times the reference's plus `plus`, or at most `limit`. `against` names the
    reference subjects, or "floor": the one of the same wire. Empty `wires` means all."""

    row: str
    against: tuple[str, ...] = ()
    factor: float = 1.0
    limit: float = 0.0
    wires: tuple[str, ...] = ()
    reference_row: str | None = None
    plus: float = 0.0
    """In the row's unit."""


GOALS = (
    Goal("initialize", limit=50),
    Goal("initialize.alone", limit=50),
    Goal("initialize.acp", limit=50),
    Goal("initialize.warm", ("Codex",), reference_row="initialize"),
    Goal("session.cold", ("raw HTTP",), 2.5),
    Goal("cold", ("floor",), 1.2),
    Goal("cold.alone", ("floor",), 1.2, reference_row="cold"),
    Goal("cold.warm", ("Codex",), reference_row="cold"),
    Goal("memory", limit=75, wires=("chat", "responses")),
    Goal("memory", ("Codex",), 0.6, wires=("chat", "responses")),
    Goal("memory", ("Codex",), 0.7, wires=("gemini",)),
    Goal("memory", ("Codex",), 0.8, wires=("anthropic",)),
    Goal("pause.token", limit=120),
    Goal("pause.connections", limit=0),
    Goal("first.growth", limit=1.5),
    Goal("first.typed.growth", limit=1.5),
    Goal("token", ("floor",), plus=3),
    Goal("token", ("Gemini CLI",)),
    Goal("paced.usual", limit=1.5),
    Goal("paced.late", limit=5),
    Goal("stream.wall", ("Gemini CLI", "OpenCode", "Codex"), wires=("chat", "anthropic")),
    Goal("stream.wall", ("floor",), 1.2, wires=("anthropic", "gemini")),
    Goal("stream.cpu", ("Gemini CLI", "OpenCode")),
    Goal("stream.cpu", ("raw HTTP",), 1.6, wires=("gemini",)),
    Goal("stream.rate", limit=60),
    Goal("steps.growth", limit=1.1),
    Goal("steps.history", limit=1.2),
    Goal("steps.last", limit=7),
    Goal("steps.judged.growth", limit=1.15),
    Goal("steps.disk", limit=0.4),
    Goal("steps.memory", limit=140),
    Goal("grep", ("Gemini CLI", "OpenCode", "Codex"), 1.1),
    Goal("glob", ("Gemini CLI", "OpenCode", "Codex"), 1.1),
    Goal("grep.200k", ("Gemini CLI", "OpenCode", "Codex"), 1.1),
    Goal("glob.200k", ("Gemini CLI", "OpenCode", "Codex"), 1.1),
    Goal("mention.first", limit=300),
    Goal("mention.key", limit=30),
    Goal("big.edit", ("Codex",)),
    Goal("edits.first", ("Codex",), 1.1),
    Goal("edits.last", ("Codex",), 1.1),
    Goal("edits.growth", limit=1.1),
    Goal("edits.10mb", limit=300),
    Goal("edits.bytes", limit=0.1),
    Goal("hunks.5000", limit=400),
    Goal("hunks.growth", limit=5.5),
    Goal("page", limit=20),
    Goal("page.memory", limit=1000),
    Goal("crowd", ("Gemini CLI",)),
    Goal("long.open", limit=300),
    Goal("long.next.growth", limit=1.5),
    Goal("heavy.open", limit=300),
    Goal("heavy.wait", limit=50),
    Goal("heavy.memory", limit=200),
    Goal("heavy.memory.turn", limit=200),
    Goal("idle.wakeups", ("Codex",)),
    Goal("idle.cpu", limit=0.2),
    Goal("sessions.memory", limit=0.5),
    Goal("sessions.growth", limit=1.2),
    Goal("clients.growth", limit=1.5),
    Goal("cancel.answered", ("Gemini CLI",)),
    Goal("cancel.dropped", ("Gemini CLI",)),
)


@dataclass(frozen=True)
class Verdict:
    """`met` is None when one of the figures is missing."""

    what: str
    subject: str
    figure: str
    goal: str
    met: bool | None


def verdicts(results: Results, subjects: dict[str, str]) -> Iterator[Verdict]:
    """One per goal and Amanu subject. `subjects`: name → wire, of the Amanu ones."""
    for goal in GOALS:
        for subject, wire in subjects.items():
            if goal.wires and wire not in goal.wires:
                continue
            for against in goal.against or ("",):
                yield _verdict(results, goal, subject, FLOORS[wire] if against == "floor" else against)


def _verdict(results: Results, goal: Goal, subject: str, against: str) -> Verdict:
    row = BY_KEY[goal.row]
    value = results.median(goal.row, subject)
    figure = "–" if value is None else f"{value:.{row.digits}f} {row.unit}"
    if not against:
        met = None if value is None else value <= goal.limit
        return Verdict(full_title(goal.row), subject, figure, f"≤ {goal.limit:g} {row.unit}", met)
    ratio = results.ratio(goal.row, subject, against, goal.reference_row)
    theirs = results.median(goal.reference_row or goal.row, against)
    met = None if value is None or theirs is None else value <= goal.factor * theirs + goal.plus
    said = f"≤ {goal.factor:g} × {against}" if not goal.plus else f"≤ {against} + {goal.plus:g} {row.unit}"
    return Verdict(full_title(goal.row), subject, figure if ratio is None else f"{ratio:.2f} × ({figure})", said, met)


def full_title(key: str) -> str:
    """A row's title on its own; those that begin with "…" go on from the row they belong to."""
    title = BY_KEY[key].title
    if not title.startswith("…"):
        return title
    at = list(BY_KEY).index(key)
    head = next(BY_KEY[each].title for each in reversed(list(BY_KEY)[:at]) if not BY_KEY[each].title.startswith("…"))
    return f"{head.split(':')[0].removesuffix(', wall')}, {title.removeprefix('… ')}"
