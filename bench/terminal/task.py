"""The tasks and the keys that each program needs for them: data, in `bench/tasks/terminal.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Verb = Literal["type", "press", "see", "wait"]
Name = Literal["Amanu", "Codex", "Gemini CLI"]
VERBS: Mapping[str, Verb] = {"type": "type", "press": "press", "see": "see", "wait": "wait"}
NAMES: Sequence[Name] = get_args(Name)
DATA = Path(__file__).parents[1] / "tasks" / "terminal.toml"


@dataclass(frozen=True)
class Step:
    """An act of the hand, or something that it waits for: text on the screen, or so many seconds."""

    verb: Verb
    what: str


@dataclass(frozen=True)
class Hand:
    """One program's play. What is done `before` brings it to where the task begins, and counts for nothing."""

    before: Sequence[Step]
    keys: Sequence[Step]
    note: str
    """A remark beside the figures."""
    settings: str
    """Lines for its configuration file."""

    @property
    def pressed(self) -> int:
        """Keys; a chord is one."""
        return sum(step.verb == "press" for step in self.keys)

    @property
    def characters(self) -> int:
        """Of text that is typed."""
        return sum(len(step.what) for step in self.keys if step.verb == "type")

    @property
    def strokes(self) -> int:
        return self.pressed + self.characters


@dataclass(frozen=True)
class Task:
    name: str
    title: str
    begins: str
    answers: Mapping[str, Mapping[str, Any]]
    """What the model answers to these words of the user's: the fields of a plan, or a `deed` and what it needs."""
    trusted: bool
    result: Sequence[str]
    """All of it must hold at the end: `screen TEXT`, `file PATH has TEXT`, `file PATH lacks TEXT`."""
    hands: Mapping[Name, Hand | str]
    """A text: why the program cannot do it."""


def load() -> list[Task]:
    return [_task(name, each) for name, each in tomllib.loads(DATA.read_text()).items()]


def steps(lines: Sequence[str]) -> list[Step]:
    """Raises ValueError for a line that begins with no verb."""
    found: list[Step] = []
    for line in lines:
        word, _, what = line.partition(" ")
        if (verb := VERBS.get(word)) is None or not what:
            raise ValueError(f"no step: {line!r}")
        found.append(Step(verb, what))
    return found


def taken(hand: Hand) -> str:
    counts = ((hand.pressed, "key"), (hand.characters, "character"))
    return " + ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count) or "nothing"


def _task(name: str, data: Mapping[str, Any]) -> Task:
    return Task(
        name,
        data["title"],
        data["begins"],
        data.get("answers", {}),
        data.get("trusted", True),
        data["result"],
        {who: _hand(data[who]) for who in NAMES},
    )


def _hand(data: Mapping[str, Any]) -> Hand | str:
    if "cannot" in data:
        return data["cannot"]
    return Hand(steps(data.get("before", [])), steps(data["keys"]), data.get("note", ""), data.get("settings", ""))
