"""Ranks paths by what a user types of them."""

import re
from collections.abc import Mapping, Sequence

NEVER_USED = 1_000
"""The place of a file that was not used lately, behind all those that were."""
MIN_TYPO = 4
"""Characters from which on a query may hold a typing error."""
SIMILAR = 80
"""How similar, of 100, a name must be to a query with a typing error."""
_WORD_START = re.compile(r"(?<![A-Za-z])[a-z]|(?<![0-9])[0-9]|(?<![A-Z])[A-Z]")


def rank(paths: Sequence[str], query: str, recent: Sequence[str] = (), limit: int = 20) -> list[str]:
    """The `limit` best of those that contain the letters of `query` in order: at the start of the name, at the starts
    of its words (`mc` in `mention_completion.py`), within the name, within the path, then apart; of equals first what
    was used lately (`recent`, the last one first), then the shorter. Without a query: what was used lately, then by
    length. Where nothing contains the letters: names that are similar. Blocking for many."""
    import heapq

    used = {path: at for at, path in enumerate(recent)}
    query = query.lower()
    best = heapq.nsmallest(limit, _scores(paths, query, used))
    if not best and len(query) >= MIN_TYPO:
        return _similar(paths, query, limit)
    return [path for *_, path in best]


def _scores(paths: Sequence[str], query: str, used: Mapping[str, int]) -> list[tuple[int, int, int, str]]:
    return [
        (place, used.get(path, NEVER_USED), len(path), path)
        for path in paths
        if (place := _place(path, query)) is not None
    ]


def _place(path: str, query: str) -> int | None:
    """How well the path fits; less is better, None: not at all."""
    lower = path.lower()
    name = lower.rstrip("/").rpartition("/")[2] + "/" * lower.endswith("/")
    if name.startswith(query):
        return 0
    if query in name:
        return 1
    if not _in_order(lower, query):  # before anything that costs more: most paths end here
        return None
    if "".join(_WORD_START.findall(path[-len(name) :])).lower().startswith(query):
        return 0
    if query in lower:
        return 2
    return 3 if _in_order(name, query) else 4


def _similar(paths: Sequence[str], query: str, limit: int) -> list[str]:
    from rapidfuzz import fuzz, process

    stems = [path.rstrip("/").rpartition("/")[2].partition(".")[0].lower() for path in paths]
    matches = process.extract(query, stems, scorer=fuzz.ratio, score_cutoff=SIMILAR, limit=limit)
    return [paths[at] for _, _, at in matches]


def _in_order(text: str, letters: str) -> bool:
    """Not by a regular expression: a name can be made such that matching takes for ever."""
    at = 0
    for letter in letters:
        at = text.find(letter, at) + 1
        if at == 0:
            return False
    return True
