"""Reads the front matter of Markdown files: YAML between two lines `---` at the top (skills, commands, agents)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

MAX_BYTES = 64 * 1024
"""Of front matter that is read: more is no front matter anybody wrote."""

_FENCED = re.compile(r"---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"(?P<key>[A-Za-z][\w-]*):[ \t]*(?P<value>.*)")


@dataclass(frozen=True)
class MarkdownFile:
    """A Markdown file, its front matter apart."""

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: str = ""
    """What follows, without white space around it."""
    fault: str = ""
    """What is wrong with the front matter, as a clause; its fields were then read line by line. "" for nothing."""

    def text(self, name: str) -> str:
        """A field as text on one line; "" where there is none, or no text."""
        value = self.fields.get(name)
        return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""

    def words(self, name: str) -> list[str]:
        """A field that lists words: a YAML list, or a text with commas."""
        value = self.fields.get(name)
        items = cast("list[object]", value) if isinstance(value, list) else str(value or "").split(",")
        return [word for item in items if (word := str(item).strip())]


def parse_markdown(text: str) -> MarkdownFile:
    """The file's front matter and body. Never fails: many files in the wild are no valid YAML (`description: Use
    when: …`), and then each line `key: value` counts."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    match = _FENCED.match(text)
    if match is None:
        return MarkdownFile(body=text.strip())
    head, body = match["yaml"], text[match.end() :].strip()
    if len(head) > MAX_BYTES:
        return MarkdownFile(body=body, fault="the front matter is too long")
    import yaml  # slow to import, and few sessions need it

    try:
        tree = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date that is none
        return MarkdownFile(_pairs(head), body, "the front matter is not valid YAML")
    if tree is None:
        return MarkdownFile(body=body)
    if not isinstance(tree, dict):
        return MarkdownFile(body=body, fault="the front matter is no mapping")
    return MarkdownFile({str(key): value for key, value in cast("dict[object, Any]", tree).items()}, body)


def _pairs(head: str) -> dict[str, str]:
    pairs = (_PAIR.fullmatch(line) for line in head.splitlines())
    return {pair["key"]: pair["value"].strip().strip("\"'") for pair in pairs if pair}
