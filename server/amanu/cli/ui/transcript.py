"""The transcript above the application. While a page covers it, what is printed waits."""

import io
from typing import TextIO


class Transcript(io.TextIOBase):
    """Text for `out`, at once or after the page."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._held: list[str] | None = None

    def hold(self) -> None:
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        if held:
            self.write("".join(held))
            self.flush()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._out.encoding

    def write(self, s: str, /) -> int:
        if self._held is None:
            return self._out.write(s)
        self._held.append(s)
        return len(s)

    def flush(self) -> None:
        if self._held is None:
            self._out.flush()

    def isatty(self) -> bool:
        return self._out.isatty()

    def fileno(self) -> int:
        return self._out.fileno()

    def writable(self) -> bool:
        return True
