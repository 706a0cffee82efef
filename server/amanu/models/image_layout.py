"""How pictures and text are laid out for a model, whatever the wire: the pictures first, each under its name, as the
vendors advise (Anthropic docs "Vision": images before text, each introduced; Google docs "Image understanding")."""

from collections.abc import Iterable
from typing import NamedTuple

from amanu.core.conversation import Conversation, Note, SystemText
from amanu.core.model_families import family
from amanu_protocol.items import ModelInfo


class WirePicture(NamedTuple):
    """A picture as it goes over the wire."""

    media_type: str
    data: str
    """Base64."""


def laid_out(notes: Iterable[Note], conversation: Conversation, model: ModelInfo) -> list[str | WirePicture]:
    """Texts and pictures in the order to send. For a picture this model cannot be sent there is a text that says so."""
    parts: list[str | WirePicture] = []
    for part in notes:
        if isinstance(part, str | SystemText):
            parts.append(part if isinstance(part, str) else part.text)
            continue
        opening = f'<image name="{part.name}">'
        data = conversation.pictures.get(part.blob_id)
        why = unseen(part.media_type, model) or ("this image is lost" if data is None else "")
        if why or data is None:
            parts.append(f"{opening}({why})</image>")
        else:
            parts += [opening, WirePicture(part.media_type, data), "</image>"]
    return parts


def unseen(media_type: str, model: ModelInfo) -> str:
    """Why the model cannot be sent pictures of that type; "" when it can."""
    if not model.images:
        return "this model cannot see images"
    if media_type not in family(model.model_id).pictures:
        return f"this model cannot see {media_type.removeprefix('image/').upper()} images"
    return ""


def texts(parts: Iterable[str | WirePicture]) -> str:
    """The texts alone, as one."""
    return "\n\n".join(part for part in parts if isinstance(part, str))
