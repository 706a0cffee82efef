"""Server-sent events as model services really send them: the data of each event, nothing else.

Differs from the HTML standard in one thing: what stands at the very end without a blank line is still given
out, since servers leave it off. How much is taken is limited below (`transport.py`).
"""


class SseParser:
    """Bytes in, event data out. Lines end in LF, CRLF or CR and in nothing else (U+2028 is text); comments and
    fields other than `data` are skipped; `data` lines of one event are joined by LF."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        """Pieces of a line whose end has not come."""
        self._data: list[bytes] = []
        self._after_cr = False

    def feed(self, received: bytes) -> list[bytes]:
        """Take in what came; returns the data of the events that are now complete."""
        if self._after_cr and received.startswith(b"\n"):
            received = received[1:]
        self._after_cr = received.endswith(b"\r")
        if b"\r" in received:
            received = received.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *further_lines = received.split(b"\n")
        self._line.append(first)
        if not further_lines:
            return []
        lines = [b"".join(self._line), *further_lines]
        self._line = [lines.pop()]
        complete: list[bytes] = []
        for line in lines:
            self._take(line, complete)
        return complete

    def end(self) -> list[bytes]:
        """What is left when the stream has ended."""
        complete: list[bytes] = []
        self._take(b"".join(self._line), complete)
        self._take(b"", complete)
        self._line = []
        return complete

    def _take(self, line: bytes, complete: list[bytes]) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and self._data:
            complete.append(b"\n".join(self._data))
            self._data = []
