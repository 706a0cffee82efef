"""The question about what a command did to the git repository: all that a yes applies, from refs, objects and the
index, and never from what the command wrote about it. Only plain `git add` is no question."""

import subprocess
from pathlib import Path

import pytest

from amanu_protocol.items import Mode
from support.scripted_session import ScriptedSession, call, scripted_session, step

pytestmark = pytest.mark.layers

BLOB = "$(echo evil | git hash-object -w --stdin)"
FORGED = """git -c user.name=a -c user.email=a@b commit -q --allow-empty -m honest
python3 - <<'EOF'
import hashlib, os, pathlib, subprocess, zlib
tree = subprocess.check_output(['git', 'rev-parse', 'HEAD^{tree}'], text=True).strip()
evil = subprocess.check_output(['git', 'commit-tree', tree, '-m', 'evil'], text=True).strip()
pathlib.Path('.git/refs/heads/main').write_text(evil + '\\n')
with open('.git/logs/HEAD', 'a') as log:
    log.write(evil + ' ' + '3' * 40 + ' n <a@b> 1 +0000\\tcommit: Fix a typo\\n')
EOF"""


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def repository(root: Path) -> None:
    (root / "b.txt").write_text("b\n")
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(root, *line.split())
    (root / "later.txt").write_text("later\n")
    (root / "drop.sh").write_text("git branch -qD keep\n")
    for line in ("add .", "commit -qm second", "branch keep", "branch release HEAD~1", "tag v1"):
        git(root, *line.split())


def state_of(root: Path) -> tuple[str, ...]:
    staged = git(root, "ls-files", "--stage", "-t", "-v")
    return staged, git(root, "for-each-ref"), git(root, "--no-replace-objects", "log", "--format=%H %s")


async def asked(d: ScriptedSession) -> str:
    """The question, as the user reads it; "" for none."""
    await d.prompt("go")
    state = await d.until(lambda state: state.approvals or state.last_turn)
    return "\n".join([state.approvals[0].title, state.approvals[0].detail]) if state.approvals else ""


@pytest.mark.parametrize("mode", ["ask", "acceptEdits"])
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"git update-index --add --cacheinfo 100644,{BLOB},.github/workflows/ci.yml", [".github/workflows/ci.yml"]),
        (f"git update-index --add --cacheinfo 100644,{BLOB},b.txt", ["git: staged otherwise: b.txt"]),
        ("git update-index --skip-worktree b.txt", ["git: git status no longer looks at b.txt"]),
        ("git update-index --assume-unchanged notes.txt", ["git: git status no longer looks at notes.txt"]),
        ("git rm -rq --cached .", ["git: staged otherwise: b.txt, drop.sh, later.txt, notes.txt"]),
        ("git read-tree release", ["git: staged otherwise: drop.sh, later.txt"]),
        ("git add -N new.txt", ["git: staged otherwise: new.txt"]),
        ("git add .vscode", ["git: staged otherwise: .vscode/tasks.json"]),
        ("git update-ref refs/heads/release HEAD", ["git: branch release: ", " → "]),
        ("git tag v2; sh drop.sh", ["git: branch keep is deleted, it was "]),
        ("git tag v2; git update-ref refs/tags/v1 HEAD~1", ["git: new tag v2: ", "git: tag v1: "]),
        ("git switch -q keep", ["git: HEAD: branch main → branch keep"]),
        ("git pack-refs --all && sh drop.sh", ["git: branch keep is deleted"]),
        (
            "git add new.txt && git commit -qm 'Add one'",
            [" commit: Add one", "Files committed: new.txt (new)", "branch main: "],
        ),
        ("git commit -q --allow-empty -m A; git commit -q --allow-empty -m B", [" commit: A", " commit: B"]),
        (
            f"git commit -q --allow-empty -m A; git update-index --add --cacheinfo 100644,{BLOB},x",
            ["staged otherwise: x"],
        ),
        (
            "git commit -q --allow-empty -m A; git update-ref refs/heads/release HEAD",
            [" commit: A", "branch release: "],
        ),
        ("echo 1 >> b.txt; git stash -q", ["new refs/stash: ", " commit: WIP on main"]),
        ("for i in $(seq 30); do git tag t$i; done", [f"new tag t{n}: " for n in range(1, 31)]),
    ],
)
async def test_the_question_says_all_that_a_yes_applies(
    mode: Mode, line: str, shown: list[str], tmp_path: Path
) -> None:
    command = call("run_shell_command", command=line)
    async with scripted_session(tmp_path, step("", command), step("Done."), mode=mode) as d:
        repository(d.root)
        (d.root / "new.txt").write_text("new\n")
        (d.root / ".vscode").mkdir()
        (d.root / ".vscode" / "tasks.json").write_text("{}\n")
        before = state_of(d.root)
        question = await asked(d)
        assert [each for each in shown if each not in question] == [], question
        await d.answer("reject")
        await d.over("p1")
        assert state_of(d.root) == before


@pytest.mark.parametrize(
    "line",
    [
        "git add . && git replace HEAD HEAD~1",
        "git add . && git replace HEAD HEAD~1 && git pack-refs --all",
        "git add . && git rev-parse HEAD > .git/info/grafts",
        FORGED,
    ],
)
async def test_what_would_show_other_commits_than_there_are_is_refused(line: str, tmp_path: Path) -> None:
    command = call("run_shell_command", command=line)
    async with scripted_session(tmp_path, step("", command), step("Done.")) as d:
        repository(d.root)
        before = state_of(d.root)
        assert "it changed .git/" in (await asked(d)) or d.session.state.approvals[0].blocked
        await d.answer("reject")
        await d.over("p1")
        assert state_of(d.root) == before


@pytest.mark.parametrize(
    ("mode", "line", "is_asked"),
    [
        ("ask", "git add b.txt", False),
        ("ask", "git add -A && git status --short", False),
        ("ask", "git add b.txt && git reset -q", True),
        ("draft", "git add b.txt", True),
        ("ask", "git add notes.txt", True),  # the user had staged another version of it
        ("ask", "git add .vscode", True),
    ],
)
async def test_only_plain_staging_is_no_question(mode: Mode, line: str, is_asked: bool, tmp_path: Path) -> None:
    command = call("run_shell_command", command=line)
    async with scripted_session(tmp_path, step("", command), step("Done."), mode=mode) as d:
        repository(d.root)
        for text in ("one\n", "two\n") if "notes" in line else ():
            d.file.write_text(text)
            if text == "one\n":
                git(d.root, "add", "notes.txt")
        if "vscode" in line:
            (d.root / ".vscode").mkdir()
            (d.root / ".vscode" / "tasks.json").write_text("{}\n")
        (d.root / "b.txt").write_text("changed\n")
        before = state_of(d.root)
        assert bool(await asked(d)) == is_asked
        assert (state_of(d.root) == before) == is_asked
        if is_asked:
            await d.answer("reject")
        await d.over("p1")


async def test_a_change_hidden_by_what_the_index_remembers_is_seen(tmp_path: Path) -> None:
    """The index comes home without the sizes and times that a command wrote into it."""
    hidden = """echo new > b.txt; git add b.txt; python3 - <<'EOF'
import hashlib, pathlib
path = pathlib.Path('.git/index')
data = path.read_bytes()
at = data.index(b'b.txt')
old = bytes.fromhex('OLD')
data = data[:at - 22] + old + data[at - 2:-20]
path.write_bytes(data + hashlib.sha1(data).digest())
EOF""".replace("OLD", git_blob("b\n"))
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=hidden)), step("Done.")) as d:
        repository(d.root)
        await asked(d)
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "b.txt").read_text() == "new\n"
        assert git(d.root, "status", "--porcelain") == " M b.txt\n"


def git_blob(text: str) -> str:
    return subprocess.run(
        ["git", "hash-object", "--stdin"], input=text, check=True, capture_output=True, text=True
    ).stdout.strip()
