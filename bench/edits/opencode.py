"""The nine replacers of OpenCode's `edit`, as described, in order: simple, lines trimmed, block anchors, blanks made
one, indentation, escapes, trimmed boundary, context, several places.

Written anew from the description of what they do. Each offers stretches of the file; the first that is in the file
once is replaced by the new text as it is. Line ends of both texts are made those of the file.
"""

import re
from collections.abc import Callable, Iterator

from rapidfuzz.distance import Levenshtein

Replacer = Callable[[str, str], Iterator[str]]
_SEVERAL = 0.3  # likeness of the middle, where several blocks have the anchors; with one, any will do


def edit(text: str, old: str, new: str) -> str | None:
    """The file after the edit; None: refused."""
    if old == new:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    old, new = (each.replace("\r\n", "\n").replace("\n", end) for each in (old, new))
    for replacer in REPLACERS:
        for found in replacer(text, old):
            at = text.find(found)
            if at >= 0 and at == text.rfind(found):
                edited = text[:at] + new + text[at + len(found) :]
                return None if edited == text else edited
    return None


def _windows(text: str, count: int) -> Iterator[tuple[str, list[str]]]:
    lines = text.split("\n")
    for at in range(len(lines) - count + 1):
        block = lines[at : at + count]
        yield "\n".join(block), block


def _asked(old: str) -> list[str]:
    lines = old.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _simple(text: str, old: str) -> Iterator[str]:
    yield old


def _line_trimmed(text: str, old: str) -> Iterator[str]:
    wanted = [line.strip() for line in _asked(old)]
    for whole, block in _windows(text, len(wanted)):
        if block[0].strip() == wanted[0] and [line.strip() for line in block] == wanted:
            yield whole


def _block_anchor(text: str, old: str) -> Iterator[str]:
    asked = _asked(old)
    if len(asked) < 3:
        return
    lines = text.split("\n")
    first, last = asked[0].strip(), asked[-1].strip()
    ends = [at for at, line in enumerate(lines) if line.strip() == last]
    blocks: list[tuple[int, int]] = []
    for at, line in enumerate(lines):
        if line.strip() == first and (end := next((end for end in ends if end >= at + 2), None)) is not None:
            blocks.append((at, end))
    if len(blocks) == 1:
        yield "\n".join(lines[blocks[0][0] : blocks[0][1] + 1])
    elif blocks:
        likeness = [_likeness(lines[start : end + 1], asked) for start, end in blocks]
        best = max(range(len(blocks)), key=lambda row: likeness[row])
        if likeness[best] >= _SEVERAL:
            yield "\n".join(lines[blocks[best][0] : blocks[best][1] + 1])


def _likeness(block: list[str], asked: list[str]) -> float:
    count = min(len(block), len(asked)) - 2
    if count <= 0:
        return 1.0
    total = 0.0
    for row in range(1, count + 1):
        one, other = block[row].strip(), asked[row].strip()
        if one or other:
            total += Levenshtein.normalized_similarity(one, other)
    return total / count


def _one_blank(text: str) -> str:
    return " ".join(text.split())


def _whitespace(text: str, old: str) -> Iterator[str]:
    wanted = _one_blank(old)
    if not wanted:
        return
    words = r"\s+".join(map(re.escape, old.split()))
    for line in text.split("\n"):
        plain = _one_blank(line)
        if plain == wanted:
            yield line
        elif wanted in plain and (found := re.search(words, line)):
            yield found[0]
    count = len(old.split("\n"))
    if count > 1:
        for whole, _ in _windows(text, count):
            if _one_blank(whole) == wanted:
                yield whole


def _dedented(text: str) -> str:
    lines = text.split("\n")
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[least:] if line.strip() else line for line in lines)


def _indentation(text: str, old: str) -> Iterator[str]:
    wanted = _dedented(old)
    for whole, _ in _windows(text, len(old.split("\n"))):
        if _dedented(whole) == wanted:
            yield whole


_MEANS = {"n": "\n", "t": "\t", "r": "\r", "\n": "\n"}


def _unescaped(text: str) -> str:
    return re.sub(r"\\(n|t|r|'|\"|`|\\|\n|\$)", lambda found: _MEANS.get(found[1], found[1]), text)


def _escapes(text: str, old: str) -> Iterator[str]:
    wanted = _unescaped(old)
    if wanted in text:
        yield wanted
    for whole, _ in _windows(text, len(wanted.split("\n"))):
        if _unescaped(whole) == wanted:
            yield whole


def _trimmed_boundary(text: str, old: str) -> Iterator[str]:
    wanted = old.strip()
    if wanted == old:
        return
    if wanted in text:
        yield wanted
    for whole, _ in _windows(text, len(old.split("\n"))):
        if whole.strip() == wanted:
            yield whole


def _context(text: str, old: str) -> Iterator[str]:
    asked = _asked(old)
    if len(asked) < 3:
        return
    for whole, block in _windows(text, len(asked)):
        if block[0].strip() != asked[0].strip() or block[-1].strip() != asked[-1].strip():
            continue
        pairs = [
            (one.strip(), other.strip())
            for one, other in zip(block[1:-1], asked[1:-1], strict=True)
            if one.strip() or other.strip()
        ]
        if not pairs or sum(one == other for one, other in pairs) / len(pairs) >= 0.5:
            yield whole
            return


def _several(text: str, old: str) -> Iterator[str]:
    for _ in range(text.count(old)):
        yield old


REPLACERS: tuple[Replacer, ...] = (
    _simple, _line_trimmed, _block_anchor, _whitespace, _indentation, _escapes, _trimmed_boundary, _context, _several,
)  # fmt: skip
