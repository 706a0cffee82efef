"""Files that a model wrote as it writes code in an answer: in a fence, which is no part of them."""

import re
from pathlib import Path

_FENCED = re.compile(r"\s*(`{3,}|~{3,})[^\n`]{0,100}\n(.+\n)\1[ \t]*\r?\n?\s*", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_MAY_HAVE_FENCES = re.compile(
    r"\.(?:md\w*|\w*markdown|mkdn?|mdown|[qr]md|livemd|rst|txt|text|adoc|asciidoc|org|tex|typ|log|out|snap|golden|"
    r"expected|prompt|tmpl|tpl|j2|jinja2?|hbs|mustache|ejs|liquid)|readme|changelog|license|notice",
    re.I,
)
"""Suffixes, and names without one, of documents and of texts that stand for others."""


def unfenced(text: str, base: str, path: Path) -> str | None:
    """The text inside, if the new text of that file is exactly one fence; None if it is not, if the file may be meant
    to be one, or has been one before (`base`)."""
    if _MAY_HAVE_FENCES.fullmatch(path.suffix or path.name) or base.lstrip()[:3] in ("```", "~~~"):
        return None
    match = _FENCED.fullmatch(text)
    return match[2] if match is not None and _FENCE.search(match[2]) is None else None
