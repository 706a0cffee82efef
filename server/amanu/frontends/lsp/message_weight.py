"""How much work a message would be before it is parsed. Pure; standard library only.

Parsing cannot be interrupted, and meanwhile every session waits. What it costs hangs on the number of values, not on
bytes: 60 MB of one text take a tenth of a second, as many bytes of `{},{},…` more than one, and a gigabyte. So the
values of a large message are counted first, in small pieces.
"""

from collections.abc import Iterator

LARGE = 256 * 1024
"""Bytes; a smaller message is parsed in 5 ms whatever is in it."""
MAX_VALUES = 400_000
"""Of one message; a client of ours sends a few hundred. Those take some 30 ms to parse."""

_PIECE = 1 << 18
_STRINGS = 2_000
"""Bytes and strings that are looked at in one go: less than 2 ms."""


def weigh(body: bytes) -> Iterator[int]:
    """The number of values so far, given now and then; the last is the whole number, or one above `MAX_VALUES`. Of
    what is no JSON, some number that is no smaller than what a parser would make of it before it stops."""
    most = 1
    for start in range(0, len(body), _PIECE):
        most += _marks(body, start, start + _PIECE)
        yield 0
    if not _over(most):  # even if none of them stood in a text
        yield most
        return
    values, index, strings = 1, 0, 0
    while index < len(body):
        quote = body.find(b'"', index, index + _PIECE)
        end = quote if quote >= 0 else min(index + _PIECE, len(body))
        values += _marks(body, index, end)
        if _over(values):
            break
        if quote < 0:
            index = end
            yield values
            continue
        index = quote + 1
        while index < len(body):  # to the quote that ends the string
            stop = min(index + _PIECE, len(body))
            quote = body.find(b'"', index, stop)
            if quote < 0:
                index = stop
                yield values
                continue
            index = quote + 1
            strings += 1
            if strings % _STRINGS == 0:
                yield values
            if not _escaped(body, quote):
                break
    yield values


def _over(values: int) -> bool:
    return values > MAX_VALUES


def _marks(body: bytes, start: int, end: int) -> int:
    return sum(body.count(mark, start, end) for mark in (b",", b"[", b"{"))


def _escaped(body: bytes, quote: int) -> bool:
    """Whether an odd number of backslashes stands before it. Each backslash is counted for one quote only, so that all
    of them together cost no more than the body is long."""
    size = 16
    while True:
        piece = body[max(0, quote - size) : quote]
        run = len(piece) - len(piece.rstrip(b"\\"))
        if run < len(piece) or len(piece) < size:
            return run % 2 == 1
        size *= 16
