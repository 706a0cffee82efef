"""What goes with a prompt: `@file` mentions and attachments become text the model can read."""

import re
from collections.abc import Sequence

from amanu.tools.base import ToolError
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Attachment, FileAttachment, ImageAttachment, SelectionAttachment

MAX_CHARACTERS = 100_000
"""Of one attached file; the model reads on with its tools."""

_MENTION = re.compile(r"(?<![\w@])@(?:\"([^\"\n]+)\"|([^\s@\"'`,;:!?()]+[^\s@\"'`,;:!?().]))")


async def with_attachments(text: str, attachments: Sequence[Attachment], workspace: Workspace) -> str:
    """The prompt followed by what it mentions. A file that cannot be read is said to be so, never dropped; an
    `@word` that names no file is left as it is."""
    blocks: list[str] = []
    for attachment in (*attachments, *await _mentioned(text, attachments, workspace)):
        match attachment:
            case FileAttachment():
                blocks.append(await _file(attachment, workspace))
            case SelectionAttachment():
                where = f"{attachment.path} lines {attachment.start_line}-{attachment.end_line}"
                blocks.append(_block("selection", where, attachment.text))
            case ImageAttachment():
                blocks.append(_block("image", attachment.name, "(pictures are not sent yet)"))
    # Half a surrogate pair (JSON can hold one) has no UTF-8.
    return "\n\n".join((text, *blocks)).encode("utf-8", "replace").decode()


def mentions(text: str) -> list[str]:
    """The paths mentioned as `@path` or `@"path with blanks"`, in order, each once."""
    return list(dict.fromkeys(quoted or plain for quoted, plain in _MENTION.findall(text)))


async def _mentioned(text: str, attachments: Sequence[Attachment], workspace: Workspace) -> list[FileAttachment]:
    attached = {each.path for each in attachments if not isinstance(each, ImageAttachment)}
    found: list[FileAttachment] = []
    for path in mentions(text):
        if path in attached:
            continue
        try:
            await workspace.read(workspace.resolve(path))
        except ToolError:
            continue
        found.append(FileAttachment(path=path))
    return found


async def _file(attachment: FileAttachment, workspace: Workspace) -> str:
    try:
        file = await workspace.read(workspace.resolve(attachment.path))
    except ToolError as error:
        return _block("file", attachment.path, f"(not attached: {error})")
    text, where = file.text, attachment.path
    if attachment.start_line is not None:
        lines = text.splitlines(keepends=True)
        end = attachment.end_line or len(lines)
        text = "".join(lines[attachment.start_line - 1 : end])
        where += f" lines {attachment.start_line}-{end}"
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + "\n(cut here; read on with read_file)"
    return _block("file", where, text)


def _block(kind: str, where: str, text: str) -> str:
    return f'<{kind} path="{where}">\n{text}\n</{kind}>'
