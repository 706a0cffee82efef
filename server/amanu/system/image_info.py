"""Reads a picture's type, its size in pixels and whether it is complete from its bytes, without decoding it.

Sources: PNG specification 5.3 and 5.4 (chunks) and 11.2.2 (IHDR); GIF89a specification 18 and 27 (trailer); JPEG, ITU
T.81 B.1.1.3 (markers) and B.2.2 (frame header); WebP, RFC 9649 section 2.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Literal

MediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
"""The types that vendors accept; each vendor accepts some of them (`core/model_families.py`)."""

MAX_SEGMENTS = 4000
"""Segments of a JPEG before its scan, chunks of a PNG. Each costs time, so a file with more counts as damaged; a colour
profile takes up to 255, and encoders put 8 KiB and more into a chunk."""

_PADDING = re.compile(rb"\xff*")
_SCAN = 0xDA
_NO_FRAME = (0xC4, 0xC8, 0xCC)
"""JPEG markers among 0xC0–0xCF that begin no frame: Huffman tables, reserved, arithmetic conditioning."""


def media_type(data: bytes) -> MediaType | None:
    """The type by its magic bytes; None for any other."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def pixels(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels; None when the header is broken or cut off."""
    try:
        match media_type(data):
            case "image/png":
                size = struct.unpack_from(">II", data, 16) if data[12:16] == b"IHDR" else None
            case "image/gif":
                size = struct.unpack_from("<HH", data, 6)
            case "image/jpeg":
                size = _jpeg(data)
            case "image/webp":
                size = _webp(data)
            case None:
                size = None
    except (struct.error, IndexError):  # cut off
        return None
    return size if size is not None and min(size) > 0 else None


def whole(data: bytes) -> bool:
    """Whether the picture has its end and is undamaged, as far as that shows without decoding it: any other would make
    every request that contains it fail. Takes milliseconds for megabytes."""
    match media_type(data):
        case "image/png":
            return _png_is_whole(data)
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case "image/jpeg":
            # The end marker after the scan: a thumbnail in the header has an end marker of its own.
            scan = next((offset for marker, offset in _segments(data) if marker == _SCAN), None)
            return scan is not None and data.find(b"\xff\xd9", scan) >= 0
        case "image/webp":
            end = int.from_bytes(data[4:8], "little") + 8
            return 20 + int.from_bytes(data[16:20], "little") <= end <= len(data)
        case None:
            return False


def mended(data: bytes) -> bytes:
    """A PNG without the chunks that no decoder needs and whose checksum is wrong: viewers show such a picture, services
    refuse it. Any other picture is returned as it is."""
    view, offset, kept = memoryview(data), 8, [data[:8]]
    for _ in range(MAX_SEGMENTS if media_type(data) == "image/png" else 0):
        if len(data) < offset + 12:
            break
        length, kind = struct.unpack_from(">I4s", data, offset)
        end = offset + 12 + length
        if kind == b"IEND":
            return b"".join((*kept, data[offset:]))
        is_needed = not kind[0] & 0x20  # 5.4: the case of the first letter
        if is_needed or int.from_bytes(data[end - 4 : end], "big") == zlib.crc32(view[offset + 4 : end - 4]):
            kept.append(data[offset:end])
        offset = end
    return data


def _png_is_whole(data: bytes) -> bool:
    """Each chunk has its checksum, and one holds pixels. Some programs put something of their own after the last."""
    view, offset, has_pixels = memoryview(data), 8, False
    for _ in range(MAX_SEGMENTS):
        if len(data) < offset + 12:
            return False
        length, kind = struct.unpack_from(">I4s", data, offset)
        end = offset + 12 + length
        if int.from_bytes(data[end - 4 : end], "big") != zlib.crc32(view[offset + 4 : end - 4]):
            return False
        if kind == b"IEND":
            return has_pixels
        has_pixels |= kind == b"IDAT"
        offset = end
    return False


def _jpeg(data: bytes) -> tuple[int, int] | None:
    for marker, offset in _segments(data):
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, offset + 3)
            return width, height
    return None


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """(marker, offset of its length) for each segment up to the scan, as far as the data goes."""
    offset = 2
    for _ in range(MAX_SEGMENTS):
        padding = _PADDING.match(data, offset)
        if padding is None or padding.end() == offset or padding.end() + 3 > len(data):
            return
        marker, offset = data[padding.end()], padding.end() + 1
        yield marker, offset
        if marker == _SCAN:
            return
        offset += int.from_bytes(data[offset : offset + 2], "big")


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case _:
            return None
