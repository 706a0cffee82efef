"""A terminal with a screen, by tmux: keys go in, what stands there comes out."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = 30.0
LOOK_SECONDS = 0.05
SETTINGS = """set -g default-terminal tmux-256color
set -g escape-time 10
set -g remain-on-exit on
set -g status off
"""


class NotSeen(Exception):
    """The text never stood on the screen; the message has what did."""


class Screen:
    """A program in a terminal of 90 × 26. Only one of a `socket`; `close` ends it."""

    def __init__(self, socket: Path, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._socket = socket
        variables = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        config = socket.with_suffix(".conf")
        config.write_text(SETTINGS)
        subprocess.run(
            ["tmux", "-f", str(config), "-S", str(socket), "new-session", "-d", "-x", "90", "-y", "26", "--", *command],
            env=variables,
            cwd=folder,
            check=True,
        )

    def press(self, key: str) -> None:
        """Press a key, named as tmux names it."""
        self._tmux("send-keys", key)

    def type(self, text: str) -> None:
        """Character by character, as from a keyboard."""
        for character in text:
            self._tmux("send-keys", "-l", "--", character)

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p")

    def text(self) -> str:
        """Without colours."""
        return self._tmux("capture-pane", "-p")

    def sees(self, text: str, seconds: float = SECONDS) -> None:
        """Wait for it. Raises NotSeen."""
        until = time.monotonic() + seconds
        while text not in (shown := self.text()):
            if time.monotonic() > until:
                raise NotSeen(f"no {text!r} in:\n{shown}")
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False, capture_output=True)

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
