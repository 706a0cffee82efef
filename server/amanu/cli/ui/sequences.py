"""The terminal itself, past what prints whole lines above the prompt: for sequences that show nothing."""

import base64
import sys
from collections.abc import Mapping
from contextlib import suppress

LONGEST_COPY = 74_000
"""Bytes that every terminal takes into the clipboard (xterm's limit, in base64)."""


def write_now(sequence: str) -> None:
    screen = sys.__stdout__
    if screen is not None and screen.isatty():
        with suppress(OSError):  # the window is closed
            screen.write(sequence)
            screen.flush()


def through_tmux(sequence: str) -> str:
    """It lets pass where `allow-passthrough` is on what it would drop otherwise."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def clipboard(text: str, environ: Mapping[str, str]) -> str:
    """The sequence that copies a text (OSC 52). tmux takes it itself where `set-clipboard` is on."""
    encoded = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{encoded}\x07"
    return sequence + through_tmux(sequence) if environ.get("TMUX") else sequence
