"""The content of a prompt in the daemon's terms: text, and what is attached to it."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import cast, get_args
from urllib.parse import unquote, urlsplit

from amanu.frontends.acp.peer import INVALID_PARAMS, RpcError
from amanu.frontends.acp.schema import Block, ImageBlock, LinkBlock, Resource, ResourceBlock, TextBlock
from amanu.text.fences import block as fenced
from amanu_protocol.base import LineRange
from amanu_protocol.items import Attachment, FileAttachment, ImageAttachment, SelectionAttachment

_LINES = re.compile(r"L?(\d{1,9})(?:[-:]L?(\d{1,9}))?")
"""The fragment of a link to lines of a file: `#L10`, `#L10-L20`, `#L10:20`."""
_IMAGE_TYPES: tuple[str, ...] = get_args(ImageAttachment.model_fields["media_type"].annotation)


def prompt_of(blocks: Sequence[Block]) -> tuple[str, list[Attachment]]:
    """(The text, its attachments.) Raises `RpcError` for a picture of an unknown format, and for an empty prompt."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        match block:
            case TextBlock():
                texts.append(block.text)
            case ImageBlock():
                attachments.append(_image(block.data, block.mime_type, block.uri))
            case LinkBlock():
                texts.append(_link(block, attachments))
            case ResourceBlock():
                texts.append(_resource(block.resource, attachments))
    text = "".join(texts).encode("utf-8", "replace").decode()  # half a surrogate pair has no UTF-8
    if not text.strip() and attachments:
        text = "See what is attached."
    if not text.strip():
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return text, attachments


def _link(block: LinkBlock, attachments: list[Attachment]) -> str:
    path = _path(block.uri)
    if path is None:
        return f"[{block.name}]({block.uri})"
    attachments.append(FileAttachment(path=path, lines=_lines(block.uri)))
    return f"`{block.name}`"


def _resource(resource: Resource, attachments: list[Attachment]) -> str:
    path = _path(resource.uri)
    name = _name(resource.uri) or resource.uri
    if resource.text is None:
        if resource.mime_type in _IMAGE_TYPES and resource.blob is not None:
            attachments.append(_image(resource.blob, resource.mime_type, resource.uri))
        elif path is not None:
            attachments.append(FileAttachment(path=path))
        return f"`{name}`"
    if path is None:
        return f"\n{fenced('resource', resource.text, resource.uri, attribute='uri')}\n"
    named = _lines(resource.uri)
    first = named.first if named else 1
    lines = LineRange.numbered(first, first + len(resource.text.splitlines()) - 1)
    attachments.append(SelectionAttachment(path=path, lines=lines, text=resource.text))
    return f"`{name}`"


def _image(data: str, media_type: str, uri: str | None) -> ImageAttachment:
    if media_type not in _IMAGE_TYPES:
        formats = ", ".join(name.removeprefix("image/") for name in _IMAGE_TYPES)
        raise RpcError(INVALID_PARAMS, f"Unsupported image type {media_type[:100]!r}. Available: {formats}.")
    name = _name(uri or "") or "Pasted image"
    return ImageAttachment.model_validate({"name": name, "mediaType": media_type, "data": data})


def _name(uri: str) -> str:
    """The last part of its path."""
    return PurePosixPath(unquote(uri.partition("#")[0])).name


def _path(uri: str) -> str | None:
    """The absolute path that a URI names, None where it is not of a file."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # `http://[`
        return None
    if parts.scheme != "file":
        return uri if not parts.scheme and Path(uri).is_absolute() else None
    return unquote(parts.path) or None


def _lines(uri: str) -> LineRange | None:
    match = _LINES.fullmatch(urlsplit(uri).fragment)
    if match is None:
        return None
    first, last = cast("tuple[str, str | None]", match.groups())
    return LineRange.numbered(int(first), int(last or first))
