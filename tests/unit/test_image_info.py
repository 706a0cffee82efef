"""What the first bytes of a picture say."""

import struct
import time
import zlib

import pytest

from amanu.system.image_info import MAX_SEGMENTS, media_type, mended, pixels, whole
from support.sample_images import gif, jpeg, png, webp

THUMBNAIL = b"\xff\xe1\x00\x20Exif\0\0" + jpeg()[:22] + b"\xff\xd9"
"""A segment that holds the end marker of another picture."""

_VP8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x2c\x41\x90\xc1"
_VP8X = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x2b\x01\x00\x8f\x01\x00"


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (png(300, 400), "image/png", (300, 400)),
        (jpeg(300, 400), "image/jpeg", (300, 400)),
        (b"\xff\xd8\xff" + jpeg(300, 400)[2:], "image/jpeg", (300, 400)),  # padded
        (gif(300, 400), "image/gif", (300, 400)),
        (webp(300, 400), "image/webp", (300, 400)),
        (_VP8, "image/webp", (300, 400)),
        (_VP8X, "image/webp", (300, 400)),
        (png(0, 400), "image/png", None),
        (png()[:20], "image/png", None),
        (png()[:8] + bytes(40), "image/png", None),
        (jpeg()[:40], "image/jpeg", None),
        (b"\xff\xd8\xff", "image/jpeg", None),
        (b"\xff\xd8\xff\xe0\0\x04\0\0plain", "image/jpeg", None),
        (gif()[:8], "image/gif", None),
        (webp()[:22], "image/webp", None),
        (b"RIFF\0\0\0\0WEBPwhat" + bytes(40), "image/webp", None),
        (b"RIFF\0\0\0\0WAVEfmt ", None, None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None, None),
        (b"BM" + bytes(60), None, None),
        (b"", None, None),
    ],
)
def test_type_and_size(data: bytes, kind: str | None, size: tuple[int, int] | None) -> None:
    assert (media_type(data), pixels(data)) == (kind, size)


@pytest.mark.parametrize(
    "data",
    [
        *(png(), jpeg(), gif(), webp(), jpeg(before=THUMBNAIL)),
        *(png() + b"more", jpeg() + b"a film", webp() + b"more", gif() + b"\0\0"),
    ],
)
def test_what_is_whole(data: bytes) -> None:
    assert whole(data)


@pytest.mark.parametrize(
    "data",
    [
        *(png()[:-5], jpeg()[:-1], webp()[:-1]),
        *(jpeg(before=THUMBNAIL)[:-1], jpeg(before=THUMBNAIL)[:-12], jpeg(before=THUMBNAIL)[:40]),
        *(gif()[:-1], gif() + b"more"),
    ],
)
def test_what_is_cut_off(data: bytes) -> None:
    assert not whole(data)


FLIPPED = bytearray(png())
FLIPPED[FLIPPED.index(b"IDAT") + 6] ^= 0xFF


@pytest.mark.parametrize(
    "data",
    [
        bytes(FLIPPED),
        png()[:33] + png()[-12:],
        png()[:-12],
        png()[:33] + b"\xff\xff\xff\xff" + png()[37:],
        webp()[:4] + bytes(4) + webp()[8:],
        webp()[:16] + b"\xff\xff\xff\xff" + webp()[20:],
    ],
    ids=[
        *("a flipped byte", "no pixels", "no end", "a chunk too long"),
        *("WebP of no length", "WebP chunk too long"),
    ],
)
def test_what_is_damaged(data: bytes) -> None:
    assert pixels(data) == (3, 2)
    assert not whole(data)


def profiled(checksum: bytes = bytes(4), kind: bytes = b"iCCP") -> bytes:
    """A PNG with a chunk whose checksum is wrong, like the picture of server-everything (2026.8.31)."""
    return png()[:33] + struct.pack(">I", 5) + kind + b"sRGB\0" + checksum + png()[33:]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (profiled(), png()),
        (profiled() + b"more", png() + b"more"),
        (profiled(struct.pack(">I", zlib.crc32(b"iCCPsRGB\0"))), None),
        *((profiled(kind=b"PLTE"), None), (profiled()[:50], None), (profiled()[:-12], None)),
        *((png(), None), (bytes(FLIPPED), None), (jpeg(), None), (gif(), None), (webp(), None), (b"x", None)),
    ],
)
def test_a_png_is_mended_without_what_no_decoder_needs(data: bytes, expected: bytes | None) -> None:
    assert mended(data) == (data if expected is None else expected)


BIG = 3_700_000
EMPTY_CHUNK = struct.pack(">I4sI", 0, b"paDd", zlib.crc32(b"paDd"))


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (b"\xff" * BIG, (300, 400)),
        (b"\xff\xe0\x00\x02" * (BIG // 4), None),
        (b"\xff\xe0\x00\x00" * (BIG // 4), None),
        (b"\xff\xe2\xff\xff" + bytes(65_533), (300, 400)),
    ],
    ids=["padding", "empty segments", "segments that do not go on", "a profile"],
)
def test_a_strange_jpeg_costs_no_time(before: bytes, size: tuple[int, int] | None) -> None:
    data = jpeg(300, 400, before=before)
    start = time.process_time()
    assert (pixels(data), whole(data)) == (size, size is not None)
    assert time.process_time() - start < 0.05


@pytest.mark.parametrize(
    ("data", "is_whole"),
    [
        (png(bytes_at_least=BIG), True),
        (png()[:33] + EMPTY_CHUNK * (BIG // 12) + png()[33:], False),
        (png()[:33] + EMPTY_CHUNK * (MAX_SEGMENTS - 3) + png()[33:], True),
    ],
    ids=["a long chunk", "empty chunks", "as many chunks as may be"],
)
def test_a_strange_png_costs_no_time(data: bytes, is_whole: bool) -> None:
    start = time.process_time()
    assert whole(data) == is_whole
    assert time.process_time() - start < 0.05
