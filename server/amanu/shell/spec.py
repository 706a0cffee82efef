"""A program's harmless uses as data: its options, its operands, a sentence."""

from collections.abc import Callable
from dataclasses import dataclass

from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall, Word
from amanu.shell.options import ParsedOptions, parse, table

Judge = Callable[[ProgramCall], Harmless]
"""Says why a call is harmless, or raises `NotHarmless`."""


@dataclass(frozen=True)
class Use:
    """Kinds of operands and values: `text` (no text can do harm), `file` (its content is read), `name` (only name and
    status, of a folder the names in it), `tree` (all files of a folder are read). A last kind with `*` is for any
    number of operands."""

    why: str
    options: str = ""
    operands: tuple[str, ...] = ()
    first_by: str = ""
    """Options that stand for the first operand (`grep -e`)."""
    digits: bool = False
    clusters: bool = True
    permutes: bool = True
    check: Callable[[ParsedOptions, ProgramCall], None] | None = None
    """Raises `NotHarmless` for what the table cannot say."""

    def __call__(self, call: ProgramCall) -> Harmless:
        given = self.given(call)
        return Harmless(self.why, self.reads(given, call))

    def given(self, call: ProgramCall) -> ParsedOptions:
        known = table(f"{self.options} --help --version")
        given = parse(call, known, digits=self.digits, clusters=self.clusters, permutes=self.permutes)
        if self.check is not None:
            self.check(given, call)
        return given

    def reads(self, given: ParsedOptions, call: ProgramCall) -> tuple[str, ...]:
        reads: list[str] = []
        for _, value, kind in given.options:
            if value is not None and kind != "text":
                reads += look(kind, value, call)
        kinds = self.operands
        if self.first_by and given.has(*self.first_by.split()):
            kinds = kinds[1:]
        for place, word in enumerate(given.operands):
            kind = kinds[min(place, len(kinds) - 1)] if kinds else ""
            if not kind or (place >= len(kinds) and not kind.endswith("*")):
                raise NotHarmless(
                    f"{call.program} with {word.value or 'another word'} as well is not known to be harmless."
                )
            reads += look(kind.rstrip("*"), word, call)
        return tuple(dict.fromkeys(reads))


@dataclass(frozen=True)
class Anything:
    """A program that does no harm whatever it is given."""

    why: str

    def __call__(self, call: ProgramCall) -> Harmless:
        return Harmless(self.why)


def look(kind: str, word: Word, call: ProgramCall) -> list[str]:
    """What a word of that kind lets be read. Raises `NotHarmless`."""
    if kind == "text" or (kind == "file" and word.pipe):
        return []
    if word.value is None:
        raise NotHarmless(f"Which file {call.program} is given is only known when it runs.")
    if word.value == "-" and kind in ("file", "tree"):
        return []
    looks = {"file": paths.readable, "name": paths.named, "tree": paths.tree}
    return [str(looks[kind](word.value, call.here))]
