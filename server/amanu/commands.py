"""Commands of one's own: Markdown files whose text is said when a prompt begins with `/name`.

    <config>/commands/name.md            the user's
    <root>/.amanu/commands/name.md       a workspace's, read only once it is trusted

A file may begin with lines `description: …` and `argument-hint: …` between two lines `---`. `$ARGUMENTS` in the rest is
what follows the name; without it the arguments are put after the text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu_protocol.requests import Command

MAX_BYTES = 100_000
"""Of a command's file; a longer one is left out."""

_SAID = re.compile(r"/([A-Za-z0-9_-]+)(?:\s+(.*))?\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True)
class Source:
    """A folder of commands, and whose it is."""

    folder: Path
    whose: Literal["user", "workspace"]


def find(sources: Sequence[Source]) -> list[Command]:
    """What there is, by name; of two with one name the first source's. Blocks: it reads the disk."""
    found: dict[str, Command] = {}
    for source in sources:
        for path in sorted(source.folder.glob("*.md")) if source.folder.is_dir() else ():
            text = _read(path)
            if path.stem in found or not _NAME.match(path.stem) or text is None:
                continue
            head, body = _parts(text)
            found[path.stem] = Command(
                name=path.stem,
                description=head.get("description") or _first_line(body),
                argument_hint=head.get("argument-hint", ""),
                source=source.whose,
            )
    return sorted(found.values(), key=lambda command: command.name)


def expand(said: str, sources: Sequence[Source]) -> str:
    """What the model hears of a prompt: the command's text if it begins with one, else the prompt as it is. Blocks: it
    reads the disk."""
    match = _SAID.match(said)
    if match is None:
        return said
    name, arguments = match[1], (match[2] or "").strip()
    for source in sources:
        text = _read(source.folder / f"{name}.md")
        if text is None:
            continue
        _, body = _parts(text)
        if "$ARGUMENTS" in body:
            return body.replace("$ARGUMENTS", arguments)
        return f"{body}\n\n{arguments}" if arguments else body
    return said


def _read(path: Path) -> str | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        return path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
    except OSError:
        return None


def _parts(text: str) -> tuple[dict[str, str], str]:
    if text.startswith("---\n") and (end := text.find("\n---\n", 3)) >= 0:
        pairs = (line.partition(":") for line in text[4:end].splitlines() if ":" in line)
        head = {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
        return head, text[end + 5 :].strip()
    return {}, text.strip()


def _first_line(text: str) -> str:
    line = next(iter(text.splitlines()), "").lstrip("# ").strip()
    return line if len(line) <= 100 else line[:99] + "…"
