"""A program at a pseudo terminal that notes when what was drawn."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.process import TICK

SIZE = (26, 90)
ANSWERS = (
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b]10;?", b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
)
"""The answers of a terminal to what programs ask; a program without an answer waits for it."""
_CONTROL = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_^][^\x1b]*\x1b\\|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
)
_BLANK = re.compile(r"[\s\x00-\x1f]+")
SECONDS = 120.0


def text_of(drawn: bytes) -> str:
    """The text in it, without blanks."""
    return _BLANK.sub("", _CONTROL.sub(b"", drawn).decode("utf-8", "replace"))


class NotDrawn(Exception):
    """It was never drawn; the message has the end of what was."""


class PseudoTerminal:
    """`drawn` is all text so far, without control sequences and blanks, over which some only move the cursor, in the
    order of drawing: a screen would have less."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._screen, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            command,
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
        )
        os.close(side)
        os.set_blocking(self._screen, False)
        self._rest = b""
        self.drawn = ""
        self.bytes = 0

    def drawn_since(self, at: int, text: str, seconds: float = SECONDS) -> float:
        """Wait until this text is drawn after so many characters; "": any. Returns when. Raises NotDrawn."""
        until = time.monotonic() + seconds
        wanted = _BLANK.sub("", text)
        while True:
            found = self.drawn[at:]
            if wanted in found if wanted else found:
                return self.seen
            if time.monotonic() > until or not self._look(until):
                raise NotDrawn(f"no {text!r} in {seconds:g} s, but: …{self.drawn[-400:]}")

    def cpu(self) -> float:
        """Seconds of the processor that the program itself has used, without its children."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / TICK

    def rest(self, seconds: float, most: float = SECONDS) -> None:
        """Wait until no text was drawn for so long."""
        until = time.monotonic() + most
        while time.monotonic() < until:
            before = len(self.drawn)
            end = time.monotonic() + seconds
            while time.monotonic() < end and self._look(end):
                pass
            if len(self.drawn) == before:
                return

    def look_for(self, seconds: float) -> None:
        """Read what is drawn meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._look(until):
            pass

    def write(self, data: bytes) -> None:
        """All of it, as fast as the program takes it, reading what it draws meanwhile."""
        while data:
            _, writable, _ = select.select([], [self._screen], [], 0.01)
            if writable:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self._screen, data[:4096]) :]
            self._look(0)

    def leave(self) -> None:
        """End the program as its user would, by Ctrl-C, or else by force."""
        until = time.monotonic() + 3
        while self._process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(OSError):
                os.write(self._screen, b"\x03")
            self.look_for(0.2)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._screen)

    def _look(self, until: float) -> bool:
        """Read what is there, or comes before that moment. False when the program has ended."""
        if not select.select([self._screen], [], [], max(0.0, until - time.monotonic()))[0]:
            return self._process.poll() is None
        try:
            data = os.read(self._screen, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:  # Linux says EIO at the end of a pseudo terminal
            return False
        self.seen = time.monotonic()
        self.bytes += len(data)
        for asked, answer in ANSWERS:
            if asked in data:
                os.write(self._screen, answer)
        whole = self._rest + data
        at = whole.rfind(b"\x1b")
        cut = at if at >= 0 and len(whole) - at < 64 and _CONTROL.match(whole, at) is None else len(whole)
        whole, self._rest = whole[:cut], whole[cut:]
        self.drawn += text_of(whole)
        return True
