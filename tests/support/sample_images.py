"""Pictures for tests, made here: small, of any size in pixels and bytes, in the four types."""

import base64
import struct
import zlib

from amanu_protocol.items import ImageAttachment


def png(width: int = 3, height: int = 2, *, bytes_at_least: int = 0) -> bytes:
    """A black picture; `bytes_at_least` pads it with a chunk that viewers skip."""
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    rows = zlib.compress(bytes((1 + (width + 7) // 8) * height))
    rest = _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n" + head
    missing = bytes_at_least - len(data) - len(rest) - 12
    return data + (_chunk(b"paDd", bytes(missing)) if missing > 0 else b"") + rest


def jpeg(width: int = 3, height: int = 2, *, before: bytes = b"") -> bytes:
    """The segments of a JPEG, without a picture in its scan; `before` goes before all others."""
    quantisation = b"\xff\xdb\x00\x43\x00" + bytes([1] * 64)
    frame = b"\xff\xc0" + struct.pack(">HBHHB3B", 11, 8, height, width, 1, 1, 0x11, 0)
    scan = b"\xff\xda" + struct.pack(">HBBBBBB", 8, 1, 1, 0, 0, 63, 0)
    jfif = b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return b"\xff\xd8" + before + jfif + quantisation + frame + scan + b"\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + b";"


def webp(width: int = 3, height: int = 2) -> bytes:
    """The header of a lossless WebP."""
    body = b"WEBPVP8L" + struct.pack("<IB", 10, 0x2F) + struct.pack("<I", (width - 1) | (height - 1) << 14) + bytes(5)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def attached(data: bytes, name: str = "shot.png", media_type: str = "image/png") -> ImageAttachment:
    """A picture as a client sends it."""
    return ImageAttachment(name=name, media_type=media_type, data=base64_of(data))  # pyright: ignore[reportArgumentType]


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
