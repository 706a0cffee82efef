"""The workspace as the user sees it: text of open buffers, saved or not, over the disk; and who can be asked."""

import asyncio
import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from amanu.text.code_units import Encoding
from amanu.text.span_edits import SpanEdit
from amanu_protocol.requests import (
    EditorApplyResult,
    EditorCallHierarchyResult,
    EditorDiagnosticsParams,
    EditorDiagnosticsResult,
    EditorHoverResult,
    EditorLocationsResult,
    EditorStatus,
    EditorSymbolsParams,
    EditorSymbolsResult,
    RenamedFile,
)

Question = Literal["diagnostics", "definition", "references", "symbols", "hover", "callHierarchy", "rename"]
"""What an editor can be asked about code: the last word of `amanu/editor/*`."""


@dataclass(frozen=True)
class Buffer:
    """An open document, exactly as its editor reported it."""

    path: Path
    text: str
    version: int
    typed: int = 0
    """When it was changed since it was opened or saved: greater in the document that was last, 0 if it was not."""


@dataclass(frozen=True)
class CodePlace:
    """A place in a file. Each editor counts characters in units of its own, so this holds the text before them."""

    path: Path
    line: int
    """Counted from 0."""
    before: str
    """The text of that line."""


@dataclass(frozen=True)
class Renaming:
    """The edits that rename a symbol, in the units of whoever found them."""

    status: EditorStatus
    encoding: Encoding
    files: Sequence[RenamedFile] = ()
    message: str | None = None


class LanguageQueries(Protocol):
    """What one connected editor's language servers know. Implemented by `frontends/lsp/editor_queries.py`.

    Nothing here raises for what an editor does or leaves undone, and nothing waits forever: the status says what
    happened.
    """

    name: str

    def answers(self, question: Question, path: Path) -> bool:
        """Whether it answers such questions, and has that file open, a folder it lies in, or a part of that folder."""
        ...

    async def diagnostics(self, params: EditorDiagnosticsParams) -> EditorDiagnosticsResult: ...

    async def definition(self, place: CodePlace) -> EditorLocationsResult: ...

    async def references(self, place: CodePlace) -> EditorLocationsResult: ...

    async def symbols(self, params: EditorSymbolsParams) -> EditorSymbolsResult: ...

    async def hover(self, place: CodePlace) -> EditorHoverResult: ...

    async def call_hierarchy(
        self, place: CodePlace, direction: Literal["incoming", "outgoing"]
    ) -> EditorCallHierarchyResult: ...

    async def rename(self, place: CodePlace, new_name: str) -> Renaming: ...


class Editor(Protocol):
    """One connected editor's open documents. Implemented by `frontends/lsp/buffers.py` for those that tell of them,
    by `frontends/lsp/pulled_documents.py` for those that must be asked."""

    name: str
    must_be_asked: bool
    """It shows nothing here but what `refresh` has learnt."""
    client: tuple[str, int] | None
    """The same for all connections of one client: they show the same. None where that is not known."""
    language: LanguageQueries | None
    """None for an editor that answers no questions about code."""

    def serves(self, session_id: str) -> bool:
        """Whether this connection is for that session: of those of one client, it is the one to use."""
        ...

    def buffer(self, path: Path) -> Buffer | None:
        """The document open at that absolute path, or None."""
        ...

    def buffers(self) -> Iterable[Buffer]:
        """All open documents."""
        ...

    async def refresh(self, path: Path, *, to_edit: bool = False) -> bool:
        """Learn what the editor shows of that absolute path now; one that tells by itself does nothing. Never raises,
        never waits long. `to_edit`: the file is about to be changed, which is worth waiting for an editor that left
        the last question unanswered. False: the editor does not say, and may show text that is not saved."""
        ...

    async def apply(
        self, path: Path, expected_sha256: str, edits: Sequence[SpanEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        """Change the buffer through the editor, only if its text has that hash (SHA-256 of its UTF-8).

        By `amanu/editor/apply` where the client has it, else `workspace/applyEdit`, which counts as applied
        only when a didChange yields exactly `new_text` within 2 s. Never raises for an editor's refusal:
        the status says what happened.
        """
        ...


OnChange = Callable[[], None]
Stop = Callable[[], None]


Disk = Literal["looks", "events", "no"]
"""The way a file on disk is watched: looked at each second besides (`watcher.py`) · by the system's events alone
(`file_events.py`) · not at all."""


def _watch_no_disk(path: Path, on_change: OnChange) -> Stop:
    return lambda: None


class Overlay:
    """The open documents of every connected editor. One per daemon.

    `looks` and `events` hear of changes on disk (`WorkspaceWatcher.watch`, `FileEvents.watch`)."""

    def __init__(
        self,
        looks: Callable[[Path, OnChange], Stop] = _watch_no_disk,
        events: Callable[[Path, OnChange], Stop] | None = None,
    ) -> None:
        self._watch_disk = {"looks": looks, "events": events or looks, "no": _watch_no_disk}
        self._session_id: str | None = None
        self._editors: list[Editor] = []
        self._watchers: dict[Path, list[OnChange]] = {}

    def seen_from(self, session_id: str) -> "Overlay":
        """The same open documents as that session is to see them: where a client has a connection for it, the other
        connections of that client are left out. They would be asked for the same texts, and take the session's edits
        for those of another."""
        seen = copy.copy(self)  # of the same editors and watchers
        seen._session_id = session_id
        return seen

    def add(self, editor: Editor) -> None:
        self._editors.append(editor)

    def remove(self, editor: Editor) -> None:
        if editor in self._editors:
            self._editors.remove(editor)
            for buffer in editor.buffers():
                self.notify_changed(buffer.path)

    def watch(self, path: Path, on_change: OnChange, *, disk: Disk = "looks") -> Stop:
        """`on_change` is called whenever a document at that absolute path was opened, changed or closed, and (`disk`)
        when the file on disk may have changed; until what this returns is called."""
        self._watchers.setdefault(path, []).append(on_change)
        forget = self._watch_disk[disk](path, on_change)

        def stop() -> None:
            forget()
            watchers = self._watchers.get(path, [])
            if on_change in watchers:
                watchers.remove(on_change)
            if not watchers:
                self._watchers.pop(path, None)

        return stop

    @property
    def must_ask(self) -> bool:
        """Some editor has to be asked: `refresh` may have news."""
        return any(editor.must_be_asked for editor in self._seen)

    async def refresh(self, *paths: Path, to_edit: bool = False) -> Sequence[Editor]:
        """Ask the editors that do not tell by themselves what they show of those absolute paths now, all at the same
        time. Before a file is read, else what `documents` says of such editors may be old. Returns those that do not
        say: see `Editor.refresh`."""
        asked = [(editor, path) for editor in self._seen if editor.must_be_asked for path in paths]
        known = await asyncio.gather(*(editor.refresh(path, to_edit=to_edit) for editor, path in asked))
        silent = [editor for (editor, _), is_known in zip(asked, known, strict=True) if not is_known]
        return [editor for editor in silent if editor in self._editors]  # else it is gone, and so are its documents

    def notify_changed(self, path: Path) -> None:
        """An editor's document at that path is another than before."""
        for on_change in tuple(self._watchers.get(path, ())):
            on_change()

    def buffer(self, path: Path) -> Buffer | None:
        """The open document at that path; of several editors' the one `find` gives."""
        document = self.find(path)
        return None if document is None else document[1]

    def find(self, path: Path) -> tuple[Editor, Buffer] | None:
        """The first of `documents`."""
        return next(iter(self.documents(path)), None)

    def documents(self, path: Path) -> list[tuple[Editor, Buffer]]:
        """The editors that have the path open, and their documents: the one last typed in first, then those that
        nobody typed in, of the editor that connected last first."""
        opened = [(editor, buffer) for editor in reversed(self._seen) if (buffer := editor.buffer(path)) is not None]
        return sorted(opened, key=lambda entry: -entry[1].typed)

    def languages(self, question: Question, paths: Iterable[Path]) -> list[LanguageQueries]:
        """Who can be asked such a question about one of those absolute paths: editors that have it open first, then
        those that connected last."""
        able = [
            (editor.buffer(path) is None, editor.language)
            for path in paths
            for editor in reversed(self._editors)
            if editor.language is not None and editor.language.answers(question, path)
        ]
        return list(dict.fromkeys(language for _, language in sorted(able, key=lambda entry: entry[0])))

    def buffers(self) -> list[Buffer]:
        """All open documents, each path once: what `find` gives."""
        return [self.documents(path)[0][1] for path in self.paths()]

    def paths(self) -> list[Path]:
        """Of all open documents, as their editors spell them, each once."""
        return list(dict.fromkeys(buffer.path for editor in reversed(self._seen) for buffer in editor.buffers()))

    @property
    def _seen(self) -> Sequence[Editor]:
        if self._session_id is None:
            return self._editors
        serving = [editor for editor in self._editors if editor.serves(self._session_id)]
        clients = {editor.client for editor in serving if editor.client is not None}
        return [editor for editor in self._editors if editor.client not in clients or editor in serving]
