"""The texts of records as they are kept: compressed, which makes a long session's journal about a fifth of its text.

Most of a record is the names of its fields, and the same ones come in every record. So each is compressed by itself,
read without any other, and with a dictionary of what records usually say. Its first characters stay as they are:
an event begins with its kind, by which the journal is searched.
"""

import importlib.resources
import zlib
from functools import cache

_MARK = b"\xff"
"""In no UTF-8 text. What does not have it after its head is plain: a short text, or one of an older format."""
HEAD = 32
"""Bytes that stay as they are; an event's kind ends before."""
_SHORTEST = 120
"""Bytes from which compressing pays."""

_LEVEL, _WINDOW, _MEMORY = 6, -13, 6
"""Of zlib: its usual level, with a window (8 KB, raw) and tables that take little time to set up: 10 µs for an event,
where the usual ones take 50."""


def pack(text: bytes) -> bytes:
    """A text in UTF-8 (half surrogate pairs allowed) as it is kept."""
    if len(text) < _SHORTEST:
        return text
    compress = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _dictionary())
    return b"".join((text[:HEAD], _MARK, compress.compress(text[HEAD:]), compress.flush()))


def unpack(data: bytes) -> bytes:
    """The text. Raises `zlib.error` for what `pack` did not make."""
    if data[HEAD : HEAD + 1] != _MARK:
        return data
    return data[:HEAD] + zlib.decompressobj(-zlib.MAX_WBITS, _dictionary()).decompress(data[HEAD + 1 :])


@cache
def _dictionary() -> bytes:
    """What records usually say, the commonest last. A record is read with the dictionary it was written with: the file
    never changes, and another one would need another mark."""
    return (importlib.resources.files("amanu.storage") / "dictionary.txt").read_bytes()
