"""What goes with a prompt: `@file` mentions and attachments become text the model can read, or pictures it can see."""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from amanu.context.images import Pictures
from amanu.context.slash_commands import ExpandedPrompt
from amanu.core.conversation import Picture, User
from amanu.core.tool import Allowed, Subject, ToolError
from amanu.system.image_info import media_type
from amanu.text.fences import block
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import (
    Attachment,
    CommentAttachment,
    FileAttachment,
    ImageAttachment,
    SelectionAttachment,
)

MAX_CHARACTERS = 100_000
"""Of one attached file; the model reads on with its tools."""

_LAST_LINE = 2**31 - 1
"""LSP's largest number, of a line or a column."""

_SUFFIXES = re.compile(
    r"\.(c|cc|cfg|conf|cpp|cs|css|csv|diff|exs?|go|h|hpp|html|ini|ipynb|java|jsx?|json|kt|lock|log|lua|m|md|mjs|patch|php|pl"
    r"|proto|ps1|pyi?|rb|rs|rst|scala|sh|sql|svelte|swift|tex|toml|tsx?|txt|vue|xml|ya?ml|zig|png|jpe?g|gif|webp|pdf)",
    re.IGNORECASE,
)
"""Of names that are files' and nothing else."""
_MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|([^\s@\"'`,;:!?()]+[^\s@\"'`,;:!?().]))")


@dataclass(frozen=True)
class PromptMessage:
    """What the model gets of what the user said."""

    message: User
    left_out: tuple[str, ...] = ()
    """Of what the user attached, what could not go: a sentence each, for them."""


async def with_attachments(
    command: ExpandedPrompt,
    attachments: Sequence[Attachment],
    workspace: Workspace,
    pictures: Pictures,
    allowed: Allowed,
    mask: Callable[[str], str] = str,
) -> PromptMessage:
    """The prompt followed by what it mentions, and its pictures; a file that is a picture, by its bytes, is one of
    them. A file that cannot be read is said to be so, never dropped, and so are one that is not there and a folder; an
    `@word` that names nothing is left as it is, and so is one in the text of a workspace's command when its file would
    be asked about before it is read.

    `mask` takes secrets out of files; the user's own words and selections stay as they are. Raises `AmanuError` when
    the session has no room for an attached picture.
    """
    blocks: list[str] = []
    pictures_so_far: list[Picture] = []
    left_out: list[str] = []
    for attachment in (*attachments, *await _mentioned(command, attachments, workspace, allowed)):
        match attachment:
            case FileAttachment(path=path):
                try:
                    part = await _file(attachment, workspace, pictures, pictures_so_far, mask)
                except (ToolError, AmanuError) as error:
                    left_out.append(_utf8(f"{path} was not sent: {error}"))
                    part = block("file", f"(not attached: {error})", path)
            case SelectionAttachment():
                location = f"{attachment.path}{_lines(attachment)}"
                part = block("selection", attachment.text, location)
            case CommentAttachment():
                part = _comment(attachment)
            case ImageAttachment():
                part = await pictures.attached(attachment, pictures_so_far)
        if isinstance(part, str):
            blocks.append(part)
        elif part is not None and part.blob_id not in {each.blob_id for each in pictures_so_far}:
            pictures_so_far.append(part)
    text = _utf8("\n\n".join((command.text, *blocks)))
    return PromptMessage(User(text=text, pictures=tuple(pictures_so_far)), tuple(left_out))


def mentions(text: str) -> list[str]:
    """The paths mentioned as `@path` or `@"path with blanks"`, in order, each once."""
    return list(dict.fromkeys(quoted or plain for quoted, plain in _MENTION.findall(text)))


async def _mentioned(
    command: ExpandedPrompt, attachments: Sequence[Attachment], workspace: Workspace, allowed: Allowed
) -> list[FileAttachment]:
    attached = {
        attachment.path for attachment in attachments if isinstance(attachment, FileAttachment | SelectionAttachment)
    }
    own_mentions = set(mentions(command.typed))
    files: list[FileAttachment] = []
    for path in mentions(command.text):
        if path in attached:
            continue
        with suppress(ToolError):
            inside = workspace.resolve(path)
            if path not in own_mentions and not allowed([Subject("read_file", "read", workspace.relative(inside))]):
                continue
            try:
                if await _picture(path, workspace) is None:
                    await workspace.read(inside)
            except ToolError:
                if path not in own_mentions or not await asyncio.to_thread(_means_a_file, inside, workspace):
                    continue
            files.append(FileAttachment(path=path))
    return files


def _means_a_file(path: Path, workspace: Workspace) -> bool:
    """Something that is there, or would be in a folder that is, or has the name of a text or a picture: no decorator
    (`@app.get`), user or package (`@types/node`). Blocking."""
    in_folder = path.parent not in workspace.roots and path.parent.is_dir()
    return path.exists() or in_folder or _SUFFIXES.fullmatch(path.suffix) is not None


async def _picture(path: str, workspace: Workspace) -> bytes | None:
    """The bytes of a file that is a picture, whatever an editor shows of it. `ToolError` outside the roots."""
    data = await workspace.read_bytes(workspace.resolve(path))
    return data if data is not None and media_type(data) is not None else None


async def _file(
    attachment: FileAttachment,
    workspace: Workspace,
    pictures: Pictures,
    pictures_so_far: Sequence[Picture],
    mask: Callable[[str], str],
) -> str | Picture:
    """`ToolError` and `AmanuError` say why it cannot go."""
    if (data := await _picture(attachment.path, workspace)) is not None:
        return await pictures.take(attachment.path, data, beside=pictures_so_far)
    file = await workspace.read(workspace.resolve(attachment.path))
    workspace.shown_files.show(file)
    text, location = file.text, attachment.path
    if attachment.start_line is not None:
        lines = text.splitlines(keepends=True)
        end = attachment.end_line or len(lines)
        text = "".join(lines[attachment.start_line - 1 : end])
        location += f" lines {attachment.start_line}-{end}"
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n(cut here; read on with read_file)"
    return block("file", mask(text), location)


def _comment(comment: CommentAttachment) -> str:
    """The lines are data, and in a block of their own: what they say must not pass for the user's words after
    them."""
    location = f"{comment.path}{_lines(comment)}"
    if comment.proposal_id is not None:
        location += " of the text you proposed"
    text = comment.text.rstrip()
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n(cut here; read on with read_file)"
    return block("comment", f"{block('lines', text)}\n{comment.comment}", location)


def _lines(attachment: SelectionAttachment | CommentAttachment) -> str:
    """Whatever numbers a client sends: no line is before the first, and none ends before it starts."""
    start = min(max(attachment.start_line, 1), _LAST_LINE)
    return f" lines {start}-{min(max(attachment.end_line, start), _LAST_LINE)}"


def _utf8(text: str) -> str:
    """Half a surrogate pair (JSON can hold one) has no UTF-8."""
    return text.encode("utf-8", "replace").decode()
