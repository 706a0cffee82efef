"""Programs that run another program (`env`, `timeout`, `xargs`, `sudo` …): find the command they run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from amanu.shell.words import Field

_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[\s\S]*")


@dataclass(frozen=True)
class WrappedCommand:
    """The command a wrapper runs."""

    inner: tuple[Field, ...] = ()
    """Program and arguments of the command. Empty when there is none."""
    why: str | None = None
    """Why the wrapper itself needs approval. None when judging the command it runs is enough."""
    script: bool = False
    """`inner` is one word: the text of a shell script."""
    candidates: tuple[Field, ...] = ()
    """When the wrapper's arguments are not understood: words at any of which its command could begin."""
    unset: tuple[str, ...] = ()
    """Variables it unsets."""


@dataclass(frozen=True)
class _Options:
    """Which arguments are the wrapper's own; the rest is its command."""

    alone: str = ""
    """Options without a value."""
    valued: str = ""
    """Options with a value, in the same word or the next."""
    attached: str = ""
    """Options whose value can only be in the same word (`--replace=X`)."""
    operands: int = 0
    """How many operands of its own come before the command."""
    operand: str = r"[\s\S]*"
    """What each of those operands looks like; a word that does not match may be the command."""
    number: bool = False
    """`-10` is an option."""
    odd: str = ""
    """Options without a value that need approval; known only so that its command is found."""
    odd_valued: str = ""


_Own = list[tuple[str, str]]
"""The options of a wrapper's call, in order, with their values; "" for none."""


_NUMBER = r"[0-9][\w.,-]*"
_TRANSPARENT = {
    "command": _Options("-p"),
    "builtin": _Options(),
    "timeout": _Options(
        "--preserve-status --foreground -v --verbose -p -f", "-k --kill-after -s --signal", operands=1, operand=_NUMBER
    ),
    "nice": _Options("", "-n --adjustment", number=True),
    "ionice": _Options("-t --ignore", "-c --class -n --classdata"),
    "nohup": _Options(),
    "stdbuf": _Options("", "-i --input -o --output -e --error"),
    "time": _Options("-p --portability -v --verbose", "-f --format", odd="-a --append -q", odd_valued="-o --output"),
    "setsid": _Options("-w --wait", odd="-f --fork -c --ctty"),  # -f leaves a process behind
    "env": _Options(
        "",
        "-u --unset",
        odd="-i --ignore-environment -0 --null -v --debug",
        odd_valued="-C --chdir -S --split-string -P",
    ),
    "chrt": _Options("-b -f -i -o -r", operands=1, operand=_NUMBER),
    "taskset": _Options(operands=1, operand=_NUMBER),
}
_XARGS = _Options(
    "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
    "-n --max-args -P --max-procs -L -d --delimiter -s --max-chars -I -E -a --arg-file",
    "--max-lines --replace",
)
_ASKED = {
    "sudo": _Options("-n -E -H -b -i -s -k -S -A", "-u -g -h -p -C -D -R -T -U"),
    "doas": _Options("-n -s", "-u -C"),
    "exec": _Options("-c -l", "-a"),
    "flock": _Options("-n -x -s -e -u -o -F", "-w -E", operands=1),
    "watch": _Options("-b -c -d -e -g -t -x -p", "-n"),
    "parallel": _Options("-k -0 -r", "-j -N -n -I"),
    "chroot": _Options("", "", operands=1),
    "unshare": _Options("-m -u -i -n -p -U -C -r -f"),
    "strace": _Options("-f -ff -c -q", "-e -o -p -s"),
    "ltrace": _Options("-f -c", "-e -o -p -s"),
    "numactl": _Options("", "-N -m -C"),
    "fakeroot": _Options(),
    "busybox": _Options(),
    "xvfb-run": _Options("-a", "-s -n"),
    "dbus-run-session": _Options(),
    "systemd-run": _Options("--user --scope --wait --pty"),
    "unbuffer": _Options("-p"),
    "caffeinate": _Options("-d -i -m -s -u", "-t -w"),
}
_SPLIT = ("-S", "--split-string")
_OTHERS_TEXT = (
    "su runuser pkexec run0 nsenter script gdb entr at batch tmux screen ssh expect runcon prlimit "
    "setpriv setarch proot firejail bwrap proxychains torsocks start-stop-daemon ssh-agent"
)
_OTHERS = frozenset(_OTHERS_TEXT.split())
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "mksh", "tcsh", "csh", "rbash", "yash"})

NAMES = frozenset({*_TRANSPARENT, *_ASKED, *_OTHERS, "xargs"})
"""The wrappers that `unwrap` knows."""


def unwrap(name: str, arguments: Sequence[Field]) -> WrappedCommand:
    """The command that one of `NAMES` runs, as far as that can be determined."""
    if name in _OTHERS:
        return WrappedCommand((), f"{name} runs other programs, possibly as another user.", candidates=tuple(arguments))
    if name == "xargs":
        return _xargs(arguments)
    transparent = name in _TRANSPARENT
    command, certain, options = _after_options(arguments, _TRANSPARENT[name] if transparent else _ASKED[name])
    why = None if transparent else f"{name} changes how another program runs."
    if not certain:
        why = f"{name} is called with arguments Amanu does not understand."
    if name in ("sudo", "doas"):
        why = f"{name} runs it with another user's privileges."
    candidates = () if certain else tuple(command[1:])
    if name == "env":
        command = [*_split_env_string([value for option, value in options if option in _SPLIT]), *command]
    unset = tuple(value for option, value in options if name == "env" and option in ("-u", "--unset"))
    if name in ("watch",) and len(command) == 1:
        return WrappedCommand((command[0],), why, script=True)
    if name == "flock" and command and command[0].value == "-c":
        return WrappedCommand(tuple(command[1:2]), why, script=len(command) > 1)
    return WrappedCommand(tuple(command), why, candidates=candidates, unset=unset)


def split_exec(arguments: Sequence[Field]) -> tuple[list[Field], list[tuple[Field, ...]]]:
    """The arguments of `find` without `-exec … ;`, and the commands of those. The value of `{}` is unknown. Unknown
    words in a command are among the arguments too, since they could end it."""
    find_arguments: list[Field] = []
    commands: list[tuple[Field, ...]] = []
    todo = list(arguments)
    while todo:
        word = todo.pop(0)
        if word.value not in ("-exec", "-execdir", "-ok", "-okdir"):
            find_arguments.append(word)
            continue
        inner: list[Field] = []
        marked = False
        while (
            todo
            and todo[0].value != ";"
            and not (todo[0].value == "+" and marked)  # by the value find receives, however it is quoted: `\\{} +`
        ):
            argument = todo.pop(0)
            marked = argument.value == "{}"
            if argument.value is None:  # it could end the command, so what follows may be for find
                find_arguments.append(argument)
            holds_path = argument.value is not None and "{}" in argument.value
            inner.append(Field(None, False, argument.raw) if holds_path else argument)
        if todo and todo.pop(0).value == "+" and inner:
            inner[-1] = Field(None, True, inner[-1].raw)
        commands.append(tuple(inner))
    return find_arguments, commands


def shell_script(arguments: Sequence[Field]) -> tuple[Field | None, Field | None, bool]:
    """What a shell runs: the text after `-c`, or a script file; and whether the options before are understood."""
    certain = True
    for index, word in enumerate(arguments):
        value = word.value
        if value is None:
            return None, None, False
        if value.startswith("--") or not value.startswith(("-", "+")) or value == "-":
            return None, (word if not value.startswith("-") else None), certain and not value.startswith("-")
        if "c" in value[1:]:
            script = arguments[index + 1] if index + 1 < len(arguments) else None
            return script, None, certain and bool(re.fullmatch(r"-[eux]*c[eux]*", value))
        certain = certain and bool(re.fullmatch(r"-[eux]+", value))
    return None, None, certain


def _xargs(arguments: Sequence[Field]) -> WrappedCommand:
    command, certain, options = _after_options(arguments, _XARGS)
    why = None
    if any(name in ("-a", "--arg-file") for name, _ in options):
        why = "xargs takes arguments from a file, so they are not known in advance."
    if not certain:
        why = "xargs is called with arguments Amanu does not understand."
    if not command:
        return WrappedCommand((), why)
    # The last of several marks counts, and a later -n or -L cancels it: every case is assumed possible.
    marks = [value or "{}" for name, value in options if name in ("-I", "--replace")]
    appended = not marks or any(name in ("-n", "--max-args", "-L", "--max-lines") for name, _ in options)
    inner = [
        Field(None, False, word.raw) if word.value is not None and any(mark in word.value for mark in marks) else word
        for word in command
    ]
    return WrappedCommand(
        (*inner, Field(None, True, "")) if appended else tuple(inner),
        why,
        candidates=() if certain else tuple(command[1:]),
    )


def _split_env_string(texts: Sequence[str]) -> list[Field]:
    """Roughly the words `env -S` makes of a text, so that deny rules apply to them."""
    return [Field(piece, False, piece) for text in texts for piece in text.replace("'", " ").replace('"', " ").split()]


def _after_options(arguments: Sequence[Field], options: _Options) -> tuple[list[Field], bool, _Own]:
    """The words after the wrapper's own, whether all of its own are understood, and its options."""
    alone, valued, attached = options.alone.split(), options.valued.split(), options.attached.split()
    odd, odd_valued = options.odd.split(), options.odd_valued.split()
    remaining = list(arguments)
    given_options: _Own = []
    certain = True
    while remaining and (value := remaining[0].value or "").startswith("-") and value != "-":
        remaining.pop(0)
        if value == "--":
            break
        name, has_value, attached_value = value.partition("=")
        long = value.startswith("--")
        short = "" if long else value[:2]
        if value in alone or (options.number and re.fullmatch(r"-[0-9]+", value)):
            continue
        if value in valued or value in odd_valued:
            certain = certain and value in valued and bool(remaining) and remaining[0].value is not None
            given_options.append((value, (remaining[0].value or "") if remaining else ""))
            remaining = remaining[1:]
        elif value in attached or (long and has_value and name in (*valued, *attached, *odd_valued)):
            certain = certain and name not in odd_valued
            given_options.append((name, attached_value))
        elif short in valued or short in odd_valued:
            certain = certain and short in valued
            given_options.append((short, value[2:]))
        elif value in odd or long or not all(f"-{letter}" in alone for letter in value[1:]):
            certain = False
    for _ in range(options.operands):
        certain = certain and bool(remaining) and re.fullmatch(options.operand, remaining[0].value or "") is not None
        remaining = remaining[1:]
    return remaining, certain and not (remaining and remaining[0].value is None), given_options


def split_assignments(argv: Sequence[Field]) -> tuple[list[Field], list[Field]]:
    """The `NAME=value` words before the command of `env`, and the command."""
    count = 0
    while count < len(argv) and _NAMED.fullmatch(argv[count].value or ""):
        count += 1
    return list(argv[:count]), list(argv[count:])
