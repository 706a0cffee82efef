"""Programs that run another one: what that is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from amanu.shell.words import Field

_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[\s\S]*")


@dataclass(frozen=True)
class Wrapped:
    """What a wrapper runs."""

    inner: tuple[Field, ...] = ()
    """The command's words. Empty: none."""
    why: str | None = None
    """Why the wrapper is asked about, too. None: looking at what it runs is enough."""
    script: bool = False
    """`inner` is one word, the text of a shell script."""


@dataclass(frozen=True)
class _Options:
    """How a wrapper's own words are told from those of its command."""

    alone: str = ""
    """Options without a value."""
    valued: str = ""
    """Options with a value, in the same word or the next."""
    operands: int = 0
    """Words of its own before the command."""
    number: bool = False
    """`-10` is an option."""


_TRANSPARENT = {
    "command": _Options("-p"),
    "builtin": _Options(),
    "timeout": _Options("--preserve-status --foreground -v --verbose -p -f", "-k --kill-after -s --signal", 1),
    "nice": _Options("", "-n --adjustment", number=True),
    "ionice": _Options("-t --ignore", "-c --class -n --classdata"),
    "nohup": _Options(),
    "stdbuf": _Options("", "-i --input -o --output -e --error"),
    "time": _Options("-p --portability -v --verbose", "-f --format"),
    "setsid": _Options("-f --fork -w --wait -c --ctty"),
    "env": _Options("", "-u --unset"),
    "chrt": _Options("-b -f -i -o -r", "", 1),
    "taskset": _Options("", "", 1),
}
_XARGS = _Options(
    "-0 --null -r --no-run-if-empty -t --verbose -x --exit",
    "-n --max-args -P --max-procs -L --max-lines -d --delimiter -s --max-chars -I --replace -E -a --arg-file",
)
_ASKED = {
    "sudo": _Options("-n -E -H -b -i -s -k -S -A", "-u -g -h -p -C -D -R -T -U"),
    "doas": _Options("-n -s", "-u -C"),
    "exec": _Options("-c -l", "-a"),
    "flock": _Options("-n -x -s -e -u -o -F", "-w -E", 1),
    "watch": _Options("-b -c -d -e -g -t -x -p", "-n"),
    "parallel": _Options("-k -0 -r", "-j -N -n -I"),
    "chroot": _Options("", "", 1),
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
_OTHERS_TEXT = (
    "su runuser pkexec run0 nsenter script gdb entr at batch tmux screen ssh expect runcon prlimit "
    "setpriv setarch proot firejail bwrap proxychains torsocks start-stop-daemon ssh-agent"
)
_OTHERS = frozenset(_OTHERS_TEXT.split())
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "mksh", "tcsh", "csh", "rbash", "yash"})

NAMES = frozenset({*_TRANSPARENT, *_ASKED, *_OTHERS, "xargs"})
"""What `wrapped` knows."""


def wrapped(name: str, arguments: Sequence[Field]) -> Wrapped:
    """Of one of `NAMES`: the command it runs, as far as it can be told."""
    if name in _OTHERS:
        return Wrapped((), f"{name} runs other programs, or runs them as somebody else.")
    if name == "xargs":
        return _xargs(arguments)
    transparent = name in _TRANSPARENT
    rest, certain = _after_options(arguments, _TRANSPARENT[name] if transparent else _ASKED[name])
    why = None if transparent else f"{name} runs another program in a way of its own."
    if not certain:
        why = f"{name} is called in a way that is not understood."
    if name in ("sudo", "doas"):
        why = f"{name} runs it with the rights of somebody else."
    if name in ("watch",) and len(rest) == 1:
        return Wrapped((rest[0],), why, script=True)
    if name == "flock" and rest and rest[0].value == "-c":
        return Wrapped(tuple(rest[1:2]), why, script=len(rest) > 1)
    return Wrapped(tuple(rest), why)


def executed(arguments: Sequence[Field]) -> tuple[list[Field], list[tuple[Field, ...]]]:
    """Of `find`: its arguments without `-exec … ;`, and the commands in them. `{}` is not known before it runs."""
    rest: list[Field] = []
    commands: list[tuple[Field, ...]] = []
    todo = list(arguments)
    while todo:
        word = todo.pop(0)
        if word.value not in ("-exec", "-execdir", "-ok", "-okdir"):
            rest.append(word)
            continue
        inner: list[Field] = []
        while (
            todo
            and todo[0].value != ";"
            and not (todo[0].value == "+" and inner and inner[-1].raw.strip("\"'") == "{}")
        ):
            each = todo.pop(0)
            found = each.value is not None and "{}" in each.value
            inner.append(Field(None, False, each.raw) if found else each)
        if todo and todo.pop(0).value == "+" and inner:
            inner[-1] = Field(None, True, inner[-1].raw)
        commands.append(tuple(inner))
    return rest, commands


def shell_script(arguments: Sequence[Field]) -> tuple[Field | None, Field | None, bool]:
    """Of a shell: the text after `-c`, the file it runs, and whether the options before them are understood."""
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


def hands_on_words(arguments: Sequence[Field]) -> bool:
    """Of xargs: whether what it reads becomes words behind those of its command, split at blanks or NUL only."""
    rest, certain = _after_options(arguments, _XARGS)
    own = " ".join(each.value or "" for each in arguments[: len(arguments) - len(rest)])
    return certain and bool(re.fullmatch(r"(?:-[0rt]+|--null|--no-run-if-empty|-[nPL] ?[0-9]+| )*", own))


def _xargs(arguments: Sequence[Field]) -> Wrapped:
    rest, certain = _after_options(arguments, _XARGS)
    own = [each.value or "" for each in arguments[: len(arguments) - len(rest)]]
    why = None
    if any(each.startswith(("-a", "--arg-file")) for each in own):
        why = "xargs takes words from a file, which are not known before."
    if not certain:
        why = "xargs is called in a way that is not understood."
    replaced = any(each.startswith(("-I", "--replace")) for each in own)
    if not rest:
        return Wrapped((), why)
    if replaced:  # its mark may be in any word, and is one word there
        mark = next((_mark(own, index) for index, each in enumerate(own) if each.startswith(("-I", "--rep"))), "{}")
        inner = [
            Field(None, False, each.raw) if each.value is not None and mark in each.value else each for each in rest
        ]
        return Wrapped(tuple(inner), why)
    return Wrapped((*rest, Field(None, True, "")), why)


def _mark(own: Sequence[str], index: int) -> str:
    word = own[index]
    if word == "-I":
        return own[index + 1] if index + 1 < len(own) else "{}"
    return word[2:] if word.startswith("-I") else word.partition("=")[2] or "{}"


def _after_options(arguments: Sequence[Field], options: _Options) -> tuple[list[Field], bool]:
    """What is left after the wrapper's own words, and whether all of those are understood."""
    alone, valued = options.alone.split(), options.valued.split()
    rest = list(arguments)
    certain = True
    while rest and (value := rest[0].value or "").startswith("-") and value != "-":
        rest.pop(0)
        if value == "--":
            break
        name, has_value, _ = value.partition("=")
        short = value[:2]
        if value in alone or (options.number and re.fullmatch(r"-[0-9]+", value)):
            continue
        if value in valued:
            certain = certain and bool(rest) and rest[0].value is not None
            rest = rest[1:]
        elif (has_value and name.startswith("--") and name in valued) or (
            not value.startswith("--") and short in valued
        ):
            continue
        elif not (not value.startswith("--") and all(f"-{each}" in alone for each in value[1:])):
            certain = False
    for _ in range(options.operands):
        certain = certain and bool(rest) and rest[0].value is not None
        rest = rest[1:]
    return rest, certain and not (rest and rest[0].value is None)


def assignments(words: Sequence[Field]) -> tuple[list[Field], list[Field]]:
    """Of `env`: the `NAME=value` words before its command, and the command."""
    count = 0
    while count < len(words) and _NAMED.fullmatch(words[count].value or ""):
        count += 1
    return list(words[:count]), list(words[count:])
