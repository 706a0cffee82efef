"""A comparison of two runs of one command: if both changed the same, the yes to the first counts for the second."""

from amanu.tools.shell.layer_changes import LayerChanges


def are_same(first: LayerChanges, second: LayerChanges) -> bool:
    """Whether both changed the same, commit ids apart: all that the question shows, and the content of all that a yes
    applies. Blocking."""
    return _told(first) == _told(second)


def _told(changes: LayerChanges) -> object:
    edits = [(edit.base.path, edit.base.exists, edit.base.text, edit.text, edit.new_path) for edit in changes.edits]
    substance = changes.git.substance
    return (
        sorted(edits),
        sorted((row.key, row.digest, row.identity) for row in changes.rows if row.kind != "git"),
        sorted(changes.denied),
        sorted(changes.ignored),
        sorted(changes.conflicts),
        changes.refused,
        changes.git.committed,
        object() if None in substance else substance,  # what cannot be told is never the same
    )
