"""Text that stands for text: "// rest of the code …". Written to a file it would delete what it stands for."""

import re

from amanu.core.tool import ToolError

_WORDS = (
    r"(?:the\s+)?(?:rest|remainder|remaining|existing|unchanged|previous|other|same|original)\b"
    r"(?:\s+(?:of|the|code|file|content|contents|methods?|functions?|class|classes|imports?|lines?|implementation|"
    r"logic|tests?|here|as|before|above|remains?|unchanged|same|is|are|stays?|existing|original|and|your|this))*"
)
_DOTS = r"(?:\.{3}|…)"
_COMMENT = r"(?://+|#+|--+|;+|%+|/\*+|<!--|\{/\*|\*+|\"\"\"|'''|\(\*)?\s*"
_PLACEHOLDER = re.compile(
    rf"^\s*{_COMMENT}(?:"
    rf"[\[(<]?\s*{_DOTS}\s*{_WORDS}\s*{_DOTS}?\s*[\])>]?"
    rf"|[\[(<]?\s*{_WORDS}\s*{_DOTS}\s*[\])>]?"
    r")\s*[.]?(?:\*+/|-->|\*/\}|\"\"\"|'''|\*\))?\s*$"
    r"|^\s*(?://+|#+|--+|/\*+|<!--|\{/\*)\s*(?:the\s+)?(?:rest|remainder) of (?:the |your |this |existing )*"
    r"(?:code|file|contents?|methods?|functions?|class|implementation|imports?|tests?|lines?)\b[^\n]{0,40}$",
    re.IGNORECASE,
)


def refuse_placeholders(new_text: str, *old: str) -> None:
    """Raise `ToolError` when a line of `new_text` stands for omitted text and is in none of the `old` texts."""
    for index, line in enumerate(new_text.split("\n")):
        if len(line) < 200 and _PLACEHOLDER.match(line) and not any(line.strip() in text for text in old):
            raise ToolError(
                f"Line {index + 1} of the text, {line.strip()!r}, stands for text that was left out. Nothing was "
                "changed: write the text in full, or use edit_file to change only a part."
            )
