"""Output in UTF-16, as Windows programs and PowerShell's redirections write it, made UTF-8 line by line."""

from amanu.workspace.encodings import end_of_utf_16_lines, utf_16

_LONGEST = 1 << 20  # bytes of a line after which its end is not waited for


class Utf8Stream:
    """One stream of a command. Its first piece tells whether it is UTF-16: by a byte order mark, or by its look if it
    has a line end. It is so until a line without zeros (`cat report.txt; echo done`)."""

    def __init__(self) -> None:
        self._codec: str | None = None
        self._has_begun = False
        self._line = b""
        """Bytes of UTF-16 whose line has not ended."""

    def add(self, data: bytes) -> bytes:
        """The piece as UTF-8, as far as its lines have ended."""
        if not self._has_begun:
            self._has_begun, self._codec = True, utf_16(data)
        if self._codec is None:
            return data
        data = self._line + data
        end = end_of_utf_16_lines(data, self._codec)
        lines, self._line = _utf_8(data[:end], self._codec), data[end:]
        if self._line.endswith(b"\n") and b"\0" not in self._line:
            self._codec = None
            return lines + self.finish()
        if len(self._line) > _LONGEST:
            end = len(self._line) // 2 * 2
            lines, self._line = lines + _utf_8(self._line[:end], self._codec), self._line[end:]
        return lines

    def finish(self) -> bytes:
        """The rest, when the stream has ended."""
        line, self._line = self._line, b""
        is_ascii = line.isascii() and b"\0" not in line
        return line if self._codec is None or is_ascii else _utf_8(line, self._codec)


def _utf_8(data: bytes, codec: str) -> bytes:
    return data.decode(codec, "replace").removeprefix("\ufeff").encode()
