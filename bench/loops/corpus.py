"""The corpus as data: `cases/*.toml` → turns, step by step.

A case is a list of `steps`, or just a `text` or a `thought`. A step is what one reply said, called and got back; a
`{ prompt = … }` among them begins the next turn. Texts are strings or lists of them. Anything in a list may be
repeated, by `times` (then `«n»` is the round, `«n2»` with two digits) or for `each` of some values (`«each»`).
`loop = true` in a case is its verdict, in a list it marks where the circle begins.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("cases")
HELD_OUT = "held_out"
AFTERWARDS = "afterwards"
"""The file of cases that were written when the detectors were there: found by trying to fool them."""


@dataclass(frozen=True)
class Said:
    """What a reply said of one kind. `loop_at`: where the circle begins, in characters."""

    kind: str
    """"thought" or "text"."""
    text: str
    loop_at: int | None


@dataclass(frozen=True)
class Called:
    """A call and what came back."""

    tool: str
    arguments: dict[str, Any] | str
    result: str
    error: bool


@dataclass(frozen=True)
class Step:
    said: tuple[Said, ...]
    calls: tuple[Called, ...]
    loop: bool
    """It belongs to the circle."""


@dataclass(frozen=True)
class Case:
    name: str
    loop: bool
    note: str
    source: str
    """The file it stands in."""
    request: str
    chunk: int
    turns: tuple[tuple[Step, ...], ...]


def load(folder: Path = FOLDER) -> list[Case]:
    """All cases, in the order of their files. Raises `KeyError` or `ValueError` for one that makes no sense."""
    cases = [
        _case(each, path.stem)
        for path in sorted(folder.glob("*.toml"))
        for each in tomllib.loads(path.read_text("utf-8"))["case"]
    ]
    if len({case.name for case in cases}) != len(cases):
        raise ValueError("two cases of one name")
    return cases


def pieces(text: str, size: int) -> Iterator[str]:
    """A text as it is streamed; 0: all at once."""
    size = size or max(1, len(text))
    return (text[at : at + size] for at in range(0, len(text), size))


def _case(raw: Mapping[str, Any], source: str) -> Case:
    steps: Sequence[Any] = raw.get("steps", [raw])
    turns: list[list[Step]] = [[]]
    for step, loop in _spread(steps, "steps", {}):
        if "prompt" in step:
            turns.append([])
        else:
            turns[-1].append(_step(step, loop))
    case = Case(
        name=raw["id"],
        loop=raw["loop"],
        note=raw["note"],
        source=source,
        request=raw.get("request", "Mend the failing test, please."),
        chunk=raw.get("chunk", 4),
        turns=tuple(tuple(turn) for turn in turns),
    )
    if case.loop != any(step.loop for turn in case.turns for step in turn):
        raise ValueError(f"{case.name}: a loop begins somewhere, and only a loop does")
    return case


def _step(raw: Mapping[str, Any], loop: bool) -> Step:
    said = tuple(_said(kind, raw[kind]) for kind in ("thought", "text") if kind in raw)
    calls = tuple(
        Called(each["tool"], _arguments(each["args"]), each["result"], each.get("error", False))
        for each, _ in _spread(raw.get("calls", []), "", {})
    )
    return Step(said, calls, loop or any(each.loop_at is not None for each in said))


def _said(kind: str, raw: Any) -> Said:
    text, loop_at = "", None
    for piece, loop in _spread(raw if isinstance(raw, list) else [raw], "text", {}):
        if loop and loop_at is None:
            loop_at = len(text)
        text += piece
    return Said(kind, text, loop_at)


def _arguments(raw: Any) -> dict[str, Any] | str:
    """`"<null>"` stands for null, which TOML has not."""
    return {key: None if value == "<null>" else value for key, value in raw.items()} if isinstance(raw, dict) else raw


def _spread(items: Sequence[Any], inner: str, names: Mapping[str, str]) -> Iterator[tuple[Any, bool]]:
    """Each item with its names filled in, as often as it is wanted; and whether it is in the circle. What is repeated
    stands under `inner`, or is the item itself without its `times`."""
    for item in items:
        if not (isinstance(item, dict) and ("times" in item or "each" in item)):
            yield _filled(item, names), isinstance(item, dict) and item.get("loop", False) is True and "id" not in item
            continue
        rounds = item.get("each") or range(1, item["times"] + 1)
        again = item.get(inner, item)
        for number, value in enumerate(rounds, 1):
            now = {**names, "each": str(value), "n": str(number), "n2": f"{number:02}"}
            if again is item:
                yield _filled({key: each for key, each in item.items() if key != "times"}, now), False
                continue
            for each, loop in _spread(again if isinstance(again, list) else [again], inner, now):
                yield each, loop or item.get("loop", False)


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            return re.sub("«(each|n2|n)»", lambda found: names.get(found[1], found[0]), value)
        case list():
            return [_filled(each, names) for each in value]
        case dict():
            return {key: _filled(each, names) for key, each in value.items()}
        case _:
            return value
