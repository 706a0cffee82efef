"""`amanu sessions diff, accept, reject, undo`, and `amanu run "/accept session"`."""

import json
import subprocess
from pathlib import Path

import pytest

from amanu.cli import run, sessions
from amanu.cli.session_changes import ChangesPrompt, Chosen, read_changes_prompt
from amanu_protocol.errors import AmanuError
from support.cli_in_process import InProcessCli, fails
from support.cli_process import call, script
from support.required_programs import needs
from support.row_session import files, look

pytestmark = pytest.mark.layers

LINE = (
    "echo more >> notes.txt; printf 'new\\0' > pic.bin; ln -sf tool.sh link; chmod +x tool.sh; rm sub/a.txt; "
    "mkdir made; printf 'x\\0' > shop.db; printf 'w\\0' > shop.db-wal"
)


@pytest.fixture
def shop(tmp_path: Path, inside: InProcessCli) -> Path:
    """A folder with a draft of eight changes, left by `amanu run`."""
    needs("bwrap")
    root = tmp_path / "shop"
    root.mkdir()
    files(root)
    (root / "notes.txt").write_text("one\n")
    model = script(tmp_path, {"calls": [call("run_shell_command", command=LINE)]}, {"text": "Done."})
    options = ("--mode", "draft", "--trust", "--model", model, "--output-format", "json")
    done = inside.run(run.main, "go", *options, cwd=root)
    assert done.returncode == 3
    (tmp_path / "run.json").write_text(done.stdout)
    return root


def test_what_a_run_reports(shop: Path) -> None:
    found = json.loads((shop.parent / "run.json").read_text())
    assert {row["relativePath"]: (row["kind"], row["newPath"]) for row in found["rows"]} == {
        "pic.bin": ("file", None),
        "link": ("link", None),
        "tool.sh": ("mode", None),
        "made": ("folder", None),
        "shop.db": ("file", None),
        "shop.db-wal": ("file", None),
    }
    assert [file["relativePath"] for file in found["files"]] == ["notes.txt", "sub/a.txt"]
    assert found["base"] == {"folder": str(shop), "commit": ""}
    assert (found["patch"]["state"], [left["path"] for left in found["patch"]["left"]]) == ("open", [f"{shop}/made"])
    subprocess.run(["git", "apply", "-"], cwd=shop, input=found["patch"]["text"].encode(), check=True)
    assert (shop / "notes.txt").read_text() == "one\nmore\n"
    assert (shop / "pic.bin").read_bytes() == b"new\0"


STAT = """\
edit    link  +1 −1  (link to tool.sh)
edit    notes.txt  +1 −0
edit    pic.bin  (binary file, 4 → 4 bytes)
create  shop.db  (new binary file, 2 bytes)
create  shop.db-wal  (new binary file, 2 bytes)
delete  sub/a.txt  +0 −1
edit    tool.sh  (becomes executable)
7 files, +2 −2
"""


def test_diff(shop: Path, inside: InProcessCli) -> None:
    before = look(shop)
    stat = inside.run(sessions.main, "diff", "latest", "--stat", cwd=shop)
    assert (stat.returncode, stat.stdout) == (3, STAT)
    assert stat.stderr == "not in the patch: made: Git does not keep empty folders.\n"
    assert inside.run(sessions.main, "diff", "latest", "sub", "--stat", cwd=shop).returncode == 0
    found = json.loads(inside.run(sessions.main, "diff", "latest", "notes.txt", "--json", cwd=shop).stdout)
    assert found["patch"].endswith("@@ -1 +1,2 @@\n one\n+more\n")
    nothing = inside.run(sessions.main, "diff", "latest", "--applied", cwd=shop)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing is applied.\n")
    assert look(shop) == before


def test_decide_by_path(shop: Path, inside: InProcessCli) -> None:
    def check(command: str, code: int, expected: str) -> None:
        done = inside.run(sessions.main, *command.split(), cwd=shop)
        assert (done.returncode, done.stdout.rstrip("\n")) == (code, expected)

    picture = "pic.bin (binary file, 4 → 4 bytes)"
    check(
        "accept latest pic.bin sub",
        0,
        f"applied     sub/a.txt (deleted)\napplied     {picture}",
    )
    assert (shop / "pic.bin").read_bytes() == b"new\0" and not (shop / "sub/a.txt").exists()
    check("reject latest link", 0, "rejected    link (link to tool.sh)")
    check(f"undo latest {shop}/pic.bin", 0, f"undone      {picture}")
    assert (shop / "pic.bin").read_bytes() == b"old\0"
    needed = "applied     shop.db (new binary file, 2 bytes)\napplied     shop.db-wal (new binary file, 2 bytes)"
    check("accept latest shop.db", 0, f"{needed}, which is needed")
    (shop / "notes.txt").write_text("the user's\n")
    done = inside.run(sessions.main, "accept", "latest", "--json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exitCode"], found["decision"]) == (3, 3, "accept")
    assert {each["relativePath"]: (each["done"], each["states"]) for each in found["changes"]} == {
        "notes.txt": (False, ["conflicted"]),
        "tool.sh": (False, ["pending"]),
        "made": (False, ["pending"]),
    }
    check("reject latest notes.txt", 0, "rejected    notes.txt")
    check("accept latest", 0, "applied     tool.sh (becomes executable)\napplied     made (new folder)")
    check("accept latest", 0, "")
    files_of_database = "shop.db (new binary file, 2 bytes)", "shop.db-wal (new binary file, 2 bytes)"
    undone = ("sub/a.txt (deleted)", *files_of_database, "tool.sh (becomes executable)", "made (new folder)")
    check("undo latest", 0, "\n".join(f"undone      {each}" for each in undone))


def test_what_is_wrong_is_said(shop: Path, inside: InProcessCli) -> None:
    fails(
        inside.run(sessions.main, "accept", "latest", "nothere", cwd=shop),
        2,
        "nothing to accept at nothere. Changes are at:",
    )
    fails(inside.run(sessions.main, "undo", "latest", "pic.bin", cwd=shop), 2, "There is nothing to undo at pic.bin.")
    fails(inside.run(sessions.main, "diff", "0000", cwd=shop), 2, "There is no session")
    fails(inside.run(run.main, "/accept session", cwd=shop), 2, "/accept is about a session: add --continue")
    fails(inside.run(run.main, "/accept all", "--continue", cwd=shop), 2, "Usage: /accept [turn | session | file PATH]")


def test_a_prompt_that_is_a_decision_goes_to_no_model(shop: Path, inside: InProcessCli) -> None:
    done = inside.run(run.main, "/accept file pic.bin", "--continue", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "applied     pic.bin (binary file, 4 → 4 bytes)\n")
    done = inside.run(run.main, "/reject", "--continue", "--output-format", "json", cwd=shop)
    assert {each["states"][0] for each in json.loads(done.stdout)["changes"]} == {"rejected"}
    assert inside.run(run.main, "/diff session", "--continue", cwd=shop).stdout.startswith(
        "diff --git a/pic.bin b/pic.bin"
    )
    assert inside.run(run.main, "/undo session", "--continue", cwd=shop).returncode == 0
    state = json.loads(inside.run(sessions.main, "show", "latest", "--json", cwd=shop).stdout)
    assert [item["text"] for item in state["items"] if item["kind"] == "userMessage"] == ["go"]


CHANGES_PROMPTS: list[tuple[str, ChangesPrompt | str | None]] = [
    ("/accept", ChangesPrompt("accept", Chosen(latest_turn=True))),
    (" /reject turn\n", ChangesPrompt("reject", Chosen(latest_turn=True))),
    ("/undo session", ChangesPrompt("undo", Chosen())),
    ("/redo file a b.txt", ChangesPrompt("redo", Chosen(["a b.txt"]))),
    ("/keep file", "Usage: /keep"),
    ("/diff all", "Usage: /diff"),
    ("/acceptance", None),
    ("accept session", None),
    ("/review the code", None),
    ("Say /accept session", None),
]


@pytest.mark.parametrize(("prompt", "expected"), CHANGES_PROMPTS)
def test_read_changes_prompt(prompt: str, expected: ChangesPrompt | str | None) -> None:
    if isinstance(expected, str):
        with pytest.raises(AmanuError, match=expected):
            read_changes_prompt(prompt)
    else:
        assert read_changes_prompt(prompt) == expected
