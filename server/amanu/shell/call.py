"""What is asked about a program (`ProgramCall`) and the answer (`Judgement`)."""

from dataclasses import dataclass, field

from amanu.core.command import CommandContext, Effect


@dataclass(frozen=True)
class Word:
    """One argument as the program receives it, after the shell's expansions."""

    value: str | None
    """None when the value is only known at run time."""
    several: bool = False
    """An unknown, unquoted expansion: it may become any number of words, including none."""
    pipe: bool = field(default=False, kw_only=True)
    """A process substitution, `<(ls)`: a path under /dev/fd. Its commands are judged on their own."""


@dataclass(frozen=True)
class Judgement:
    """What a program does with these arguments. The fields have the meaning of those of `core.command.Command`."""

    effect: Effect
    why: str
    prefix: tuple[str, ...] | None = None
    reads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    network: bool = False
    git: bool = False


@dataclass(frozen=True)
class ProgramCall:
    """A program, its arguments, and the context it would run in."""

    program: str
    arguments: tuple[Word, ...]
    context: CommandContext

    @property
    def values(self) -> tuple[str | None, ...]:
        return tuple(word.value for word in self.arguments)

    def without_first(self, count: int) -> "ProgramCall":
        """The same call without its first `count` arguments."""
        return ProgramCall(self.program, self.arguments[count:], self.context)


class NotHarmless(Exception):
    """This call is not known to be harmless. `str()` is the sentence for the user."""

    def __init__(self, why: str, *reads: str) -> None:
        """`reads` are absolute real paths it would read anyway; rules about reading them apply in every mode."""
        super().__init__(why)
        self.reads = reads


def names(text: str) -> frozenset[str]:
    """The words of a text: a readable way to write a set."""
    return frozenset(text.split())
