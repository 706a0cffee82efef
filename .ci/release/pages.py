"""The pages as they are for people who install Amanu instead of cloning it: published.toml says what differs."""

import difflib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MARKED = re.compile(r"<!-- clone: ([\w-]+) -->(.*?)<!-- /clone -->", re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")
_ATTRIBUTE = re.compile(r'\b(src|srcset|href)="(?![a-z]+:|#)([^"]+)"')
_PICTURES = (".gif", ".jpg", ".png", ".svg", ".webp")


@dataclass(frozen=True)
class Published:
    words: dict[str, str]
    marked: dict[str, str]

    def page(self, text: str) -> str:
        text = _MARKED.sub(lambda found: self.marked[found[1]].strip("\n"), text)
        words = "|".join(re.escape(word) for word in sorted(self.words, key=len, reverse=True))
        return re.sub(words, lambda found: self.words[found[0]], text)


def published(root: Path, package: str, extension: str) -> Published:
    """The texts of published.toml with the names under which this is published."""
    tables = tomllib.loads((root / ".ci/release/published.toml").read_text("utf-8"))

    def named(texts: dict[str, str]) -> dict[str, str]:
        return {key: text.format(amanu=package, extension=extension) for key, text in texts.items()}

    return Published(named(tables["words"]), named(tables["marked"]))


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def marks(text: str) -> list[str]:
    return [found[1] for found in _MARKED.finditer(text)]


def dated(changelog: str, version: str, date: str) -> str:
    return changelog.replace(f"## {version} (unreleased)", f"## {version} ({date})")


def notes(changelog: str, version: str) -> str:
    """The part of the changelog about this version, without its heading. Raises `LookupError` if there is none."""
    found = re.search(rf"^## {re.escape(version)} .*?$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found:
        raise LookupError(f'CHANGELOG.md has no part "## {version} (unreleased)".')
    return found[1].strip() + "\n"


def absolute(text: str, repository: str, tag: str) -> str:
    """The page with links that also lead somewhere from an index, which has no other files than this."""

    def address(path: str) -> str:
        return f"{repository}/{'raw' if path.endswith(_PICTURES) else 'blob'}/{tag}/{path.removeprefix('./')}"

    text = _LINK.sub(lambda found: f"]({address(found[1])})", text)
    return _ATTRIBUTE.sub(lambda found: f'{found[1]}="{address(found[2])}"', text)


def patch(changed: Iterable[tuple[str, str, str]]) -> str:
    """A patch for `git apply` of (path, old text, new text)."""
    lines: list[str] = []
    for path, old, new in changed:
        lines += difflib.unified_diff(
            old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
        )
    return "".join(lines)
