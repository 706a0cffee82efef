"""Options and operands, told apart as getopt does it: by what a program is known to take, and nothing guessed.

A table is a text, `-n=text --color?=text -q --include=text`: a flag, one that takes a value (attached or the next
word), one whose value can only be attached. A long option counts by its whole name: GNU also takes its beginning
(`--out` for `--output`), which is nobody's habit and here unknown.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from amanu.shell.call import NotHarmless, ProgramCall, Word

_NONE, _OPTIONAL, _VALUE = "", "?", "="
_ENTRY = re.compile(r"(-[^=?]+)(?:(\?=|=)(\w*))?")


@dataclass(frozen=True)
class OptionValue:
    """What follows an option: nothing, an attached value or none, a value of that kind."""

    how: str
    kind: str = "text"


@dataclass
class ParsedOptions:
    """What was given: options by name, in order, with their values; and the operands."""

    options: list[tuple[str, Word | None, str]] = field(default_factory=list[tuple[str, Word | None, str]])
    """Name, value, kind of the value."""
    operands: list[Word] = field(default_factory=list[Word])
    surely: int | None = None
    """From this operand on they came after `--`: none of them can be an option."""

    def has(self, *names: str) -> bool:
        return any(name in names for name, _, _ in self.options)

    def values(self, *names: str) -> list[str | None]:
        return [value.value for name, value, _ in self.options if name in names and value is not None]


def names(text: str) -> frozenset[str]:
    """The words of a text: a list one can read."""
    return frozenset(text.split())


@cache
def table(text: str) -> Mapping[str, OptionValue]:
    found: dict[str, OptionValue] = {}
    for each in text.split():
        name, how, kind = _ENTRY.fullmatch(each).groups()  # pyright: ignore[reportOptionalMemberAccess]
        found[name] = OptionValue({"?=": _OPTIONAL, "=": _VALUE, None: _NONE}[how], kind or "text")
    return found


def parse(
    call: ProgramCall,
    known: Mapping[str, OptionValue],
    *,
    digits: bool = False,
    clusters: bool = True,
    permutes: bool = True,
) -> ParsedOptions:
    """Raises `NotHarmless` at the first thing that is not in the table.

    `digits`: `-5` is a count. `clusters`: `-ab` is `-a -b`, and `-n5` is `-n 5`. `permutes`: options may follow
    operands, if this system's getopt does so too.
    """
    given = ParsedOptions()
    words = list(call.words)
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        text = word.value
        if word.several:
            raise NotHarmless(f"What {call.program} is given is only known when it runs.")
        if text is None and not word.pipe:
            raise NotHarmless(f"A word given to {call.program} is only known when it runs, and could be an option.")
        if text == "--":
            given.surely = len(given.operands)
            given.operands += words[at:]
            if any(each.several for each in words[at:]):
                raise NotHarmless(f"What {call.program} is given is only known when it runs.")
            return given
        if text is None or not text.startswith("-") or text == "-":
            given.operands.append(word)
            if not permutes or not _permutes(call):
                rest = words[at:]
                if any(each.value is None or each.several or each.value.startswith("-") for each in rest):
                    raise NotHarmless(f"It is not certain whether {call.program} takes options after other words here.")
            continue
        if digits and re.fullmatch(r"-\d+", text):
            given.options.append(("-0", Word(text[1:]), "text"))
            continue
        if text in known and (text.startswith("--") or not clusters or len(text) == 2):
            takes = known[text]
            value = None
            if takes.how == _VALUE:
                if at == len(words):
                    raise NotHarmless(f"{call.program} {text} lacks what should follow it.")
                value = words[at]
                at += 1
                if value.several:
                    raise NotHarmless(f"What {call.program} is given is only known when it runs.")
            given.options.append((text, value, takes.kind))
            continue
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            takes = known.get(name)
            if takes is None or not equals or takes.how == _NONE:
                raise unknown(call, name)
            given.options.append((name, Word(value), takes.kind))
            continue
        if not clusters:
            raise unknown(call, text)
        at = _cluster(call, known, text, words, at, given)
    return given


def _cluster(
    call: ProgramCall, known: Mapping[str, OptionValue], text: str, words: list[Word], at: int, given: ParsedOptions
) -> int:
    """`-abn5`. Returns where the next word is."""
    for place, letter in enumerate(text[1:], 1):
        takes = known.get(f"-{letter}")
        if takes is None:
            raise unknown(call, f"-{letter}")
        rest = text[place + 1 :]
        if takes.how == _NONE:
            given.options.append((f"-{letter}", None, takes.kind))
            continue
        if rest.startswith("=") and takes.kind != "text":  # some programs leave the sign out, others do not
            raise NotHarmless(f"It is not certain how {call.program} takes {text}.")
        if rest or takes.how == _OPTIONAL:
            given.options.append((f"-{letter}", Word(rest) if rest else None, takes.kind))
            return at
        if at == len(words):
            raise NotHarmless(f"{call.program} -{letter} lacks what should follow it.")
        if words[at].several:
            raise NotHarmless(f"What {call.program} is given is only known when it runs.")
        given.options.append((f"-{letter}", words[at], takes.kind))
        return at + 1
    return at


def unknown(call: ProgramCall, option: str) -> NotHarmless:
    return NotHarmless(f"{call.program} {option} is not known to be read-only.")


def _permutes(call: ProgramCall) -> bool:
    return sys.platform == "linux" and "POSIXLY_CORRECT" not in call.here.environment
