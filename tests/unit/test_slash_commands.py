"""Commands of one's own: what is found, and what a prompt that begins with one means."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from amanu.context.slash_commands import MAX_BYTES, CommandSource, ExpandedPrompt, expand, find
from amanu.context.slash_commands import sources as sources_of
from amanu.core.tool import Subject
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace

PLAIN = "Look at the tests first."
FULL = '---\ndescription: "Write the tests"\nargument-hint: FILE\n---\nTests for $ARGUMENTS, and only $ARGUMENTS.\n'


@pytest.fixture
def sources(tmp_path: Path) -> list[CommandSource]:
    user, workspace = tmp_path / "user", tmp_path / "workspace"
    for folder in (user, workspace):
        folder.mkdir()
    (user / "look.md").write_text(PLAIN)
    (user / "tests.md").write_text(FULL.replace("\n", "\r\n"), newline="")
    (user / "big.md").write_text("x" * (MAX_BYTES + 1))
    (user / "two words.md").write_text("no name")
    (workspace / "look.md").write_text("what the workspace would have you say")
    (workspace / "ours.md").write_text("# Ours\n\nA workspace's own.")
    return [
        CommandSource(user, "user"),
        CommandSource(workspace, "workspace"),
        CommandSource(tmp_path / "none", "workspace"),
    ]


def test_what_there_is(sources: list[CommandSource]) -> None:
    found = [(each.name, each.description, each.argument_hint, each.source) for each in find(sources)]
    assert found == [
        ("look", PLAIN, "", "user"),
        ("ours", "Ours", "", "workspace"),
        ("tests", "Write the tests", "FILE", "user"),
    ]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("/look", PLAIN),
        ("/look  at\nthis ", f"{PLAIN}\n\nat\nthis"),
        ("/tests a.py b.py", "Tests for a.py b.py, and only a.py b.py."),
        ("/tests", "Tests for , and only ."),
        ("/ours", "# Ours\n\nA workspace's own."),
        ("/unknown thing", "/unknown thing"),
        ("/big", "/big"),
        ("/usr/bin/env is a path", "/usr/bin/env is a path"),
        ("/../user/look", "/../user/look"),
        ("say /look", "say /look"),
        ("/", "/"),
    ],
)
def test_what_a_prompt_means(sources: list[CommandSource], said: str, heard: str) -> None:
    assert expand(said, sources).text == heard


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("see @a.py", "see @a.py"),
        ("/look @a.py", f"{PLAIN}\n\n@a.py"),
        ("/tests @a.py", "Tests for @a.py, and only @a.py."),
        ("/ours @a.py", "@a.py"),
        ("/ours", ""),
        ("/unknown @a.py", "/unknown @a.py"),
    ],
)
def test_whose_words_they_are(sources: list[CommandSource], said: str, own: str) -> None:
    assert expand(said, sources).typed == own


def allowed(subjects: Iterable[Subject]) -> list[Subject]:
    rules = (*built_in(), *of_mode("ask"))
    return [each for each in subjects if decide(rules, each).decision == "allow"]


@pytest.mark.parametrize(
    ("target", "heard"),
    [
        ("inside.md", "read"),
        ("../secret.md", None),
        (".env", None),
        ("gone.md", None),
        ("folder", None),
        ("pipe", None),
    ],
)
@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_workspace_leads_nowhere(tmp_path: Path, target: str, heard: str | None, linked: str) -> None:
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    (root / ".amanu").mkdir()
    os.mkfifo(root / "pipe")
    for name in ("inside.md", ".env", "../secret.md"):
        (root / name).write_text("read")
    commands = root / ".amanu" / "commands"
    if linked == "file":
        commands.mkdir()
        (commands / "review.md").symlink_to(root / target)
    else:
        elsewhere = (root / target).parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "review.md").symlink_to(root / target)
        commands.symlink_to(elsewhere)
    found = sources_of(tmp_path / "user", Workspace([root], Overlay()), allowed, lambda path, data: True)
    said = expand("/review", found)
    assert said == (ExpandedPrompt("/review", "/review") if heard is None else ExpandedPrompt(heard, ""))
    assert [each.name for each in find(found)] == ([] if heard is None else ["review"])
