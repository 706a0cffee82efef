"""Calls of one program: with the options that its own help names, with near misses, and by hand where a script or an
expression decides. A call is its words, not yet quoted."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

from amanu.shell.git import LOOKS
from amanu.shell.harmless import PROGRAMS
from bench.soundness.sandbox import folder
from bench.soundness.words import listed, table

Call = list[str]

FILES, FOLDERS, ODD = listed("files"), listed("folders"), listed("odd")
TEXTS, DORMANT = listed("texts"), listed("dormant")
_COMMON, _ACTS = listed("common"), listed("acts")
_HEADS = sorted(PROGRAMS)
_LOOKS = sorted(LOOKS)
_GIT, _SCRIPTS, _PARTS, _WHOLE, _DANGERS = map(table, ("git", "scripts", "words", "whole", "dangers"))
_VERBS = {
    "stash": "list show",
    "reflog": "show exists",
    "remote": "get-url -v",
    "worktree": "list",
    "notes": "list show",
}
_OPTION = re.compile(r"(?<![\w-])(-[A-Za-z0-9]|--[a-z][\w-]+)(=|\[=)?")


def call(random: Random) -> Call:
    """A program and its words."""
    chance = random.random()
    if chance < 0.03:
        return random.choice(_ACTS).split()
    if chance < 0.25:
        return ["git", *_git(random)]
    name = random.choice(_COMMON if chance < 0.6 else _HEADS)
    words = _spoiled(name, _words(name, random), random)
    return [_named(name, random), *words]


def operand(random: Random) -> str:
    chance = random.random()
    return random.choice(FILES if chance < 0.7 else FOLDERS if chance < 0.85 else ODD)


def _named(name: str, random: Random) -> str:
    chance = random.random()
    if chance < 0.96:
        return name
    return random.choice(("/usr/bin/", "./", "bin/", "/bin/", "../", f"{folder('tools')}/", "")) + name


def _words(name: str, random: Random) -> Call:
    made = _BY_HAND.get(name)
    if made is not None:
        return made(random)
    return _with_options(_options(name), random)


@cache
def _options(*command: str) -> Sequence[tuple[str, str]]:
    """The options in a program's help, and what follows each that takes a value in the same word."""
    try:
        done = subprocess.run(
            [*command, "-h" if command[0] == "git" else "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return sorted(set(_OPTION.findall(done.stdout + done.stderr)))


def _with_options(known: Sequence[tuple[str, str]], random: Random) -> Call:
    words: Call = []
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        words += _option(*random.choice(known), random) if known else []
    if random.random() < 0.1:
        words.append(f"-{random.choice('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789')}")
    if len(words) > 1 and random.random() < 0.15:
        words = _clustered(words)
    rest = [operand(random) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
    if random.random() < 0.3:
        rest.insert(0, random.choice(TEXTS))
    if random.random() < 0.06:
        words.append("--")
    elif random.random() < 0.1:
        return [*rest, *words]
    return [*words, *rest]


def _option(name: str, sign: str, random: Random) -> Call:
    """An option, given in one of the ways there are, or nearly."""
    value = random.choice(TEXTS) if random.random() < 0.7 else operand(random)
    if name.startswith("--"):
        if random.random() < 0.06:
            name = name[: random.randrange(3, len(name) + 1)]  # GNU takes beginnings
        return [f"{name}={value}"] if sign and random.random() < 0.7 else [name, *([value] if sign else [])]
    return [name] if random.random() < 0.6 else [f"{name}{value}"] if random.random() < 0.5 else [name, value]


def _clustered(words: Call) -> Call:
    flags = [each[1] for each in words if len(each) == 2 and each[0] == "-"]
    rest = [each for each in words if not (len(each) == 2 and each[0] == "-")]
    return [f"-{''.join(flags)}", *rest] if len(flags) > 1 else words


def _spoiled(name: str, words: Call, random: Random) -> Call:
    """Now and then with a use that is dangerous."""
    dangers = _DANGERS.get(name)
    if dangers and random.random() < 0.06:
        more = random.choice(dangers).split(" ")
        at = random.randrange(len(words) + 1)
        return [*words[:at], *more, *words[at:]]
    return words


def _git(random: Random) -> Call:
    before: Call = []
    if random.random() < 0.12:
        before = random.choice(_GIT["globals"]).split()
    if random.random() < 0.06:
        return [*before, *random.choice(_DANGERS["git"]).split()]
    name = random.choice(_LOOKS) if random.random() < 0.6 else random.choice(_GIT["usual"])
    words = _with_options(_options("git", name), random)
    if name in _VERBS and random.random() < 0.85:
        words = [random.choice(_VERBS[name].split()), *words]
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        words.append(random.choice(_GIT["revisions"]) if random.random() < 0.7 else operand(random))
    if random.random() < 0.2:
        words += ["--", operand(random)]
    return [*before, name, *words]


def _find(random: Random) -> Call:
    words = [random.choice((*FOLDERS, *FOLDERS, *ODD)) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        words += random.choice(_PARTS["find"]).split("|")
    return words


def _with_script(scripts: Sequence[str], options: Sequence[str]) -> Callable[[Random], Call]:
    def made(random: Random) -> Call:
        words = [each for each in options if random.random() < 1.2 / len(options)]
        words.append(random.choice(scripts))
        return [*words, *(operand(random) for _ in range(random.choice((0, 1, 1, 2))))]

    return made


def _split(texts: Sequence[str]) -> Callable[[Random], Call]:
    return lambda random: random.choice(texts).split(" ")


def _tested(random: Random) -> Call:
    return random.choice(_WHOLE["test"]).split()


def _version(random: Random) -> Call:
    return [random.choice(_WHOLE["version"])]


def _echo(random: Random) -> Call:
    return [random.choice((*TEXTS, *FILES, *DORMANT, "-e", "-n", "\\c")) for _ in range(random.randrange(4))]


_BY_HAND: Mapping[str, Callable[[Random], Call]] = {
    "find": _find,
    "sed": _with_script(_SCRIPTS["sed"], ("-n", "-n", "-E", "-e", "-s", "-z", "--posix", "-u")),
    "awk": _with_script(_SCRIPTS["awk"], ("-F,", "-v", "x=1", "-F:")),
    "jq": _with_script(_SCRIPTS["jq"], ("-r", "-c", "-n", "-S", "-s", "-R", "--tab")),
    "printf": lambda random: [random.choice(_PARTS["printf"]), *_echo(random)],
    "echo": _echo,
    "test": _tested,
    "[": lambda random: [*_tested(random), "]"],
    "sleep": lambda random: [random.choice(_WHOLE["sleep"])],
    "expr": _split(_WHOLE["expr"]),
    "seq": _split(_WHOLE["seq"]),
    "env": _split(_WHOLE["env"]),
    **dict.fromkeys(("cc", "clang", "cmake", "g++", "gcc", "make", "node", "perl", "python", "python3"), _version),
}
