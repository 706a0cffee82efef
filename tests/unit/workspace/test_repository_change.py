"""A repository's change by value: applied, it gives what git made in the copy; undone, what was there before."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.tools.shell import git_looks
from amanu.workspace.git.apply import DoesNotFit, fault, is_done, prepared
from amanu.workspace.git.change import RepositoryChange
from amanu.workspace.git.index import read_index
from support.file_faults.sitecustomize import FileFaults
from support.repository_changes import ChangedCopy, Look, git_printed, looked_at, repository, shell, snapshot
from support.sweeps import WHOLE

COMMIT = "printf 'x\n' >> a; git commit -qam third"
KINDS: dict[str, tuple[str, str]] = {
    # Command lines that prepare the repository, and the one whose change is applied.
    "commit": ("", COMMIT),
    "two commits": ("", f"{COMMIT}; git rm -q b; git commit -qm fourth"),
    "commit on packed refs": ("git pack-refs --all", COMMIT),
    "amend": ("", "git commit -q --amend -m better"),
    "merge": (
        "git switch -q old; printf 'n\n' > n; git add n; git commit -qm n; git switch -q main",
        "git merge -q old",
    ),
    "fast forward": ("git switch -q old", "git merge -q main"),
    "branch and switch": ("", f"git switch -qc topic/new; {COMMIT}"),
    "switch": ("", "git switch -q old"),
    "tag": ("", "git tag v2; git tag -a v3 -m three"),
    "packed branch deleted": ("git pack-refs --all", "git branch -qD old; git tag -d v1 > /dev/null"),
    "loose branch deleted": ("", "git branch -qD old"),
    "loose and packed branch deleted": ("git pack-refs --all; git branch -f old main", "git branch -qD old"),
    "branch renamed": ("", "git branch -m trunk"),
    "packed": ("", f"{COMMIT}; git pack-refs --all; git branch another"),
    "add": ("", "printf 'x\n' > a; printf 'y\n' > d/new; git add ."),
    "add another name": ("", "printf 'x' > \"$(printf 'd/\\377 \\303\\244')\"; git add ."),
    "rm": ("", "git rm -q --cached b"),
    "mv": ("", "git mv b d/e"),
    "file becomes folder": ("", "git rm -q b; mkdir b; printf 'x' > b/b; git add b"),
    "intent to add": ("", "printf 'new' > new; git add -N new"),
    "assumed": ("", "git update-index --assume-unchanged a; git update-index --skip-worktree b"),
    "assumed no longer": ("git update-index --assume-unchanged a", "git update-index --no-assume-unchanged a"),
    "executable": ("", "git update-index --chmod=+x a"),
    "stash": ("printf 'x' > a", "git stash -q"),
    "second stash": ("printf 'x' > a; git stash -q; printf 'y' > a", "git stash -q"),
    "stash drop": ("for each in 1 2 3; do printf $each > a; git stash -q; done", "git stash drop -q stash@{1}"),
    "last stash drop": ("for each in 1 2; do printf $each > a; git stash -q; done", "git stash drop -q"),
    "only stash drop": ("printf 'x' > a; git stash -q", "git stash drop -q"),
    "detached": ("", "git checkout -q --detach HEAD~"),
    "commit when detached": ("git checkout -q --detach", COMMIT),
    "attached": ("git checkout -q --detach HEAD~", "git switch -q main"),
    "reset": ("", "git reset -q --soft HEAD~"),
    "orphan": ("", "git switch -q --orphan alone; printf 'x' > x; git add x; git commit -qm alone"),
}
PUSHED = "git update-ref refs/remotes/o/x $(git commit-tree -p HEAD~ -m theirs HEAD^{tree})"
"""A command line as if the first of two commits was pushed, with another one on top."""
CONFLICT = "git switch -qc side old; printf 's\n' > a; git commit -qam side; git switch -q main"
UNFINISHED = {
    "conflict": (CONFLICT, "git merge -q side || true"),
    "conflict resolved": (f"{CONFLICT}; git merge -q side || true", "printf 'r\n' > a; git add a"),
    "conflict concluded": (f"{CONFLICT}; git merge -q side || true", "printf 'r\n' > a; git commit -qam merged"),
    "concluded as staged": (f"{CONFLICT}; git merge -q side || true; printf r > a; git add a", "git commit -qm merged"),
    "cherry-pick": (CONFLICT, "git cherry-pick side || true"),
}


def commit(change: RepositoryChange, copy: ChangedCopy, *, undo: bool = False) -> None:
    assert fault(change, undo=undo) == ""
    with prepared(change, copy.store, undo=undo) as ready:
        ready.commit()
    assert is_done(change, undo=undo)


def without_records(look: Look) -> Look:
    return {name: text for name, text in look.items() if name != "records"}


@pytest.mark.parametrize("kind", [*KINDS, *UNFINISHED])
def test_applied_it_is_as_git_made_it(kind: str, tmp_path: Path) -> None:
    before, line = (KINDS | UNFINISHED)[kind]
    root = repository(tmp_path / "root", *filter(None, [before]))
    copy = ChangedCopy(root, line, tmp_path)
    change = copy.change
    assert not is_done(change)
    commit(change, copy)
    copy.finish_files()
    assert looked_at(root) == looked_at(copy.copy)
    shell(root, "git gc -q --prune=now")  # finds all that is named
    commit(change, copy)
    assert looked_at(root) == looked_at(copy.copy)


@pytest.mark.parametrize("kind", [*KINDS])
def test_undone_it_is_as_before_and_can_be_applied_again(kind: str, tmp_path: Path) -> None:
    before, line = KINDS[kind]
    root = repository(tmp_path / "root", *filter(None, [before]))
    copy = ChangedCopy(root, line, tmp_path)
    was = without_records(looked_at(root))
    change = copy.change
    commit(change, copy)
    commit(change, copy, undo=True)
    assert without_records(looked_at(root)) == was
    assert not is_done(change)
    commit(change, copy)
    copy.finish_files()
    assert without_records(looked_at(root)) == without_records(looked_at(copy.copy))


def test_the_first_commit(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    shell(root, "git init -q -b main; printf 'a' > a")
    copy = ChangedCopy(root, "git add a; git commit -qm first", tmp_path)
    commit(copy.change, copy)
    assert looked_at(root) == looked_at(copy.copy)
    commit(copy.change, copy, undo=True)
    shell(copy.copy, "git update-ref -d HEAD; git rm -q --cached a")
    assert looked_at(root) == looked_at(copy.copy)
    commit(copy.change, copy)
    assert shell(root, "git log --format=%s") == "first\n"


@pytest.mark.parametrize("staged", [False, True])
def test_undo_is_a_soft_reset(staged: bool, tmp_path: Path) -> None:
    line = "git commit -qm third" if staged else COMMIT
    root = repository(tmp_path / "root", *(["printf 'x\n' >> a; git add a"] if staged else []))
    copy = ChangedCopy(root, line, tmp_path)
    before = shell(root, "git rev-parse HEAD").strip()
    commit(copy.change, copy)
    copy.finish_files()
    commit(copy.change, copy, undo=True)
    shell(copy.copy, f"git reset -q --{'soft' if staged else 'mixed'} {before}")
    assert looked_at(root) == looked_at(copy.copy)
    assert f"reset: moving to {before}" in shell(root, "git reflog main")


@pytest.mark.parametrize(
    ("meanwhile", "line", "named"),
    [
        ("touch a b; git status", COMMIT, ""),
        ("printf 'z' > z; git add z", COMMIT, ""),
        ("git rm -q b", COMMIT, ""),
        ("git gc -q", f"git branch -qD old; {COMMIT}", ""),
        ("git tag v9; git branch -f old main", COMMIT, ""),
        ("git update-index --index-version=4; git update-index --index-version=2", COMMIT, ""),
        ("printf 'z' > z; git add z; git commit -qm z", "printf 'x\n' >> a; git add a", ""),
        ("printf 'z' > z; git add z; git commit -qm z", COMMIT, "branch main now points to"),
        ("printf 'z' > a; git add a", COMMIT, "a is staged differently"),
        ("git rm -q --cached a", COMMIT, "a is staged differently"),
        ("git switch -q old", "git commit -q --allow-empty -m none", "HEAD now points to branch old"),
        ("git branch -qD old", "git branch -f old main", "branch old is gone"),
        ("git branch -f old main", "git switch -q old", "branch old now points to"),
        ("git branch topic", "git branch topic/x", "branch topic exists"),
        ("git branch topic/x", "git branch topic", "branch topic/x exists"),
        ("git branch topic/x; git branch -qD topic/x", "git branch topic", ""),
        ("printf x > z; git add z", "mkdir z; printf x > z/y; git add z", "z is staged differently"),
        ("printf 1 > a; git stash -q", "printf 2 > a; git stash -q", "refs/stash now points to"),
        (
            "git switch -qc s old; echo s > a; git commit -qam s; git switch -q main; git merge -q s || true",
            COMMIT,
            "a ",
        ),
        ("touch .git/index.lock", COMMIT, ".git/index.lock exists"),
        ("touch .git/HEAD.lock", COMMIT, ".git/HEAD.lock exists"),
        ("ln -s nowhere .git/index.lock", COMMIT, ".git/index.lock exists"),
        ("touch .git/refs/heads/main.lock", COMMIT, ".git/refs/heads/main.lock exists"),
        ("touch .git/packed-refs.lock", COMMIT, ""),
        ("git pack-refs --all; touch .git/packed-refs.lock", "git branch -qD old", ".git/packed-refs.lock exists"),
        ("git update-index --index-version=4", COMMIT, "an index of version 4"),
        ("git update-index --split-index", COMMIT, "a split index"),
        ("git config extensions.refStorage reftable", COMMIT, "reftables"),
        ("git config extensions.objectFormat sha256", COMMIT, "other hashes"),
        ("git config core.repositoryFormatVersion 1; git config extensions.objectFormat sha1", COMMIT, ""),
        ("mv .git x; echo gitdir: x > .git", COMMIT, "a linked worktree"),
        ("mv .git x; ln -s x .git", COMMIT, "a linked worktree"),
        ("mv .git/refs/heads x; ln -s $PWD/x .git/refs/heads", COMMIT, "branch main is gone"),
        ("mv .git/HEAD x; ln -s ../x .git/HEAD", COMMIT, "symbolic links"),
    ],
)
def test_meanwhile(meanwhile: str, line: str, named: str, tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, line, tmp_path)
    shell(root, meanwhile, check=False)
    before = shell(root, "git ls-files -s; git for-each-ref", check=False)
    assert named in fault(copy.change) and bool(named) == bool(fault(copy.change))
    if named:
        with pytest.raises((DoesNotFit, OSError)), prepared(copy.change, copy.store):
            pass
        assert shell(root, "git ls-files -s; git for-each-ref", check=False) == before
        return
    others = {each for each in before.splitlines() if each.endswith(("\tz", "\tb", "/v9"))}
    commit(copy.change, copy)
    assert others <= {*shell(root, "git ls-files -s; git for-each-ref").splitlines()}
    shell(root, "rm -f .git/packed-refs.lock")
    looked_at(root)


@pytest.mark.parametrize(
    ("afterwards", "line", "named"),
    [
        ("git status; printf 'z' > z; git add z", COMMIT, ""),
        ("printf 'z' > a; git add a", COMMIT, ""),
        ("git commit -q --allow-empty -m z", COMMIT, "branch main now points to"),
        ("git switch -q old", "git commit -q --allow-empty -m z", "HEAD now points to branch old"),
        ("git update-ref refs/remotes/origin/main HEAD", COMMIT, "has been pushed"),
        ("git update-ref refs/remotes/origin/main HEAD", "git tag v2", ""),
        ("git update-ref MERGE_HEAD HEAD", COMMIT, "A merge is running"),
        ("mkdir .git/rebase-merge", COMMIT, "A rebase is running"),
        ("git bisect start", COMMIT, "A bisect is running"),
        ("git update-ref CHERRY_PICK_HEAD HEAD", COMMIT, "A cherry-pick is running"),
        ("mkdir .git/rebase-merge", "printf x > a; git add a", ""),
        ("git tag -f v2 old", "git tag v2", "tag v2 now points to"),
        ("git reset -q --soft HEAD~", COMMIT, ""),
    ],
)
def test_after_which_it_cannot_be_undone(afterwards: str, line: str, named: str, tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, line, tmp_path)
    commit(copy.change, copy)
    shell(root, afterwards, check=False)
    assert named in fault(copy.change, undo=True) and bool(named) == bool(fault(copy.change, undo=True))
    if not named:
        staged = shell(root, "git ls-files -s")
        commit(copy.change, copy, undo=True)
        kept = [each for each in staged.splitlines() if each.endswith("\tz")]
        assert {*kept} <= {*shell(root, "git ls-files -s").splitlines()}


def test_commits_that_others_have_are_not_undone(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, COMMIT, tmp_path)
    commit(copy.change, copy)
    assert "has been pushed" in fault(copy.change, undo=True, published=copy.change.commits)


@pytest.mark.parametrize(
    ("pushed", "known"), [("true", False), ("git update-ref refs/remotes/o/x HEAD~2", False), (PUSHED, True)]
)
def test_git_tells_which_commits_others_have(
    pushed: str, known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, f"{COMMIT}; git commit -q --allow-empty -m fourth", tmp_path)
    commit(copy.change, copy)
    shell(root, pushed)

    async def prints(_: Any, words: Sequence[str], folder: Path) -> str | None:
        return git_printed(words, folder)

    monkeypatch.setattr(git_looks, "git_prints", prints)
    found = asyncio.run(git_looks.published_commits(cast("Any", None), copy.change))
    assert found == (copy.change.commits if known else ())
    assert ("has been pushed" in fault(copy.change, undo=True, published=found or ())) == known


def test_a_merge_with_conflicts_is_not_begun_again(tmp_path: Path) -> None:
    before, line = UNFINISHED["conflict concluded"]
    root = repository(tmp_path / "root", before)
    copy = ChangedCopy(root, line, tmp_path)
    commit(copy.change, copy)
    assert "This ended a merge" in fault(copy.change, undo=True)


def test_lost_and_damaged_objects(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, COMMIT, tmp_path)
    change = copy.change
    name, file_id = next(iter(change.objects.items()))
    other = next(each for each in change.objects.values() if each != file_id)
    swapped = replace(change, objects={**change.objects, name: other})
    with pytest.raises(DoesNotFit, match="damaged"), prepared(swapped, copy.store):
        pass
    gone = replace(change, objects={})
    assert "no longer has the object" in fault(gone)
    shutil.rmtree(tmp_path / "files")
    with pytest.raises(DoesNotFit, match="missing"), prepared(change, copy.store):
        pass
    assert shell(root, "git log --format=%s") == "second\nfirst\n"
    assert not [*(root / ".git").rglob("*.lock")]


def test_left_without_commit_nothing_is_changed(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    was = looked_at(root)
    copy = ChangedCopy(root, f"git switch -qc topic/new; {COMMIT}; git branch -qD old", tmp_path)
    with prepared(copy.change, copy.store):
        assert (root / ".git/index.lock").exists() and (root / ".git/HEAD.lock").exists()
        assert (root / ".git/refs/heads/topic/new.lock").exists()
        assert shell(root, "git add a", check=False) == "" and looked_status(root) == ""
    assert looked_at(root) == was
    assert not (root / ".git/refs/heads/topic").exists()


def looked_status(root: Path) -> str:
    return shell(root, "git status --porcelain")


def test_a_file_that_changes_after_it_is_staged_is_seen(tmp_path: Path) -> None:
    """Git looks again at the kept entries whose files were modified at the time at which the index was written."""
    root = repository(tmp_path / "root")
    copy = ChangedCopy(root, "git rm -q --cached d/c", tmp_path)
    shell(root, "printf '1\n' > a; git add a; printf '2\n' > a; touch -r .git/index a b")
    commit(copy.change, copy)
    assert "AM" not in looked_status(root) and "MM a" in looked_status(root)


KILLED = {
    "commit": ("", f"git switch -qc topic/new; {COMMIT}; printf 'n\n' > n; git add n; git commit -qm n"),
    "deleted": ("git pack-refs --all; git branch -f old main", "git branch -qD old; git rm -q --cached b"),
    "stash drop": ("for each in 1 2; do printf $each > a; git stash -q; done", "git stash drop -q"),
    "concluded": UNFINISHED["conflict concluded"],
}
SAMPLED = 9
"""One in this many changes to files is made to fail, unless all are."""


@pytest.mark.skipif(sys.platform != "linux", reason="the faults are counted by paths in /proc")
@pytest.mark.parametrize("how", ["kill", "refused", "full"])
@pytest.mark.parametrize(
    ("kind", "undo"), [(kind, undo) for kind in KILLED for undo in (False, True) if (kind, undo) != ("concluded", True)]
)
def test_wherever_it_ends_it_can_be_finished(kind: str, undo: bool, how: str, tmp_path: Path) -> None:
    before, line = KILLED[kind]
    begin = repository(tmp_path / "root", *filter(None, [before]))
    copy = ChangedCopy(begin, line, tmp_path)
    change = copy.change
    if undo:
        commit(change, copy)
    shutil.copytree(begin, tmp_path / "whole", symlinks=True)
    commit(replace(change, root=tmp_path / "whole"), copy, undo=undo)
    expected, was = state(tmp_path / "whole"), state(begin)
    first = 1 if WHOLE else 1 + sum(map(ord, f"{kind}{undo}{how}")) % SAMPLED
    for nth in range(first, 1000, 1 if WHOLE else SAMPLED):
        root = tmp_path / f"root{nth}"
        shutil.copytree(begin, root, symlinks=True)
        here = replace(change, root=root)
        made = ended_at(nth, how, here, copy, undo=undo)
        if how != "kill":
            assert not [*(root / ".git").rglob("*.lock")] and not [*(root / ".git").glob("*.amanu-tmp")], made
        if not is_done(here, undo=undo):
            assert len(made) >= nth
            commit(here, copy, undo=undo)
        assert state(root) == expected, made
        shutil.rmtree(root)
        if len(made) < nth:
            break
    assert was != expected


def ended_at(nth: int, how: str, change: RepositoryChange, copy: ChangedCopy, *, undo: bool) -> list[str]:
    """Apply it in a process that is killed, or refused what it asks of the disk, at the n-th change of a file. Returns
    the changes it began."""
    armed, log = copy.copy / "armed", copy.copy / "log"
    armed.touch()
    log.write_text("")
    if not (child := os.fork()):
        try:
            FileFaults(how, nth, str(armed), [str(change.root)], str(log)).install()
            with prepared(change, copy.store, undo=undo) as ready:
                ready.commit()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return log.read_text().splitlines()


def state(root: Path) -> dict[str, bytes]:
    """Git's files, without the objects, the times of modification, and the times in lines that undo adds."""
    assert shell(root, "git fsck --strict --no-dangling") == ""
    files = {name: data for name, data in snapshot(root / ".git").items() if "/objects/" not in name}
    index = read_index(files.pop(".git/index"))
    times = {name: re.sub(rb"> \d+ ", b"> ", data) for name, data in files.items()}
    return times | {
        "index": repr(sorted(index.items())).encode(),
        "log": shell(root, "git log --all --format=%H").encode(),
    }


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    line = "printf x > $(printf '\\377'); git add .; git -c i18n.commitEncoding=latin1 commit -qm $(printf '\\344')"
    change = ChangedCopy(root, f"{line}; {CONFLICT}; git merge -q side || true", tmp_path).changes[0]
    assert RepositoryChange.decode(change.encode()) == replace(
        change, commits=tuple(change.commits), committed=tuple(change.committed)
    )


REF, OBJECT = "refs/heads/main", "1" * 40


@pytest.mark.parametrize(
    "parts",
    [
        {"format": 2},
        {"root": "relative"},
        {"root": None},
        {"refs": {"refs/../config": ["", OBJECT]}},
        {"refs": {"config": ["", OBJECT]}},
        {"refs": {"refs/heads/.hidden": ["", OBJECT]}},
        {"refs": {"refs/heads/a.lock": ["", OBJECT]}},
        {"refs": {"refs": ["", OBJECT]}},
        {"refs": {"/refs/heads/a": ["", OBJECT]}},
        {"refs": {REF: ["", "123"]}},
        {"refs": {REF: ["", "ref: ../config"]}},
        {"refs": {REF: [OBJECT]}},
        {"refs": []},
        {"files": {"config": ["", ""]}},
        {"files": {"hooks/pre-commit": [None, ""]}},
        {"logs": {"../config": {"lines": "", "size": 0}}},
        {"logs": {REF: {"lines": ""}}},
        {"logs": {REF: None}},
        {"entries": [["../a", 0, None, None]]},
        {"entries": [["a/.GIT/config", 0, None, None]]},
        {"entries": [["/a", 0, None, None]]},
        {"entries": [["a", 4, None, None]]},
        {"entries": [["a", 0, None, [0o40000, OBJECT, []]]]},
        {"entries": [["a", 0, None, [0o100644, OBJECT, ["stage"]]]]},
        {"entries": [["a", 0, None]]},
        {"objects": {"../x": "1"}},
        {"objects": {OBJECT: 1}},
        {"commits": ["--all"]},
        {"committed": [1]},
        {"committed": ["../a"]},
    ],
)
def test_it_is_not_read_if_it_is_not_well_formed(parts: dict[str, Any]) -> None:
    plain = json.loads(RepositoryChange(Path("/root")).encode())
    assert RepositoryChange.decode(json.dumps(plain).encode()) == RepositoryChange(Path("/root"))
    with pytest.raises(ValueError):
        RepositoryChange.decode(json.dumps(plain | parts).encode())
    for data in (b"", b"[]", b"null", b"{}", b"\xff", b"[" * 10**5):
        with pytest.raises(ValueError):
            RepositoryChange.decode(data)
