"""Our own documents (chat, reviews): files under the state folder, which an editor may have open."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from amanu.lsp.buffers import sha256
from amanu.storage.files import write_whole
from amanu.workspace.overlay import Overlay
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import TextEdit

FOLDER = "documents"
CHAT = "chat.md"
PATCH = ".patch"
TRIES = 5
PAUSE = 0.1
"""Seconds before an edit is tried again that the person's typing overtook."""

Change = Callable[[str], list[TextEdit]]


class Document:
    """One of our files. Where an editor has it open its text there counts, and is changed there; else the file."""

    def __init__(self, path: Path, overlay: Overlay) -> None:
        self.path = path
        self._overlay = overlay

    @property
    def opened(self) -> bool:
        return self._overlay.find(self.path) is not None

    async def text(self) -> str | None:
        """As the person sees it; None when there is no such file."""
        buffer = self._overlay.buffer(self.path)
        return await asyncio.to_thread(_read, self.path) if buffer is None else buffer.text

    async def change(self, change: Change) -> bool:
        """Make the edits that `change` finds for its present text. False when the editor refused them: it is as it
        was, or as the person made it meanwhile."""
        for _ in range(TRIES):
            found = self._overlay.find(self.path)
            if found is None:
                text = await asyncio.to_thread(_read, self.path) or ""
                await self._write(_edited(text, change(text)))
                return True
            editor, buffer = found
            edits = change(buffer.text)
            if not edits:
                return True
            applied = _edited(buffer.text, edits)
            result = await editor.apply(self.path, sha256(buffer.text), edits, applied, save=False)
            if result.status == "success":
                return True
            await asyncio.sleep(PAUSE)
        return False

    async def replace(self, text: str) -> bool:
        """Give it a whole new text."""
        return await self.change(lambda old: [] if old == text else [TextEdit(start=0, end=len(old), new_text=text)])

    async def _write(self, text: str) -> None:
        try:
            await asyncio.to_thread(_write, self.path, text)
        except OSError as error:
            raise AmanuError("storageError", f"{self.path} cannot be written: {error.strerror or error}.") from error


def _edited(text: str, edits: list[TextEdit]) -> str:
    for edit in reversed(edits):
        text = text[: edit.start] + edit.new_text + text[edit.end :]
    return text


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text.encode("utf-8", "replace"))
