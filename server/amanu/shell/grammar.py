"""Which uses of which programs have no effect: a positive grammar per program, options and operands included.

What the grammar of a program does not know is not harmless. No grammar means: it has an effect. The tables are in
`programs/`, one file per family.
"""

from collections.abc import Sequence
from dataclasses import replace

from amanu.core.command import CommandContext
from amanu.shell.call import Judgement, NotHarmless, ProgramCall, Word
from amanu.shell.programs import HARMLESS
from amanu.shell.programs.acts import act

__all__ = ["Judgement", "Word", "judge"]

_MOST = 300
"""Words of one command; each may be a path to look at, and a verdict has 20 ms."""


def judge(program: str, arguments: Sequence[Word], context: CommandContext, *, piped: bool) -> Judgement:
    """Judge a program (its bare name, known to be the system's own) called with those arguments, wrappers already
    looked through. `piped`: its input comes from a pipe or is empty, so that reading it waits for nobody.

    Never raises. Looks at files by name and status, and at git's configuration of the repository."""
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
