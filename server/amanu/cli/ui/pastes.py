"""Long pastes: one word in the composer stands for hundreds of lines, which are sent in its place."""

import re

MOST_LINES = 8
MOST_CHARACTERS = 2000
_PASTE = re.compile(r"\[Pasted #(\d+): [\d,]+ \w+\]")


class Pastes:
    """The pastes since the last prompt was sent."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def folded(self, text: str) -> str:
        """The words that stand in the composer for a pasted text: itself, if it is short."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MOST_LINES and len(text) <= MOST_CHARACTERS:
            return text
        self._texts.append(text)
        extent = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[Pasted #{len(self._texts)}: {extent}]"

    def unfolded(self, text: str) -> str:
        """The whole text, as the model will read it."""
        return _PASTE.sub(self._whole, text)

    def forget(self) -> None:
        self._texts.clear()

    def _whole(self, found: re.Match[str]) -> str:
        number = int(found[1])
        return self._texts[number - 1] if 0 < number <= len(self._texts) else found[0]
