"""The pages for newcomers name files and verbs that exist, and README's pictures can be had quickly."""

import re
from pathlib import Path

import pages
import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "AGENTS.md")
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|\w+\.py)`")
COMMAND = re.compile(r"^    (.*?) +#", re.MULTILINE)
STANDS_FOR_ANY = ("NAME", "config.toml")
BYTES = 250_000
"""Bytes that a picture may have."""


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page: str) -> None:
    bases = (ROOT, ROOT / "server" / "amanu", ROOT / "tests")
    named = [name for name in FILE.findall((ROOT / page).read_text("utf-8")) if not name.startswith(".")]
    places = [name for name in named if not any(word in name for word in STANDS_FOR_ANY)]
    assert [name for name in places if not any((base / name).exists() for base in bases)] == []


@pytest.mark.parametrize("page", PAGES)
def test_verbs_exist(page: str) -> None:
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE))
    assert named - set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)) == set()


def test_pictures_are_small() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"|!\[[^]]*]\(([^)]+)\)', text)
    assert len(pictures) > 1
    assert [name for pair in pictures for name in pair if name and (ROOT / name).stat().st_size > BYTES] == []


def test_readme_begins_with_its_picture_and_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.startswith("# Amanu\n\n<picture>")
    published = COMMAND.findall(pages.published(ROOT, "amanu", "amanu.amanu").marked["try"])
    assert COMMAND.findall(text)[:2] in (["make demo", "make test"], published)
