"""The roots of one session, seen through the open buffers: read a file as the user sees it, write it on disk."""

import asyncio
import contextlib
import copy
import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from amanu.core.tool import ToolError
from amanu.workspace import disk
from amanu.workspace.editor_config import EditorConfig
from amanu.workspace.encodings import GUESSED, UNKNOWN, decode, decode_as, decode_as_shown, is_unicode
from amanu.workspace.overlay import Buffer, Editor, Overlay
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.shown_files import ShownFiles
from amanu.workspace.text_file import REMEMBERED, FileText, as_editors_show, sha256, survives

DECODED = 2
"""Big files whose text is kept while their bytes stay the same."""


class Drafts(Protocol):
    """What a session has drafted. Implemented by `proposals/proposals.py`.

    A drafted file has its drafted text. One that the draft deletes, or moves away, neither exists nor is from a
    buffer."""

    async def draft(self, path: Path) -> FileText | None:
        """The file at that resolved path as it is drafted; None: nothing of it is."""
        ...

    async def drafts(self) -> list[FileText]:
        """All of them."""
        ...


class Workspace:
    """Roots of one session, over the daemon's overlay.

    `ripgrep` is the path of the editor's ripgrep, for where none came with Amanu (`ripgrep.py`). `private` are
    Amanu's own folders, which no tool gets into; `plan` is the session's plan, the one file there that tools may see;
    `memory` is the user's own, which one tool may edit.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        overlay: Overlay,
        *,
        ripgrep: str | None = None,
        private: Sequence[Path] = (),
        plan: Path | None = None,
        memory: Path | None = None,
    ) -> None:
        self.guard = PathGuard(roots, private, plan, memory)
        self.roots = self.guard.roots
        self.overlay = overlay
        self.ripgrep = ripgrep
        self.shown_files = ShownFiles()
        self._drafts: Drafts | None = None
        self._editor_config = EditorConfig(self.guard)
        self._decoded_last: tuple[tuple[bytes, str, str, str], ...] = ()
        """The big files that were decoded last: bytes, text, encoding, hash."""
        self._encodings: dict[Path, str] = {}
        """The encodings of files in older ones, as the editors that had them open show them, or as first guessed."""

    def with_drafts(self, drafts: Drafts) -> "Workspace":
        """The same workspace as the session's own tools see it: with what the session has drafted. Drafted text counts
        as unsaved text."""
        view = copy.copy(self)  # of the same roots, editors and shown files
        view._drafts = drafts
        return view

    def resolve(self, path: str) -> Path:
        """The absolute path meant, links followed. `ToolError` outside the roots."""
        return self.guard.resolve(path)

    def resolve_to_read(self, path: str) -> Path:
        """The same for a path that is only read: it may lie in the folder of an active skill."""
        return self.guard.resolve_to_read(path)

    def relative(self, path: Path) -> str:
        """The path relative to its root, with `/`; "." for a root. For people and rules."""
        return self.guard.locate(path)[1].as_posix()

    def root_of(self, path: Path) -> Path:
        """The root a resolved path lies in; of the plan and the user's memory, its folder."""
        return self.guard.roots[index] if (index := self.guard.locate(path)[0]) < len(self.roots) else path.parent

    def display_path(self, path: Path) -> str:
        """What the model is told and may send back: relative, or absolute when there are several roots."""
        return self.relative(path) if len(self.roots) == 1 and not self.guard.is_admitted(path) else str(path)

    def as_written(self, path: str) -> str:
        """A path nobody has resolved yet, for people: below a root it is relative. Looks at no disk."""
        for root in self.guard.roots:
            path = path.removeprefix(f"{root}/")
        return os.path.normpath(path)

    async def read(self, path: Path) -> FileText:
        """The text of the file as the user sees it: of its open buffer first, of the disk second.

        Raises `ToolError` for a missing file (naming near ones), a folder, device, binary or too big file."""
        file = await self.read_if_exists(path)
        if file is None:
            raise await asyncio.to_thread(self._missing_file, path)
        return file

    async def read_if_exists(self, path: Path) -> FileText | None:
        """Like `read`, None when there is no such file, open or on disk."""
        await self.overlay.refresh(path)
        return await self._read_known(path)

    async def read_to_edit(self, path: Path) -> FileText | None:
        """Like `read_if_exists`, before the file is changed. Raises `ToolError` also when an editor does not say what
        it shows of it."""
        if silent := await self.overlay.refresh(path, to_edit=True):
            raise ToolError(
                f"{silent[0].name or 'The editor'} did not answer whether {self.display_path(path)} has unsaved text "
                "there, so the file was not changed. Try again."
            )
        return await self._read_known(path)

    async def _read_known(self, path: Path) -> FileText | None:
        """Of what editors have said so far."""
        if self._drafts is not None and (drafted := await self._drafts.draft(path)) is not None:
            return drafted if drafted.from_buffer else None
        buffers = [buffer for _, buffer in self.overlay.documents(path)]
        if buffers:
            return await asyncio.to_thread(self._read_through, path, buffers)
        opened = self.overlay.paths()
        spelling = await asyncio.to_thread(self._open_spelling, path, opened) if opened else None
        buffers = [] if spelling is None else [buffer for _, buffer in self.overlay.documents(spelling)]
        return await asyncio.to_thread(self._read_through, path, buffers)

    async def read_bytes(self, path: Path) -> bytes | None:
        """The bytes on disk, whatever an editor shows; None when there is no such file. `ToolError` like `read`, but
        not for binary data."""
        file = await asyncio.to_thread(disk.read, self.guard, path)
        return None if file is None else file.data

    async def unsaved(self) -> list[FileText]:
        """The files in the roots whose text in an editor is not the one on disk, those that only an editor has among
        them; in path order. Of an editor that must be asked only files that were read since it connected are known.
        With drafts: also what is drafted, files that are gone there among them."""
        texts = await self._known_unsaved()
        if texts and self.overlay.must_ask:
            await self.overlay.refresh(*(file.path for file in texts))
            texts = await self._known_unsaved()
        if self._drafts is None or not (drafted := await self._drafts.drafts()):
            return texts
        files = {file.path: file for file in (*texts, *drafted)}
        return [files[path] for path in sorted(files)]

    async def _known_unsaved(self) -> list[FileText]:
        opened = {path: [buffer for _, buffer in self.overlay.documents(path)] for path in self.overlay.paths()}
        return await asyncio.to_thread(self._unsaved, opened)

    def find_open(self, path: Path, text: str | None = None) -> tuple[Editor, Buffer] | None:
        """The editor that has the file open, under whichever name it knows it, and its document; of several the one
        that shows that `text`, if one does."""
        documents = self.overlay.documents(path)
        if not documents and (spelling := self._open_spelling(path, self.overlay.paths())) is not None:
            documents = self.overlay.documents(spelling)
        return next(
            (document for document in documents if document[1].text == text), documents[0] if documents else None
        )

    def _open_spelling(self, path: Path, opened: Sequence[Path]) -> Path | None:
        """The one of those paths that is the file at the resolved `path` by another name. Blocking."""
        return next((candidate for candidate in opened if self.guard.same(path, candidate)), None)

    def _unsaved(self, opened: Mapping[Path, Sequence[Buffer]]) -> list[FileText]:
        files: dict[Path, list[Buffer]] = {}
        for path, buffers in opened.items():
            with contextlib.suppress(ToolError):
                files.setdefault(self.resolve(str(path)), []).extend(buffers)
        texts: list[FileText] = []
        for path, buffers in sorted(files.items()):
            with contextlib.suppress(ToolError):
                file = self._read_through(path, buffers)
                if file is not None and file.unsaved:
                    texts.append(file)
        return texts

    def _read_through(self, path: Path, buffers: Sequence[Buffer]) -> FileText | None:
        stored = disk.read(self.guard, path)
        if stored is None:
            return _from_buffer(path, _authoritative_buffer(buffers), exists=False, unsaved=True) if buffers else None
        if not buffers:
            text, encoding, digest = self._decoded(path, stored.data)
            return FileText(path, text, digest, encoding, mode=stored.mode)
        try:
            text, encoding, digest = self._decoded(path, stored.data)
        except ToolError:  # binary on disk, text in the editor: it cannot go back unchanged
            return _from_buffer(path, _authoritative_buffer(buffers), unsaved=True, lossy=True, mode=stored.mode)
        if survives(text, encoding):
            buffer = _authoritative_buffer(buffers, [text])
            return _from_buffer(path, buffer, encoding, unsaved=buffer.text != text, mode=stored.mode)
        if not is_unicode(encoding):
            text, encoding = self._decoded_as_shown(path, stored.data, buffers) or (text, encoding)
        forms = as_editors_show(stored.data, text)
        buffer = _authoritative_buffer(buffers, forms)
        if buffer.text in forms:
            return FileText(path, text, digest, encoding, mode=stored.mode)
        return _from_buffer(path, buffer, encoding, unsaved=True, lossy=True, mode=stored.mode)

    def _decoded_as_shown(self, path: Path, data: bytes, buffers: Sequence[Buffer]) -> tuple[str, str] | None:
        """(text, encoding) as an editor shows the bytes that it has in an older encoding."""
        for buffer in buffers:
            if (found := decode_as_shown(data, buffer.text)) is not None:
                if found[1] != UNKNOWN:
                    self._encodings[path] = found[1]
                return found
        return None

    def _decoded(self, path: Path, data: bytes) -> tuple[str, str, str]:
        """(text, encoding, SHA-256). Raises `ToolError`. An edit reads the same big file half a dozen times: for
        the same bytes this returns the same objects, without decoding or hashing again."""
        known_encoding = self._encodings.get(path)
        for known in self._decoded_last:
            if known[0] == data and known_encoding in (None, known[2]):
                return known[1:]
        text, encoding = decode(data, path, self._editor_config)
        if known_encoding is not None and not is_unicode(encoding):
            text, encoding = decode_as(data, known_encoding) or (text, encoding)
        elif not text.isascii():
            self._encodings.pop(path, None)  # it was converted
        if encoding.endswith(GUESSED):
            self._encodings[path] = encoding  # an edit must not make it another
        digest = sha256(data)
        if len(data) >= REMEMBERED:
            self._decoded_last = ((data, text, encoding, digest), *self._decoded_last[: DECODED - 1])
        return text, encoding, digest

    def _missing_file(self, path: Path) -> ToolError:
        """There is no such file: with the names that were perhaps meant."""
        near: list[str] = []
        try:
            with self.guard.listing(path.parent) as folder:
                listed = os.listdir(folder)  # noqa: PTH208 (of a handle)
                names_found = (os.fsencode(name).decode("utf-8", "replace") for name in listed)
                names = {name.lower(): name for name in names_found}
                close = difflib.get_close_matches(path.name.lower(), names, n=3, cutoff=0.6)
                near = [self.display_path(path.parent / names[name]) for name in close]
        except (OSError, ToolError):
            return ToolError(
                f"There is no file {self.display_path(path)}, and no folder {self.display_path(path.parent)}.",
                "Use glob to find the right path.",
            )
        missing = f"There is no file {self.display_path(path)}."
        if near:
            return ToolError(f"{missing} Did you mean {' or '.join(near)}?")
        return ToolError(missing, "Use glob or list_directory to find it.")


def _authoritative_buffer(buffers: Sequence[Buffer], saved: Collection[str] = ()) -> Buffer:
    """The document that says what the file is, of those that several editors have of it: the last one somebody typed
    in and did not save, else one that shows what is on disk (another may not have read it again yet), else the first.
    `saved`: how editors may show what is on disk."""
    typed = [buffer for buffer in buffers if buffer.typed and buffer.text not in saved]
    if typed:
        return max(typed, key=lambda buffer: buffer.typed)
    return next((buffer for buffer in buffers if buffer.text in saved), buffers[0])


def _from_buffer(
    path: Path,
    buffer: Buffer,
    encoding: str = "utf-8",
    *,
    exists: bool = True,
    unsaved: bool = False,
    lossy: bool = False,
    mode: int | None = None,
) -> FileText:
    return FileText(
        path,
        buffer.text,
        sha256(buffer.text.encode("utf-8", "surrogatepass")),
        encoding,
        exists=exists,
        from_buffer=True,
        version=buffer.version,
        unsaved=unsaved,
        lossy=lossy,
        mode=mode,
    )
