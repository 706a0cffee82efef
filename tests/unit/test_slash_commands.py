"""Commands of one's own: what is found, and what a prompt that begins with one means."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from amanu.context.extension_files import MAX_BYTES
from amanu.context.extension_folders import ExtensionFolder, UserFolder, workspace_folders
from amanu.context.slash_commands import ExpandedPrompt, find_slash_commands, look_up, request
from amanu.core.tool import Subject
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace

PLAIN = "Look at the tests first."
FULL = '---\ndescription: "Write the tests"\nargument-hint: [FILE]\n---\nTests for $ARGUMENTS, and only $ARGUMENTS.\n'


@pytest.fixture
def folders(tmp_path: Path) -> list[ExtensionFolder]:
    user, workspace = tmp_path / "user", tmp_path / "workspace"
    for folder in (user / "git" / "deep", workspace):
        folder.mkdir(parents=True)
    (user / "look.md").write_text(PLAIN)
    (user / "tests.md").write_text(FULL.replace("\n", "\r\n"), newline="")
    (user / "big.md").write_text("x" * (MAX_BYTES + 1))
    (user / "two words.md").write_text("no name")
    (user / "git" / "commit.md").write_text("Commit it.")
    (user / "git" / "deep" / "er.md").write_text("Deeper.")
    (user / "hidden.md").write_text("Look\u202e here.")
    (user / "explain.toml").write_text('description = "Explain  it"\nprompt = """\nExplain {{args}}.\n"""\n')
    (user / "change.toml").write_text('prompt = "Note the change."\n')
    (user / "broken.toml").write_text("prompt = ")
    (user / "empty.toml").write_text('description = "no prompt"')
    (workspace / "look.md").write_text("what the workspace would have you say")
    (workspace / "ours.md").write_text("# Ours\n\nA workspace's own.")
    return [
        UserFolder("user", user, "*.md", 4),
        UserFolder("user", user, "*.toml", 4),
        UserFolder("workspace", workspace, "*.md", 4),
        UserFolder("workspace", tmp_path / "none", "*.md", 4),
    ]


def text_of(prompt: str, folders: list[ExtensionFolder]) -> ExpandedPrompt | None:
    command = look_up(prompt, folders)
    return None if command is None else command.expanded([f"<{line.command}>" for line in command.filled.lines])


def test_what_there_is(folders: list[ExtensionFolder]) -> None:
    listed = [
        (command.name, command.description, command.argument_hint, command.source)
        for command in find_slash_commands(folders)
    ]
    assert listed == [
        ("change", "Note the change.", "", "user"),
        ("explain", "Explain it", "", "user"),
        ("git:commit", "Commit it.", "", "user"),
        ("git:deep:er", "Deeper.", "", "user"),
        ("hidden", "Look<U+202E> here.", "", "user"),
        ("look", PLAIN, "", "user"),
        ("ours", "Ours", "", "workspace"),
        ("tests", "Write the tests", "[FILE]", "user"),
    ]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("/look", PLAIN),
        ("/look  at\nthis ", f"{PLAIN}\n\nat\nthis"),
        ("/tests a.py b.py", "Tests for a.py b.py, and only a.py b.py."),
        ("/tests", "Tests for , and only ."),
        ("/ours", "# Ours\n\nA workspace's own."),
        ("/git:commit now", "Commit it.\n\nnow"),
        ("/git:deep:er", "Deeper."),
        ("/explain this code", "Explain this code."),
        ("/change fix the bug", "Note the change.\n\n/change fix the bug"),
        ("/unknown thing", None),
        ("/broken", None),
        ("/empty", None),
        ("/commit", None),
        ("/big", None),
        ("/usr/bin/env is a path", None),
        ("/../user/look", None),
        ("say /look", None),
        ("/", None),
    ],
)
def test_what_a_prompt_means(folders: list[ExtensionFolder], said: str, heard: str | None) -> None:
    expanded = text_of(said, folders)
    assert (expanded and expanded.text) == heard


@pytest.mark.parametrize(
    ("said", "own"),
    [
        ("/look @a.py", f"{PLAIN}\n\n\n@a.py"),
        ("/tests @a.py", "Tests for \n@a.py\n, and only \n@a.py\n."),
        ("/ours @a.py", "@a.py"),
        ("/ours", ""),
    ],
)
def test_whose_words_they_are(folders: list[ExtensionFolder], said: str, own: str) -> None:
    expanded = text_of(said, folders)
    assert expanded is not None
    assert "".join(expanded.typed.split()) == "".join(own.split())


@pytest.mark.parametrize(
    ("prompt", "answered"),
    [
        ("/memory", ("memory", "")),
        (" /memory strike 2\n", ("memory", "strike 2")),
        ("/skills", ("skills", "")),
        ("/compact", None),
        ("/skillset", None),
    ],
)
def test_what_is_answered_at_once(prompt: str, answered: tuple[str, str] | None) -> None:
    assert request(prompt, {"memory", "skills"}) == answered


def allowed(subjects: Iterable[Subject]) -> list[Subject]:
    rules = (*built_in(), *of_mode("ask"))
    return [subject for subject in subjects if decide(rules, subject).decision == "allow"]


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
    folders = workspace_folders("command", Workspace([root], Overlay()), allowed, lambda path, data: True)
    assert text_of("/review", folders) == (None if heard is None else ExpandedPrompt(heard, heard, ""))
    assert [command.name for command in find_slash_commands(folders)] == ([] if heard is None else ["review"])
