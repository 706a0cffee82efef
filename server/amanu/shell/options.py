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

    arity: str
    kind: str = "text"


@dataclass
class ParsedOptions:
    """What was given: options by name, in order, with their values; and the operands."""

    options: list[tuple[str, Word | None, str]] = field(default_factory=list[tuple[str, Word | None, str]])
    """Name, value, kind of the value."""
    operands: list[Word] = field(default_factory=list[Word])
    operands_after_dashes: int | None = None
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
    options: dict[str, OptionValue] = {}
    for entry in text.split():
        name, how, kind = _ENTRY.fullmatch(entry).groups()  # pyright: ignore[reportOptionalMemberAccess]
        options[name] = OptionValue({"?=": _OPTIONAL, "=": _VALUE, None: _NONE}[how], kind or "text")
    return options


def parse(
    call: ProgramCall,
    option_table: Mapping[str, OptionValue],
    *,
    digits: bool = False,
    clusters: bool = True,
    permutes: bool = True,
) -> ParsedOptions:
    """Raises `NotHarmless` at the first thing that is not in the table.

    `digits`: `-5` is a count. `clusters`: `-ab` is `-a -b`, and `-n5` is `-n 5`. `permutes`: options may follow
    operands, if this system's getopt does so too.
    """
    parsed = ParsedOptions()
    arguments = list(call.arguments)
    index = 0
    while index < len(arguments):
        word = arguments[index]
        index += 1
        text = word.value
        if word.several:
            raise NotHarmless(f"The arguments of {call.program} are only known when it runs.")
        if text is None and not word.pipe:
            raise NotHarmless(f"One argument of {call.program} is only known when it runs and could be an option.")
        if text == "--":
            parsed.operands_after_dashes = len(parsed.operands)
            parsed.operands += arguments[index:]
            if any(word.several for word in arguments[index:]):
                raise NotHarmless(f"The arguments of {call.program} are only known when it runs.")
            return parsed
        if text is None or not text.startswith("-") or text == "-":
            parsed.operands.append(word)
            if not permutes or not _permutes(call):
                remaining = arguments[index:]
                if any(word.value is None or word.several or word.value.startswith("-") for word in remaining):
                    raise NotHarmless(f"Whether {call.program} accepts options after operands here is not certain.")
            continue
        if digits and re.fullmatch(r"-\d+", text):
            parsed.options.append(("-0", Word(text[1:]), "text"))
            continue
        if text in option_table and (text.startswith("--") or not clusters or len(text) == 2):
            takes = option_table[text]
            value = None
            if takes.arity == _VALUE:
                if index == len(arguments):
                    raise NotHarmless(f"{call.program} {text} is missing its value.")
                value = arguments[index]
                index += 1
                if value.several:
                    raise NotHarmless(f"The arguments of {call.program} are only known when it runs.")
            parsed.options.append((text, value, takes.kind))
            continue
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            takes = option_table.get(name)
            if takes is None or not equals or takes.arity == _NONE:
                raise unknown_option(call, name)
            parsed.options.append((name, Word(value), takes.kind))
            continue
        if not clusters:
            raise unknown_option(call, text)
        index = _cluster(call, option_table, text, arguments, index, parsed)
    return parsed


def _cluster(
    call: ProgramCall,
    option_table: Mapping[str, OptionValue],
    text: str,
    arguments: list[Word],
    index: int,
    parsed: ParsedOptions,
) -> int:
    """`-abn5`. Returns where the next word is."""
    for position, letter in enumerate(text[1:], 1):
        takes = option_table.get(f"-{letter}")
        if takes is None:
            raise unknown_option(call, f"-{letter}")
        attached = text[position + 1 :]
        if takes.arity == _NONE:
            parsed.options.append((f"-{letter}", None, takes.kind))
            continue
        if attached.startswith("=") and takes.kind != "text":  # some programs leave the sign out, others do not
            raise NotHarmless(f"How {call.program} interprets {text} is not certain.")
        if attached or takes.arity == _OPTIONAL:
            parsed.options.append((f"-{letter}", Word(attached) if attached else None, takes.kind))
            return index
        if index == len(arguments):
            raise NotHarmless(f"{call.program} -{letter} is missing its value.")
        if arguments[index].several:
            raise NotHarmless(f"The arguments of {call.program} are only known when it runs.")
        parsed.options.append((f"-{letter}", arguments[index], takes.kind))
        return index + 1
    return index


def unknown_option(call: ProgramCall, option: str) -> NotHarmless:
    return NotHarmless(f"{call.program} {option} is not known to be read-only.")


def _permutes(call: ProgramCall) -> bool:
    return sys.platform == "linux" and "POSIXLY_CORRECT" not in call.context.environment
