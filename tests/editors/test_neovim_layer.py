"""Commands that nobody was asked about, in a real Neovim: what they changed is reviewed under what they printed, hunk
by hunk; a commit is asked about with its message; and unsaved text stays the user's."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import ENDED, OPEN, STATE, Start, folder, home, start
from support.required_programs import needs

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

pytestmark = pytest.mark.layers

CHAT = "require('amanu.chat.view').buffer"
LINES = [f"line {n}" for n in range(1, 21)]
TIDY = """
from pathlib import Path

for name, lines in (("a.txt", (2, 16)), ("b.txt", (9,))):
    text = Path(name).read_text()
    for line in lines:
        text = text.replace(f"line {line}\\n", f"line {line}!\\n")
    Path(name).write_text(text)
    print(f"{name}: tidied {len(lines)}")
Path("c.txt").write_text("new\\n")
print("2 files tidied, c.txt written")
"""


def text(*changed: int) -> str:
    return "".join(f"{line}{'!' if n in changed else ''}\n" for n, line in enumerate(LINES, 1))


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def run(line: str) -> dict[str, Any]:
    return {"tool": "run_shell_command", "arguments": {"command": line}}


def test_what_a_command_changed_is_reviewed_and_its_commit_asked_about(start: Start, folder: Path) -> None:
    needs("bwrap")
    for name, content in {"a.txt": text(), "b.txt": text(), "tidy.py": TIDY}.items():
        (folder / name).write_text(content)
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(folder, *line.split())
    steps: list[dict[str, Any]] = [
        {"text": "I tidy up.", "calls": [run("python3 tidy.py a.txt b.txt")]},
        {"expect": "1 of 2 changes applied", "text": "I commit it.", "calls": [run("git commit -qam 'Tidy two'")]},
        {"text": "All done."},
    ]
    vim = start("a.txt", size=(90, 26), steps=steps)
    vim.keys(":Amanu Tidy up<CR>")
    vim.until(f"{STATE} and {OPEN} == 4")
    vim.wait_for_answers()
    assert "It ended: 2 files" in vim.window(CHAT)
    card = vim.chat().partition("● ")[2]
    assert card.startswith("? Run python3 tidy.py a.txt b.txt: 3 files changed · waits for your answer")
    assert "┆ a.txt: tidied 2\n" in card and "It ended: 2 files tidied, c.txt written\n" in card
    assert card.index("tidied 2") < card.index("+line 2!") < card.index("It ended") and "llowed" not in card
    vim.keys("gg]a")
    vim.answer("not this one")
    vim.keys("]a<Space>ar")
    vim.until(f"{OPEN} == 3")
    assert (folder / "a.txt").read_text() == text() and not (folder / "c.txt").exists()
    vim.answer("Accept all")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({STATE}.approvals[1] or {{}}).title == \"Run git commit -qam 'Tidy two': the git repository changed\"")
    assert {name: (folder / name).read_text() for name in ("a.txt", "b.txt", "c.txt")} == {
        "a.txt": text(2),
        "b.txt": text(9),
        "c.txt": "new\n",
    }
    vim.wait_for_answers()
    assert "tidy.py a.txt b.txt: 3 files changed (accepted 3 of 4 · sandboxed" in vim.chat()
    card = vim.chat().rpartition("● ")[2]
    assert card.startswith("? Run git commit -qam 'Tidy two'") and "llowed" not in card
    assert " commit: Tidy two\n" in card
    assert git(folder, "log", "--format=%s") == "first\n"
    vim.answer("Accept all")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert git(folder, "log", "--format=%s") == "Tidy two\nfirst\n"
    assert git(folder, "status", "--porcelain") == "?? c.txt\n"


def test_unsaved_text_is_seen_by_a_command_and_stays_the_user_s(start: Start, folder: Path) -> None:
    needs("bwrap")
    file = folder / "notes.txt"
    file.write_text(text())
    line = "grep -n typed notes.txt; sed -i 's/line 9$/line nine/' notes.txt"
    vim = start("notes.txt", size=(90, 26), steps=[{"calls": [run(line)]}, {"text": "Done."}])
    vim.keys("A typed<Esc>:Amanu Change a line<CR>")
    vim.until(f"{STATE} and {OPEN} == 1")
    vim.wait_for_answers()
    card = vim.chat().partition("● ")[2]
    assert "┆ 1:line 1 typed\n" in card
    assert [each for each in card.splitlines() if each.startswith(("┆ -", "┆ +"))] == ["┆ -line 9", "┆ +line nine"]
    vim.keys("gg]a<Space>aa")
    vim.until(f"({ENDED}) == 'completed'")
    mine = text().replace("line 1\n", "line 1 typed\n")
    vim.until_text(mine.replace("line 9\n", "line nine\n").removesuffix("\n"))
    assert file.read_text() == text()  # what was unsaved stays so
    vim.keys("u")
    assert vim.text() + "\n" == mine


def test_a_draft_is_reviewed_once_when_the_model_is_done(start: Start, folder: Path) -> None:
    needs("bwrap")
    (folder / "a.txt").write_text(text())
    edits = [{"old_string": "line 2\n", "new_string": "line 2!\n"}]
    edit = {"tool": "edit_file", "arguments": {"path": "a.txt", "edits": edits}}
    steps: list[dict[str, Any]] = [
        {"text": "I change a line.", "calls": [edit]},
        {"calls": [run("sed -i 's/line 16$/line 16!/' a.txt; echo new > c.txt")]},
        {"calls": [run("grep -c '!' a.txt")]},
        {"text": "All done."},
    ]
    vim = start("a.txt", size=(90, 26), steps=steps, mode="draft")
    vim.keys(":Amanu Tidy up<CR>")
    vim.until(f"{STATE} and {OPEN} == 3 and #{STATE}.approvals == 1")
    vim.wait_for_answers()
    card = vim.chat().rpartition("● ")[2]
    assert card.startswith("? Apply the draft: 2 files · waits for your answer")
    assert "Ran on the draft: `grep -c '!' a.txt` — 2" in card and (folder / "a.txt").read_text() == text()
    vim.keys("gg]a<Space>aa]a")
    vim.answer("not this one")
    vim.keys("<Space>ar")
    vim.until(f"{OPEN} == 1")
    vim.answer("Accept all")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert (folder / "a.txt").read_text() == text(2) and (folder / "c.txt").read_text() == "new\n"


def test_what_no_hunk_shows_of_a_draft_is_decided_with_it(start: Start, folder: Path) -> None:
    needs("bwrap")
    (folder / "a.txt").write_text(text())
    edits = [{"old_string": "line 2\n", "new_string": "line 2!\n"}]
    edit = {"tool": "edit_file", "arguments": {"path": "a.txt", "edits": edits}}
    steps: list[dict[str, Any]] = [
        {"calls": [edit, run("printf 'a\\0b' > pic.bin")]},
        {"text": "All done."},
    ]
    vim = start("a.txt", size=(90, 26), steps=steps, mode="draft")
    vim.keys(":Amanu Tidy up<CR>")
    vim.until(f"{STATE} and {OPEN} == 1 and #{STATE}.approvals == 1")
    vim.wait_for_answers()
    vim.answer("Decide later")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    vim.lua("require('amanu.review.quickfix').open()")
    assert "new binary file, 3 bytes" in vim.lua("return vim.fn.getqflist()[2].text")
    vim.keys(":cclose<CR>")
    assert not (folder / "pic.bin").exists() and (folder / "a.txt").read_text() == text()
    vim.keys(":Amanu /accept turn<CR>")
    vim.until(f"{OPEN} == 0")
    vim.until("vim.uv.fs_stat(...)", str(folder / "pic.bin"))
    assert (folder / "a.txt").read_text() == text(2)


def test_what_a_blocked_command_printed_is_shown_with_the_question(start: Start, folder: Path) -> None:
    needs("bwrap")
    steps = [{"calls": [run("echo begun; echo x > /etc/no-such-file")]}, {"text": "Done."}]
    vim = start(size=(90, 26), steps=steps)
    vim.keys(":Amanu Write it<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals == 1")
    vim.wait_for_answers()
    card = vim.chat().partition("● ")[2]
    assert "┆ begun\n" in card and "It has run, and needs access that the sandbox denies" in card
    vim.answer("Reject with a reason", "")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
