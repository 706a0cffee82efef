"""Calls of one program: made from the tables of `amanu.shell.programs`, with near misses, and by hand where there is
no table. A call is its words, not yet quoted."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from amanu.shell.programs import HARMLESS
from amanu.shell.programs.git import LOOKS
from amanu.shell.programs.packages import _PIP_FREEZE, _PIP_LIST, _PIP_SHOW, JSON_TOOL  # pyright: ignore[reportPrivateUsage]
from amanu.shell.programs.search import _AG, _GREP, _RIPGREP  # pyright: ignore[reportPrivateUsage]
from amanu.shell.spec import Use
from bench.soundness.sandbox import folder
from bench.soundness.words import listed, table

Call = list[str]

FILES, FOLDERS, ODD = listed("files"), listed("folders"), listed("odd")
TEXTS, DORMANT = listed("texts"), listed("dormant")
_COMMON, _SLOW, _ACTS = listed("common"), listed("slow"), listed("acts")
_HEADS = sorted({*HARMLESS} - {*_SLOW})
_LOOKS = sorted(LOOKS)
_GIT, _SCRIPTS, _PARTS, _WHOLE, _DANGERS = map(table, ("git", "scripts", "words", "whole", "dangers"))
_VERBS = {
    "stash": "list show",
    "reflog": "show exists",
    "remote": "get-url -v",
    "worktree": "list",
    "notes": "list show",
}


def call(random: Random) -> Call:
    """A program and its words."""
    chance = random.random()
    if chance < 0.03:
        return random.choice(_ACTS).split()
    if chance < 0.25:
        return ["git", *_git(random)]
    name = random.choice(_COMMON if chance < 0.55 else _HEADS if chance < 0.99 else _SLOW)
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
    made = _version if name in _VERSIONED else _BY_HAND.get(name)
    if made is not None:
        return made(random)
    use = HARMLESS.get(name)
    if isinstance(use, Use):
        return _of_table(use.options, use.operands, random, digits=use.digits)
    return [random.choice((*TEXTS, *FILES)) for _ in range(random.randrange(4))]


def _of_table(options: str, operands: Sequence[str], random: Random, *, digits: bool = False) -> Call:
    words: Call = []
    known = options.split()
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        if known and random.random() < 0.97:
            words += _option(random.choice(known), random)
        else:
            words += _option(random.choice(random.choice(_TABLES)), random)
    if digits and random.random() < 0.1:
        words.append(f"-{random.randrange(20)}")
    if len(words) > 1 and random.random() < 0.15:
        words = _clustered(words)
    rest: Call = []
    for kind in operands:
        for _ in range(random.choice((1, 1, 2, 3)) if kind.endswith("*") else 1):
            rest.append(_value(kind.rstrip("*"), random))
    if random.random() < 0.08:
        rest.append(operand(random))
    if rest and random.random() < 0.15:
        rest.pop()
    if random.random() < 0.06:
        words.append("--")
    elif random.random() < 0.1:
        return [*rest, *words]
    return [*words, *rest]


def _option(entry: str, random: Random) -> Call:
    """An option as a table names it, given in one of the ways there are, or nearly."""
    name, how, kind = entry, "", ""
    for sign in ("?=", "="):
        if sign in entry:
            name, _, kind = entry.partition(sign)
            how = sign
            break
    if name.startswith("--") and random.random() < 0.06:
        name = name[: random.randrange(3, len(name) + 1)]  # GNU takes beginnings
    if not how:
        return [name] if random.random() < 0.98 else [f"{name}={random.choice(TEXTS)}"]
    value = _value(kind or "text", random)
    if kind == "" and random.random() < 0.5:
        value = str(random.randrange(12))
    if how == "?=" and random.random() < 0.5:
        return [name]
    if name.startswith("--"):
        return [f"{name}={value}"] if how == "?=" or random.random() < 0.7 else [name, value]
    return [f"{name}{value}"] if how == "?=" or random.random() < 0.5 else [name, value]


def _clustered(words: Call) -> Call:
    flags = [each[1] for each in words if len(each) == 2 and each[0] == "-"]
    rest = [each for each in words if not (len(each) == 2 and each[0] == "-")]
    return [f"-{''.join(flags)}", *rest] if len(flags) > 1 else words


def _value(kind: str, random: Random) -> str:
    if kind == "text":
        return random.choice(TEXTS) if random.random() < 0.9 else random.choice(DORMANT)
    if kind == "tree" or (kind == "name" and random.random() < 0.4):
        return random.choice(FOLDERS)
    return operand(random)


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
    words = _of_table(LOOKS[name].options, (), random, digits=LOOKS[name].digits)
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


def _searching(use: Use) -> Callable[[Random], Call]:
    def made(random: Random) -> Call:
        words = _of_table(use.options, ("text",), random)
        for _ in range(random.choice((0, 1, 1, 2))):
            words.append(operand(random) if random.random() < 0.8 else random.choice(FOLDERS))
        return words

    return made


def _split(texts: Sequence[str]) -> Callable[[Random], Call]:
    return lambda random: random.choice(texts).split(" ")


def _several(texts: Sequence[str]) -> Callable[[Random], Call]:
    return lambda random: [word for _ in range(random.choice((1, 2, 3))) for word in random.choice(texts).split("|")]


def _pip(random: Random) -> Call:
    verb, use = random.choice((("list", _PIP_LIST), ("show", _PIP_SHOW), ("freeze", _PIP_FREEZE)))
    if random.random() < 0.3:
        return [random.choice(_WHOLE["pip"])]
    return [verb, *_of_table(use.options, ("text",) if verb == "show" else (), random)]


def _python(random: Random) -> Call:
    if random.random() < 0.2:
        return [random.choice(_WHOLE["version"])]
    return ["-m", "json.tool", *_of_table(JSON_TOOL.options, JSON_TOOL.operands, random)]


def _tested(random: Random) -> Call:
    return random.choice(_WHOLE["test"]).split()


def _version(random: Random) -> Call:
    return [random.choice(_WHOLE["version"])]


def _echo(random: Random) -> Call:
    return [random.choice((*TEXTS, *FILES, *DORMANT, "-e", "-n", "\\c")) for _ in range(random.randrange(4))]


_GREPS = _searching(_GREP)
_AWKS = _with_script(_SCRIPTS["awk"], ("-F,", "-v", "x=1", "-F:"))
_SEDS = _with_script(_SCRIPTS["sed"], ("-n", "-n", "-E", "-e", "-s", "-z", "--posix", "-u"))
_BY_HAND: Mapping[str, Callable[[Random], Call]] = {
    "find": _find,
    **{name: _GREPS for name in ("grep", "egrep", "fgrep")},
    "rg": _searching(_RIPGREP),
    "ag": _searching(_AG),
    **{name: _SEDS for name in ("sed", "gsed")},
    **{name: _AWKS for name in ("awk", "gawk", "mawk")},
    "jq": _with_script(_SCRIPTS["jq"], ("-r", "-c", "-n", "-S", "-s", "-R", "--tab")),
    "printf": lambda random: [random.choice(_PARTS["printf"]), *_echo(random)],
    "echo": _echo,
    "test": _tested,
    "[": lambda random: [*_tested(random), "]"],
    "ps": _several(_PARTS["ps"]),
    "tar": _split(_WHOLE["tar"]),
    "xxd": _several(_PARTS["xxd"]),
    "sleep": lambda random: [random.choice(_WHOLE["sleep"])],
    "pip": _pip,
    "pip3": _pip,
    "python": _python,
    "python3": _python,
    "expr": _split(_WHOLE["expr"]),
    "seq": _split(_WHOLE["seq"]),
    "printenv": _split(_WHOLE["printenv"]),
    "env": _split(_WHOLE["env"]),
    "git": _git,
}
_ANYTHING = ("basename", "dirname", "readlink", ":", "true", "false", "factor")
_VERSIONED = [
    name for name, use in HARMLESS.items() if not isinstance(use, Use) and name not in (*_BY_HAND, *_ANYTHING)
]
_TABLES = [each.options.split() for each in HARMLESS.values() if isinstance(each, Use) and each.options]
