"""What the shell's builtin commands do."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.command import Effect
from amanu.shell import variables
from amanu.shell.state import State
from amanu.shell.syntax import Unclear
from amanu.shell.words import NAME, Field

_BUILTINS_TEXT = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait"
)
BUILTINS = frozenset(_BUILTINS_TEXT.split())
"""The builtins of bash 5.2, which take precedence over programs."""

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprstuwxzGLNOS")
_BINARY_TEXT = "= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef"
_BINARY = frozenset(_BINARY_TEXT.split())
_FORMAT = re.compile(
    r"(?:[^%]|%%|%[-+ #0']*[\d*]*(?:\.[\d*]*)?(?:[hlLqjzt]*[diouxXeEfFgGaAcsbqQ]|\([^)]*\)T))*", re.DOTALL
)
"""A printf format that only prints."""
_HARMLESS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((":", "true", "false", "pwd", "type"), (r"[\s\S]*", "Changes nothing.")),
    **dict.fromkeys(("break", "continue", "exit", "return", "times"), (r"[\s\S]*", "Only affects control flow.")),
    "echo": (r"[\s\S]*", "Only prints its arguments."),
    "jobs": (r"(?:(?:-[lnprs]+|%?\w+)\0)*", "Lists background jobs."),  # -x runs a command
    "wait": (r"(?:(?:-[nf]+|%?\w+|\$!)\0)*", "Only waits for background jobs."),  # -p sets a variable
    "ulimit": (r"(?:-[HS]*[HSabcdefiklmnpqrstuvx]\0)?", "Only shows the current setting."),
    "umask": (r"(?:-[pS]+\0)?", "Only shows the current setting."),
    "set": (
        r"(?:[-+][eux]+\0|[-+][eux]*o\0(?:errexit|nounset|xtrace|pipefail)\0)+",
        "Only changes how failures are handled.",
    ),
}
"""Builtins that leave nothing behind with certain arguments: a pattern for these, each followed by NUL; a sentence."""


_EVALUATES_TEXT = "[ declare export getopts let local mapfile printf read readarray readonly test typeset unset wait"
_EVALUATES = frozenset(_EVALUATES_TEXT.split())
"""Builtins that take names of variables, whose subscripts bash evaluates, and numbers to compute."""
_SUBSTITUTION = re.compile(r"\[[^\]]*(?:\$\(|\$\{|`|[<>]\()")


@dataclass(frozen=True)
class BuiltinEffect:
    """What a builtin does."""

    effect: Effect
    why: str
    forget: bool = False
    """Nothing is known of the shell's state after it."""
    reads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


def check_subscripts(name: str, arguments: Iterable[str | None]) -> None:
    """Raise `Unclear` where an argument has a subscript that runs a command, though it is quoted, as in
    `test -v 'a[$(touch x)]'`."""
    if name in _EVALUATES and any(_SUBSTITUTION.search(word or "") for word in arguments):
        raise Unclear(f"A subscript among the arguments of {name} runs a command.")


def builtin(name: str, arguments: Sequence[Field], state: State) -> BuiltinEffect:
    """Judge a builtin, and update the state as it would."""
    match name:
        case "printf":
            return _printf(arguments)
        case "test" | "[":
            return _test(name, arguments)
        case "cd" | "pushd":
            return _cd(name, arguments, state)
        case "read":
            return _read(arguments, state)
        case "source" | ".":
            return _source(arguments, state)
        case _:
            pattern, why = _HARMLESS.get(name, ("(?!)", ""))
            words = (
                "$!" if word.raw == '"$!"' else word.raw if word.value is None else word.value for word in arguments
            )
            if re.fullmatch(pattern, "".join(f"{word}\0" for word in words)):
                return BuiltinEffect("none", why)
            return BuiltinEffect("some", f"{name} changes the state of the shell.", forget=True)


def assignment(name: str, value: str | None, state: State) -> BuiltinEffect | None:
    """Set a variable in the state. Returns its effect; None when it influences nothing."""
    steers = variables.steers(name, value, state)
    state.variables[name] = None if steers else value
    if not steers:
        return None
    state.forget()
    return BuiltinEffect("some", f"{name} changes what later commands do.", forget=True)


def _printf(arguments: Sequence[Field]) -> BuiltinEffect:
    """`printf`: `-v` and `%n` set a variable, so the format must be known."""
    values = [argument.value for argument in arguments]
    form = values[1] if values[:1] == ["--"] and len(values) > 1 else values[0] if values else None
    if form is None or (form.startswith("-") and values[0] != "--") or not _FORMAT.fullmatch(form):
        return BuiltinEffect("some", "This printf format can do more than print.", forget=True)
    return BuiltinEffect("none", "Prints its arguments.")


def _test(name: str, arguments: Sequence[Field]) -> BuiltinEffect:
    """`test` and `[`: an unknown operator could be `-v`, which evaluates its operand."""
    operands = list(arguments)
    if name == "[" and (not operands or operands.pop().value != "]"):
        return BuiltinEffect("some", "Amanu does not understand this test.")
    while operands and operands[0].value == "!":
        operands.pop(0)
    values = [operand.value for operand in operands]
    several = any(operand.several for operand in operands)
    fine = len(values) <= 1
    if len(values) == 2:
        fine = values[0] in _UNARY
    elif len(values) == 3:
        fine = values[1] in _BINARY
    elif len(values) > 3:
        fine = None not in values and not any(value in ("-v", "-R") for value in values)
    if several or not fine:
        return BuiltinEffect("some", "Amanu does not understand this test; some tests run commands held in variables.")
    return BuiltinEffect("none", "Only compares values or checks whether a file exists.")


def _cd(name: str, arguments: Sequence[Field], state: State) -> BuiltinEffect:
    targets = [argument.value for argument in arguments]
    if targets[:1] == ["--"] and name == "cd":
        targets = targets[1:]
    target = targets[0] if len(targets) == 1 and not arguments[-1].several else None
    previous_folder = state.folder
    state.folder = None
    state.variables["OLDPWD"] = None
    if target is None or previous_folder is None or target.startswith(("-", "+")) or not target:
        return BuiltinEffect("some", "The folder the rest would run in is not known in advance.")
    if "CDPATH" in state.context.environment or "CDPATH" in state.variables or state.forgotten:
        return BuiltinEffect("some", "CDPATH is set, so the folder the rest would run in is not certain.")
    try:
        destination = (previous_folder / target).resolve(strict=True)
        fine = destination == Path(os.path.normpath(previous_folder / target)).resolve() and os.access(
            destination, os.X_OK
        )
    except (OSError, RuntimeError, ValueError):
        return BuiltinEffect("some", f"The folder {target} does not exist yet.")
    if not destination.is_dir() or not fine:
        return BuiltinEffect("some", f"The folder {target} does not exist yet.")
    if not any(destination == root or root in destination.parents for root in state.context.roots):
        return BuiltinEffect("some", f"Changes to {target}, which is outside the workspace.")
    state.folder = destination
    return BuiltinEffect("none", "Changes to another folder in the workspace.")


def _read(arguments: Sequence[Field], state: State) -> BuiltinEffect:
    names = [argument.value for argument in arguments]
    while names and names[0] in ("-r", "-s"):
        names.pop(0)
    fine = names and all(
        name and re.fullmatch(NAME, name) and not variables.steers(name, None, state) for name in names
    )
    if not fine:
        return BuiltinEffect("some", "Which variables read sets is not certain.", forget=True)
    for name in names:
        state.variables[name or ""] = None
    return BuiltinEffect("none", "Only reads a line into a variable.")


def _source(arguments: Sequence[Field], state: State) -> BuiltinEffect:
    path = arguments[0].value if arguments else None
    if path is None or state.folder is None:
        return BuiltinEffect("some", "Runs commands from a file that is not known in advance.", forget=True)
    real = (state.folder / path).resolve() if "\0" not in path else state.folder
    inside = any(root in real.parents for root in state.context.roots)
    return BuiltinEffect("some", f"Runs the commands in {path}.", forget=True, runs=(str(real),) if inside else ())
