"""The pages that people read hold together: each link leads somewhere, and the site lists each page."""

import tomllib
from pathlib import Path

import pytest

from support.markdown_links import faults, read

ROOT = Path(__file__).parents[2]
OTHERS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "AGENTS.md", "CHANGELOG.md", "bench/README.md")
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*(ROOT / page for page in OTHERS), *DOCS, ROOT / "vscode-extension/README.md"]
NAVIGATION = ROOT / ".ci/site/navigation.toml"


def test_each_link_leads_somewhere() -> None:
    wrong = [fault for page in PAGES for fault in faults(page, ROOT)]
    assert not wrong, "\n".join(wrong)


def test_the_site_lists_each_page() -> None:
    parts = tomllib.loads(NAVIGATION.read_text("utf-8"))["parts"]
    listed = {path for part in parts for pattern in part["pages"] for path in ROOT.glob(pattern)}
    left = [str(page.relative_to(ROOT)) for page in DOCS if page not in listed]
    assert not left, f"add to {NAVIGATION.relative_to(ROOT)}, where a newcomer needs it: {', '.join(left)}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](b.md) ![p](p%20q.png) [c](#hm-x-2) <https://example.org> [m](mailto:a@example.org)\n\n# Hm: `x` 2", ""),
        ("[a](b.md#one--two) [b](b.md#one--two-1) [c](b.md#three)", ""),
        ("[a](c.md)", "a.md: c.md: there is no such file"),
        ("![a](c.png)", "a.md: c.png: there is no such file"),
        ("[a](../b.md)", "a.md: ../b.md: there is no such file"),
        ("[a](sub/)", "a.md: sub/: a folder, which is no page of the site: name its README.md"),
        ("[a](#no)", "a.md: #no: there is no such heading"),
        ("[a](b.md#no)", "a.md: b.md#no: there is no such heading"),
        ("| a |\n|---|\n| [a](c.md) |", "a.md: c.md: there is no such file"),
        ("`[a](c.md)`\n\n    [a](c.md)\n\n```\n# [a](c.md)\n```\n", ""),
    ],
)
def test_a_link_that_leads_nowhere_is_named(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "b.md").write_text("# One / two\n\n## One: / two\n\nThree\n=====\n")
    (tmp_path / "p q.png").touch()
    (tmp_path / "sub").mkdir()
    assert "\n".join(faults(tmp_path / "a.md", tmp_path)) == wrong


def test_a_heading_in_a_block_of_code_is_none() -> None:
    assert read("```sh\n# no\n```\n\n# yes\n").anchors == {"yes"}
