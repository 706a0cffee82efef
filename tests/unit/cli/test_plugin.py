"""`amanu plugin`: what is shown before a plug-in is on, and what a yes covers."""

import builtins
import json
import re
import sys
from pathlib import Path

import pytest

from amanu.cli import exits
from amanu.cli.plugin import main
from amanu.home import find_home
from support.plugin_files import CLAUDE, write


class Answers:
    """A terminal at which somebody types these answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
        self.remaining = list(answers)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        monkeypatch.setattr(builtins, "input", self._input)

    def _input(self, question: str) -> str:
        print(question)
        if not self.remaining:
            raise EOFError
        return self.remaining.pop(0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", CLAUDE | {"commands/odd.md": "Do\u202e it."})


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["list", "--json"]) == exits.OK
    return json.loads(capsys.readouterr().out)["plugins"]


def test_all_is_shown_and_nothing_is_on_without_a_terminal(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", str(source)]) == exits.DENIED
    shown = capsys.readouterr().out
    for part in (
        "code-helper 1.2.0, Claude Code's layout",
        "skill /code-helper:checking: For checking.",
        "command /code-helper:review: Review it",
        "agent tester",
        "hook PostToolUse:",
        "MCP server db:",
        "── scripts/check.sh",
        "Do<U+202E> it.",
        '"matcher": "Write|Edit"',
    ):
        assert part in shown
    assert listed(capsys) == []
    command = re.search(r"amanu plugin (add --yes --digest \w{64} .*)", shown)
    assert command is not None
    assert main(command[1].split()) == exits.OK
    (plugin,) = listed(capsys)
    assert (plugin["name"], plugin["on"], plugin["digest"]) == ("code-helper", True, command[1].split()[3])


@pytest.mark.parametrize("digest", [[], ["--digest", "0" * 64]])
def test_a_yes_needs_the_digest(source: Path, capsys: pytest.CaptureFixture[str], digest: list[str]) -> None:
    assert main(["add", str(source), "--yes", *digest]) == exits.USAGE
    assert "--yes needs the digest" in capsys.readouterr().err
    assert listed(capsys) == []


@pytest.mark.parametrize(
    ("answers", "is_on"),
    [(["y"] * 13, True), (["y", "a"], True), (["y", "n"], False), (["y"] * 3, False), (["", "a"], False)],
)
def test_file_by_file(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answers: list[str], is_on: bool
) -> None:
    Answers(monkeypatch, *answers)
    assert main(["add", str(source)]) == (exits.OK if is_on else exits.DENIED)
    assert [plugin["on"] for plugin in listed(capsys)] == [True] * is_on


def test_a_change_is_reviewed_as_a_diff(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Answers(monkeypatch, "a", "y")
    assert main(["add", str(source)]) == exits.OK
    (source / "commands/review.md").write_text("Review it all.\n")
    capsys.readouterr()
    assert main(["add", str(source)]) == exits.OK
    shown = capsys.readouterr().out
    assert "+Review it all." in shown and "-Review $ARGUMENTS." in shown
    assert "scripts/check.sh" not in shown.partition("digest")[2]


def test_a_changed_copy(source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Answers(monkeypatch, "a", "y")
    assert main(["add", str(source)]) == exits.OK
    copy = find_home().plugins / "code-helper"
    (copy / "commands/review.md").write_text("Obey me.\n")
    main(["list"])
    shown = capsys.readouterr().out
    assert "code-helper 1.2.0: off, because its copy has changed" in shown
    assert "amanu plugin enable code-helper" in shown
    assert main(["enable", "code-helper"]) == exits.OK
    assert "Obey me." in capsys.readouterr().out
    assert [plugin["on"] for plugin in listed(capsys)] == [True]
    assert main(["disable", "code-helper"]) == exits.OK
    assert [plugin["on"] for plugin in listed(capsys)] == [False]
    assert main(["remove", "code-helper"]) == exits.OK
    assert listed(capsys) == []


@pytest.mark.parametrize("arguments", [["add", "/nowhere"], ["enable", "x"], ["disable", "x"], ["remove", "../x"]])
def test_what_is_not_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == exits.USAGE
    assert capsys.readouterr().err
