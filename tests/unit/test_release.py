"""Files that `make release` makes of the repository's, and cases that `make publish` refuses (.ci/release)."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pages
import pytest
from build import ROOT, acp_entry, sums
from bundle import runtime
from pages import Published
from publish import TOKENS, environment, refusals, steps
from release import Release
from sbom import sbom_of_tree
from version import derived, version

import amanu
from amanu.__main__ import VERBS

RELEASE = Release("1.2.3", "c0ffee", 1_790_000_000, "thing", "people.thing", "https://code.example/people/thing")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
TEXTS = Published({"/clone/bin/x": "/bin/x", "bin/x": "x"}, {"one": "published\n", "two": "`here`"})


def test_the_version_is_the_same_everywhere() -> None:
    assert version(ROOT) == amanu.__version__
    assert {path.name: path.read_text("utf-8") for path in derived(ROOT)} == {
        path.name: text for path, text in derived(ROOT).items()
    }
    assert pages.notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version(ROOT))


@pytest.mark.parametrize(
    ("page", "there"),
    [
        ("a\n\n<!-- clone: one -->\n\n    make\n\n<!-- /clone -->\n\nb\n", "a\n\npublished\n\nb\n"),
        ("| a | <!-- clone: two -->`make`<!-- /clone --> (more) |\n", "| a | `here` (more) |\n"),
        ("run /clone/bin/x, or bin/x\n", "run /bin/x, or x\n"),
        ("nothing\n", "nothing\n"),
    ],
)
def test_pages_name_the_published_roads(page: str, there: str) -> None:
    assert TEXTS.page(page) == there


def test_each_text_has_its_place_unless_they_are_published() -> None:
    texts = pages.published(ROOT, "amanu", "amanu.amanu")
    marked = [name for path in pages.pages(ROOT) for name in pages.marks(path.read_text("utf-8"))]
    assert sorted(marked) in ([], sorted(texts.marked))
    assert all("<!-- clone" not in texts.page(path.read_text("utf-8")) for path in pages.pages(ROOT))


def test_nothing_that_others_might_publish_is_named_before_we_do() -> None:
    if not any(pages.marks(path.read_text("utf-8")) for path in pages.pages(ROOT)):
        pytest.skip("it is published")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = re.compile(
        r"\buvx (?:--\S+ )*amanu\b|\b(?:pip|pipx|tool) install (?:-\S+ )*amanu\b|amanu==\d"
        r"|--install-extension amanu\.(?!vsix)"
    )
    found = [
        f"{name}: {hit[0]}"
        for name in listed.split("\0")
        if name.endswith((".md", ".txt", ".json", ".toml", ".yml", ".ts", ".lua", ".sh")) and (ROOT / name).is_file()
        for hit in named.finditer((ROOT / name).read_text("utf-8", "replace"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("page", "there"),
    [
        ("[a](docs/a.md#b)", "[a](https://code.example/x/blob/v1/docs/a.md#b)"),
        ("![a [b]: c](docs/a.png)", "![a [b]: c](https://code.example/x/raw/v1/docs/a.png)"),
        ("[![a](docs/a.png)](LICENSE)", "[![a](https://code.example/x/raw/v1/docs/a.png)](https://code.example/x/blob/v1/LICENSE)"),
        ('<img src="docs/a.png">', '<img src="https://code.example/x/raw/v1/docs/a.png">'),
        ("[a](https://b.example) [c](#d)", "[a](https://b.example) [c](#d)"),
    ],
)  # fmt: skip
def test_links_lead_to_the_repository_from_an_index(page: str, there: str) -> None:
    assert pages.absolute(page, "https://code.example/x", "v1") == there


@pytest.mark.parametrize(
    ("changelog", "notes"),
    [
        ("# C\n\n## 2.0.0 (unreleased)\n\nNew.\n\n### Part\n\n- a\n\n## 1\n\nOld.\n", "New.\n\n### Part\n\n- a\n"),
        ("# C\n\n## 2.0.0 (2020-01-01)\n\nNew.\n", "New.\n"),
        ("# C\n\n## 1.0.0 (2020-01-01)\n\nOld.\n", None),
    ],
)  # fmt: skip
def test_release_notes_are_the_part_of_the_changelog(changelog: str, notes: str | None) -> None:
    if notes is None:
        with pytest.raises(LookupError):
            pages.notes(changelog, "2.0.0")
    else:
        assert pages.notes(changelog, "2.0.0") == notes
        assert pages.notes(pages.dated(changelog, "2.0.0", "2021-01-01"), "2.0.0") == notes


def test_git_applies_the_patch(tmp_path: Path) -> None:
    new = {"a.md": "1\n2\n3\n", "docs/b.md": "x\n", "c.md": "same\n"}
    old = {"a.md": "1\n3\n", "docs/b.md": "y\n", "c.md": "same\n"}
    for name, text in old.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    patch = pages.patch((name, old[name], new[name]) for name in old)
    subprocess.run(["git", "apply"], cwd=tmp_path, input=patch, text=True, check=True)
    assert {name: (tmp_path / name).read_text() for name in old} == new


def test_the_bill_of_materials_is_of_what_the_lock_pins_for_users() -> None:
    bill = sbom_of_tree(RELEASE, ROOT)
    pinned = {
        (entry.split("==")[0].lower(), re.split(r"[ ;\\]", entry.split("==")[1])[0]): set(
            re.findall(r"sha256:([0-9a-f]{64})", entry)
        )
        for entry in runtime(LOCK, PROJECT["dependencies"])
    }
    told = {
        (component["name"], component["version"]): {
            each["content"] for each in component["externalReferences"][0]["hashes"]
        }
        for component in bill["components"]
    }
    assert told == pinned
    needs = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    direct = {re.split(r"[^\w.-]", each)[0].lower().replace("_", "-") for each in PROJECT["dependencies"]}
    root = bill["metadata"]["component"]["bom-ref"]
    assert {reference.split("/")[1].split("@")[0] for reference in needs[root]} == direct
    reached, waiting = {root}, [root]
    while waiting:
        waiting += (more := set(needs[waiting.pop()]) - reached)
        reached |= more
    assert reached == set(needs)


def test_the_registrys_entry_starts_this_version_as_an_agent() -> None:
    entry = acp_entry(RELEASE, ROOT)
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["name"] and entry["description"]
    assert (entry["version"], entry["repository"]) == ("1.2.3", "https://code.example/people/thing")
    assert entry["distribution"] == {"uvx": {"package": "thing==1.2.3", "args": ["acp"]}}
    assert "acp" in VERBS


def test_the_icon_has_the_size_and_colour_of_the_registry() -> None:
    icon = (ROOT / ".ci/release/icon.svg").read_text("utf-8")
    assert 'width="16" height="16"' in icon
    assert "currentColor" in icon and "#" not in icon


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    for name in ("b", "a/c", "SHA256SUMS"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "SHA256SUMS").write_text(text := sums(tmp_path))
    assert [line.split("  ")[1] for line in text.splitlines()] == ["a/c", "b"]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("built", "sound", "repository", "tokens", "refused"),
    [
        ("c0ffee", True, "https://code.example/x", list(TOKENS), []),
        ("c0ffee", False, "https://code.example/x", list(TOKENS), ["SHA256SUMS"]),
        ("0ld", True, "https://code.example/x", list(TOKENS), ["is of commit 0ld"]),
        ("c0ffee", True, "", list(TOKENS), ["names no repository"]),
        ("c0ffee", True, "https://code.example/x", ["VSCE_PAT"], ["UV_PUBLISH_TOKEN", "OVSX_PAT"]),
        ("0ld", False, "", [], ["SHA256SUMS", "0ld", "repository", "UV_PUBLISH_TOKEN", "VSCE_PAT", "OVSX_PAT"]),
    ],
)
def test_what_is_not_published(built: str, sound: bool, repository: str, tokens: list[str], refused: list[str]) -> None:
    release = Release("1.2.3", "c0ffee", 0, "thing", "people.thing", repository)
    reasons = refusals(release, built, sound=sound, variables=dict.fromkeys(tokens, "secret"))
    assert len(reasons) == len(refused)
    assert all(word in reason for word, reason in zip(refused, reasons, strict=True))
    assert "secret" not in " ".join(reasons)


def test_no_program_sees_the_token_of_another(tmp_path: Path) -> None:
    (tmp_path / "published.patch").write_text("x")
    planned = steps(RELEASE, tmp_path, tagged=False, variables={})
    assert [step.token for step in planned] == ["UV_PUBLISH_TOKEN", "VSCE_PAT", "OVSX_PAT", "", "", ""]
    for step in planned:
        seen = environment(step, {**dict.fromkeys(TOKENS, "secret"), "PATH": "/bin"})
        assert seen.keys() & set(TOKENS) == {step.token} - {""}
    assert [step.command[:2] for step in planned[3:]] == [["git", "tag"], ["git", "apply"], ["git", "commit"]]
