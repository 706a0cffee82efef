"""What is piped into `amanu run` beside its prompt: `make 2>&1 | amanu run "what went wrong?"`."""

import os
import select
import stat
import sys
from dataclasses import dataclass

from amanu.text.amounts import plural
from amanu_protocol.base import LineRange
from amanu_protocol.items import SelectionAttachment

WAIT_SECONDS = 3.0
"""For the first byte. Programs start others with a pipe that nobody ever writes into or closes."""
MAX_CHARACTERS = 100_000
"""Characters that go to the model; of more, the first and the last half."""
MAX_BYTES = 64 << 20
"""Bytes; what comes after is not waited for."""


@dataclass(frozen=True)
class PipedInput:
    """`attachment` None: nothing was piped in. `notice` is a sentence for the user, "" for none."""

    attachment: SelectionAttachment | None = None
    notice: str = ""


def read_piped_input() -> PipedInput:
    """Standard input to its end, where it is a pipe or a file. Blocking."""
    try:
        handle = sys.stdin.fileno()
        kind = os.fstat(handle).st_mode
    except (OSError, ValueError, AttributeError):  # closed
        return PipedInput()
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return PipedInput()  # a terminal, /dev/null
    if not select.select([handle], [], [], WAIT_SECONDS)[0]:
        return PipedInput(
            notice=f"Nothing arrived on standard input within {WAIT_SECONDS:g} s, so it is ignored. If it takes "
            "longer, give the prompt on standard input as well: amanu run -"
        )
    return _attached(_read(handle))


def _read(handle: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < MAX_BYTES and (data := os.read(handle, 1 << 16)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


def _attached(data: bytes) -> PipedInput:
    text = data.decode("utf-8", "replace")
    if not text.strip():
        return PipedInput()
    lines = text.count("\n") + (not text.endswith("\n"))
    notice = f"Standard input is attached to the prompt: {plural(lines, 'line')}."
    if len(text) > MAX_CHARACTERS:
        left_out = len(text) - MAX_CHARACTERS
        text = f"{text[: MAX_CHARACTERS // 2]}\n[{left_out} characters omitted]\n{text[-MAX_CHARACTERS // 2 :]}"
        notice = f"{notice[:-1]}, without {left_out:,} characters in the middle (limit: {MAX_CHARACTERS:,})."
    return PipedInput(
        SelectionAttachment(path="standard input", lines=LineRange(start=0, end=lines), text=text), notice
    )
