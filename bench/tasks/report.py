"""The page: ours beside theirs."""

import platform
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.tasks.hand import Hand
from bench.tasks.task import Task

Played = dict[tuple[str, str], Hand | str]
"""By task and hand: who played it, or why that failed."""
THEIRS = Path(__file__).with_name("theirs.toml")
LINES, WIDTH = 22, 200
"""Of what was heard, on the page."""
HEAD = f"""<!-- `make bench-tasks`; {platform.system()} {platform.machine()} -->

# Ten tasks in VS Code, and what they take

Generated: each task is played in a real VS Code over a scripted model, once with the pointer where one would use it,
once with the keyboard alone (no click at all; only default keys and the command palette). A chord is one key; typed
characters are counted apart. *s* are seconds from the first action until the result is on the screen: the model answers
at once, the hand never hesitates, and nothing is subtracted but the time for pictures and for reading the tree. An
answer within half a second of its question is not taken; that wait counts. They vary with the machine.

Theirs are counted from what their documents describe, not played: the footnotes say how; "not documented" means that
their pages do not say.
"""


def page(tasks: Sequence[Task], played: Played) -> str:
    theirs: dict[str, dict[str, Any]] = tomllib.loads(THEIRS.read_text())
    head = ("task", "ours, pointer", "s", "ours, keyboard", "s", "Copilot", "Cursor")
    rows = [head, ("---",) * len(head), *(_row(task, played, theirs[task.name]) for task in tasks)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return "\n".join([HEAD, table, *_plain(tasks, theirs), _notes(tasks, theirs), *_heard(tasks, played)])


def _row(task: Task, played: Played, theirs: Mapping[str, Any]) -> tuple[str, ...]:
    number, _, _ = task.name.partition("-")
    cells: list[str] = []
    for hand in ("pointer", "keyboard"):
        cells += _figures(played.get((task.name, hand)))
    return (f"{number}. {task.title}", *cells, *(_their(number, who, theirs) for who in ("copilot", "cursor")))


def _figures(hand: Hand | str | None) -> tuple[str, str]:
    if hand is None:
        return "not played", ""
    if isinstance(hand, str):
        return "**FAILED**", ""
    return taken(hand.clicks, hand.keys, hand.characters, hand.scrolls), f"{hand.seconds:.1f}"


def taken(clicks: int = 0, keys: int = 0, characters: int = 0, scrolls: int = 0) -> str:
    counts = ((clicks, "click"), (keys, "key"), (characters, "character"), (scrolls, "turn"))
    words = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
    return " + ".join(words).replace("turn", "wheel turn") or "nothing"


def _their(number: str, who: str, theirs: Mapping[str, Any]) -> str:
    found: dict[str, Any] = theirs[who]
    return f"{found['takes']}[^{who}-{number}]"


def _plain(tasks: Sequence[Task], theirs: Mapping[str, Any]) -> Iterator[str]:
    yield "## Where theirs is better, and what was mended\n"
    for task in tasks:
        if verdict := theirs[task.name].get("verdict"):
            yield f"- *{task.title}*: {verdict}"
    yield ""


def _notes(tasks: Sequence[Task], theirs: Mapping[str, Any]) -> str:
    notes: list[str] = []
    for task in tasks:
        for who in ("copilot", "cursor"):
            found = theirs[task.name][who]
            source = f" <{found['source']}>" if "source" in found else ""
            notes.append(f"[^{who}-{task.name.partition('-')[0]}]: {found['how']}{source}")
    return "\n".join(notes) + "\n"


def _shortened(heard: str) -> str:
    lines = [line[:WIDTH] for line in heard.splitlines()]
    return "\n".join([*lines[:LINES], *([f"… {len(lines) - LINES} more lines"] if len(lines) > LINES else [])])


def _heard(tasks: Sequence[Task], played: Played) -> Iterator[str]:
    yield "## What a screen reader is told\n"
    yield "At the moments that decide, in the plays by keyboard: the focus, the tree around it, live regions.\n"
    for task in tasks:
        hand = played.get((task.name, "keyboard"))
        yield f"### {task.title}\n\nBegins: {task.begins}\n"
        for heard in [] if hand is None or isinstance(hand, str) else hand.heard:
            yield f"```\n{_shortened(heard)}\n```\n"
        if isinstance(hand, str):
            yield f"FAILED: {hand}\n"
