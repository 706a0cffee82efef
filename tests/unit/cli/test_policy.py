# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
"""`amanu policy explain --stdin`: one answer a line, whatever the line is."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from amanu.cli import exits, policy
from amanu.config import workspace_rules
from amanu_protocol.errors import AmanuError

COMMAND = {"command": "pwd"}


@pytest.fixture
def explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    policy._place.cache_clear()  # pyright: ignore[reportPrivateUsage]

    def lines(data: bytes) -> list[dict[str, Any]]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        assert policy.main(["explain", "--stdin"]) == exits.OK
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return lines


MALFORMED: list[bytes] = [
    *(b"{", b"null", b"3", b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b'{"id": 1' + b"0" * 5_000 + b"}"),
    *(
        json.dumps({"arguments": COMMAND, **given}).encode()
        for given in (
            *({"workspace": each} for each in ("a\0b", "\ud800", "a/" * 5_000, "/etc/passwd", "nowhere", 3, [""])),
            *({"rules": each} for each in (3, [], "x", {"allow": "x"}, {"allow": [""]}, {"deny": [[]]}, {"ask": []})),
            *({"rules": {"allow": [each]}} for each in (None, 3, {}, [1], "'open", ["*"])),
            *({"arguments": each} for each in (None, 3, [], "pwd", {}, {"command": 3}, {"command": ""})),
            *({"arguments": {"command": each}} for each in ("a\0b", "\ud800", "a " * 100_000)),
            *({"tool": each} for each in (3, None, "nothing", "")),
            *({"mode": each} for each in (3, "yolo", {})),
            *({"trusted": each} for each in (1, "yes", [])),
            {"unknown": 1},
        )
    ),
]


def test_what_is_malformed_is_an_error_and_costs_the_others_nothing(explained: Any) -> None:
    fine = json.dumps({"id": "fine", "arguments": COMMAND}).encode()
    answers = explained(b"\n".join(line for each in MALFORMED for line in (each, fine)) + b"\n")
    assert len(answers) == 2 * len(MALFORMED)
    assert [each["decision"] for each in answers[1::2]] == ["allow"] * len(MALFORMED)
    wrong = [(MALFORMED[at][:80], each) for at, each in enumerate(answers[::2]) if each["decision"] != "error"]
    # A text that is no UTF-8 and a command nobody can run are calls, which are not done unasked.
    assert all(each["decision"] == "ask" for _, each in wrong) and len(wrong) <= 1, wrong
    assert not any("internal error" in each["why"] for each in answers)


@pytest.mark.parametrize("text", ["user = 3", "workspace = 3", 'workspace = ["x"]', 'user = {allow = "x"}'])
def test_remembered_rules_of_the_wrong_shape_allow_nothing(explained: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "rules.toml").write_text(text)
    (answer,) = explained(json.dumps({"arguments": {"command": "make x"}}).encode())
    assert answer["decision"] == "ask"


@pytest.mark.parametrize("data", [b"x = ", b"\xff", b"x = " + b"[" * 9_000], ids=["cut off", "no text", "deep"])
def test_remembered_rules_that_cannot_be_read_are_said(explained: Any, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "rules.toml").write_bytes(data)
    (answer,) = explained(json.dumps({"arguments": COMMAND}).encode())
    assert answer["decision"] == "error" and "rules.toml is not valid TOML" in answer["why"]


@pytest.mark.parametrize("text", ['user = {deny = ["@run"]}', '[workspace."{root}"]\nmust_ask = ["@run"]'])
def test_remembered_rules_that_would_forbid_are_not_passed_over(explained: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "rules.toml").write_text(text.replace("{root}", str(Path.cwd())))
    (answer,) = explained(json.dumps({"arguments": COMMAND}).encode())
    assert answer["decision"] == "error" and "only 'allow' is permitted there" in answer["why"]


@pytest.mark.parametrize("data", [b"[rules]\ndeny = ['\xff']", b"x = " + b"[" * 9_000], ids=["no text", "deep"])
def test_rules_of_a_folder_that_cannot_be_read_are_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".amanu").mkdir()
    (tmp_path / ".amanu" / "config.toml").write_bytes(data)
    with pytest.raises(AmanuError, match="is not valid TOML"):
        workspace_rules(tmp_path)


def test_a_line_is_decided_on_as_a_session_does_it(explained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of a line share their sandbox: one that may have the network must not open it for the others."""
    rules = ["--allow=@run(make *)", "--allow=@run+network(git fetch *)"]
    assert policy.main(["explain", "--json", *rules, "make all && git fetch origin"]) == exits.OK
    assert json.loads(capsys.readouterr().out)["decision"] == "ask"
    assert policy.main(["explain", "--json", *rules, "--allow=@run+network(make *)", "make all && git fetch o"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "allow"


@pytest.mark.parametrize(
    ("limits", "command", "decision", "says"),
    [
        ("", "make all", "allow", "Per turn, for 200 such commands, and until they took 1800 s"),
        (
            "unasked_commands = 3\nunasked_seconds = 1.5",
            "make all",
            "allow",
            "for 3 such commands, and until they took 1.5",
        ),
        ("unasked_commands = 0", "make all", "ask", "limits.unasked_commands is 0"),
        ("unasked_seconds = 0", "make all", "ask", "limits.unasked_seconds is 0"),
        ("unasked_commands = 0", "pwd", "allow", ""),  # it has no effect, and is not counted
        ("", "pwd", "allow", ""),
        ("unasked_commands = 0", "touch x", "ask", ""),
    ],
)
def test_what_a_session_counts_is_said(
    explained: Any,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    limits: str,
    command: str,
    decision: str,
    says: str,
) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text(f"[limits]\n{limits}\n")
    arguments = ["explain", "--allow=@run(make *)", command]
    assert policy.main([*arguments, "--json"]) == exits.OK
    answer = json.loads(capsys.readouterr().out)
    assert answer["decision"] == decision
    assert policy.main(arguments) == exits.OK
    shown = capsys.readouterr().out
    assert (says in shown) if says else ("In one turn" not in shown and "limits." not in shown)


def test_what_is_fine_about_a_command_is_not_said_beside_what_asks(
    explained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert policy.main(["explain", "ls && find . -name x -exec rm {} +"]) == exits.OK
    said = capsys.readouterr().out
    assert said.count("find . -name x -exec rm {} +") == 1
    assert "Deletes files." in said and "Lists files." not in said.split("find")[-1]


def test_why_a_line_is_not_understood_is_said(explained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert policy.main(["explain", "select each in a; do ls; done"]) == exits.OK
    shown = capsys.readouterr().out
    assert shown.startswith("ask  Amanu does not understand `select each in a; do ls; done`.")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "rm -rf notes",
            "unless a rule you write (config.toml, --allow) allows it:\n  run_shell_command(rm -rf notes)\n",
        ),
        ("make $(x", "No rule can allow this: it needs approval each time."),
    ],
)
def test_what_no_answer_saves_may_be_allowed_by_a_rule_all_the_same(
    explained: Any, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    assert policy.main(["explain", command]) == exits.OK
    assert says in capsys.readouterr().out
