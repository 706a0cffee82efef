"""Tells the model which of the files it has read have changed since, before it relies on them.

Between steps and with each prompt this checks the status of the files the model has seen, and the version of those
open in an editor; where one differs, the texts are compared. With a prompt every file is checked, and editors that
must be asked are asked about the latest. Between steps the latest files and, by turns, some of the others are; once
one has changed, all of them, for what changes one (a branch switch) may change many. A file whose text is no longer in
the conversation is not mentioned.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from amanu.core.conversation import STUB, Conversation, Results
from amanu.core.tool import ToolError
from amanu.text.display import one_line
from amanu.workspace.shown_files import ShownFile, digest
from amanu.workspace.watcher import status
from amanu.workspace.workspace import Workspace

NAMED = 20
"""Files named in one note."""
LATEST = 30
"""Files, those shown last, that are looked at between any two steps …"""
OTHERS = 30
"""… and how many of the others, so that a long turn's steps do not grow with what it has read: of 500 files, each is
looked at every sixteen steps."""
_NO_TEXT = "no text"  # instead of a digest
_Known = tuple[Path, ShownFile]


class StaleFiles:
    """Watches the files that one session's model has read."""

    def __init__(self, workspace: Workspace, conversation: Conversation) -> None:
        self._workspace = workspace
        self._seen = workspace.shown_files
        self._conversation = conversation
        self._turn = 0
        """Index among the other files, in the order of `shown_files`, of the next one to check."""

    async def collect_note(self, *, every: bool = True) -> tuple[str, str] | None:
        """(note for the model, notice for the user about it) on the files that changed since the model last saw them or
        was told of a change, other than by its own edits. None when there are none. Each change is told once. `every`:
        look at every file, not only at those whose turn it is."""
        if self._conversation.generation != self._seen.generation:  # what the model was told may be gone
            self._seen.generation = self._conversation.generation
            self._forget(all_that_no_result_holds=True)
        files = self._seen.files
        if every:  # with a prompt: between steps that would be too much to ask of a client
            await self._workspace.overlay.refresh(*islice(reversed(files), LATEST))
        chosen = list(files.items()) if every else self._chosen()
        changes = await self._changes(chosen)
        if changes and len(chosen) < len(files):
            changes |= await self._changes(list(files.items()))
        if not changes:
            return None
        self._forget()
        changes = {path: change for path, change in changes.items() if path in self._seen.files}
        if not changes:
            return None
        for_model = _listed([f"{self._name(path)}{change}" for path, change in changes.items()])
        is_plan = self._workspace.guard.is_plan
        listed = _listed([f"{self._name(path)}{change}" for path, change in changes.items() if not is_plan(path)])
        told = ["the plan changed"] if any(map(is_plan, changes)) else []
        told += [f"these files changed since it read them: {listed}"] if listed else []
        return (
            f"Changed since you read them, not by your edits: {for_model}. Read them again before you edit them.",
            f"The model was told that {' and that '.join(told)}.",
        )

    def _name(self, path: Path) -> str:
        return one_line(self._workspace.display_path(path))

    def _chosen(self) -> Sequence[_Known]:
        """The latest, and those of the others whose turn it is."""
        files = self._seen.files
        others = len(files) - LATEST
        if others <= OTHERS:
            return list(files.items())
        first = self._turn % others
        self._turn = first + OTHERS
        turns = [*islice(files.items(), first, min(others, first + OTHERS))]
        latest = [*islice(reversed(files.items()), LATEST)][::-1]
        return [*latest, *turns, *islice(files.items(), OTHERS - len(turns))]

    async def _changes(self, files: Sequence[_Known]) -> dict[Path, str]:
        """Path → what to say after its name, for those of the files whose text is not the one the model has seen."""
        changes: dict[Path, str] = {}
        for path, shown_text in await self._doubtful(files):
            if (change := await self._compare(path, shown_text)) is not None:
                changes[path] = change
        return changes

    async def _doubtful(self, files: Sequence[_Known]) -> Sequence[_Known]:
        """The files that do not look as they did when their text was last compared."""
        if not files:
            return []
        statuses = await asyncio.to_thread(lambda: [status(path) for path, _ in files])
        doubtful: list[_Known] = []
        for (path, shown_text), status_now in zip(files, statuses, strict=True):
            state = (status_now, self._versions(path))
            if shown_text.state != state:
                shown_text.state = state
                doubtful.append((path, shown_text))
        return doubtful

    def _versions(self, path: Path) -> Sequence[tuple[int, int, int]]:
        """The versions of the documents that editors have of it."""
        opened = self._workspace.overlay.documents(path)
        return [(id(editor), buffer.version, buffer.typed) for editor, buffer in opened]

    async def _compare(self, path: Path, shown_text: ShownFile) -> str | None:
        """What to say after its name; None when its text is the one the model knows."""
        try:
            file = await self._workspace.read_if_exists(path)
            current = None if file is None else await asyncio.to_thread(digest, file)
            unsaved = file is not None and file.unsaved and not file.draft  # whose base is another now
            change = " (deleted)" if file is None else " (unsaved in the editor)" if unsaved else ""
        except ToolError:
            current, change = _NO_TEXT, " (no longer readable as text)"
        if current == shown_text.digest or self._seen.files.get(path) is not shown_text:
            return None
        shown_text.digest = current
        self._seen.unrecorded[path] = None
        return change

    def _forget(self, *, all_that_no_result_holds: bool = False) -> None:
        """Forget the files whose text is no longer in the conversation."""
        standing = {
            result.call_id
            for message in self._conversation
            if isinstance(message, Results)
            for result in message.results
            if not result.text.startswith(STUB)
        }
        for path, shown_text in list(self._seen.files.items()):
            if shown_text.source not in standing and (shown_text.source or all_that_no_result_holds):
                del self._seen.files[path]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
