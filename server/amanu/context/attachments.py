"""Turns a prompt with its attachments and mentions into the message the model gets: text, and pictures."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol, Self

from amanu.context.images import Pictures
from amanu.context.mentions import Mention, mentions
from amanu.context.slash_commands import ExpandedPrompt
from amanu.core.conversation import Picture, User
from amanu.core.tool import Subject, SubjectFilter, ToolError
from amanu.system.image_info import media_type
from amanu.text.fences import block
from amanu.workspace.text_file import split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.base import LineRange
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import (
    Attachment,
    CommentAttachment,
    FileAttachment,
    ImageAttachment,
    SelectionAttachment,
)

MAX_CHARACTERS = 100_000
"""Characters taken of one attached file; the model can read on with its tools."""

"""The largest line number of LSP."""

_SUFFIXES = re.compile(
    r"\.(c|cc|cfg|conf|cpp|cs|css|csv|diff|exs?|go|h|hpp|html|ini|ipynb|java|jsx?|json|kt|lock|log|lua|m|md|mjs|patch|php|pl"
    r"|proto|ps1|pyi?|rb|rs|rst|scala|sh|sql|svelte|swift|tex|toml|tsx?|txt|vue|xml|ya?ml|zig|png|jpe?g|gif|webp|pdf)",
    re.IGNORECASE,
)
"""Suffixes that only file names have."""

_IN_NAME = re.compile(r"[/\\\\]|\.\w")
"""A text that is no end of a sentence: `(auth)/x.tsx` behind the name of a folder."""

TERMINAL = "@terminal"
"""The path of a selection that a client took from its terminal."""


@dataclass(frozen=True)
class Content:
    """The part of an attachment that the model is shown."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()
    location: str = ""
    """The source of the text."""


class LookUp(Protocol):
    """Finds what a prompt mentions. Methods raise `ToolError` saying why it cannot be sent."""

    async def __call__(self, mention: Mention) -> str:
        """Something other than a file, as text for the model."""
        ...

    async def read(self, file: FileAttachment, reading: Callable[[], Awaitable[Content]]) -> Content:
        """A file, which `reading` reads."""
        ...


@dataclass(frozen=True)
class PromptMessage:
    """A prompt as the model gets it."""

    message: User
    left_out: tuple[str, ...] = ()
    """What could not be sent: a sentence for the user about each attachment."""

    def with_context(self, context: str) -> Self:
        """The same with more behind the user's words; "" for nothing."""
        if not context:
            return self
        return replace(self, message=self.message.model_copy(update={"text": f"{self.message.text}\n\n{context}"}))


async def with_attachments(
    prompt: ExpandedPrompt,
    attachments: Sequence[Attachment],
    workspace: Workspace,
    pictures: Pictures,
    allowed: SubjectFilter,
    mask: Callable[[str], str],
    look_up: LookUp,
) -> PromptMessage:
    """The prompt followed by the files and whatever else it mentions, and its pictures. A file whose bytes are a
    picture becomes one. The message says what cannot be read or is missing. An `@word` that names nothing stays
    as it is; so does a mention in a workspace's slash command of a file that needs approval to be read.

    `mask` hides secrets in files and terminals; the user's own words and selections stay as they are. Raises
    `AmanuError` when the session has no room for an attached picture.
    """
    blocks: list[str] = []
    pictures_so_far: list[Picture] = []
    left_out: list[str] = []
    for attachment in (*attachments, *await _mentioned(prompt, attachments, workspace, allowed)):
        shown: Sequence[Picture] = ()
        match attachment:
            case FileAttachment(path=path):
                try:
                    if await _is_folder(path, workspace):
                        part = block("folder", await look_up(Mention("folder", path)), path)
                    else:
                        reading = partial(_file, attachment, workspace, pictures, pictures_so_far, mask)
                        content = await look_up.read(attachment, reading)
                        shown = content.pictures
                        part = block("file", content.text, content.location) if content.text or not shown else ""
                except (ToolError, AmanuError) as error:
                    left_out.append(_utf8(f"Sent without {path}: {_for_user(error)}"))
                    part = block("file", f"(not attached: {error})", path)
            case Mention():
                try:
                    part = block(attachment.kind, mask(await look_up(attachment)), attachment.label)
                except ToolError as error:
                    left_out.append(_utf8(f"Sent without {attachment}: {_for_user(error)}"))
                    part = block(attachment.kind, f"(not attached: {error})", attachment.label)
            case SelectionAttachment():
                location = f"{attachment.path}{_lines(attachment.lines)}"
                # nobody reads a terminal for secrets before it is sent
                text = mask(attachment.text) if attachment.path == TERMINAL else attachment.text
                part = block("selection", text, location)
            case CommentAttachment():
                part = _comment(attachment)
            case ImageAttachment():
                picture = await pictures.attached(attachment, pictures_so_far)
                shown, part = () if picture is None else (picture,), ""
        if part:
            blocks.append(part)
        for picture in shown:
            if picture.blob_id not in {other.blob_id for other in pictures_so_far}:
                pictures_so_far.append(picture)
    text = _utf8("\n\n".join((prompt.text, *blocks)))
    return PromptMessage(User(text=text, pictures=tuple(pictures_so_far)), tuple(left_out))


async def _mentioned(
    prompt: ExpandedPrompt, attachments: Sequence[Attachment], workspace: Workspace, allowed: SubjectFilter
) -> list[FileAttachment | Mention]:
    attached = {
        attachment.path for attachment in attachments if isinstance(attachment, FileAttachment | SelectionAttachment)
    }
    typed = {mention: mention for mention in mentions(prompt.typed)}
    files: list[FileAttachment | Mention] = []
    for found in mentions(prompt.mentioning):
        mention = typed.get(found, found)  # what is equal may go on otherwise, and only what was typed is the user's
        if not attached.isdisjoint(mention.paths) or (mention.kind == "terminal" and TERMINAL in attached):
            continue
        own = mention in typed
        if mention.kind != "path":
            if own or mention.kind != "resource":  # a server is called at the user's word, not at a file's
                files.append(mention)
            continue
        path = await asyncio.to_thread(_named, mention, workspace, own)
        try:
            inside = workspace.resolve(path)
        except ToolError:
            if own and await asyncio.to_thread(_is_outside, path, workspace):
                files.append(FileAttachment(path=path))
            continue
        if not own and not allowed([Subject("read_file", "read", workspace.relative(inside))]):
            continue
        try:
            if not await _is_folder(path, workspace) and await _picture(path, workspace) is None:
                await workspace.read(inside)
        except ToolError:
            if not own or not await asyncio.to_thread(_means_a_file, inside, workspace):
                continue
        files.append(FileAttachment(path=path))
    return files


def _named(mention: Mention, workspace: Workspace, own: bool) -> str:
    """The longest path that the mention may mean and that is there; else the one that is likely meant. Blocking."""
    paths = [_in_home(path) if own else path for path in mention.paths or (mention.text,)]
    likely = _in_home(mention.text) if own else mention.text
    opened = {*workspace.overlay.paths()}
    there = (
        path for path in paths if any(os.path.lexists(root / path) or root / path in opened for root in workspace.roots)
    )
    otherwise = (path for path in dict.fromkeys((mention.run, likely)) if path and not _is_absent(path, workspace))
    for path in chain(there, otherwise):
        rest = mention.run.removeprefix(path) if path != mention.run else ""
        if not _IN_NAME.search(rest) or not (_is_folder_now(path, workspace) or rest[0] in "([{"):
            return path
    absent = [path for path in (likely, *paths) if _is_absent(path, workspace)]
    return next((path for path in absent if _SUFFIXES.fullmatch(Path(path).suffix)), (absent or [likely])[0])


def _is_absent(path: str, workspace: Workspace) -> bool:
    try:
        return not os.path.lexists(workspace.guard.real(workspace.resolve(path)))
    except ToolError:
        return True


def _is_folder_now(path: str, workspace: Workspace) -> bool:
    try:
        return workspace.guard.real(workspace.resolve(path)).is_dir()
    except ToolError:
        return False


def _in_home(path: str) -> str:
    return os.path.expanduser(path) if path.startswith("~/") else path  # noqa: PTH111 - keeps other spellings


def _is_outside(path: str, workspace: Workspace) -> bool:
    """Whether a path that cannot be resolved is that of a file elsewhere, or would be if the file existed; an import
    (`@/components/Cart`) is not. Blocking."""
    return any(
        os.path.lexists(place) or (place.parent.is_dir() and place.parent != Path(place.anchor))
        for place in (Path(os.path.normpath(root / path)) for root in workspace.roots)
    )


def _for_user(error: ToolError | AmanuError) -> str:
    return error.for_user if isinstance(error, ToolError) else str(error)


def _means_a_file(path: Path, workspace: Workspace) -> bool:
    """Whether the path exists, or is in a folder that does, or has a file's suffix; a decorator (`@app.get`), a user or
    a package (`@types/node`) does not. Blocking."""
    above = [folder for folder in path.parents if workspace.root_of(path) in folder.parents]
    in_folder = any(_is_dir(folder) or " " in folder.name for folder in above)
    return os.path.exists(path) or in_folder or _SUFFIXES.fullmatch(path.suffix) is not None  # noqa: PTH110 (`_is_dir`)


async def _is_folder(path: str, workspace: Workspace) -> bool:
    """Raises `ToolError` outside the roots."""
    return await asyncio.to_thread(_is_dir, workspace.resolve(path))


def _is_dir(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (which fails for names that are too long)


async def _picture(path: str, workspace: Workspace) -> bytes | None:
    """The bytes on the disk of a file that is a picture, else None. Raises `ToolError` outside the roots."""
    data = await workspace.read_bytes(workspace.resolve(path))
    return data if data is not None and media_type(data) is not None else None


async def _file(
    attachment: FileAttachment,
    workspace: Workspace,
    pictures: Pictures,
    pictures_so_far: Sequence[Picture],
    mask: Callable[[str], str],
) -> Content:
    """The text or picture of an attached file. Raises `ToolError` or `AmanuError` saying why it cannot be sent."""
    if (data := await _picture(attachment.path, workspace)) is not None:
        picture = await pictures.take(attachment.path, data, beside=pictures_so_far)
        return Content(pictures=(picture,), location=attachment.path)
    file = await workspace.read(workspace.resolve(attachment.path))
    workspace.shown_files.show(file)
    text, location = file.text, attachment.path
    if (lines := attachment.lines) is not None:
        text = "".join(split_lines(text)[lines.start : lines.last])
        location += f" lines {lines.first}-{lines.last}"
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n(truncated; read on with read_file)"
    return Content(mask(text), location=location)


def _comment(comment: CommentAttachment) -> str:
    """The block for a comment on lines. The lines are in a block of their own: their text must not pass for the user's
    words, which follow."""
    location = f"{comment.path}{_lines(comment.lines)}"
    if comment.proposal_id is not None:
        location += " of the text you proposed"
    text = comment.text.rstrip()
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n(truncated; read on with read_file)"
    return block("comment", f"{block('lines', text)}\n{comment.comment}", location)


def _lines(lines: LineRange) -> str:
    return f" lines {lines.first}-{lines.last}"


def _utf8(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON can hold and UTF-8 cannot, replaced by "?"."""
    return text.encode("utf-8", "replace").decode()
