"""Untrusted text in Markdown: shown as it is, with no effect."""

import re

from amanu.text.display import one_line


def fenced(text: str, language: str = "") -> str:
    """As a Markdown code block that nothing in the text can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def prose(text: str) -> str:
    """Untrusted words as Markdown that says them and does nothing."""
    return re.sub(r"([\\`*_{}\[\]()<>#!|~])", r"\\\1", one_line(text))
