"""Rows of a proposal as text, for clients that draw nothing of their own."""

from collections.abc import Sequence
from pathlib import Path

from amanu.text.display import unbroken
from amanu_protocol.items import Row


def row_lines(row: Row, roots: Sequence[str]) -> list[str]:
    """All that a user must know to decide a row: a line that names it, then its further lines, indented. Paths are
    relative to the folders of the session."""
    why = row.undecidable or row.reason
    first = f"{row_name(row, roots)}: {unbroken(row.title)}"
    return [f"{first} — {unbroken(why)}" if why else first, *(f"  {unbroken(line.text)}" for line in row.lines)]


def row_name(row: Row, roots: Sequence[str]) -> str:
    """A row's path, or both paths of a rename; for `git`, the words "the git repository", with its path unless it is a
    folder of the session."""
    if row.kind == "git":
        return "the git repository" if row.path in roots else f"the git repository in {_shown_path(row.path, roots)}"
    names = [row.path] if row.new_path is None else [row.path, row.new_path]
    return " → ".join(_shown_path(name, roots) for name in names)


def _shown_path(path: str, roots: Sequence[str]) -> str:
    root = next((root for root in roots if Path(path).is_relative_to(root) and path != root), None)
    return unbroken(path if root is None else Path(path).relative_to(root).as_posix())
