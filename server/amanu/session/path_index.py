"""Finds the paths that fit what a user types of them, among hundreds of thousands, while they type.

The paths stand in one text, the best first, so that Python's own search in texts passes over those that do not fit,
and ends as soon as there are enough.
"""

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge, nsmallest
from itertools import accumulate, islice

from amanu.session.path_kind import PathKind, path_kind
from amanu.system.sorting import sorted_texts

NEVER_USED = 1_000
"""The place of a file that was not used lately, behind all those that were."""
MIN_CLOSE = 3
"""Characters from which on a query may leave out some of a name's."""
LEFT_OUT = 2
"""Characters that it may leave out at a time."""
MIN_TYPO = 4
"""Characters from which on a query may hold a typing error."""
SIMILAR = 80
"""How similar, of 100, a name must be to a query with a typing error."""
SMALL = 20_000
"""Up to so many paths are indexed completely by the constructor: it takes 50 ms."""
_AT_ONCE = 1 << 17
"""Characters, or about as many paths' worth, that are looked at before another thread may run: milliseconds."""
_END = "\0"
"""Ends a path, for none contains it."""
_ENDS = (".", f"/{_END}", _END)
"""A name or a path is whole before one of these."""
_WORD_START = re.compile(r"(?<![A-Za-z])[a-z]|(?<![0-9])[0-9]|(?<![A-Z])[A-Z]")

Standing = tuple[PathKind, bool]
"""The kind of a path, and whether it is a folder's; less is better."""
Score = tuple[int, int, Standing, int, str]
"""The fit of a path, where it stands among those used lately, its standing, its length, and itself; less is
better."""
_ANY: Standing = (PathKind.SOURCE, False)


class PathIndex:
    """An index of paths relative to their root, or, of several `roots`, absolute; those of folders end in `/`. Every
    method is blocking, and safe in threads."""

    def __init__(self, paths: Iterable[str], roots: Sequence[str] = ()) -> None:
        self._roots = tuple(f"{root}/" for root in roots)
        self._by_length = sorted_texts(paths)
        self._by_length.sort(key=len)
        groups = defaultdict[Standing, list[str]](list)  # sorted in pieces, not as `sorted` does
        for path in self._by_length:
            groups[self._standing(path)].append(path)
        self._paths = [path for standing in sorted(groups) for path in groups[standing]]
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
        """The `limit` best of those, and of `recent`, that contain the letters of `query` in order: as the whole
        name or path, with or without endings; at the start of the name or at the starts of its words (`mc` in
        `mention_completion.py`); from the start of the name with little left out (`utl` in `utils.py`); within the
        name; within the path; then apart. Of equals first what was used lately (`recent`, the last one first), then
        sources, then files, then the shorter. Without a query: what was used lately, then by length. Where nothing
        contains the letters: names that are similar."""
        query = query.lower()
        if _END in query:
            return []
        scores: dict[str, Score] = {}
        for place, path in islice(self._fitting(query), limit + len(recent)):
            scores[path] = self._score(path, query, place, NEVER_USED)
        for used, path in enumerate(dict.fromkeys(recent)):
            if (place := _place(path, query)) is not None:
                scores[path] = self._score(path, query, place, used)
        best = [path for *_, path in nsmallest(limit, scores.values())]
        return best or (self._similar(query, limit) if len(query) >= MIN_TYPO else [])

    def _score(self, path: str, query: str, place: int, used: int) -> Score:
        return place, used, self._standing(path) if query else _ANY, len(path), path

    def _standing(self, path: str) -> Standing:
        below = next((path.removeprefix(root) for root in self._roots if path.startswith(root)), path)
        return path_kind(below), path.endswith("/")

    def _fitting(self, query: str) -> Iterator[tuple[int, str]]:
        """(how well it fits, path) of each, the best first."""
        if not query:
            yield from ((0, path) for path in self._by_length)
            return
        if self._hopeless is not None and query.startswith(self._hopeless):
            return
        whole, names = (self._lower, _Lines(())) if "/" in query[:-1] else (self._names, self._names)
        apart = re.compile(_END + _letters(query, "*"))
        close = re.compile(_END + re.escape(query[0]) + _letters(query[1:], f"{{0,{LEFT_OUT}}}"))
        seen = set[int]()
        for place, found in enumerate(
            (
                merge(*(whole.starting(query + end) for end in _ENDS)),
                merge(names.starting(query), self._initials.starting(query) if len(query) > 1 else ()),
                names.matching(close) if len(query) >= MIN_CLOSE else (),
                names.containing(query),
                self._lower.containing(query),
                names.matching(apart) if len(query) > 1 else (),
                self._lower.matching(apart) if len(query) > 1 else (),
            )
        ):
            for at in found:
                if at not in seen:
                    seen.add(at)
                    yield place, self._paths[at]
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
    whole = lower if "/" in query[:-1] else name
    if not query or f"{whole}{_END}".startswith(tuple(query + end for end in _ENDS)):
        return 0
    if name.startswith(query) or (len(query) > 1 and _initials(path).startswith(query)):
        return 1
    if len(query) >= MIN_CLOSE and _is_close(name, query):
        return 2
    if query in name:
        return 3
    if query in lower:
        return 4
    return 5 if _in_order(name, query) else 6 if _in_order(lower, query) else None


def _name(path: str) -> str:
    """The last part of it."""
    return path[path.rfind("/", 0, -1) + 1 :]


def _initials(path: str) -> str:
    return "".join(_WORD_START.findall(_name(path))).lower()


def _letters(letters: str, most: str) -> str:
    """An expression for these letters, before each of them `most` others."""
    return "".join(f"[^{letter}{_END}]{most}+{letter}" for letter in map(re.escape, letters))


def _is_close(name: str, letters: str) -> bool:
    at = 0
    for number, letter in enumerate(letters):
        at = name.find(letter, at, at + 1 + (LEFT_OUT if number else 0)) + 1
        if at == 0:
            return False
    return True


def _in_order(text: str, letters: str) -> bool:
    """Not by a regular expression: a name can be made such that matching takes for ever."""
    at = 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if at == 0:
            return False
    return True
