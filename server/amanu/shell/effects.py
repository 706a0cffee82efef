"""Judge one command: look through wrappers, and find the program."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path

from amanu.core.command import Command
from amanu.shell import acts, catastrophic, powershell, programs, variables, wrappers
from amanu.shell.call import Judgement
from amanu.shell.identity import Identity, identify, stand_in
from amanu.shell.shell_builtins import BUILTINS, builtin, check_subscripts
from amanu.shell.state import State
from amanu.shell.syntax import ParseBudget, Unclear
from amanu.shell.words import Field

_NESTED = 8  # nested wrappers and scripts
_NOT_POSIX = ("[[", "<(", ">(", "&>", "<<<", "|&", "$'", "{", "((", ">&", "function", "**")
"""Syntax that other shells than bash read differently, or not at all."""

_MOST_CANDIDATES = 12  # words at which a wrapped command may begin

Script = Callable[[str, State, int], None]
"""Walks a text as a line of its own: text, state, nesting depth."""

Assignment = tuple[str, str | None]
"""A variable and its value; None when the value is not known."""


@dataclass
class LineAnalysis:
    """The commands found in a line so far, including those in nested scripts."""

    budget: ParseBudget
    commands: list[Command] = field(default_factory=list[Command])
    unclear_because: str | None = None
    opaque: bool = False
    """Some text of the line may run that was not analyzed as commands, as when a shell reads from a pipe."""

    _identities: dict[tuple[str, Path | None], Identity] = field(
        default_factory=dict[tuple[str, Path | None], Identity]
    )

    def identify(self, name: str, state: State) -> Identity:
        """The program of that name, looked up once per line."""
        if "/" in name or state.forgotten or "PATH" in state.variables:
            return identify(name, state)
        key = (name, state.folder)
        if key not in self._identities:
            self._identities[key] = identify(name, state)
        return self._identities[key]

    def unclear(self, why: str) -> None:
        """Mark the line as unclear. The first reason is kept."""
        self.unclear_because = self.unclear_because or why


@dataclass(frozen=True)
class CommandCall:
    """A command that is about to be judged."""

    argv: tuple[Field, ...]
    text: str
    by_shell: bool = True
    """The shell itself runs it, so builtins come first; otherwise a program runs it."""
    assignments: tuple[Assignment, ...] = ()
    """Assignments before the command that are not harmless."""
    depth: int = 0


def judge(call: CommandCall, state: State, analysis: LineAnalysis, script: Script) -> None:
    """Judge a command and everything it wraps, and add them to the analysis. Raises `Unclear`."""
    analysis.budget.command()
    if call.depth > _NESTED:
        raise Unclear("Commands are wrapped too deeply.")
    name = call.argv[0].value
    if why := catastrophic.by_words(call.argv, state):
        analysis.commands.append(_make_command(call, "ruin", why))
        return
    if name is None:
        analysis.commands.append(_make_command(call, "some", "Which program runs is not known in advance."))
    elif call.by_shell and name in BUILTINS and name not in ("command", "builtin", "exec"):
        _judge_builtin(name, call, state, analysis, script)
    elif name in ("command", "builtin", "exec") and call.by_shell:
        _run_by_shell(name, call, state, analysis, script)
    else:
        _judge_program(name, call, state, analysis, script)


def _judge_builtin(name: str, call: CommandCall, state: State, analysis: LineAnalysis, script: Script) -> None:
    check_subscripts(name, (word.value for word in call.argv[1:]))
    builtin_effect = builtin(name, call.argv[1:], state)
    analysis.opaque |= name in ("eval", "source", ".")
    if name == "eval" and call.argv[1:] and all(word.value is not None for word in call.argv[1:]):
        script(" ".join(word.value or "" for word in call.argv[1:]), state.copy(), call.depth + 1)
    if builtin_effect.forget:
        state.forget()
    effect = "some" if call.assignments else builtin_effect.effect
    why = _assignment_warning(call) or builtin_effect.why
    analysis.commands.append(_make_command(call, effect, why, reads=builtin_effect.reads, runs=builtin_effect.runs))


def _run_by_shell(name: str, call: CommandCall, state: State, analysis: LineAnalysis, script: Script) -> None:
    first = call.argv[1].value if len(call.argv) > 1 else None
    if name == "command" and first in ("-v", "-V"):
        analysis.commands.append(_make_command(call, "none", "Only shows what a name refers to."))
        return
    inner = wrappers.unwrap(name, call.argv[1:])
    if inner.inner:
        judge(replace(call, argv=inner.inner, depth=call.depth + 1), state, analysis, script)
    _add_candidates(inner.candidates, call, analysis)
    if inner.why or not inner.inner:
        state.forget()
        why = inner.why or f"{name} changes the state of the shell."
        analysis.commands.append(_make_command(call, "some", why))


def _judge_program(name: str, call: CommandCall, state: State, analysis: LineAnalysis, script: Script) -> None:
    identity = analysis.identify(name, state)
    base = os.path.basename(name)  # noqa: PTH119 (text)
    if base in powershell.SHELLS:
        analysis.unclear(powershell.SENTENCE)
    if not identity.trusted:
        _look_inside(base, call, state, analysis, script)
        analysis.commands.append(_unknown_program(name, call, identity, state, analysis))
    elif base in wrappers.SHELLS:
        _judge_shell(base, call, identity, state, analysis, script)
    elif base in wrappers.NAMES:
        _judge_wrapper(base, call, identity, state, analysis, script)
    elif base == "find":
        arguments, executed = wrappers.split_exec(call.argv[1:])
        inside = state.copy()
        if any(word.value in ("-execdir", "-okdir") for word in call.argv):
            inside.folder = None
        for argv in filter(None, executed):
            judge(CommandCall(argv, call.text, by_shell=False, depth=call.depth + 1), inside, analysis, script)
        _judge_call(base, arguments, call, identity, state, analysis)
    else:
        _judge_call(base, call.argv[1:], call, identity, state, analysis)


def _look_inside(base: str, call: CommandCall, state: State, analysis: LineAnalysis, script: Script) -> None:
    """Judge what a wrapper that is not the system's own would run, so that deny rules apply to it."""
    analysis.opaque |= base in wrappers.NAMES or base in wrappers.SHELLS
    if base in wrappers.NAMES:
        inner = wrappers.unwrap(base, call.argv[1:])
        if inner.inner and not inner.script:
            _judge_inner(inner.inner, call, state, analysis, script)
        _add_candidates(inner.candidates, call, analysis)
    elif base in wrappers.SHELLS:
        text, _, _ = wrappers.shell_script(call.argv[1:])
        if text is not None and text.value is not None:
            script(text.value, state.copy(), call.depth + 1)


def _judge_wrapper(
    base: str, call: CommandCall, identity: Identity, state: State, analysis: LineAnalysis, script: Script
) -> None:
    inner = wrappers.unwrap(base, call.argv[1:])
    if inner.script and inner.inner[0].value is not None:
        script(inner.inner[0].value, state.copy(), call.depth + 1)
    elif inner.inner:
        without = tuple((name, None) for name in inner.unset if variables.unsetting_matters(name))
        nested = replace(call, assignments=(*call.assignments, *without))
        _judge_inner(inner.inner, nested, state, analysis, script)
    elif inner.why is None:
        if base == "xargs":
            analysis.commands.append(
                _make_command(call, "none", "Only prints what it reads.", program=identity.program)
            )
        else:
            _judge_call(base, call.argv[1:], call, identity, state, analysis)
    if inner.why is not None:
        analysis.opaque = True
        analysis.commands.append(
            _make_command(call, "some", inner.why, program=identity.program, network=base == "ssh")
        )
    _add_candidates(inner.candidates, call, analysis)


def _judge_inner(
    arguments: Sequence[Field], call: CommandCall, state: State, analysis: LineAnalysis, script: Script
) -> None:
    variables_set, argv = (
        wrappers.split_assignments(arguments) if call.argv[0].value and _is_env(call) else ([], list(arguments))
    )
    assignments = list(call.assignments)
    for word in variables_set:
        name, _, value = (word.value or "").partition("=")
        if not variables.harmless(name, value):
            assignments.append((name, value))
    if not argv:
        analysis.commands.append(_make_command(call, "some", "It prints the environment, which may contain secrets."))
        return
    nested = replace(
        call,
        argv=tuple(argv),
        by_shell=False,
        assignments=tuple(assignments),
        depth=call.depth + 1,
    )
    judge(nested, state.copy(), analysis, script)


def _add_candidates(arguments: Sequence[Field], call: CommandCall, analysis: LineAnalysis) -> None:
    """Add the commands a wrapper may run when its arguments are not understood, so that deny rules apply to them."""
    for index, word in enumerate(arguments[:_MOST_CANDIDATES]):
        if word.value is not None and not word.value.startswith("-"):
            why = "Where the wrapped command begins is not certain."
            analysis.commands.append(_make_command(replace(call, argv=tuple(arguments[index:])), "some", why))


def _is_env(call: CommandCall) -> bool:
    return os.path.basename(call.argv[0].value or "") in ("env", "sudo", "doas")  # noqa: PTH119 (text)


def _judge_shell(
    base: str, call: CommandCall, identity: Identity, state: State, analysis: LineAnalysis, script: Script
) -> None:
    text, file, certain = wrappers.shell_script(call.argv[1:])
    if text is not None and text.value is not None:
        if call.assignments:
            analysis.commands.append(
                _make_command(call, "some", _assignment_warning(call) or "", program=identity.program)
            )
        script(text.value, State(state.context, state.folder, forgotten=state.forgotten), call.depth + 1)
        if base != "bash" and (base not in ("sh", "dash", "ash") or any(token in text.value for token in _NOT_POSIX)):
            analysis.unclear(f"It is written for {base}, which may interpret it differently from bash.")
        if not certain:
            analysis.commands.append(
                _make_command(
                    call,
                    "some",
                    f"{base} is called with arguments Amanu does not understand.",
                    program=identity.program,
                )
            )
        return
    if text is not None:
        analysis.unclear(f"What {base} would run is not known in advance.")
    path = file.value if file is not None and certain and not call.assignments else None
    if path is None:
        analysis.opaque = True
        why = f"{base} runs its input as commands."
        analysis.commands.append(_make_command(call, "some", why, program=identity.program))
        return
    runs = _script_in_roots(path, state)
    command = _make_command(call, "some", f"Runs the script {path}.", (base, path), program=identity.program, runs=runs)
    analysis.commands.append(_anchored(command, path, state))


def _judge_call(
    base: str, arguments: Sequence[Field], call: CommandCall, identity: Identity, state: State, analysis: LineAnalysis
) -> None:
    judgement = _judgement(base, arguments, state, analysis)
    effect, why, prefix = judgement.effect, judgement.why, judgement.prefix
    if state.folder is None and effect == "none":
        effect, why, prefix = "some", "The folder it runs in is not known in advance.", None
    if effect == "none" and identity.program and stand_in(identity.program):
        effect, why = "some", f"{identity.program} starts another program, and files in the folder may decide which."
    if call.assignments:
        effect, why = ("ruin" if effect == "ruin" else "some"), _assignment_warning(call) or why
    command = Command(
        call.text,
        _values(call),
        effect,
        why,
        None if effect == "ruin" else _with_assignments(call, prefix),
        identity.program,
        judgement.reads,
        judgement.runs,
        judgement.network,
        judgement.git,
        len(call.assignments),
    )
    script = prefix[1] if prefix is not None and len(prefix) == 2 and acts.takes_script(base) else None
    analysis.commands.append(_anchored(command, script, state) if script is not None else command)


def _anchored(command: Command, script: str, state: State) -> Command:
    """The command with its script's path relative to the workspace root: a rule for `./run.sh` must not match a
    `run.sh` in whatever folder the line changes to."""
    if state.folder is None or state.folder in state.context.roots or script.startswith(("/", "-")):
        return command
    path = os.path.normpath(state.folder / script)
    root = next((root for root in state.context.roots if root in Path(path).parents), None)
    if root is None:
        return replace(command, prefix=None)
    shown_path = os.path.relpath(path, root)
    if command.words[command.assigned] == script and "/" not in shown_path:
        shown_path = f"./{shown_path}"  # keeps it a path rather than a name looked up in PATH
    argv = tuple(shown_path if word == script else word for word in command.words)
    prefix = command.prefix and tuple(shown_path if word == script else word for word in command.prefix)
    return replace(command, words=argv, prefix=prefix, spelled=command.words)


def _judgement(base: str, arguments: Sequence[Field], state: State, analysis: LineAnalysis) -> Judgement:
    context = replace(state.context, folder=state.folder or state.context.folder, until=analysis.budget.end)
    return programs.judge(base, arguments, context)


def _unknown_program(name: str, call: CommandCall, identity: Identity, state: State, analysis: LineAnalysis) -> Command:
    """The command for a program that is not the system's own: whatever its name, it can do anything."""
    if identity.program is None:
        return _make_command(call, "some", f"No program called {name} was found, or it is unclear which one would run.")
    if "/" not in name and not identity.runs:
        return _make_command(call, "some", f"Other users can change {identity.program}.", program=identity.program)
    if "/" in name:
        why = f"Runs {name}, a program {'of the workspace' if identity.runs else 'that is not one of the system'}."
    else:
        instead = ", which takes the place of the system's" if identity.shadows else ""
        why = f"Runs {name} of the workspace{instead}."
    base = os.path.basename(name)  # noqa: PTH119 (text)
    judgement = _judgement(base, call.argv[1:], state, analysis)
    # Its arguments mean what they mean for the system's program of that name; one in no table is remembered as a whole.
    prefix: tuple[str, ...] | None = (name,)
    if acts.is_known(base):
        prefix = None if judgement.prefix is None else (name, *judgement.prefix[1:])
    command = _make_command(
        call,
        "some",
        " ".join(filter(None, [why, _assignment_warning(call)])),
        None if identity.shadows else prefix,
        program=identity.program,
        runs=(*identity.runs, *judgement.runs),
        network=judgement.network,
    )
    if not identity.shadows:
        return _anchored(command, name, state) if "/" in name else command
    program_index = command.assigned
    return replace(
        command, words=(*command.words[:program_index], identity.program, *command.words[program_index + 1 :])
    )


def _make_command(
    call: CommandCall,
    effect: str,
    why: str,
    prefix: tuple[str, ...] | None = None,
    *,
    program: str | None = None,
    reads: tuple[str, ...] = (),
    runs: tuple[str, ...] = (),
    network: bool = False,
) -> Command:
    kind = "ruin" if effect == "ruin" else "none" if effect == "none" else "some"
    return Command(
        call.text,
        _values(call),
        kind,
        why,
        _with_assignments(call, prefix),
        program,
        reads,
        runs,
        network,
        assigned=len(call.assignments),
    )


def _values(call: CommandCall) -> tuple[str | None, ...]:
    return (*map(_assignment_word, call.assignments), *(word.value for word in call.argv))


def _assignment_word(assignment: Assignment) -> str | None:
    name, value = assignment
    return None if value is None else f"{name}={value}"


def _with_assignments(call: CommandCall, prefix: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The prefix a rule would remember, with the assignments before the command, since they are part of what it
    does."""
    if prefix is None or not all(starmap(variables.may_be_remembered, call.assignments)):
        return None
    return (*(_assignment_word(assignment) or "" for assignment in call.assignments), *prefix)


def _assignment_warning(call: CommandCall) -> str | None:
    names = ", ".join(name for name, _ in call.assignments)
    return f"{names} can change what the program does." if call.assignments else None


def _script_in_roots(path: str, state: State) -> tuple[str, ...]:
    if state.folder is None:
        return ()
    try:
        real = (state.folder / path).resolve()
    except (OSError, RuntimeError, ValueError):
        return ()
    inside = any(root in Path(real).parents for root in state.context.roots)
    return (str(real),) if inside else ()
