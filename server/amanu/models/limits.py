"""How much of a reply is taken: what a hostile or broken service can cost in memory and time is bounded, whatever
it sends. All are far above what any model can write in answer to one request (128,000 tokens today)."""

from typing import Any

from amanu.core.model import ReplyTooLong

MAX_REPLY = 64 << 20
"""Bytes. 128,000 tokens, each in an event of its own with 350 bytes around it, are 45 MB."""
MAX_LINE = 16 << 20
"""Bytes of one line, and so of one event: a whole reply that is not streamed, or the arguments Gemini sends in one
piece, are a megabyte or two."""
MAX_LINES = 600_000
"""Bounds the time of a reply, where `MAX_REPLY` bounds its memory. 128,000 tokens in events of their own, each of three
lines, are 400,000; Gemini's SDK takes a minute for twice that."""
MAX_CALLS = 2048
"""Calls in one reply. Eleven at once were seen; how many of them are run is `agent/calls.py`'s."""
MAX_ARGUMENTS = 8 << 20
"""Characters of one call's arguments. 128,000 tokens are about half a megabyte."""
KEPT = 300.0
"""Seconds a connection is kept after a reply: people think for longer than a moment. One that the service closed
meanwhile is noticed before it is used."""

MAX_TOKENS = 1_000_000_000
"""A count above is none."""


def check_calls(count: int, vendor: str) -> None:
    """Raises `ReplyTooLong` for more calls than anybody could mean."""
    if count > MAX_CALLS:
        raise ReplyTooLong(f"The reply from {vendor} asks for more than {MAX_CALLS} tool calls at once.", vendor)


def check_arguments(size: int, vendor: str) -> None:
    """`size` in characters, so far. Raises `ReplyTooLong`."""
    if size > MAX_ARGUMENTS:
        raise ReplyTooLong(
            f"A tool call in the reply from {vendor} has arguments of more than {MAX_ARGUMENTS >> 20} MB.", vendor
        )


def tokens(count: Any) -> int:
    """A count of tokens as a service sent it; 0 for what cannot be one."""
    return int(count) if isinstance(count, int | float) and 0 <= count <= MAX_TOKENS else 0
