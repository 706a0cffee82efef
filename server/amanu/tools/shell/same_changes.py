"""A comparison of two runs of one command: if both changed the same, the yes to the first counts for the second."""

import filecmp

from amanu.tools.shell.held_files import HeldFile
from amanu.tools.shell.layer_changes import LayerChanges


def are_same(first: LayerChanges, second: LayerChanges) -> bool:
    """Whether both changed the same, commit ids apart: all that the question shows, and the content of all that a yes
    applies. Blocking."""
    return (
        _told(first) == _told(second)
        and len(first.held) == len(second.held)
        and all(map(_is_same_file, first.held, second.held))
    )


def _told(changes: LayerChanges) -> object:
    edits = [(edit.base.path, edit.base.exists, edit.base.text, edit.text, edit.new_path) for edit in changes.edits]
    substance = changes.git.substance
    return (
        sorted(edits),
        changes.executable,
        sorted(changes.denied),
        sorted(changes.folders),
        sorted(changes.emptied),
        sorted(changes.ignored),
        sorted(changes.conflicts),
        changes.refused,
        changes.git.committed,
        object() if None in substance else substance,  # what cannot be told is never the same
    )


def _is_same_file(first: HeldFile, second: HeldFile) -> bool:
    if (first.path, first.below, first.what) != (second.path, second.below, second.what):
        return False
    if first.stored is None or second.stored is None:
        return first.stored is second.stored
    try:
        if first.stored.is_symlink() or second.stored.is_symlink():
            return first.stored.readlink() == second.stored.readlink()
        return filecmp.cmp(first.stored, second.stored, shallow=False)
    except OSError:
        return False
