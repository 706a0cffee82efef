"""How long texts are in the units that LSP counts characters in."""

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def code_points(line: str, units: int, encoding: Encoding) -> int:
    """How many code points of the line lie before that many units; a character cut in two does not count."""
    if units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    if encoding == "utf-8":
        data = line.encode("utf-8", "surrogatepass")
        length = min(units, len(data))
        while length < len(data) and data[length] & 0xC0 == 0x80:
            length -= 1
        return len(data[:length].decode("utf-8", "surrogatepass"))
    data = line.encode("utf-16-le", "surrogatepass")
    length = min(units * 2, len(data))
    if 0 < length < len(data) and data[length + 1] & 0xFC == 0xDC and data[length - 1] & 0xFC == 0xD8:
        length -= 2
    return len(data[:length].decode("utf-16-le", "surrogatepass"))


def units(text: str, encoding: Encoding) -> int:
    """The length of a text in units of the encoding."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
