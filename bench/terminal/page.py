"""The page: what was measured, and what was played."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.terminal.play import Played
from bench.terminal.rows import Figures
from bench.terminal.task import NAMES, Hand, Name, Task, taken

OURS: Name = "Amanu"


@dataclass(frozen=True)
class Row:
    """`goal`: in words, and whether our figure meets it beside Codex's, where that is known."""

    key: str
    title: str
    unit: str
    goal: str = ""
    meets: Callable[[float, float | None], bool | None] = lambda ours, codex: None


def at_most(limit: float, unit: str) -> tuple[str, Callable[[float, float | None], bool | None]]:
    return f"≤ {limit:g} {unit}", lambda ours, codex: ours <= limit


def at_most_codex(times: float) -> tuple[str, Callable[[float, float | None], bool | None]]:
    return f"≤ {times:g} × Codex", lambda ours, codex: None if codex is None else ours <= times * codex


ROWS: Sequence[Row] = (
    Row("first", "start → first character drawn", "ms", *at_most(100, "ms")),
    Row("ready", "start → composer shows a key", "ms", *at_most_codex(2)),
    Row("ready.cpu", "– processor time of all its processes until then", "ms"),
    Row("key", "key → screen, 10,000 items", "ms", *at_most(16, "ms")),
    Row("key.worst", "– 95th percentile", "ms"),
    Row("key.cpu", "– processor time for a key", "ms"),
    Row("stream.own", "200 tokens a second: the program's processor", "% of a core", *at_most(30, "%")),
    Row("stream.cpu", "– with its other processes", "% of a core"),
    Row("paste", "10,000 pasted lines → composer shows them", "ms", *at_most(200, "ms")),
    Row("paste.cpu", "– processor time of all its processes", "ms"),
    Row("idle", "nothing happens: processor of all its processes", "% of a core"),
    Row("idle.bytes", "– bytes drawn a second", "bytes"),
)


def page(
    how: str,
    names: Sequence[str],
    figures: Figures,
    tasks: Sequence[Task],
    played: Mapping[tuple[str, str], Played],
    problems: Sequence[str],
) -> str:
    parts = [
        how,
        "# The terminal, beside Codex and Gemini CLI\n\nGenerated; all three are really run, on one loopback service. "
        "Compare columns: absolute figures move with the machine and what else runs on it.",
        f"## How quickly it draws\n\n{HOW}\n\n{_table(_head(names), _rows(names, figures))}",
        f"## Ten tasks\n\n{KEYS}\n\n{_table(('task', *NAMES, 'ours needs'), _plays(tasks, played))}",
        "\n".join(_notes(tasks, played)),
    ]
    if problems:
        parts.append("## Not measured\n\n" + "\n".join(f"- {each}" for each in problems))
    return "\n\n".join(filter(None, parts)) + "\n"


HOW = """At a pseudo terminal of 90 × 26 that answers what terminals are asked; the programs took turns. Medians, with
the lowest and the highest. Each had been started before, so a daemon runs, ours as well as Codex's. Gemini CLI starts
itself once more, as it does for its users. The long sessions are resumed: ours has messages, thoughts and calls, theirs
one prompt and one answer, five thousand times. Processor time counts in steps of 10 ms."""
KEYS = """Each is played in tmux, 90 × 26, in a home and a folder of its own, until its result was seen on the screen or
in the file. A chord is one key; characters that are typed are counted apart. The keys are data (`tasks/terminal.toml`),
the screens at the end are in `terminal/screens/`. The model answers at once, and no account is needed."""


def _head(names: Sequence[str]) -> tuple[str, ...]:
    return ("what", "unit", *names, "÷ Codex", "÷ Gemini CLI", "goal", "")


def _rows(names: Sequence[str], figures: Figures) -> Iterator[tuple[str, ...]]:
    for row in ROWS:
        found = {name: figures.get((row.key, name)) for name in names}
        middle = {name: statistics.median(values) for name, values in found.items() if values}
        ours, codex = middle.get(OURS), middle.get("Codex")
        ratios = [_ratio(ours, middle.get(name)) for name in ("Codex", "Gemini CLI")]
        met = None if ours is None else row.meets(ours, codex)
        verdict = {True: "met", False: "**missed**", None: ""}[met]
        yield row.title, row.unit, *(_spread(found[name]) for name in names), *ratios, row.goal, verdict


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2g}" if ours is not None and theirs else "–"


def _spread(values: Sequence[float] | None) -> str:
    if not values:
        return "–"
    digits = 0 if statistics.median(values) >= 100 else 1
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.{digits}f} [{low:,.{digits}f}..{high:,.{digits}f}]"


def _plays(tasks: Sequence[Task], played: Mapping[tuple[str, str], Played]) -> Iterator[tuple[str, ...]]:
    for task in tasks:
        number, _, _ = task.name.partition("-")
        cells = [_cell(task, name, played.get((task.name, name))) for name in NAMES]
        yield f"{number}. {task.title}", *cells, needs(task)


def _cell(task: Task, name: Name, play: Played | None) -> str:
    hand = task.hands[name]
    if isinstance(hand, str):
        return "cannot"
    if play is None:
        return f"{taken(hand)}, not played"
    return "**FAILED**" if play.failure else taken(hand)


def needs(task: Task) -> str:
    """The strokes that ours takes beyond the better of the others, in words."""
    ours = task.hands[OURS]
    others = [hand.strokes for name, hand in task.hands.items() if name != OURS and isinstance(hand, Hand)]
    assert isinstance(ours, Hand)
    if not others:
        return "the only one"
    more = ours.strokes - min(others)
    return f"**{more} more**" if more > 0 else f"{-more} fewer" if more else "as many"


def _notes(tasks: Sequence[Task], played: Mapping[tuple[str, str], Played]) -> Iterator[str]:
    for task in tasks:
        yield f"- *{task.title}.* Begins: {task.begins}"
        for name in NAMES:
            hand, play = task.hands[name], played.get((task.name, name))
            note = hand if isinstance(hand, str) else hand.note
            if note:
                yield f"  {name}: {note}"
            if play is not None and play.failure:
                yield f"  {name} FAILED: {play.failure}"


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
