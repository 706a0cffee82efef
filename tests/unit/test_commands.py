"""Commands of one's own: what is found, and what a prompt that begins with one means."""

from pathlib import Path

import pytest

from amanu.commands import MAX_BYTES, Source, expand, find

PLAIN = "Look at the tests first."
FULL = '---\ndescription: "Write the tests"\nargument-hint: FILE\n---\nTests for $ARGUMENTS, and only $ARGUMENTS.\n'


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    user, workspace = tmp_path / "user", tmp_path / "workspace"
    for folder in (user, workspace):
        folder.mkdir()
    (user / "look.md").write_text(PLAIN)
    (user / "tests.md").write_text(FULL.replace("\n", "\r\n"), newline="")
    (user / "big.md").write_text("x" * (MAX_BYTES + 1))
    (user / "two words.md").write_text("no name")
    (workspace / "look.md").write_text("what the workspace would have you say")
    (workspace / "ours.md").write_text("# Ours\n\nA workspace's own.")
    return [Source(user, "user"), Source(workspace, "workspace"), Source(tmp_path / "none", "workspace")]


def test_what_there_is(sources: list[Source]) -> None:
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
def test_what_a_prompt_means(sources: list[Source], said: str, heard: str) -> None:
    assert expand(said, sources) == heard
