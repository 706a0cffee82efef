"""Analyze a bash command line: which commands it runs, what each does, and why it may need approval.

`read` parses the line (`syntax.py`), walks its syntax tree (`walker.py`), and judges each command (`effects.py`,
`programs.py`). Nothing is run.
"""

from dataclasses import replace
from pathlib import PurePath

from amanu.core.command import Command, CommandContext, Reading
from amanu.shell import catastrophic, git, powershell, variables
from amanu.shell.effects import LineAnalysis
from amanu.shell.state import State
from amanu.shell.syntax import LONGEST, ParseBudget, Unclear, parse, prepare, refused
from amanu.shell.walker import Walk
from amanu.system.gc import uncollected


def read(line: str, context: CommandContext) -> Reading:
    """Analyze a bash command line. Never raises, runs nothing, and looks at files only by name and status. Returns
    within 100 ms on any input."""
    state = State(context, context.folder)
    why = refused(line)
    if why is None and powershell.looks_like(line):
        why = powershell.SENTENCE
    if why is not None:
        return Reading(_ruinous(line, state), unclear=why)
    prepare()
    with uncollected():  # a garbage collection over the whole daemon would count as time the line takes
        return _read(line, context, state)


def _read(line: str, context: CommandContext, state: State) -> Reading:
    analysis = LineAnalysis(ParseBudget())
    source = line.encode()
    walk = Walk(source, analysis)
    try:
        walk.program(parse(source, analysis.budget), state.copy())
    except Unclear as error:
        analysis.unclear(str(error))
    except RecursionError:
        analysis.unclear("It is nested too deeply to analyze.")
    if any(variables.SURROUNDING.fullmatch(name) for name in context.environment):
        analysis.unclear("The environment changes how the shell behaves.")
    unclear = analysis.unclear_because
    commands = tuple(dict.fromkeys(analysis.commands))
    if not context.trusted and (unclear or any(command.effect != "none" for command in commands)):
        commands = tuple(map(_untrusted, commands))
    if unclear or analysis.opaque:
        commands += _ruinous(line, state)
    argv = walk.argv if unclear is None and len(commands) == 1 and commands[0].text == line.strip() else None
    return Reading(commands, unclear, argv)


def _untrusted(command: Command) -> Command:
    """A git command in a folder that is not trusted: only a line that changes nothing is certain to run in a sandbox
    without network access."""
    if command.effect != "none" or PurePath(command.program or "").name != "git":
        return command
    return replace(command, effect="some", why=git.UNTRUSTED, git=True, looks=True)


def _ruinous(line: str, state: State) -> tuple[Command, ...]:
    pieces = catastrophic.by_text(line[:LONGEST], state)
    return tuple(Command(piece, tuple(piece.split()), "ruin", why) for piece, why in pieces)
