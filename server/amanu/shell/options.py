"""Options and operands of a call, told apart as getopt does: by the options a program is known to take.

A table is a text such as `-q -n=text --color?=text`: a flag; an option with a value, attached or in the next word; an
option whose value can only be attached. After `=` comes the kind of the value (`spec.py`). Long options must be spelled
out: GNU's abbreviations (`--out` for `--output`) are unknown here.
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
    """Whether an option takes a value, and of what kind."""

    arity: str
    kind: str = "text"


@dataclass
class ParsedOptions:
    """The options of a call by name, in order, with their values; and its operands."""

    options: list[tuple[str, Word | None, str]] = field(default_factory=list[tuple[str, Word | None, str]])
    """Name, value, kind of the value."""
    operands: list[Word] = field(default_factory=list[Word])
    operands_after_dashes: int | None = None
    """Index of the first operand after `--`; from there on none can be an option. None without `--`."""

    def has(self, *names: str) -> bool:
        return any(name in names for name, _, _ in self.options)

    def values(self, *names: str) -> list[str | None]:
        return [value.value for name, value, _ in self.options if name in names and value is not None]


def names(text: str) -> frozenset[str]:
    """The words of a text: a readable way to write a set."""
    return frozenset(text.split())


@cache
def table(text: str) -> Mapping[str, OptionValue]:
    """Read an option table: option → its value."""
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
    """Parse a call by a table. Raises `NotHarmless` at the first option that is not in it.

    `digits`: `-5` is a count. `clusters`: `-ab` is `-a -b`, and `-n5` is `-n 5`. `permutes`: options may follow
    operands where this system's getopt allows it.
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
    """Parse a cluster such as `-abn5`. Returns the index of the next argument."""
    for position, letter in enumerate(text[1:], 1):
        takes = option_table.get(f"-{letter}")
        if takes is None:
            raise unknown_option(call, f"-{letter}")
        attached = text[position + 1 :]
        if takes.arity == _NONE:
            parsed.options.append((f"-{letter}", None, takes.kind))
            continue
        if attached.startswith("=") and takes.kind != "text":  # some programs drop the sign, others do not
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
    """The error for an option that is in no table."""
    return NotHarmless(f"{call.program} {option} is not known to be read-only.")


def _permutes(call: ProgramCall) -> bool:
    return sys.platform == "linux" and "POSIXLY_CORRECT" not in call.context.environment
