"""What is piped into `amanu run` beside its prompt: `make 2>&1 | amanu run "what went wrong?"`."""

import os
import select
import stat
import sys
from dataclasses import dataclass

from amanu.text.amounts import plural
from amanu_protocol.items import SelectionAttachment

WAIT_SECONDS = 3.0
"""For the first byte. Programs start others with a pipe that nobody ever writes into or closes."""
MOST = 100_000
"""Characters that go to the model; of more, the first and the last half."""
MOST_READ = 64 << 20
"""Bytes; what comes after is not waited for."""


@dataclass(frozen=True)
class Piped:
    """`attachment` None: nothing was piped in. `notice` is a sentence for the user, "" for none."""

    attachment: SelectionAttachment | None = None
    notice: str = ""


def piped() -> Piped:
    """Standard input to its end, where it is a pipe or a file. Blocking."""
    try:
        handle = sys.stdin.fileno()
        kind = os.fstat(handle).st_mode
    except (OSError, ValueError, AttributeError):  # closed
        return Piped()
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return Piped()  # a terminal, /dev/null
    if not select.select([handle], [], [], WAIT_SECONDS)[0]:
        return Piped(
            notice=f"Nothing came on standard input within {WAIT_SECONDS:g} s, so it is not read. Where it takes "
            "longer, give the prompt on standard input, too: amanu run -"
        )
    return _attached(_read(handle))


def _read(handle: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < MOST_READ and (data := os.read(handle, 1 << 16)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def _attached(data: bytes) -> Piped:
    text = data.decode("utf-8", "replace")
    if not text.strip():
        return Piped()
    lines = text.count("\n") + (not text.endswith("\n"))
    notice = f"Standard input goes with the prompt: {plural(lines, 'line')}."
    if len(text) > MOST:
        left_out = len(text) - MOST
        text = f"{text[: MOST // 2]}\n[{left_out} characters are left out here]\n{text[-MOST // 2 :]}"
        notice = f"{notice[:-1]}, but for {left_out:,} characters in its middle: at most {MOST:,} go."
    return Piped(SelectionAttachment(path="standard input", start_line=1, end_line=lines, text=text), notice)
