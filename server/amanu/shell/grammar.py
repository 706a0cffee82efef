"""Which calls of which programs have no effect: an allow-list grammar per program, with its options and operands.

Whatever a grammar does not list counts as having an effect, and so does a program without a grammar. The grammars are
in `programs/`, one file per family.
"""

from collections.abc import Sequence
from dataclasses import replace

from amanu.core.command import CommandContext
from amanu.shell.call import Judgement, NotHarmless, ProgramCall, Word
from amanu.shell.programs import HARMLESS
from amanu.shell.programs.acts import act

__all__ = ["Judgement", "Word", "judge"]

_MOST = 300
"""Arguments of one command. Each may be a path to look up, and a verdict must take at most 20 ms."""


def judge(program: str, arguments: Sequence[Word], context: CommandContext, *, piped: bool) -> Judgement:
    """Judge a call of a program, given by its bare name and known to be the system's own. Wrappers such as `env` are
    already removed. `piped`: its input comes from a pipe or is empty, so reading it does not wait for a user.

    Never raises. Looks at files by name and status, and at the repository's git configuration."""
    call = ProgramCall(program, tuple(arguments), context, piped)
    grammar = HARMLESS.get(program)
    try:
        if grammar is None:
            raise NotHarmless(f"Amanu does not know what {program} does.")
        if len(arguments) > _MOST and program not in ("echo", "printf"):
            raise NotHarmless(f"{program} has too many arguments to check.")
        harmless = grammar(call)
    except NotHarmless as error:
        acts = act(call)
        judgement = acts.judgement(acts.why if acts.described or grammar is None else str(error))
        return replace(judgement, reads=error.reads)
    return Judgement("none", harmless.why, act(call).prefix, harmless.reads)
