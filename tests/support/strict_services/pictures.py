"""What the services find wrong with a picture; each says it in its own words."""

import base64
import binascii
import struct
import zlib
from collections.abc import Collection
from typing import Literal

Fault = Literal["type", "base64", "mismatch", "damaged"]
"""A type the service does not take · no base64 · bytes of another type than it says · bytes that are no picture."""

_MAGIC = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def fault(media_type: str, data: str, taken: Collection[str]) -> Fault | None:
    """What is wrong with base64 `data` that says it is `media_type`; None if nothing is."""
    if media_type not in taken:
        return "type"
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "base64"
    if not decoded:
        return "base64"
    if not decoded.startswith(_MAGIC[media_type]):
        return "mismatch" if decoded.startswith(tuple(_MAGIC.values())) else "damaged"
    return None if longer_side(data) else "damaged"


def is_pdf(data: str) -> bool:
    """Whether base64 `data` is a PDF document with its end."""
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return decoded.startswith(b"%PDF-") and b"%%EOF" in decoded[-1_024:]


def longer_side(data: str) -> int:
    """In pixels, of a picture that can be shown; 0 if it cannot. PNGs are looked at whole."""
    decoded = base64.b64decode(data)
    if decoded.startswith(_MAGIC["image/png"]):
        try:
            return _png(decoded)
        except struct.error:
            return 0
    if decoded.startswith(b"GIF8"):
        return max(struct.unpack("<HH", decoded[6:10])) if decoded.endswith(b";") else 0
    return 1 if len(decoded) > 12 else 0


def _png(data: bytes) -> int:
    side, at, kind = 0, 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 4 : at + 8 + length]
        if struct.unpack_from(">I", data, at + 8 + length)[0] != zlib.crc32(body):
            return 0
        if kind == b"IHDR":
            side = max(struct.unpack_from(">II", body, 4))
        at += 12 + length
    return side if kind == b"IEND" else 0
