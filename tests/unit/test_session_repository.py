"""The question about what a command did to the git repository: all that a yes applies, from refs, objects and the
index, and never from what the command wrote about it. Only plain `git add` is no question."""

import subprocess
from pathlib import Path

import pytest

from amanu_protocol.items import Mode
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample_pairs

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


STASHED = "tail -n1 .git/logs/refs/stash > x && cat x > .git/logs/refs/stash; rm x"
PACK = """git tag v2; python3 - <<'EOF'
import hashlib, pathlib, struct, subprocess, zlib
name = bytes.fromhex(subprocess.check_output(['git', 'rev-parse', 'HEAD:b.txt'], text=True).strip())
entry = bytes([0x30 | 5]) + zlib.compress(b'evil\\n')
pack = b'PACK' + struct.pack('>II', 2, 1) + entry
pack += (total := hashlib.sha1(pack).digest())
index = b'\\xfftOc' + struct.pack('>I', 2) + b''.join(struct.pack('>I', each >= name[0]) for each in range(256))
index += name + struct.pack('>II', zlib.crc32(entry), 12) + total
index += hashlib.sha1(index).digest()
folder = pathlib.Path('.git/objects/pack')
(folder / f'pack-{total.hex()}.pack').write_bytes(pack)
(folder / f'pack-{total.hex()}.idx').write_bytes(index)
EOF"""
"""Another content for an object that there is."""
LOOSE = """git tag v2; python3 - <<'EOF'
import pathlib, zlib
folder = pathlib.Path('.git/objects/11')
folder.mkdir(exist_ok=True)
(folder / ('1' * 38)).write_bytes(zlib.compress(b'blob 5\\0evil\\n'))
EOF"""
TWICE = """git pack-refs --all; python3 - <<'EOF'
import pathlib
path = pathlib.Path('.git/packed-refs')
first, *lines = path.read_text().splitlines()
kept = [line for line in lines if line.endswith('refs/heads/release')]
other = next(line for line in lines if line.endswith('refs/heads/main')).split()[0]
moved = [other + line[40:] if line in kept else line for line in lines]
path.write_text('\\n'.join([first, *moved, *kept]) + '\\n')
EOF"""
"""Packed refs with a name twice: git takes the first."""


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
    for text in ("one", "two"):
        (root / "b.txt").write_text(text)
        git(root, "stash", "-q")


def state_of(root: Path) -> tuple[str, ...]:
    staged = git(root, "ls-files", "--stage", "-t", "-v")
    return (
        staged,
        git(root, "for-each-ref"),
        git(root, "stash", "list"),
        git(root, "--no-replace-objects", "log", "--format=%H %s"),
    )


async def asked(d: ScriptedSession) -> str:
    """The question, as the user reads it; "" for none."""
    await d.prompt("go")
    state = await d.until(lambda state: state.approvals or state.last_turn)
    return "\n".join([state.approvals[0].title, state.approvals[0].detail]) if state.approvals else ""


MODES: list[Mode] = ["ask", "acceptEdits"]
LINES: list[tuple[str, list[str]]] = [
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
    ("echo 1 >> b.txt; git stash -q", ["refs/stash: ", " commit: WIP on main"]),
    (f"git tag v2; {STASHED}", ["git: the record of refs/stash loses 1 line"]),
    ("git switch -q --orphan fresh", ["git: HEAD: branch main → branch fresh"]),
    ("git tag v2; echo evil > .git/MERGE_MSG", [".git/MERGE_MSG is changed"]),
    ("for i in $(seq 30); do git tag t$i; done", [f"new tag t{n}: " for n in range(1, 31)]),
]


@pytest.mark.parametrize(("mode", "case"), sample_pairs(MODES, LINES))
async def test_the_question_says_all_that_a_yes_applies(
    mode: Mode, case: tuple[str, list[str]], tmp_path: Path
) -> None:
    line, shown = case
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
        PACK,
        LOOSE,
        TWICE,
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


async def test_the_index_hides_no_change_from_git_status(tmp_path: Path) -> None:
    """A command writes another object into the index, with the sizes and times of the user's file."""
    hides = """python3 - <<'EOF'
import hashlib, pathlib, struct, subprocess
def git(*words, **more):
    return subprocess.check_output(['git', *words], text=True, **more).strip()
path = pathlib.Path('.git/index')
old = path.read_bytes()
evil = git('hash-object', '-w', '--stdin', input='evil\\n')
git('update-index', '--cacheinfo', f'100644,{evil},b.txt')
commit = git('commit-tree', git('write-tree'), '-p', 'HEAD', '-m', 'Fix a typo')
git('update-ref', 'HEAD', commit)
at, data = old.index(b'b.txt\\0') - 22, bytearray(old[:-20])
data[at : at + 20] = bytes.fromhex(evil)
end = 12
for _ in range(struct.unpack('>I', data[8:12])[0]):
    end += (data.index(0, end + 62) - end + 8) // 8 * 8
path.write_bytes(data[:end] + hashlib.sha1(data[:end]).digest())
EOF"""
    line = call("run_shell_command", command=f"git tag v2; {hides}")
    async with scripted_session(tmp_path, step("", line), step("Done.")) as d:
        repository(d.root)
        git(d.root, "update-index", "--refresh")
        assert "Files committed: b.txt" in await asked(d)
        await d.answer("allow")
        await d.over("p1")
        assert git(d.root, "show", "HEAD:b.txt") == "evil\n" and (d.root / "b.txt").read_text() == "b\n"
        assert git(d.root, "status", "--porcelain") == " M b.txt\n"
