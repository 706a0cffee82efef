"""The change that a decision makes to one text file, compared with the file as it is now."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.model import (
    FILE_CHANGED,
    FILE_GONE,
    FILE_MADE,
    STATES_AFTER,
    STATES_BEFORE,
    FileVersion,
    LiveFile,
)
from amanu.workspace.disk import read_only_message
from amanu.workspace.encodings import same_bytes
from amanu.workspace.replacement import Replacement
from amanu.workspace.text_file import FileText, sha256, survives
from amanu.workspace.workspace import Workspace

_SAVE_ONE = "Save it in one of them and close it in the others, then accept the change again."


@dataclass(frozen=True)
class TextPlan:
    """A file with `accepted` or `undoing` hunks, and the change that carries them out."""

    file: LiveFile
    current: FileText | None
    old_version: FileVersion
    new_version: FileVersion
    old_bytes: bytes | None
    new_bytes: bytes | None
    """The file before and after, as it is on disk; None where there is none."""
    new_sha256: str | None
    """The hash of the new text in UTF-8; None if there is none."""

    @property
    def moves(self) -> bool:
        return self.new_version.path != self.old_version.path

    @property
    def paths(self) -> Sequence[Path]:
        return list(dict.fromkeys([self.old_version.path, self.new_version.path]))

    @property
    def is_written_by_editor(self) -> bool:
        if self.current is None or not self.current.from_buffer or self.new_version.text is None or self.moves:
            return False
        return self.current.unsaved or survives(self.new_version.text, self.current.encoding)

    @property
    def changes(self) -> Sequence[Replacement]:
        """The changes on disk, if no editor makes them."""
        old_path, new_path = self.old_version.path, self.new_version.path
        if self.old_bytes is None:
            return [Replacement(new_path, None, self.new_bytes, self.file.base.mode)]
        if not self.moves:
            return [Replacement(new_path, self.old_bytes, self.new_bytes)]
        return [
            Replacement(new_path, None, self.new_bytes, like=old_path),
            Replacement(old_path, self.old_bytes, None),
        ]


async def plan_text(workspace: Workspace, file: LiveFile) -> TextPlan | None:
    """The plan for a file; None if the file is already as it should be, because a crash came after the write or
    somebody did the same. Raises `ToolError` if it is neither that nor what the change was computed from."""
    old_version, new_version = await asyncio.to_thread(
        lambda: (file.version_with(STATES_BEFORE), file.version_with(STATES_AFTER))
    )
    current = await workspace.read_to_edit(old_version.path)
    moves = new_version.path != old_version.path
    current = current and await asyncio.to_thread(current.read_as, file.base.encoding)
    target = await workspace.read_to_edit(new_version.path) if moves else current
    if _text_of(target) == new_version.text and not (moves and current is not None):
        if target is None or target.exists or old_version.text is not None:
            file.unsaved = target is not None and target.unsaved
            return None
        current = None  # an editor shows it, but it is on no disk, as of a file that was deleted and is wanted again
    if (current is None) != (old_version.text is None):
        raise ToolError(FILE_GONE if current is None else FILE_MADE)
    if moves and target is not None:
        raise ToolError(target_made(workspace, new_version.path))
    if current is not None:
        if current.text != old_version.text or _has_other_encoding(current, file):
            raise ToolError(changed_message(workspace, old_version.path))
        if current.lossy:
            raise ToolError(lossy_message(workspace, current))
        if not (current.from_buffer or (current.mode or 0o200) & 0o222) and not moves and new_version.text is not None:
            raise ToolError(read_only_message(old_version.path))
        if current.unsaved and (moves or new_version.text is None):
            verb = "moved" if moves else "deleted"
            raise ToolError(f"The file has unsaved changes in the editor; it was not {verb}.")
    return await asyncio.to_thread(_encoded_plan, file, current, old_version, new_version)


def changed_message(workspace: Workspace, path: Path) -> str:
    """The reason why a change no longer fits the file. If editors disagree about it, reading it again does not help."""
    if len({buffer.text for _, buffer in workspace.overlay.documents(path)}) > 1:
        return f"{workspace.display_path(path)} is open in several editors with different text. {_SAVE_ONE}"
    return FILE_CHANGED


def lossy_message(workspace: Workspace, current: FileText) -> str:
    """The reason why a file with such unsaved text cannot be edited at the moment."""
    return (
        f"{workspace.display_path(current.path)} has unsaved changes in the editor and its bytes on disk (encoding "
        f"{current.encoding}, line ends) would not survive a change through it. Ask the user to save it first."
    )


def target_made(workspace: Workspace, path: Path) -> str:
    """The reason why no file can be moved to that path."""
    return f"There is a file {workspace.display_path(path)} now."


def _encoded_plan(
    file: LiveFile, current: FileText | None, old_version: FileVersion, new_version: FileVersion
) -> TextPlan:
    """Raises `ToolError` if the file's encoding cannot hold the new text."""
    text = new_version.text
    for hunk in file.hunks:
        if hunk.state == "accepted" and hunk.edited_by_user:  # the model's own text was checked before
            (current or file.base).with_text(hunk.old_text).check_new(hunk.new_text)
    return TextPlan(
        file,
        current,
        old_version,
        new_version,
        None if current is None else current.encode(current.text),
        None if text is None else (current or file.base).encode(text),
        None if text is None else sha256(text.encode("utf-8", "surrogatepass")),
    )


def _text_of(current: FileText | None) -> str | None:
    return None if current is None else current.text


def _has_other_encoding(current: FileText, file: LiveFile) -> bool:
    """Whether its encoding would give the text other bytes than those the change was computed from."""
    return not file.base.from_buffer and not same_bytes(current.encoding, file.base.encoding)
