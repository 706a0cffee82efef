"""Globs as regular expressions that never take long, whatever the glob and the name: both may be hostile.

A wildcard that another one of the same reach follows never needs a second try: what it left over, the later one takes.
So every wildcard but the last of its reach is atomic (`(?>…)`), and the time is at most quadratic in the name.
"""

import re
from functools import lru_cache

from amanu.core.tool import ToolError

_LONGEST = 1000  # characters of a glob
_ALTERNATIVES = 100  # globs without braces that one with braces may stand for
_TOO_MANY = f"The glob stands for more than {_ALTERNATIVES} others. Use a simpler one."
_STARS = re.compile(r"\*+")
_BRACKET = re.compile(r"\[([!^]?)(\]?[^\]/]+|\])\]")

_BRACES = {"{": r"\{", "}": r"\}"}

Tokens = list[str]
"""`*` `**` `/` `{` `,` `}` as they are written; everything else as an expression for one character."""


@lru_cache(maxsize=64)
def glob_pattern(pattern: str) -> re.Pattern[str]:
    """A glob as an expression for the whole of a path with `/`: `*` and `?` stop at `/`, `**` does not, `[a-z]`,
    `[!a]`, `{a,b}`. A pattern without `/` fits the file's name in any folder, as in `.gitignore`. Raises `ToolError`
    for one that is too long or stands for too much."""
    if len(pattern) > _LONGEST:
        raise ToolError(f"The glob is longer than {_LONGEST} characters. Use a shorter one.")
    pattern = pattern.removeprefix("./")
    pattern = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
    plain = [variant for tokens in _without_braces(_tokens(pattern)) for variant in _within_folders(tokens)]
    if len(plain) > _ALTERNATIVES:
        raise ToolError(_TOO_MANY)
    return re.compile("|".join(map(_expression, plain)), re.DOTALL)


def _tokens(pattern: str) -> Tokens:
    out: Tokens = []
    index = 0
    while index < len(pattern):
        if stars := _STARS.match(pattern, index):
            out.append("**" if len(stars[0]) > 1 else "*")
            index = stars.end()
        elif (bracket := _BRACKET.match(pattern, index)) and (char_class := _one_of(bracket[1], bracket[2])):
            out.append(char_class)
            index = bracket.end()
        elif pattern[index] == "\\" and index + 1 < len(pattern):
            out.append("/" if pattern[index + 1] == "/" else f"(?:{re.escape(pattern[index + 1])})")
            index += 2
        else:
            character = pattern[index]
            out.append("[^/]" if character == "?" else character if character in "/{,}" else re.escape(character))
            index += 1
    return out


def _without_braces(tokens: Tokens) -> list[Tokens]:
    """`a{b,c}` → `ab`, `ac`. A brace without its partner means itself."""
    for start, token in enumerate(tokens):
        end = _closing(tokens, start) if token == "{" else None
        if end is None:
            continue
        tails = _without_braces(tokens[end + 1 :])
        variants: list[Tokens] = []
        for option in _options(tokens[start + 1 : end]):
            variants += [[*tokens[:start], *middle, *tail] for middle in _without_braces(option) for tail in tails]
            if len(variants) > _ALTERNATIVES:
                raise ToolError(_TOO_MANY)
        return variants
    return [tokens]


def _within_folders(tokens: Tokens) -> list[Tokens]:
    """`src/**.py`, where `**` is only part of a name → `src/*.py`, `src/*/**/*.py`."""
    for index, token in enumerate(tokens):
        alone = (index == 0 or tokens[index - 1] == "/") and (index + 1 == len(tokens) or tokens[index + 1] == "/")
        if token == "**" and not alone:
            tails = _within_folders(["*", *tokens[index + 1 :]])
            if len(tails) > _ALTERNATIVES:
                raise ToolError(_TOO_MANY)
            return [[*tokens[:index], *middle, *tail] for tail in tails for middle in ([], ["*", "/", "**", "/"])]
    return [tokens]


def _closing(tokens: Tokens, start: int) -> int | None:
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] == "{") - (tokens[index] == "}")
        if depth == 0:
            return index
    return None


def _options(tokens: Tokens) -> list[Tokens]:
    """What commas outside of inner braces part."""
    options: list[Tokens] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        if token == "," and depth == 0:
            options.append([])
        else:
            options[-1].append(token)
    return options


def _expression(tokens: Tokens) -> str:
    """Runs of folders parted by `**`: each run but the first and the last is where it fits first."""
    runs: list[list[str]] = [[]]
    for segment in _split(tokens, "/"):
        if segment == ["**"]:
            runs.append([])
        else:
            runs[-1].append(_segment(segment))
    first, *middle, last = runs if len(runs) > 1 else ([], *runs)
    if len(runs) == 1:
        return "/".join(last)
    out = "".join(f"{segment}/" for segment in first)
    out += "".join(f"(?>(?:[^/]*/)*?{'/'.join(run)}/)" for run in middle if run)
    return out + (f"(?:[^/]*/)*{'/'.join(last)}" if last else ".*")


def _segment(tokens: Tokens) -> str:
    """One name: what is between two stars is where it fits first."""
    first, *texts = ["".join(_BRACES.get(token, token) for token in part) for part in _split(tokens, "*")]
    if not texts:
        return first
    return first + "".join(f"(?>[^/]*?{text})" for text in texts[:-1]) + f"[^/]*{texts[-1]}"


def _split(tokens: Tokens, separator: str) -> list[Tokens]:
    parts: list[Tokens] = [[]]
    for token in tokens:
        if token == separator:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _one_of(negated: str, inside: str) -> str | None:
    """An expression for a bracket; None when it is none (`[b-a]`): then it means itself."""
    escaped = re.sub(r"([\\\[\]^&|~]|-(?=-))", r"\\\1", inside)
    expression = f"(?!/)[{'^' if negated else ''}{escaped}]"
    try:
        re.compile(expression)
    except re.error:
        return None
    return expression
