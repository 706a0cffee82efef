"""Pairs the files that a command deleted with those that it made, as renames. Blocking."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from amanu.core.tool import ToolError
from amanu.proposals.model import FileEdit
from amanu.proposals.rows import RowChange, RowKey, rename_row
from amanu.tools.shell.layer_changes import EXECUTABLE, NewText
from amanu.workspace.encodings import encode
from amanu.workspace.text_file import split_lines

Content = TypeVar("Content", bound=Hashable)

MAX_COMPARED = 50
"""Deleted texts, and new texts, that are compared with each other: the first by path."""
MAX_TEXT = 1 << 20
"""Characters of a text that is compared."""
SECONDS = 0.05
_SIMILAR = 0.5


def exact_pairs(deleted: Mapping[Path, Content], new: Mapping[Path, Content]) -> dict[Path, Path]:
    """Deleted path → new path of the same content. Among several, a file keeps its name if it can; else the first by
    path goes to the first by path. Empty content pairs with nothing."""
    free: dict[Content, list[Path]] = {}
    for path in sorted(new):
        free.setdefault(new[path], []).append(path)
    pairs: dict[Path, Path] = {}
    for keeps_name in (True, False):
        for path in sorted(deleted):
            found = free.get(deleted[path], ()) if deleted[path] and path not in pairs else ()
            target = next((each for each in found if each.name == path.name or not keeps_name), None)
            if target is not None:
                pairs[path] = target
                free[deleted[path]].remove(target)
    return pairs


def similar_pairs(
    deleted: Mapping[Path, str], new: Mapping[Path, str], clock: Callable[[], float] = time.monotonic
) -> dict[Path, Path]:
    """Deleted path → new path of a text with at least half of the lines in common: the number of lines in both, each
    counted as often as both have it, divided by the number of lines of the longer text. The most similar pairs
    come first, then those that keep their name, then the first by path. Not compared: empty texts, texts of more than
    `MAX_TEXT` characters or beyond the first `MAX_COMPARED` of a side, and what does not fit into `SECONDS`."""
    end = clock() + SECONDS
    scores: list[tuple[float, bool, Path, Path]] = []
    lines: dict[Path, Counter[str]] = {}
    sources, targets = _compared(deleted), _compared(new)
    for source, target in ((source, target) for source in sources for target in targets):
        if clock() > end:
            break
        for path, text in ((source, deleted[source]), (target, new[target])):
            if path not in lines:
                lines[path] = Counter(split_lines(text))
        if (score := _similarity(lines[source], lines[target])) >= _SIMILAR:
            scores.append((-score, source.name != target.name, source, target))
    pairs: dict[Path, Path] = {}
    taken: set[Path] = set()
    for _, _, source, target in sorted(scores):
        if source not in pairs and target not in taken:
            pairs[source] = target
            taken.add(target)
    return pairs


def _compared(texts: Mapping[Path, str]) -> list[Path]:
    return [path for path in sorted(texts) if 0 < len(texts[path]) <= MAX_TEXT][:MAX_COMPARED]


def _similarity(one: Counter[str], other: Counter[str]) -> float:
    larger, smaller = max(one.total(), other.total()), min(one.total(), other.total())
    return (one & other).total() / larger if smaller / larger >= _SIMILAR else 0.0


def renamed_edits(
    edits: Sequence[FileEdit], new: Mapping[Path, NewText], is_eligible: Callable[[FileEdit], bool]
) -> list[FileEdit]:
    """The edits, with one rename instead of each deletion and new text that belong together. Only edits that are
    eligible become part of one. Not paired: files of which just one is executable, and texts in different encodings,
    since a renamed file keeps its executable bits and its encoding."""
    eligible = [edit for edit in edits if is_eligible(edit)]
    deleted = {edit.base.path: edit for edit in eligible if edit.text is None}
    texts = {edit.base.path: edit.text for edit in eligible if edit.text is not None}
    pairs = exact_pairs(
        {path: edit.base.encode(edit.base.text) for path, edit in deleted.items()},
        {path: encode(text, new[path].encoding) for path, text in texts.items()},
    )
    rest = {path: edit.base.text for path, edit in deleted.items() if path not in pairs}
    pairs |= similar_pairs(rest, {path: text for path, text in texts.items() if path not in pairs.values()})
    pairs = {path: target for path, target in pairs.items() if _keeps_its_form(deleted[path], new[target])}
    texts |= {target: deleted[path].base.text for path, target in pairs.items() if path not in rest}
    gone = frozenset(pairs.values())
    return [
        replace(edit, text=texts[target], new_path=target) if (target := pairs.get(edit.base.path)) else edit
        for edit in edits
        if edit.base.path not in gone
    ]


def _keeps_its_form(deleted: FileEdit, new: NewText) -> bool:
    is_executable = bool((deleted.base.mode or 0) & EXECUTABLE)
    return is_executable == bool(new.mode & EXECUTABLE) and _keeps_its_encoding(deleted, new)


def _keeps_its_encoding(deleted: FileEdit, new: NewText) -> bool:
    if new.text is None or new.encoding == deleted.base.encoding:
        return True
    try:
        return deleted.base.encode(new.text) == encode(new.text, new.encoding)
    except ToolError:  # of an encoding that may be any of several, whatever is not the same in all
        return False


def with_renames(rows: Sequence[RowChange], is_eligible: Callable[[RowChange], bool]) -> list[RowChange]:
    """The rows, with one rename instead of each deletion and new file of the same bytes. Only rows that are eligible
    become part of one."""
    eligible = [row for row in rows if is_eligible(row)]
    deleted = {row.path: row for row in eligible if row.kind == "deletion"}
    new = {row.path: row for row in eligible if row.kind == "file" and row.before is None}
    before = {path: row.before.file_id for path, row in deleted.items() if row.before is not None and row.before.size}
    after = {path: row.after.file_id for path, row in new.items() if row.after is not None}
    pairs = exact_pairs(before, after)
    renamed = {id(deleted[path]): rename_row(deleted[path], new[target]) for path, target in pairs.items()}
    gone = {id(new[target]) for target in pairs.values()}
    return [renamed.get(id(row), row) for row in rows if id(row) not in gone]


def split_renames(
    renames: Collection[RowChange], touched: Collection[RowKey]
) -> tuple[list[RowChange], list[RowChange]]:
    """The drafted renames of which a command has changed a part, and their parts that it left alone."""
    split = [row for row in renames if any(part.key in touched for part in row.parts)]
    return split, [part for row in split for part in row.parts if part.key not in touched]
