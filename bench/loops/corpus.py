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
    cases = [_case(each, source) for source, each in _raw(folder)]
    if len({case.name for case in cases}) != len(cases):
        raise ValueError("two cases of one name")
    return cases


def names(folder: Path = FOLDER) -> list[str]:
    """The names of all cases, read much sooner than the cases."""
    return [each["id"] for _, each in _raw(folder)]


def _raw(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(folder.glob("*.toml")):
        yield from ((path.stem, each) for each in tomllib.loads(path.read_text("utf-8"))["case"])


LINE = 40
"""How a case is streamed unless it says otherwise: about as Gemini's service does, kindest to the rules made for it."""
TOKENS = -1
_TOKEN = re.compile(r"\s?[^\W\d_]+|\s?\d{1,3}|[ ]?[^\w\s]+|\s+|_+")


def pieces(text: str, size: int) -> Iterator[str]:
    """A text as it is streamed, in pieces of so many characters; 0: all at once; `TOKENS`: words and marks, about as
    models write them."""
    if size == TOKENS:
        return (found[0] for found in _TOKEN.finditer(text))
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
        chunk=raw.get("chunk", LINE),
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
    for piece, loop in _spread(_listed(raw), "text", {}):
        if loop and loop_at is None:
            loop_at = len(text)
        text += piece
    return Said(kind, text, loop_at)


def _arguments(raw: Any) -> dict[str, Any] | str:
    """`"<null>"` stands for null, which TOML has not."""
    return {key: None if value == "<null>" else value for key, value in raw.items()} if _is(dict, raw) else raw


def _spread(items: Sequence[Any], inner: str, names: Mapping[str, str]) -> Iterator[tuple[Any, bool]]:
    """Each item with its names filled in, as often as it is wanted; and whether it is in the circle. What is repeated
    stands under `inner`, or is the item itself without its `times`."""
    for item in items:
        if not _is(dict, item) or ("times" not in item and "each" not in item):
            yield _filled(item, names), _is(dict, item) and "id" not in item and item.get("loop") is True
            continue
        rounds: Sequence[object] = item.get("each") or range(1, item["times"] + 1)
        for number, value in enumerate(rounds, 1):
            now = {**names, "each": str(value), "n": str(number), "n2": f"{number:02}"}
            if inner in item:
                for each, loop in _spread(_listed(item[inner]), inner, now):
                    yield each, loop or item.get("loop", False)
            else:
                yield _filled({key: each for key, each in item.items() if key != "times"}, now), False


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if _is(str, value):
        return re.sub("«(each|n2|n)»", lambda found: names.get(found[1], found[0]), value)
    if _is(list, value):
        return [_filled(each, names) for each in value]
    return {key: _filled(each, names) for key, each in value.items()} if _is(dict, value) else value


def _listed(value: Any) -> Sequence[Any]:
    return value if _is(list, value) else [value]


def _is(kind: type, value: Any) -> bool:
    """Without telling the type checker: what TOML holds has no type."""
    return isinstance(value, kind)
