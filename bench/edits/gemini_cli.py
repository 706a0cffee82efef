"""The ladder of Gemini CLI's `replace`, as described: exact; lines trimmed; tokens with any blanks between; likeness.

Written anew from the description of what it does. CRLF is made LF for the search; the whole file is written with CRLF
if it had one; the end of the file gets back the final newline it had, or had not.
"""

import re
from collections.abc import Callable

from rapidfuzz.distance import Levenshtein

_FUZZY = 0.10  # share of the search text that may differ
_BLANK_WEIGHT = 0.1  # of a difference in blanks alone
_SHORTEST = 10  # characters of a search text that is compared by likeness
_COST = 4e8  # lines × length² above which likeness is not tried


def edit(text: str, old: str, new: str) -> str | None:
    """The file after the edit; None: refused."""
    crlf = "\r\n" in text
    text, old, new = (each.replace("\r\n", "\n") for each in (text, old, new))
    ways: tuple[Callable[[str, str, str], tuple[int, str]], ...] = (_exact, _flexible, _regex, _fuzzy)
    for way in ways:
        count, edited = way(text, old, new)
        if count == 1:
            if text.endswith("\n") and not edited.endswith("\n"):
                edited += "\n"
            elif not text.endswith("\n") and edited.endswith("\n"):
                edited = edited[:-1]
            return None if edited == text else edited.replace("\n", "\r\n") if crlf else edited
        if count:
            return None
    return None


def _exact(text: str, old: str, new: str) -> tuple[int, str]:
    return text.count(old), text.replace(old, new)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(new: list[str], target: str) -> list[str]:
    base = _indent(new[0]) if new else ""
    out: list[str] = []
    for line in new:
        if not line.strip():
            out.append("")
        elif line.startswith(base):
            out.append(target + line[len(base) :])
        else:
            out.append(target + line.strip())
    return out


def _flexible(text: str, old: str, new: str) -> tuple[int, str]:
    lines, asked = text.split("\n"), old.split("\n")
    trimmed, wanted = [line.strip() for line in lines], [line.strip() for line in asked]
    count = at = 0
    while at <= len(lines) - len(asked):
        if trimmed[at : at + len(asked)] == wanted:
            count += 1
            written = _reindented(new.split("\n"), _indent(lines[at]))
            lines[at : at + len(asked)] = written
            trimmed[at : at + len(asked)] = [line.strip() for line in written]
            at += len(written)
        else:
            at += 1
    return count, "\n".join(lines)


def _regex(text: str, old: str, new: str) -> tuple[int, str]:
    tokens = re.sub(r"([():\[\]{}><=])", r" \1 ", old).split()
    if not tokens:
        return 0, text
    pattern = re.compile(r"^([ \t]*)" + r"\s*".join(map(re.escape, tokens)), re.MULTILINE)
    found = list(pattern.finditer(text))
    if len(found) != 1:
        return len(found), text
    written = "\n".join(_reindented(new.split("\n"), found[0][1]))
    return 1, text[: found[0].start()] + written + text[found[0].end() :]


def _fuzzy(text: str, old: str, new: str) -> tuple[int, str]:
    lines, asked = text.split("\n"), [line.rstrip() for line in old.rstrip("\n").split("\n")]
    wanted = "\n".join(asked)
    if len(old) < _SHORTEST or len(lines) * len(old) ** 2 > _COST:
        return 0, text
    bare = re.sub(r"\s", "", wanted)
    scored: list[tuple[float, int]] = []
    for at in range(len(lines) - len(asked) + 1):
        window = "\n".join(line.rstrip() for line in lines[at : at + len(asked)])
        if abs(len(window) - len(wanted)) > len(wanted):
            continue
        raw = Levenshtein.distance(window, wanted, score_cutoff=len(wanted))
        if raw > len(wanted):
            continue
        plain = Levenshtein.distance(re.sub(r"\s", "", window), bare)
        score = (plain + (raw - plain) * _BLANK_WEIGHT) / len(wanted)
        if score <= _FUZZY:
            scored.append((score, at))
    chosen: list[int] = []
    for _, at in sorted(scored):
        if all(abs(at - other) >= len(asked) for other in chosen):
            chosen.append(at)
    for at in sorted(chosen, reverse=True):
        lines[at : at + len(asked)] = _reindented(new.rstrip("\n").split("\n"), _indent(lines[at]))
    return len(chosen), "\n".join(lines)
