"""How pictures, PDF documents and text are laid out for a model, whatever the wire: the pictures first, each under its
name, as the vendors advise (Anthropic docs "Vision": images before text, each introduced; Google docs "Image
understanding")."""

from collections.abc import Iterable
from typing import NamedTuple

from pydantic import JsonValue

from amanu.core.conversation import Conversation, Note, Result, SystemText
from amanu.core.model_families import family
from amanu.system.file_kind import PDF
from amanu_protocol.items import ModelInfo


class WirePicture(NamedTuple):
    """A picture or PDF document as it goes over the wire."""

    media_type: str
    data: str
    """Base64."""
    name: str

    @property
    def file_name(self) -> str:
        """Of a document; services look at its suffix."""
        return self.name if self.name.lower().endswith(".pdf") else f"{self.name}.pdf"


def laid_out(notes: Iterable[Note], conversation: Conversation, model: ModelInfo) -> list[str | WirePicture]:
    """Texts and pictures in the order to send. For a picture this model cannot be sent there is a text that says so."""
    parts: list[str | WirePicture] = []
    for part in notes:
        if isinstance(part, str | SystemText):
            parts.append(part if isinstance(part, str) else part.text)
            continue
        kind = "document" if part.media_type == PDF else "image"
        opening, end = f'<{kind} name="{part.name}">', f"</{kind}>"
        data = conversation.pictures.get(part.blob_id)
        why = f"the service refused this {kind}: it may be damaged" if part.refused else unseen(part.media_type, model)
        why = why or (f"this {kind} is lost" if data is None else "")
        if why or data is None:
            parts.append(f"{opening}({why}){end}")
        else:
            parts += [opening, WirePicture(part.media_type, data, part.name), end]
    return parts


class WireResult(NamedTuple):
    """What a result shows, and what it says."""

    text: str
    """Its text or its fields as JSON, and why what it shows cannot be sent."""
    fields: dict[str, JsonValue]
    """Its fields with that; empty if it has none."""
    shown: list[str | WirePicture]
    """What it shows, each under its name; empty when nothing of it can be sent."""


def result_layout(result: Result, conversation: Conversation, model: ModelInfo) -> WireResult:
    """A result to be sent: pictures apart from the text, for not every wire takes them in the same place."""
    shown: list[str | WirePicture] = []
    for picture in result.pictures:
        parts = laid_out([picture], conversation, model)
        if len(parts) == 1:
            result = result.amended(texts(parts))
        shown += parts if len(parts) > 1 else ()
    return WireResult(result.sent_text, result.fields, shown)


def unseen(media_type: str, model: ModelInfo) -> str:
    """Why the model cannot be sent pictures, or documents, of that type; "" when it can."""
    if media_type == PDF:
        return "" if model.images and family(model.model_id).documents else "this model cannot read PDF"
    if not model.images:
        return "this model cannot see images"
    if media_type not in family(model.model_id).pictures:
        return f"this model cannot see {media_type.removeprefix('image/').upper()} images"
    return ""


def texts(parts: Iterable[str | WirePicture]) -> str:
    """The texts alone, as one."""
    return "\n\n".join(part for part in parts if isinstance(part, str))
