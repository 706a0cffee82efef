"""What a program of the system does with its arguments: whether it only prints (`harmless.py`, `git.py`), and what a
rule would remember of it, which files it runs, and whether it needs the network (`acts.py`)."""

from collections.abc import Sequence

from amanu.core.command import CommandContext
from amanu.shell import git, harmless
from amanu.shell.acts import act
from amanu.shell.call import Judgement, NotHarmless, ProgramCall, Word


def judge(program: str, arguments: Sequence[Word], context: CommandContext) -> Judgement:
    """Judge a call of a program, given by its bare name and known to be the system's own. Wrappers such as `env` are
    already removed. Never raises. Looks at files by name and status."""
    call = ProgramCall(program, tuple(arguments), context)
    known = act(call)
    check = git.check if program == "git" else harmless.check
    try:
        why, reads = check(call)
    except NotHarmless as error:
        why = known.why or str(error)
        return Judgement("some", why, known.prefix, error.reads, known.runs, known.network, program == "git")
    return Judgement("none", why, known.prefix, reads)
