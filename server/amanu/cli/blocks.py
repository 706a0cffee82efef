"""Streaming Markdown, cut into blocks that can be printed for good."""


class Blocks:
    """Text goes in as it comes; out come whole blocks: paragraphs, lists, fenced code.

    A block ends at an empty line outside a fence. `tail` is the block being written. Costs the same for each
    character, however long the text is.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        self._fence = ""

    def feed(self, text: str) -> list[str]:
        """Blocks that became whole, in order."""
        *lines, self._open = (self._open + text).split("\n") if "\n" in text else [self._open + text]
        blocks: list[str] = []
        for line in lines:
            self._fences(line)
            if line.strip() or self._fence:
                self._lines.append(line)
            elif self._lines:
                blocks.append("\n".join(self._lines))
                self._lines = []
        return blocks

    def end(self) -> list[str]:
        """The rest."""
        remaining = self.tail.strip("\n")
        self._lines, self._open, self._fence = [], "", ""
        return [remaining] if remaining.strip() else []

    @property
    def tail(self) -> str:
        """What is not yet whole."""
        return "\n".join([*self._lines, self._open])

    def last_lines(self, count: int) -> list[str]:
        """The end of the tail, for a live view."""
        return [*self._lines[-count:], self._open][-count:]

    def _fences(self, line: str) -> None:
        mark = line.lstrip()
        if not self._fence:
            for sign in ("```", "~~~"):
                if mark.startswith(sign):
                    self._fence = sign
        elif mark.startswith(self._fence) and not mark.strip("`~ \t\r"):
            self._fence = ""
