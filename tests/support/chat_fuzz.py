"""A chat at a pseudo terminal, and keys that mean nothing: half pastes, broken UTF-8, a mouse, resizes, Ctrl-Z."""

import contextlib
import os
import pty
import random
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from support.cli_process import AMANU, call, script
from support.warm_process import warm

State = Literal["starting", "idle", "running", "asked", "review", "page", "question", "picker"]

KEYS: Sequence[bytes] = (
    *(
        b"\x1b",
        b"\r",
        b"\n",
        b"\t",
        b"\x7f",
        b"\x1b[A",
        b"\x1b[B",
        b"\x1b[C",
        b"\x1b[D",
        b"\x1b[Z",
        b"\x1b\r",
        b"\x1bx",
    ),
    *(b"\x0e", b"\x10", b"\x1b[5~", b"\x1b[6~", b"A\r", b"w why\r"),
    *(b"\x0f", b"\x12", b"\x07", b"\x18\x05", b"\x01", b"\x05", b"\x0b", b"\x15", b"\x17", b"\x19", b"\x1b\x1b"),
    *(
        b"?",
        b"/",
        b"@",
        b"1",
        b"2",
        b"3",
        b"\xff",
        b"caf\xe9",
        b"\xf0\x9f",
        b"\xe2\x80\xae",
        b"\x1b[M !!",
        b"\x1b[<0;3;3M",
    ),
    *(b"\x1b[200~half", b"\x1b[200~" + b"line\n" * 30 + b"\x1b[201~", b"\x1b[201~"),
    *(
        b"/help\r",
        b"/model\r",
        b"/context\r",
        b"/restore\r",
        b"/sessions\r",
        b"go\r",
        b"h\r",
        b"/review\r",
        b"\x03",
        b"\x04",
        b"\x1a",
    ),
)
ALTERNATE, MAIN = b"\x1b[?1049h", b"\x1b[?1049l"
"""To the screen that a page has for itself, and back."""
SIZES = ((26, 90), (10, 60), (45, 160), (26, 40))
QUESTION = {"question": "Which?", "header": "H", "options": [{"label": name, "description": ""} for name in "AB"]}
STEPS: Mapping[State, dict[str, Any]] = {
    "running": {"text": "slow " * 4000, "chunk": 4, "delay_ms": 20},
    "asked": {"calls": [call("run_shell_command", command="pip install x", network=True)]},
    "review": {"calls": [call("write_file", path="a.txt", content="1\n2\n")]},
    "page": {"calls": [call("write_file", path=name, content="x = 1\n" * 200) for name in ("a.txt", "new/b.py")]},
    "question": {"calls": [call("ask_user", questions=[QUESTION])]},
}


@dataclass(frozen=True)
class Fuzzed:
    """The end of it. `code`: the exit code; None for a chat that takes no key any more."""

    shown: str
    code: int | None
    is_sane: bool
    """The terminal is as it was found."""


def fuzz(folder: Path, state: State, seed: int, count: int) -> Fuzzed:
    """Press so many keys; then Ctrl-C and Ctrl-D have to end it. A chat that was left is gone back to."""
    keys = random.Random(seed)
    first = [STEPS[state]] if state in STEPS else []
    model = script(folder, *[*first, {"text": "Fine."}] * 100)
    work = folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\n")
    chat = _Chat(work, model)
    try:
        if state != "starting":
            chat.sees(b"Not now")
            chat.types(b"1")
            chat.sees(b"/trust changes that")
        if state not in ("starting", "idle"):
            chat.types(b"/model\r" if state == "picker" else b"go\r")
            chat.looks(1)
        if state == "page":
            chat.sees(b"Review hunk by hunk")
            chat.looks(1)
            chat.types(b"h\r")
            chat.sees(ALTERNATE)
        for number in range(count):
            if chat.process.poll() is not None:
                chat.begin("--continue")
            if keys.random() < 0.01:
                chat.resize(*keys.choice(SIZES))
            key = keys.choice(KEYS) if keys.random() < 0.6 else bytes([keys.randrange(32, 127)])
            chat.types(key)
            chat.looks(0.05 if number % 20 == 0 or key == b"\x1a" else 0)
            if key == b"\x1a":
                chat.signal(signal.SIGCONT)
        return chat.ends()
    finally:
        chat.close()


class _Chat:
    def __init__(self, folder: Path, model: str) -> None:
        self._command = [*warm(AMANU), "chat", "--model", model]
        self._folder = folder
        self._shown = b""
        self._screen = self._side = -1
        self.begin()

    def begin(self, *options: str) -> None:
        self._close_screen()
        self._screen, self._side = pty.openpty()
        self._before = termios.tcgetattr(self._side)
        self.process = subprocess.Popen(
            [*self._command, *options],
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            cwd=self._folder,
            env={**os.environ, "TERM": "xterm", "VISUAL": "true", "PAGER": "cat"},
            start_new_session=True,
        )
        self.resize(26, 90)

    def types(self, keys: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._screen, keys)

    def looks(self, seconds: float) -> None:
        until = time.monotonic() + seconds  # a chat at work draws something all the time
        while select.select([self._screen], [], [], max(0, until - time.monotonic()))[0]:
            try:
                data = os.read(self._screen, 65536)
            except OSError:
                return
            self._shown += data
            if b"\x1b[6n" in data:  # prompt_toolkit asks where the cursor is
                self.types(b"\x1b[1;1R")
            if time.monotonic() >= until:
                return

    def sees(self, text: bytes) -> None:
        until = time.monotonic() + 40
        while text not in self._shown:
            assert time.monotonic() < until and self.process.poll() is None, self._shown.decode(errors="replace")
            self.looks(0.05)

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self._side, (rows, columns))
        self.signal(signal.SIGWINCH)

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def ends(self) -> Fuzzed:
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            for key in (b"\x1b[201~", b"\x03", b"\x03", b"\x04"):
                self.types(key)
                self.looks(0.2)
        left = self._shown.rfind(MAIN) >= self._shown.rfind(ALTERNATE)
        is_sane = left and termios.tcgetattr(self._side)[3] == self._before[3]
        return Fuzzed(self._shown.decode(errors="replace"), self.process.poll(), is_sane)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close_screen()

    def _close_screen(self) -> None:
        for end in (self._screen, self._side):
            if end >= 0:
                os.close(end)
