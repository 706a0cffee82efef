"""The words of a command → what it does: wrappers looked through, the program found, its grammar asked."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from pathlib import Path

from amanu.core.command import Command
from amanu.shell import catastrophic as ruin
from amanu.shell import find_results as finding
from amanu.shell import grammar, powershell, variables, wrappers
from amanu.shell.grammar import Judgement
from amanu.shell.identity import Identity, identify
from amanu.shell.programs import STARTS, acts
from amanu.shell.shell_builtins import BUILTINS, builtin
from amanu.shell.shims import chosen_by
from amanu.shell.state import State
from amanu.shell.syntax import ParseBudget, Unclear
from amanu.shell.words import Field

_NESTED = 8  # wrappers and scripts in each other
_NOT_POSIX = ("[[", "<(", ">(", "&>", "<<<", "|&", "$'", "{", "((", ">&", "function", "**")
"""What another shell than bash reads differently, or not at all."""

_PERHAPS = 12  # words at which a command may begin
_HANDED = ("", "{}", "'{}'", '"{}"')
"""How the words of found files are written: not at all (xargs), or with the mark of find."""

Script = Callable[[str, State, bool, int], None]
"""How to read a text as a line of its own: text, state, whether its input is piped, how deep."""


Assignment = tuple[str, str | None]
"""A variable and its value; None: not known."""


@dataclass
class LineAnalysis:
    """The commands found in a line so far. One for a line and all that is nested in it."""

    budget: ParseBudget
    commands: list[Command] = field(default_factory=list[Command])
    unclear_because: str | None = None
    opaque: bool = False
    """Text of the line may be run that is not read as commands: what a shell reads from a pipe."""

    _known: dict[tuple[str, Path | None], Identity] = field(default_factory=dict[tuple[str, Path | None], Identity])

    _chosen: dict[tuple[str, Path], Path | None] = field(default_factory=dict[tuple[str, Path], Path | None])

    def identify(self, name: str, state: State) -> Identity:
        """The program of that name. Looked for once in a line: there may be hundreds of it."""
        if "/" in name or state.forgotten or "PATH" in state.variables:
            return identify(name, state)
        key = (name, state.folder)
        if key not in self._known:
            self._known[key] = identify(name, state)
        return self._known[key]

    def chosen_by(self, program: str, folder: Path, state: State) -> Path | None:
        """The file that says what runs in the place of a program. Looked for once in a line, too."""
        key = (program, folder)
        if key not in self._chosen:
            self._chosen[key] = chosen_by(program, folder, state.here)
        return self._chosen[key]

    def unclear(self, why: str) -> None:
        """The first sentence counts."""
        self.unclear_because = self.unclear_because or why


@dataclass(frozen=True)
class CommandCall:
    """A command as it is about to be judged."""

    words: tuple[Field, ...]
    text: str
    piped: bool
    by_shell: bool = True
    """The shell itself runs it, so that builtins come first; else a program does."""
    before: tuple[Assignment, ...] = ()
    """Assignments that are not harmless."""
    depth: int = 0
    handed: str | None = None
    """How the paths begin that come through its pipe, when all of them may be read. None: not certain."""


def judge(call: CommandCall, state: State, judging: LineAnalysis, script: Script) -> None:
    """Add a command, and what it wraps, to those found."""
    judging.budget.command()
    if call.depth > _NESTED:
        raise Unclear("Too many commands are wrapped in each other.")
    name = call.words[0].value
    if why := ruin.by_words(call.words, state):
        judging.commands.append(_command(call, "ruin", why))
        return
    if name is None:
        judging.commands.append(_command(call, "some", "It is not known which program runs."))
    elif call.by_shell and name in BUILTINS and name not in ("command", "builtin", "exec"):
        _builtin(name, call, state, judging, script)
    elif name in ("command", "builtin", "exec") and call.by_shell:
        _run_by_shell(name, call, state, judging, script)
    else:
        _program(name, call, state, judging, script)


def _builtin(name: str, call: CommandCall, state: State, judging: LineAnalysis, script: Script) -> None:
    done = builtin(name, call.words[1:], state)
    judging.opaque |= name in ("eval", "source", ".")
    if name == "eval" and call.words[1:] and all(each.value is not None for each in call.words[1:]):
        script(" ".join(each.value or "" for each in call.words[1:]), state.copy(), call.piped, call.depth + 1)
    if done.forget:
        state.forget()
    effect = "some" if call.before else done.effect
    why = _set_before(call) or done.why
    judging.commands.append(_command(call, effect, why, reads=done.reads, runs=done.runs))


def _run_by_shell(name: str, call: CommandCall, state: State, judging: LineAnalysis, script: Script) -> None:
    first = call.words[1].value if len(call.words) > 1 else None
    if name == "command" and first in ("-v", "-V"):
        judging.commands.append(_command(call, "none", "Only says what a name stands for."))
        return
    inner = wrappers.wrapped(name, call.words[1:])
    if inner.inner:
        judge(replace(call, words=inner.inner, depth=call.depth + 1), state, judging, script)
    _perhaps(inner.perhaps, call, judging)
    if inner.why or not inner.inner:
        state.forget()
        why = inner.why or f"{name} changes the shell itself, or what it does next."
        judging.commands.append(_command(call, "some", why))


def _program(name: str, call: CommandCall, state: State, judging: LineAnalysis, script: Script) -> None:
    found = judging.identify(name, state)
    base = os.path.basename(name)  # noqa: PTH119 (text)
    if base in powershell.SHELLS:
        judging.unclear(powershell.SENTENCE)
    if not found.known:
        _look_inside(base, call, state, judging, script)
        judging.commands.append(_unknown(name, call, found, state, judging))
    elif base in wrappers.SHELLS:
        _shell(base, call, found, state, judging, script)
    elif base in wrappers.NAMES:
        _wrapper(base, call, found, state, judging, script)
    elif base == "find":
        rest, executed = wrappers.executed(call.words[1:])
        inside = state.copy()
        if any(each.value in ("-execdir", "-okdir") for each in call.words):
            inside.folder = None
        start = (
            files_of([each.value for each in call.words[1:]], state, judging) if executed and inside.folder else None
        )
        for words in executed:
            words = _with_files(words, start)
            if words:
                judge(
                    CommandCall(words, call.text, True, by_shell=False, depth=call.depth + 1), inside, judging, script
                )
        _judged(base, rest, call, found, state, judging)
    else:
        _judged(base, call.words[1:], call, found, state, judging)


def files_of(arguments: Sequence[str | None], state: State, judging: LineAnalysis) -> str | None:
    """How the paths begin that `find` names, when all of them may be read. None: not certain."""
    if state.folder is None:
        return None
    here = replace(state.here, folder=state.folder, until=judging.budget.end)
    return finding.starts(arguments, here)


def _with_files(words: tuple[Field, ...], start: str | None) -> tuple[Field, ...]:
    """A command with a file that stands for all it is handed, if it only reads them."""
    if start is None or not words or words[0].value not in finding.READERS:
        return words
    return tuple(
        Field(start, False, each.raw) if each.value is None and each.raw in _HANDED else each for each in words
    )


def _look_inside(base: str, call: CommandCall, state: State, judging: LineAnalysis, script: Script) -> None:
    """What a wrapper that is not the system's would run: it counts for what is denied."""
    judging.opaque |= base in wrappers.NAMES or base in wrappers.SHELLS
    if base in wrappers.NAMES:
        inner = wrappers.wrapped(base, call.words[1:])
        if inner.inner and not inner.script:
            _inner(inner.inner, call, state, judging, script)
        _perhaps(inner.perhaps, call, judging)
    elif base in wrappers.SHELLS:
        text, _, _ = wrappers.shell_script(call.words[1:])
        if text is not None and text.value is not None:
            script(text.value, state.copy(), call.piped, call.depth + 1)


def _wrapper(
    base: str, call: CommandCall, found: Identity, state: State, judging: LineAnalysis, script: Script
) -> None:
    inner = wrappers.wrapped(base, call.words[1:])
    if inner.script and inner.inner[0].value is not None:
        script(inner.inner[0].value, state.copy(), call.piped, call.depth + 1)
    elif inner.inner:
        words = inner.inner
        if base == "xargs" and wrappers.hands_on_words(call.words[1:]):
            words = _with_files(words, call.handed)
        without = tuple((name, None) for name in inner.unset if variables.taking_away_matters(name))
        handed = replace(call, before=(*call.before, *without))
        _inner(words, handed, state, judging, script, piped=call.piped or base == "xargs")
    elif inner.why is None:
        if base == "xargs":
            judging.commands.append(_command(call, "none", "Only prints what it reads.", program=found.program))
        else:
            _judged(base, call.words[1:], call, found, state, judging)
    if inner.why is not None:
        judging.opaque = True
        judging.commands.append(_command(call, "some", inner.why, program=found.program, network=base == "ssh"))
    _perhaps(inner.perhaps, call, judging)


def _inner(
    words: Sequence[Field],
    call: CommandCall,
    state: State,
    judging: LineAnalysis,
    script: Script,
    *,
    piped: bool | None = None,
) -> None:
    set_, rest = wrappers.assignments(words) if call.words[0].value and _is_env(call) else ([], list(words))
    before = list(call.before)
    for each in set_:
        name, _, value = (each.value or "").partition("=")
        if not variables.harmless(name, value):
            before.append((name, value))
    if not rest:
        judging.commands.append(_command(call, "some", "It prints the environment, which can hold keys."))
        return
    nested = replace(
        call,
        words=tuple(rest),
        piped=call.piped if piped is None else piped,
        by_shell=False,
        before=tuple(before),
        depth=call.depth + 1,
    )
    judge(nested, state.copy(), judging, script)


def _perhaps(words: Sequence[Field], call: CommandCall, judging: LineAnalysis) -> None:
    """Commands that a wrapper may run, called in a way that is not understood: they count for what is denied."""
    for at, each in enumerate(words[:_PERHAPS]):
        if each.value is not None and not each.value.startswith("-"):
            why = "It is not certain where the command begins that would run."
            judging.commands.append(_command(replace(call, words=tuple(words[at:])), "some", why))


def _is_env(call: CommandCall) -> bool:
    return os.path.basename(call.words[0].value or "") in ("env", "sudo", "doas")  # noqa: PTH119 (text)


def _shell(base: str, call: CommandCall, found: Identity, state: State, judging: LineAnalysis, script: Script) -> None:
    text, file, certain = wrappers.shell_script(call.words[1:])
    if text is not None and text.value is not None:
        if call.before:
            judging.commands.append(_command(call, "some", _set_before(call) or "", program=found.program))
        script(text.value, State(state.here, state.folder, forgotten=state.forgotten), call.piped, call.depth + 1)
        if base != "bash" and (base not in ("sh", "dash", "ash") or any(each in text.value for each in _NOT_POSIX)):
            judging.unclear(f"It is written for {base}, which can read it differently from bash.")
        if not certain:
            judging.commands.append(
                _command(call, "some", f"{base} is called in a way that is not understood.", program=found.program)
            )
        return
    if text is not None:
        judging.unclear(f"What {base} would run is not known before it runs.")
    path = file.value if file is not None and certain and not call.before else None
    if path is None:
        judging.opaque = True
        why = f"{base} runs what it reads as commands."
        judging.commands.append(_command(call, "some", why, program=found.program))
        return
    runs = _in_roots(path, state)
    command = _command(call, "some", f"Runs the script {path}.", (base, path), program=found.program, runs=runs)
    judging.commands.append(_anchored(command, path, state))


def _judged(
    base: str, arguments: Sequence[Field], call: CommandCall, found: Identity, state: State, judging: LineAnalysis
) -> None:
    judgement = _grammar(base, arguments, call, state, judging)
    effect, why, prefix = judgement.effect, judgement.why, judgement.prefix
    if state.folder is None and effect == "none":
        effect, why, prefix = "some", "It is not known in which folder it runs.", None
    if effect == "none" and (other := _taken_instead(base, state, judging)):
        effect, why, prefix = "some", f"{base} starts {other} by its name, which is not the system's here.", None
    if effect == "none" and found.program and state.folder:
        chosen = judging.chosen_by(found.program, state.folder, state)
        if chosen is not None:
            effect, why = "some", f"{chosen} says which {base} runs."
    if call.before:
        effect, why = ("ruin" if effect == "ruin" else "some"), _set_before(call) or why
    command = Command(
        call.text,
        _values(call),
        effect,
        why,
        None if effect == "ruin" else _remembered(call, prefix),
        found.program,
        judgement.reads,
        judgement.runs,
        judgement.network,
        judgement.git,
        len(call.before),
    )
    script = prefix[1] if prefix is not None and len(prefix) == 2 and acts.takes_script(base) else None
    judging.commands.append(_anchored(command, script, state) if script is not None else command)


def _anchored(command: Command, script: str, state: State) -> Command:
    """With the path of what it runs as it is seen from the top of the workspace: a rule for `./run.sh` is not for a
    `run.sh` of whatever folder the line goes to."""
    if state.folder is None or state.folder in state.here.roots or script.startswith(("/", "-")):
        return command
    path = os.path.normpath(state.folder / script)
    root = next((each for each in state.here.roots if each in Path(path).parents), None)
    if root is None:
        return replace(command, prefix=None)
    seen = os.path.relpath(path, root)
    if command.words[command.assigned] == script and "/" not in seen:
        seen = f"./{seen}"  # a path, and no name to be looked for
    words = tuple(seen if each == script else each for each in command.words)
    prefix = command.prefix and tuple(seen if each == script else each for each in command.prefix)
    return replace(command, words=words, prefix=prefix, spelled=command.words)


def _taken_instead(base: str, state: State, judging: LineAnalysis) -> str | None:
    """A program that this one starts by its name, and that would not be the system's: PATH may name folders of the
    workspace."""
    for name in STARTS.get(base, ()):
        found = judging.identify(name, state)
        if found.program is not None and not found.known:
            return name
    return None


def _grammar(
    base: str, arguments: Sequence[Field], call: CommandCall, state: State, judging: LineAnalysis
) -> Judgement:
    here = replace(state.here, folder=state.folder or state.here.folder, until=judging.budget.end)
    return grammar.judge(base, arguments, here, piped=call.piped)


def _unknown(name: str, call: CommandCall, found: Identity, state: State, judging: LineAnalysis) -> Command:
    """A program that is not the system's own: whatever its name, it can do anything."""
    if found.program is None:
        return _command(call, "some", f"There is no program {name}, or it is not certain which.")
    if "/" not in name and not found.runs:
        return _command(call, "some", f"Others can change {found.program}.", program=found.program)
    if "/" in name:
        why = f"Runs {name}, a program {'of the workspace' if found.runs else 'that is not one of the system'}."
    else:
        instead = ", which takes the place of the system's" if found.shadows else ""
        why = f"Runs {name} of the workspace{instead}."
    base = os.path.basename(name)  # noqa: PTH119 (text)
    judgement = _grammar(base, call.words[1:], call, state, judging)
    # Its words tell what they tell of the system's of that name; what no table has is remembered as a whole.
    prefix: tuple[str, ...] | None = (name,)
    if acts.known(base):
        prefix = None if judgement.prefix is None else (name, *judgement.prefix[1:])
    command = _command(
        call,
        "some",
        " ".join(filter(None, [why, _set_before(call)])),
        None if found.shadows else prefix,
        program=found.program,
        runs=(*found.runs, *judgement.runs),
        network=judgement.network,
    )
    if not found.shadows:
        return _anchored(command, name, state) if "/" in name else command
    at = command.assigned
    return replace(command, words=(*command.words[:at], found.program, *command.words[at + 1 :]))


def _command(
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
        _remembered(call, prefix),
        program,
        reads,
        runs,
        network,
        assigned=len(call.before),
    )


def _values(call: CommandCall) -> tuple[str | None, ...]:
    return (*map(_word, call.before), *(each.value for each in call.words))


def _word(each: Assignment) -> str | None:
    name, value = each
    return None if value is None else f"{name}={value}"


def _remembered(call: CommandCall, prefix: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """What a rule would keep of it: with what is set for it, name and value, as that is part of what it does."""
    if prefix is None or not all(starmap(variables.kept, call.before)):
        return None
    return (*(_word(each) or "" for each in call.before), *prefix)


def _set_before(call: CommandCall) -> str | None:
    names = ", ".join(name for name, _ in call.before)
    return f"{names} can change what the program does." if call.before else None


def _in_roots(path: str, state: State) -> tuple[str, ...]:
    if state.folder is None:
        return ()
    try:
        real = (state.folder / path).resolve()
    except (OSError, RuntimeError, ValueError):
        return ()
    inside = any(root in Path(real).parents for root in state.here.roots)
    return (str(real),) if inside else ()
