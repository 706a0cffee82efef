"""Our own documents (chat, reviews): files under the state folder, which an editor may have open."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from amanu.frontends.lsp.buffers import sha256
from amanu.storage.files import write_whole
from amanu.text.display import one_line
from amanu.text.span_edits import SpanEdit, edited
from amanu.workspace.overlay import Overlay
from amanu_protocol.errors import AmanuError

FOLDER = "documents"
CHAT = "chat.md"
PATCH = ".patch"
TRIES = 5
PAUSE = 0.1
"""Seconds before an edit is tried again that the user's typing overtook."""

_OF_SESSION = "s-"
"""Before a session's id in the name of its folder: an id may be two dots."""
_NAME = re.compile(r"[\w.:-]+", re.ASCII)

Change = Callable[[str], list[SpanEdit]]


class Documents:
    """All of ours, each in the folder of its session."""

    def __init__(self, folder: Path, overlay: Overlay) -> None:
        self._folder = folder
        self._overlay = overlay

    def of(self, session_id: str, name: str) -> "ManagedDocument":
        return ManagedDocument(self._folder / f"{_OF_SESSION}{session_id}" / name, self._overlay)

    def at(self, path: Path) -> "ManagedDocument":
        return ManagedDocument(path, self._overlay)

    def session_of(self, path: Path) -> str | None:
        """The session whose document of ours this is."""
        folder = path.parent
        ours = folder.parent == self._folder and folder.name.startswith(_OF_SESSION) and _NAME.fullmatch(path.name)
        return folder.name.removeprefix(_OF_SESSION) if ours else None


class ManagedDocument:
    """One of our files. Where an editor has it open its text there counts, and is changed there; else the file."""

    def __init__(self, path: Path, overlay: Overlay) -> None:
        self.path = path
        self._overlay = overlay

    @property
    def opened(self) -> bool:
        return self._overlay.find(self.path) is not None

    async def text(self) -> str | None:
        """As the user sees it; None when there is no such file. Raises `AmanuError` (storageError) when there is
        one, or can be none, that cannot be read: an editor may send any name."""
        buffer = self._overlay.buffer(self.path)
        return await self._stored() if buffer is None else buffer.text

    async def change(self, change: Change) -> bool:
        """Make the edits that `change` finds for its present text. False when the editor refused them: it is as it
        was, or as the user made it meanwhile."""
        for _ in range(TRIES):
            document = self._overlay.find(self.path)
            if document is None:
                text = await self._stored() or ""
                await self._write(edited(text, change(text)))
                return True
            editor, buffer = document
            edits = change(buffer.text)
            if not edits:
                return True
            applied = edited(buffer.text, edits)
            result = await editor.apply(self.path, sha256(buffer.text), edits, applied, save=False)
            if result.status == "success":
                return True
            await asyncio.sleep(PAUSE)
        return False

    async def replace(self, text: str) -> bool:
        """Give it a whole new text."""
        return await self.change(
            lambda current: [] if current == text else [SpanEdit(start=0, end=len(current), new_text=text)]
        )

    async def _stored(self) -> str | None:
        try:
            return await asyncio.to_thread(_read, self.path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            why = getattr(error, "strerror", None) or error
            name = one_line(str(self.path))[:300]
            raise AmanuError("storageError", f"{name} cannot be read: {why}.") from error

    async def _write(self, text: str) -> None:
        try:
            await asyncio.to_thread(_write, self.path, text)
        except OSError as error:
            raise AmanuError("storageError", f"{self.path} cannot be written: {error.strerror or error}.") from error


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text.encode("utf-8", "replace"))
