"""Finds the paths that fit what a user types of them, among hundreds of thousands, while they type.

The paths stand in one text, the best first, so that Python's own search in texts passes over those that do not fit,
and ends as soon as there are enough.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge, nsmallest
from itertools import accumulate, islice

from amanu.system.sorting import sorted_texts

NEVER_USED = 1_000
"""The place of a file that was not used lately, behind all those that were."""
MIN_TYPO = 4
"""Characters from which on a query may hold a typing error."""
SIMILAR = 80
"""How similar, of 100, a name must be to a query with a typing error."""
SMALL = 20_000
"""Up to so many paths are indexed completely by the constructor: it takes 20 ms."""
_AT_ONCE = 1 << 17
"""Characters, or about as many paths' worth, that are looked at before another thread may run: milliseconds."""
_END = "\0"
"""Ends a path, for none contains it."""
_WORD_START = re.compile(r"(?<![A-Za-z])[a-z]|(?<![0-9])[0-9]|(?<![A-Z])[A-Z]")

Score = tuple[int, int, int, str]
"""How well a path fits, where it stands among those used lately, its length, and itself; less is better."""


class PathIndex:
    """Of paths relative to their root; those of folders end in `/`. Every method is blocking, and safe in threads."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted_texts(paths)
        self._paths.sort(key=len)
        lower = [path.lower() for path in self._paths]
        self._lower = _Lines(lower)
        self._names = _Lines(map(_name, lower))
        self._hopeless: str | None = None
        """The last query whose letters no path contains; a longer query that begins with it finds nothing either."""
        self._initials = self._stems = _Lines(())
        self.is_prepared = False
        if len(self._paths) <= SMALL:
            self.prepare()

    def prepare(self) -> None:
        """Index initials and stems, which takes as long as all the rest. Until this has run, a large index finds no
        path by its initials or in spite of a typing error."""
        self._initials = _Lines(map(_initials, self._paths))
        self._stems = _Lines(self._names[at].partition(".")[0].rstrip("/") for at in range(len(self._paths)))
        self.is_prepared = True

    def best(self, query: str, recent: Sequence[str] = (), limit: int = 20) -> list[str]:
        """The `limit` best of those, and of `recent`, that contain the letters of `query` in order: at the start of the
        name or at the starts of its words (`mc` in `mention_completion.py`), within the name, within the path, then
        apart; of equals first what was used lately (`recent`, the last one first), then the shorter. Without a query:
        what was used lately, then by length. Where nothing contains the letters: names that are similar."""
        query = query.lower()
        if _END in query:
            return []
        scores: dict[str, Score] = {}
        for place, at in islice(self._fitting(query), limit + len(recent)):
            path = self._paths[at]
            scores[path] = (place, NEVER_USED, len(path), path)
        for used, path in enumerate(dict.fromkeys(recent)):
            if (place := _place(path, query)) is not None:
                scores[path] = (place, used, len(path), path)
        best = [path for *_, path in nsmallest(limit, scores.values())]
        return best or (self._similar(query, limit) if len(query) >= MIN_TYPO else [])

    def _fitting(self, query: str) -> Iterator[tuple[int, int]]:
        """(how well it fits, where it stands) of each, the best first."""
        if not query:
            yield from ((0, at) for at in range(len(self._paths)))
            return
        if self._hopeless is not None and query.startswith(self._hopeless):
            return
        letters = re.compile(_END + "".join(f"[^{re.escape(letter)}{_END}]*+{re.escape(letter)}" for letter in query))
        seen = set[int]()
        for place, found in enumerate(
            (
                merge(self._names.starting(query), self._initials.starting(query) if len(query) > 1 else ()),
                self._names.containing(query),
                self._lower.containing(query),
                self._names.matching(letters),
                self._lower.matching(letters),
            )
        ):
            for at in found:
                if at not in seen:
                    seen.add(at)
                    yield place, at
        if not seen:
            self._hopeless = query

    def _similar(self, query: str, limit: int) -> list[str]:
        from rapidfuzz import fuzz, process

        found: list[tuple[float, int]] = []
        for start in range(0, len(self._paths), _AT_ONCE // 16):
            stems = self._stems.slice(start, start + _AT_ONCE // 16)
            matches = process.extract(query, stems, scorer=fuzz.ratio, score_cutoff=SIMILAR, limit=limit)
            found += [(-score, start + at) for _, score, at in matches]
        return [self._paths[at] for _, at in nsmallest(limit, found)]


class _Lines:
    """Many lines joined into one text; the position of a match tells its line."""

    def __init__(self, lines: Iterable[str]) -> None:
        ended = [_END + line for line in lines]
        self._text = "".join(ended) + _END
        self._starts = array("Q", accumulate(map(len, ended), initial=0))

    def __getitem__(self, at: int) -> str:
        return self._text[self._starts[at] + 1 : self._starts[at + 1]]

    def slice(self, start: int, end: int) -> list[str]:
        last = min(end, len(self._starts) - 1)
        return self._text[self._starts[min(start, last)] + 1 : self._starts[last]].split(_END) if start < last else []

    def starting(self, part: str) -> Iterator[int]:
        return self.containing(_END + part)

    def containing(self, part: str) -> Iterator[int]:
        """Those that contain it, in order."""
        start = 0
        while (start := self._text.find(part, start)) >= 0:
            at = bisect_right(self._starts, start) - 1
            yield at
            start = self._starts[at + 1]

    def matching(self, expression: re.Pattern[str]) -> Iterator[int]:
        """Those at whose beginning it matches, in order."""
        first = 0
        while first < len(self._starts) - 1:
            last = bisect_right(self._starts, self._starts[first] + _AT_ONCE)
            end = self._starts[min(last, len(self._starts) - 1)]
            for match in expression.finditer(self._text, self._starts[first], end):
                yield bisect_right(self._starts, match.start()) - 1
            first = last


def _place(path: str, query: str) -> int | None:
    """How well the path fits; less is better, None: not at all."""
    lower = path.lower()
    name = _name(lower)
    if name.startswith(query) or (len(query) > 1 and _initials(path).startswith(query)):
        return 0
    if query in name:
        return 1
    if query in lower:
        return 2
    return 3 if _in_order(name, query) else 4 if _in_order(lower, query) else None


def _name(path: str) -> str:
    """The last part of it."""
    return path[path.rfind("/", 0, -1) + 1 :]


def _initials(path: str) -> str:
    return "".join(_WORD_START.findall(_name(path))).lower()


def _in_order(text: str, letters: str) -> bool:
    """Not by a regular expression: a name can be made such that matching takes for ever."""
    at = 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if at == 0:
            return False
    return True
