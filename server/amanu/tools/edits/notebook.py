"""Edits of a notebook: `old_text` is text of its cells as `read_file` shows them, and what changes is its JSON.

Only sources change, and only their lines in the JSON: everything else stays as it is to the byte, outputs of changed
cells included. The lines `--- cell 3: code ---` and outputs may be part of `old_text`, to say which place is meant, and
then are part of `new_text` too. A line `--- cell: code ---` in `new_text` begins a new cell. Text of the JSON itself is
replaced as in any file.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from amanu.core.tool import ToolError
from amanu.text.notebook import Notebook, ShownCell, joined_text, notebook_cells, show_cell
from amanu.tools.edits.match import MatchedText, TextReplacement, replace_text
from amanu.tools.edits.notebook_json import NewCell, write_cells
from amanu.workspace.diff import differences

_Result = TypeVar("_Result", MatchedText, TextReplacement)
_NAMED = 5
"""Cells named in a title."""
_MARKER = re.compile(r"^--- cell\b.*---[ \t]*$", re.MULTILINE)
_NEW = re.compile(r"^--- cell: (code|markdown|raw) ---[ \t]*(?:\n|\Z)", re.MULTILINE)
_NOT_A_SOURCE = (
    "In a notebook only the source of cells can be edited; outputs and the lines '--- cell …' must stay as they are. "
    "Nothing was changed. A line '--- cell: code ---' begins a new cell. To remove a cell or an output, edit the JSON, "
    "which read_file shows with start_line 1."
)


@dataclass(frozen=True)
class _Place:
    """Text between two parts that must stay: the source of a cell, or nothing yet where only new cells can be."""

    cell: int
    """Index of the cell whose source it is, or behind whose outputs it is; -1 above the first cell."""
    text: str
    is_source: bool


def replace_in_notebook(text: str, old_text: str, new_text: str, *, replace_all: bool, path: str) -> TextReplacement:
    """`replace_text` for the JSON of a notebook. Raises `ToolError`."""
    cells = notebook_cells(text)
    change = partial(replace_text, old_text=old_text, new_text=new_text, replace_all=replace_all)
    if not cells:
        return change(text, path=path)
    shown = _shown(cells)
    places, fixed = _places(shown)
    hits = [place for place in places if place.is_source and old_text in place.text]
    if len(hits) > 1 and not replace_all:
        raise _in_several(hits, shown, path)
    if hits:
        changed = {place: change(place.text, path=f"cell {place.cell + 1} of {path}") for place in hits}
        texts = [changed[place].text if place in changed else place.text for place in places]
        count = sum(each.count for each in changed.values())
        return TextReplacement(_written(text, places, texts), count, next(iter(changed.values())).forgiven)
    whole = _whole(places, fixed)
    if old_text not in whole and old_text in text:
        return change(text, path=path)
    try:
        result = change(whole, path=f"the cells of {path}")
        return replace(result, text=_written(text, places, _taken_apart(result.text, fixed)))
    except ToolError:
        result = None if old_text in whole else _in_json(text, partial(change, path=path))
        if result is None:
            raise
        return result


def patch_notebook(text: str, patch: Callable[[str], MatchedText]) -> MatchedText:
    """The JSON of a notebook after `patch`, which is given the cells as they are shown, or the JSON where its text is
    not in them. Raises `ToolError`."""
    cells = notebook_cells(text)
    if not cells:
        return patch(text)
    places, fixed = _places(_shown(cells))
    try:
        result = patch(_whole(places, fixed))
    except ToolError:
        result = _in_json(text, patch)
        if result is None:
            raise
        return result
    return MatchedText(_written(text, places, _taken_apart(result.text, fixed)), result.forgiven)


def changed_cells(old_text: str, new_text: str) -> str:
    """The cells whose sources differ, by their numbers in the new notebook: "cell 2, new cell 3"; "" for none."""
    old_cells, new_cells = notebook_cells(old_text), notebook_cells(new_text)
    if old_cells is None or new_cells is None:
        return ""
    old_sources, new_sources = ([joined_text(cell.get("source")) for cell in cells] for cells in (old_cells, new_cells))
    names = [
        f"{'new ' if change.old_start == change.old_end else ''}cell {index + 1}"
        for change in differences(old_sources, new_sources)
        for index in range(change.new_start, change.new_end)
    ]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _in_json(text: str, change: Callable[[str], _Result]) -> _Result | None:
    """The edit of the JSON, when that is still a notebook: what it forgave could be wrong there."""
    try:
        result = change(text)
    except ToolError:
        return None
    return result if notebook_cells(result.text) is not None else None


def _shown(cells: Sequence[dict[str, Any]]) -> list[ShownCell]:
    pictures = Notebook()
    return [show_cell(cell, number, pictures) for number, cell in enumerate(cells, 1)]


def _whole(places: Sequence[_Place], fixed: Sequence[str]) -> str:
    """The cells as they are shown."""
    return "".join(part for place, behind in zip(places, [*fixed, ""], strict=True) for part in (place.text, behind))


def _places(shown: Sequence[ShownCell]) -> tuple[list[_Place], list[str]]:
    """The places, and what is between them."""
    places = [_Place(-1, "", is_source=False)]
    fixed: list[str] = []
    for index, cell in enumerate(shown):
        gap = "\n" if index + 1 < len(shown) else ""
        fixed.append(cell.marker)
        places.append(_Place(index, cell.source + ("" if cell.outputs else gap), is_source=True))
        if cell.outputs:
            fixed.append(cell.outputs)
            places.append(_Place(index, gap, is_source=False))
    return places, fixed


def _taken_apart(text: str, fixed: Sequence[str]) -> list[str]:
    """The text of each place. Raises `ToolError` when what is between them is not there any more."""
    texts: list[str] = []
    for part in fixed:
        before, found, text = text.partition(part)
        if not found:
            raise ToolError(_NOT_A_SOURCE)
        texts.append(before)
    texts.append(text)
    free = "\0".join(texts)
    if any(part in free for part in fixed):
        raise ToolError(_NOT_A_SOURCE)  # it is there twice
    return texts


def _written(text: str, places: Sequence[_Place], texts: Sequence[str]) -> str:
    """The JSON with those texts in the places."""
    sources: dict[int, str] = {}
    new_cells: dict[int, list[NewCell]] = {}
    for place, new_text in zip(places, texts, strict=True):
        if new_text.rstrip("\n") == place.text.rstrip("\n"):
            continue
        source, *added = [new_text] if _MARKER.search(place.text) else _NEW.split(new_text)
        source, bodies = source.rstrip("\n"), [each.rstrip("\n") for each in added[1::2]]
        if not _MARKER.search(place.text) and any(map(_MARKER.search, (source, *bodies))):
            raise ToolError(_NOT_A_SOURCE)
        if place.is_source and source != place.text.rstrip("\n"):
            sources[place.cell] = source
        elif not place.is_source and source.strip():
            raise ToolError(_NOT_A_SOURCE)
        new_cells.setdefault(place.cell, []).extend(map(NewCell, added[::2], bodies))
    written = write_cells(text, sources, new_cells)
    if written == text:
        raise ToolError("Nothing but blank lines at the end of a cell would change. Nothing was changed.")
    return written


def _in_several(hits: Sequence[_Place], shown: Sequence[ShownCell], path: str) -> ToolError:
    numbers = ", ".join(str(place.cell + 1) for place in hits[:_NAMED]) + (", …" if len(hits) > _NAMED else "")
    marker = shown[hits[0].cell].marker.strip()
    return ToolError(
        f"old_text is in {len(hits)} cells of {path} ({numbers}). Nothing was changed. Add lines around it until it is "
        f"unique, beginning with the cell's own line, such as '{marker}', or set replace_all to true."
    )
