"""Expand the unquoted characters of a word as bash does: braces, tildes and file name patterns.

A word is a list of characters, each with whether it is quoted; None stands for unknown text.
"""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from amanu.shell.state import State
from amanu.shell.syntax import ParseBudget

Char = tuple[str | None, bool]

_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}|\{(-?[1-9][0-9]{0,3}|0)\.\.(-?[1-9][0-9]{0,3}|0)\}")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=")
_PATTERN = 1_000  # characters
_WORDS = 200  # of one word with braces


def braces(chars: Sequence[Char], *, literal: bool) -> list[list[Char]] | None:
    """`a{b,c}` → `ab` `ac`. `literal`: the word has no expansion of another kind, which bash would do later. None when
    the result is not certain."""
    mask = "".join("\0" if char is None or quoted else char for char, quoted in chars)
    if "{" not in mask or not ("," in mask or ".." in mask):
        return [list(chars)]
    matches = list(_BRACES.finditer(mask))
    remainder = _BRACES.sub("", mask)
    if not literal or "{" in remainder or "}" in remainder:
        return None
    parts: list[list[Sequence[Char]]] = []
    position = count = 0
    for match in matches:
        parts += [[chars[position : match.start()]], _alternatives(chars, match)]
        position = match.end()
        count = max(count, 1) * len(parts[-1])
        if count > _WORDS:
            return None
    parts.append([chars[position:]])
    expansions = [list(itertools.chain(*pieces)) for pieces in itertools.product(*parts)]
    return expansions if all(expansions) else None


def tilde(chars: Sequence[Char], state: State) -> tuple[list[Char] | None, bool]:
    """Expand `~/x`. Returns the word, None when its home is not known; and whether it was left unchanged."""
    word = list(chars)
    if _ASSIGNMENT.match("".join(char or "" for char, _ in word)) and ("~", False) in word:
        return None, False
    if not word or word[0] != ("~", False):
        return word, True
    end = word.index(("/", False)) if ("/", False) in word else len(word)
    if any(quoted for _, quoted in word[:end]):
        return word, True
    home = state.value("HOME")
    if end > 1 or not home:
        return None, False
    return [*((char, True) for char in home), *word[1:]], False


def is_pattern(chars: Sequence[Char]) -> bool:
    """Whether a word has an unquoted `*`, `?` or `[…]`."""
    unquoted = [char for char, quoted in chars if not quoted]
    bracket = "[" in unquoted and any(char == "]" for char, _ in chars[chars.index(("[", False)) :])
    return "*" in unquoted or "?" in unquoted or bracket


def matching(chars: Sequence[Char], state: State, budget: ParseBudget) -> list[str] | None:
    """The file names a pattern matches now, sorted; empty when bash leaves it as it is. None when there are too many,
    one looks like an option, or the result is not certain."""
    if (
        len(chars) > _PATTERN
        or budget.names < 0
        or state.folder is None
        or state.value("GLOBIGNORE")
        or "GLOBIGNORE" in state.context.environment
    ):
        return None
    parts = _split(chars)
    absolute = not parts[0] and len(parts) > 1
    prefixes = ["/"] if absolute else [""]
    for index, part in enumerate(parts):
        if not part:
            if index in (0, len(parts) - 1):
                continue  # an absolute path; a folder with its slash
            return None
        if not is_pattern(part):
            name = "".join(char or "" for char, _ in part)
            if name == "..":
                return None
            prefixes = [prefix + name for prefix in prefixes]
        else:
            pattern = _expression(part)
            if pattern is None or pattern.fullmatch(".") or pattern.fullmatch(".."):
                return None  # `.*` is also `..`, for bash before 5.2 and other shells
            grown: list[str] = []
            for prefix in prefixes:
                budget.names -= 1
                names = _listed(state.folder, prefix, state.context.roots)
                if names is None:
                    return None
                for name in names:
                    budget.names -= 1
                    if len(chars) > _PATTERN or budget.names < 0 or budget.over:
                        return None
                    if pattern.fullmatch(name):
                        grown.append(prefix + name)
            prefixes = grown
        if index < len(parts) - 1:
            prefixes = [prefix + "/" for prefix in prefixes if (state.folder / prefix).is_dir()]
    prefixes = sorted(path for path in prefixes if os.path.lexists(state.folder / path))
    return None if any(path.startswith("-") or not _printable(path) for path in prefixes) else prefixes


def _alternatives(chars: Sequence[Char], match: "re.Match[str]") -> list[Sequence[Char]]:
    if match[1] is None:
        first, last = int(match[2]), int(match[3])
        step = 1 if last >= first else -1
        numbers = range(first, last + step, step)
        return [[(digit, False) for digit in str(number)] for number in numbers[: _WORDS + 1]]
    alternatives: list[Sequence[Char]] = []
    start = match.start() + 1
    for part in match[1].split(","):
        alternatives.append(chars[start : start + len(part)])
        start += len(part) + 1
    return alternatives


def _split(chars: Sequence[Char]) -> list[list[Char]]:
    parts: list[list[Char]] = [[]]
    for char, quoted in chars:
        if char == "/":
            parts.append([])
        else:
            parts[-1].append((char, quoted))
    return parts


def _expression(part: Sequence[Char]) -> "re.Pattern[str] | None":
    """The regular expression for one name's pattern. None for classes and ranges, which depend on the locale."""
    source = ""
    remaining = list(part)
    while remaining:
        char, quoted = remaining.pop(0)
        if quoted or char not in ("*", "?", "["):
            source += re.escape(char or "")
        elif char == "[" and ("]", False) in remaining:
            end = remaining.index(("]", False))
            inside = "".join(char or "" for char, _ in remaining[:end])
            if not re.fullmatch(r"[A-Za-z0-9_]+", inside):
                return None
            source += f"[{inside}]"
            del remaining[: end + 1]
        elif char == "[":
            return None
        else:
            source += "[^/]*" if char == "*" else "[^/]"
    source = re.sub(r"(\[\^/\]\*)+", r"[^/]*", source)
    if source.count("[^/]*") > 4:
        return None  # matching could take long
    dot = "" if part[0][0] == "." else r"(?!\.)"
    return re.compile(dot + source, re.DOTALL)


def _listed(folder: Path, below: str, roots: Sequence[Path]) -> Iterator[str] | None:
    """The names in a folder inside the roots. None when it is missing, outside them, or cannot be listed."""
    folder_path = (folder / below).resolve()
    if not any(folder_path == root or root in folder_path.parents for root in roots):
        return None
    try:
        entries = os.scandir(folder_path)
    except OSError:
        return None
    return _names(entries)


def _names(scan: "AbstractContextManager[Iterator[os.DirEntry[str]]]") -> Iterator[str]:
    with scan as entries:
        for entry in entries:
            yield entry.name


def _printable(name: str) -> bool:
    try:
        return name.encode().decode().isprintable()
    except UnicodeError:
        return False
