"""The workspace as the person sees it: text of open buffers, saved or not, over the disk."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from amanu_protocol.requests import EditorApplyResult, TextEdit


@dataclass(frozen=True)
class Buffer:
    """An open document, exactly as its editor reported it."""

    path: Path
    text: str
    version: int


class Editor(Protocol):
    """One connected editor's open documents. Implemented by `lsp/buffers.py`."""

    name: str

    def buffer(self, path: Path) -> Buffer | None:
        """The document open at that absolute path, or None."""
        ...

    def buffers(self) -> Iterable[Buffer]:
        """All open documents."""
        ...

    async def apply(
        self, path: Path, expected_sha256: str, edits: Sequence[TextEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        """Change the buffer through the editor, only if its text has that hash (SHA-256 of its UTF-8).

        By `amanu/editor/apply` where the client has it, else `workspace/applyEdit`, which counts as applied
        only when a didChange yields exactly `new_text` within 2 s. Never raises for an editor's refusal:
        the status says what happened.
        """
        ...


class Overlay:
    """The open documents of every connected editor. One per daemon."""

    def __init__(self) -> None:
        self._editors: list[Editor] = []

    def add(self, editor: Editor) -> None:
        self._editors.append(editor)

    def remove(self, editor: Editor) -> None:
        if editor in self._editors:
            self._editors.remove(editor)

    def buffer(self, path: Path) -> Buffer | None:
        """The open document at that path; of several editors, the one that connected last."""
        found = self.find(path)
        return None if found is None else found[1]

    def find(self, path: Path) -> tuple[Editor, Buffer] | None:
        """The editor that has the path open, and its document."""
        for editor in reversed(self._editors):
            buffer = editor.buffer(path)
            if buffer is not None:
                return editor, buffer
        return None

    def buffers(self) -> Iterator[Buffer]:
        """All open documents, each path once."""
        seen: set[Path] = set()
        for editor in reversed(self._editors):
            for buffer in editor.buffers():
                if buffer.path not in seen:
                    seen.add(buffer.path)
                    yield buffer
