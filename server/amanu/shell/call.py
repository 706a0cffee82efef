"""What a grammar is asked about, and what it answers."""

from dataclasses import dataclass, field

from amanu.core.command import CommandContext, Effect


@dataclass(frozen=True)
class Word:
    """A word as the program gets it."""

    value: str | None
    """None: not known before it runs."""
    several: bool = False
    """Unknown, and not quoted: any number of words, none included."""
    pipe: bool = field(default=False, kw_only=True)
    """Of `<(ls)`: an unknown path under /dev/fd, to read what commands print. They are judged for themselves."""


@dataclass(frozen=True)
class Judgement:
    """What a program does when called so. As the fields of `reading.Command`."""

    effect: Effect
    why: str
    prefix: tuple[str, ...] | None = None
    reads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    network: bool = False
    git: bool = False


@dataclass(frozen=True)
class ProgramCall:
    """A program called with words."""

    program: str
    arguments: tuple[Word, ...]
    context: CommandContext
    piped: bool

    @property
    def values(self) -> tuple[str | None, ...]:
        return tuple(word.value for word in self.arguments)

    def without_first(self, count: int) -> "ProgramCall":
        """The same without its first words."""
        return ProgramCall(self.program, self.arguments[count:], self.context, self.piped)


@dataclass(frozen=True)
class Harmless:
    """Nothing but output; what is read for it."""

    why: str
    reads: tuple[str, ...] = ()


class NotHarmless(Exception):
    """This use is not known to be harmless. `str()` is the sentence for the user."""

    def __init__(self, why: str, *reads: str) -> None:
        """`reads`: files it would read all the same, absolute and real; rules about reading them count in any mode."""
        super().__init__(why)
        self.reads = reads
