"""Command lines, from a seed: calls of programs (`calls.py`) put behind wrappers, into compounds, substitutions and
redirections, written with all the quoting there is; and lines that are known, mangled.

Most are meant to be automatic, with something that must not be in one of a few.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from bench.soundness.calls import DORMANT, FILES, ODD, TEXTS, call, operand
from bench.soundness.words import listed, table

_CONSENT = Path(__file__).parents[1] / "consent"
_PLAIN = re.compile(r"[\w./:@%+=,-]+")
_DEEPEST = 3
_PIECES, _NOISE, _SOUP = listed("pieces"), listed("noise"), listed("soup")
_SHAPES = table("shapes")
_ASSIGNMENTS, _FILTERS, _USES = listed("assignments"), listed("filters"), listed("uses")


class Lines:
    """The lines of a seed; each by its number, for itself."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known = _known()

    def line(self, number: int) -> tuple[str, str]:
        """A line, and the kind of workspace it is for."""
        random = Random(f"{self._seed}:{number}")
        kind = "hostile" if random.random() < 0.3 else "plain"
        chance = random.random()
        if chance < 0.1:
            return _soup(random), kind
        if chance < 0.28:
            return self._mangled(random), kind
        line = _statement(random, 0)
        if random.random() < 0.04:
            line = _pierced(line, random)
        elif "touch pwned" in line and random.random() < 0.4:
            line = _noisy(line, random)
        return line, kind

    def _mangled(self, random: Random) -> str:
        """A line of the corpus, of the vectors, or one that must never run unasked; mostly changed."""
        line = random.choice(self._known)
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            line = random.choice(_MANGLES)(line, random, self._known)
        return line


def _soup(random: Random) -> str:
    """What the shell's syntax is made of, in any order, with a command in it that may or may not be one."""
    pieces = ["echo"]
    for _ in range(random.randrange(3, 12)):
        pieces.append(random.choice(("touch pwned", random.choice(_SOUP), random.choice(_SOUP))).replace(";", " "))
        if pieces[-1] == " ":
            pieces[-1] = ";"
    return "".join(each + random.choice(("", "", " ", " ", " ", "\n", "\\\n")) for each in pieces)


def _noisy(line: str, random: Random) -> str:
    """With a sign of the shell's syntax too many, or one too few."""
    at = random.randrange(len(line) + 1)
    return line[:at] + random.choice((*_NOISE, "")) + line[at + random.choice((0, 1)) :]


def _known() -> list[str]:
    with (_CONSENT / "corpus.toml").open("rb") as file:
        corpus = [line for part in tomllib.load(file)["part"] for line in part["lines"].strip().splitlines()]
    vectors = (_CONSENT / "vectors.txt").read_text("utf-8").strip().splitlines()
    return [*corpus, *corpus, *vectors]


def _statement(random: Random, depth: int) -> str:
    if depth >= _DEEPEST or random.random() < 0.42:
        return _simple(random, depth)
    return _filled(random.choice(_SHAPES["compounds"]), random, depth + 1)


def _simple(random: Random, depth: int) -> str:
    line = _written(call(random), random)
    if random.random() < 0.22:
        line = _filled(random.choice(_SHAPES["wrappers"]), random, depth, line)
    if random.random() < 0.07:
        line = f"{random.choice(_ASSIGNMENTS)} {line}"
    for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2))):
        line = f"{line} {_filled(random.choice(_SHAPES['redirections']), random, depth)}"
    return line


def _filled(shape: str, random: Random, depth: int, line: str = "") -> str:
    """A shape with something in its places. `line`: what a wrapper is for, what an unquoted word is made of."""

    def fill(place: "re.Match[str]") -> str:
        if place[1] is not None:
            return random.choice(place[1].split("¦"))
        return _PLACES[place[2]](random, depth, line)

    return _PLACE.sub(fill, shape)


def _written(words: list[str], random: Random) -> str:
    return " ".join([words[0], *(_word(each, random) for each in words[1:])])


def _word(word: str, random: Random) -> str:
    """A word, quoted in one of many ways; now and then not quoted, so that the shell makes of it what it likes."""
    chance = random.random()
    if _PLAIN.fullmatch(word) and chance < 0.8:
        return word
    if chance < 0.83:
        return _filled(random.choice(_SHAPES["unquoted"]), random, 0, word)
    if chance < 0.93:
        return shlex.quote(word)
    return random.choice(_QUOTES)(word)


def _ansi(word: str) -> str:
    return "$'" + "".join(each if each.isalnum() else f"\\x{ord(each):02x}" for each in word) + "'"


def _double(word: str) -> str:
    return '"' + re.sub(r'([$`"\\])', r"\\\1", word) + '"'


def _backslashes(word: str) -> str:
    return re.sub(r"([^\w./-])", r"\\\1", word).replace("\\\n", "'\n'") or "''"


def _halves(word: str) -> str:
    at = len(word) // 2
    return f"{shlex.quote(word[:at])}{_double(word[at:])}"


def _continued(word: str) -> str:
    at = len(word) // 2
    return f"{shlex.quote(word[:at])}\\\n{shlex.quote(word[at:])}"


_QUOTES: tuple[Callable[[str], str], ...] = (_ansi, _double, _backslashes, _halves, _continued)


def _pipe(random: Random, depth: int) -> str:
    line = _statement(random, depth)
    for _ in range(random.choice((1, 1, 2))):
        line += f" | {_filter(random)}"
    return line


def _filter(random: Random) -> str:
    chance = random.random()
    if chance < 0.6:
        return random.choice(_FILTERS)
    if chance < 0.7:
        return random.choice(_SHAPES["filters"])
    return _simple(random, _DEEPEST)


def _body(random: Random) -> str:
    return _call_with_x(random) if random.random() < 0.8 else _statement(random, _DEEPEST - 1)


def _call_with_x(random: Random) -> str:
    words = call(random)
    line = [words[0], *(_word(each, random) for each in words[1:])]
    given = random.choice(_SHAPES["given"])
    if random.random() < 0.85:
        line.insert(random.randrange(1, len(line) + 1), given)
    elif random.random() < 0.3:
        line[0] = "$x"
    return " ".join(line)


_PLACE = re.compile("«([^»]*)»|‹([a-z ]+)›")
_PLACES: Mapping[str, Callable[[Random, int, str], str]] = {
    "statement": lambda random, depth, line: _statement(random, depth),
    "deep statement": lambda random, depth, line: _statement(random, depth + 2),
    "pipe": lambda random, depth, line: _pipe(random, depth),
    "filter": lambda random, depth, line: _filter(random),
    "body": lambda random, depth, line: _body(random),
    "call with x": lambda random, depth, line: _call_with_x(random),
    "use of x": lambda random, depth, line: random.choice(_USES),
    "line": lambda random, depth, line: line,
    "quoted line": lambda random, depth, line: shlex.quote(line),
    "doubly quoted line": lambda random, depth, line: _double(line),
    "itself": lambda random, depth, line: line,
    "bare": lambda random, depth, line: line or "''",
    "other quotes": lambda random, depth, line: f'"{line}"' if '"' not in line else f"'{line}'",
    "operand": lambda random, depth, line: operand(random),
    "word": lambda random, depth, line: _word(operand(random), random),
    "target": lambda random, depth, line: _word(random.choice((*FILES, *ODD, "pwned", "pwned")), random),
    "place": lambda random, depth, line: _word(random.choice(_SHAPES["places"]), random),
    "value": lambda random, depth, line: _word(random.choice((*FILES, *TEXTS)), random),
    "text": lambda random, depth, line: random.choice(TEXTS),
    "text word": lambda random, depth, line: _word(random.choice(TEXTS), random),
    "any text": lambda random, depth, line: random.choice((*TEXTS, *DORMANT)),
    "here text": lambda random, depth, line: random.choice((*TEXTS, *DORMANT, *_SHAPES["here_texts"])),
}


def _pierced(line: str, random: Random) -> str:
    at = random.randrange(len(line) + 1)
    return line[:at] + random.choice(_PIECES) + line[at:]


Mangle = Callable[[str, Random, list[str]], str]


def _swapped(line: str, random: Random, known: list[str]) -> str:
    words = line.split(" ")
    words[random.randrange(len(words))] = random.choice(random.choice(known).split(" "))
    return " ".join(words)


def _shortened(line: str, random: Random, known: list[str]) -> str:
    words = line.split(" ")
    del words[random.randrange(len(words))]
    return " ".join(words) or "ls"


def _joined(line: str, random: Random, known: list[str]) -> str:
    return line + random.choice(("; ", " | ", " && ", " & ", "\n", " $(", " <(")) + random.choice(known)


def _cut(line: str, random: Random, known: list[str]) -> str:
    at = random.randrange(len(line) + 1)
    return line[:at] + line[at + 1 :]


def _real(line: str, random: Random, known: list[str]) -> str:
    """Its files are others, which are there."""
    words = line.split(" ")
    at = random.randrange(len(words))
    if at:
        words[at] = _word(operand(random), random)
    return " ".join(words)


def _put(line: str, random: Random, known: list[str]) -> str:
    return _pierced(line, random)


_MANGLES: tuple[Mangle, ...] = (_swapped, _shortened, _joined, _cut, _real, _real, _put)
