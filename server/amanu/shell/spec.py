"""How a grammar is written down: a program's harmless uses as data (`Use`), with options, operands and a sentence."""

from collections.abc import Callable
from dataclasses import dataclass

from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall, Word
from amanu.shell.options import ParsedOptions, parse, table

Judge = Callable[[ProgramCall], Harmless]
"""Says why a call is harmless, or raises `NotHarmless`."""


@dataclass(frozen=True)
class Use:
    """The options and operands a program may have and still be harmless. Operands and option values have a kind:
    `text` (any text is harmless), `file` (its content is read), `name` (only name and status are read; of a folder, the
    names in it), `tree` (all files below a folder are read). A last kind with `*` stands for any number of operands."""

    why: str
    options: str = ""
    operands: tuple[str, ...] = ()
    first_by: str = ""
    """Options that replace the first operand (`grep -e`)."""
    digits: bool = False
    clusters: bool = True
    permutes: bool = True
    check: Callable[[ParsedOptions, ProgramCall], None] | None = None
    """Raises `NotHarmless` for what the table cannot express."""

    def __call__(self, call: ProgramCall) -> Harmless:
        parsed = self.parse_call(call)
        return Harmless(self.why, self.reads(parsed, call))

    def parse_call(self, call: ProgramCall) -> ParsedOptions:
        option_table = table(f"{self.options} --help --version")
        parsed = parse(call, option_table, digits=self.digits, clusters=self.clusters, permutes=self.permutes)
        if self.check is not None:
            self.check(parsed, call)
        return parsed

    def reads(self, parsed: ParsedOptions, call: ProgramCall) -> tuple[str, ...]:
        reads: list[str] = []
        for _, value, kind in parsed.options:
            if value is not None and kind != "text":
                reads += read_paths(kind, value, call)
        kinds = self.operands
        if self.first_by and parsed.has(*self.first_by.split()):
            kinds = kinds[1:]
        for position, word in enumerate(parsed.operands):
            kind = kinds[min(position, len(kinds) - 1)] if kinds else ""
            if not kind or (position >= len(kinds) and not kind.endswith("*")):
                raise NotHarmless(
                    f"{call.program} is not known to be read-only with {word.value or 'one argument'} added."
                )
            reads += read_paths(kind.rstrip("*"), word, call)
        return tuple(dict.fromkeys(reads))


@dataclass(frozen=True)
class Anything:
    """A program that is harmless with any arguments."""

    why: str

    def __call__(self, call: ProgramCall) -> Harmless:
        return Harmless(self.why)


def read_paths(kind: str, word: Word, call: ProgramCall) -> list[str]:
    """The paths an argument of that kind lets the program read. Raises `NotHarmless`."""
    if kind == "text" or (kind == "file" and word.pipe):
        return []
    if word.value is None:
        raise NotHarmless(f"Which file {call.program} would read is only known when it runs.")
    if word.value == "-" and kind in ("file", "tree"):
        return []
    looks = {"file": paths.readable, "name": paths.named, "tree": paths.tree}
    return [str(looks[kind](word.value, call.context))]
