"""A repository's changes as a row of a proposal."""

from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.core.tool import ToolError
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.apply import Batch
from amanu.text.amounts import plural
from amanu.text.display import all_files
from amanu.tools.shell.git_changes import GitChanges, apply_git, git_batches, git_fault
from amanu.tools.shell.held_files import HeldFolder
from amanu_protocol.items import Line

_NO_UNDO = "Amanu cannot undo this change."


@dataclass(frozen=True)
class GitRow:
    """Changes of repositories; each repository is changed as a whole or not at all. See `GitPart`."""

    changes: GitChanges
    folder: HeldFolder

    @property
    def committed(self) -> Collection[Path]:
        return self.changes.paths

    def fault(self, *, undo: bool) -> str:
        return _NO_UNDO if undo else git_fault(self._batches())

    def standing(self, *, undo: bool) -> Literal["before", "after", "between", "other"]:
        return "other"

    @contextmanager
    def prepared(self, *, undo: bool) -> Generator[Callable[[], None]]:
        batches = self._batches()
        if fault := self.fault(undo=undo):
            raise ToolError(fault)

        def commit() -> None:
            for batch in batches:
                if fault := apply_git(batch):
                    raise ToolError(fault)

        yield commit

    def _batches(self) -> list[Batch]:
        return git_batches(self.changes, self.folder)


def git_row(changes: GitChanges, folder: HeldFolder) -> RowChange:
    texts = [*changes.commits]
    texts += [f"Files committed: {all_files(changes.committed)}"] if changes.committed else []
    texts += changes.moves
    title = plural(len(changes.commits), "commit") if changes.commits else "the git repository changes"
    lines = [Line(tone="warning", text=text) for text in texts]
    return RowChange("git", changes.files[0].root.path, None, None, title, lines, git=GitRow(changes, folder))
