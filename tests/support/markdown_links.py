"""Links between Markdown files, as the forge understands them: relative paths, and anchors made from headings."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True)
class Page:
    links: list[str]
    """Pictures, too."""
    anchors: set[str]


@cache
def read(text: str) -> Page:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    links = [str(link) for token in _all(tokens) if (link := token.attrs.get("href", token.attrs.get("src")))]
    headings = [token for before, token in pairwise(tokens) if before.type == "heading_open"]
    seen: Counter[str] = Counter()
    anchors: set[str] = set()
    for heading in headings:
        name = _anchor("".join(token.content for token in heading.children or ()))
        anchors.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return Page(links, anchors)


def faults(path: Path, root: Path) -> list[str]:
    """A line for each link of that file that leads nowhere."""
    found: list[str] = []
    for link in read(path.read_text("utf-8")).links:
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        where = f"{path.relative_to(root)}: {link}"
        if not target.is_relative_to(root) or not target.exists():
            found.append(f"{where}: there is no such file")
        elif target.is_dir():
            found.append(f"{where}: a folder, which is no page of the site: name its README.md")
        elif parts.fragment and unquote(parts.fragment) not in read(target.read_text("utf-8")).anchors:
            found.append(f"{where}: there is no such heading")
    return found


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
