"""git obeys what a repository says of itself: only a plain one is looked into without a question."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.core.command import CommandContext
from amanu.shell.call import NotHarmless
from amanu.shell.grammar import Word, judge
from amanu.shell.repository import keys

CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "origin"]\n\turl = git@example.org:x/y.git\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "project"
    plain(root)
    return root


def plain(folder: Path) -> Path:
    """A repository by hand: no git started."""
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(CONFIG)
    return folder


def effect(folder: Path, root: Path, *words: str) -> str:
    here = CommandContext(folder, (root,), {"HOME": str(root.parent)}, lambda path: not path.name.startswith(".env"))
    return judge("git", [Word(word) for word in words or ("status",)], here, piped=True).effect


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("", "none"),
        ("[user]\n\tname = A\n", "none"),
        ('[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n', "none"),
        ("[core]\n\thooksPath = .husky/_\n", "none"),
        ("[pull] rebase = true\n", "none"),
        ("# a remark\n; another\n", "none"),
        ("[core]\n\tfsmonitor = evil\n", "some"),
        ("[CORE]\n\tFsMonitor = evil\n", "some"),
        ("[core] fsmonitor = evil\n", "some"),
        ("[user]name=x\n[core]fsmonitor=evil\n", "some"),
        ("[core]\n\tpager = evil\n", "some"),
        ("[core]\n\tsshCommand = evil\n", "some"),
        ("[core]\n\tworktree = /\n", "some"),
        ("[core]\n\tattributesFile = x\n", "some"),
        ("[core]\n\talternateRefsCommand = evil\n", "some"),
        ("[core]\n\tgitProxy = evil\n", "some"),
        ('[diff "x"]\n\tcommand = evil\n', "some"),
        ('[diff "x"]\n\ttextconv = evil\n', "some"),
        ("[diff]\n\texternal = evil\n", "some"),
        ('[filter "x"]\n\tclean = evil\n', "some"),
        ('[merge "x"]\n\tdriver = evil\n', "some"),
        ("[alias]\n\tx = !evil\n", "some"),
        ("[include]\n\tpath = ../x\n", "some"),
        ('[includeIf "gitdir:/"]\n\tpath = ../x\n', "some"),
        ("[gpg]\n\tprogram = evil\n", "some"),
        ("[log]\n\tshowSignature = true\n", "some"),
        ("[pager]\n\tlog = evil\n", "some"),
        ("[format]\n\tpretty = %G?\n", "some"),
        ("[credential]\n\thelper = evil\n", "some"),
        ("[extensions]\n\tpartialClone = origin\n", "some"),
        ('[remote "origin"]\n\tpromisor = true\n', "some"),
        ('[remote "origin"]\n\tuploadpack = evil\n', "some"),
        ('[remote "origin"]\n\tvcs = evil\n', "some"),
        ("[user]\n\tname = a \\\n[core]\n", "some"),
        ('[user]\n\tname = "a\n', "some"),
        ("[user]\n\tname = a\r\n", "some"),
        ("[user\n", "some"),
        ("= x\n", "some"),
        ("x" * 300_000, "some"),
    ],
)
def test_only_plain_settings_are_harmless(addition: str, expected: str, root: Path) -> None:
    with (root / ".git" / "config").open("a", newline="") as file:
        file.write(addition)
    assert effect(root, root) == expected


def bare(root: Path) -> Path:
    folder = root / "docs"
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def bare_without_branch(root: Path) -> Path:
    """As a clone can bring it along: its HEAD is a link, and leads to a branch that is not there yet."""
    folder = bare(root)
    (folder / "HEAD").unlink()
    (folder / "HEAD").symlink_to("refs/heads/main")
    return folder


def bare_beside(root: Path) -> Path:
    """A folder with a `.git` that git passes by."""
    folder = bare(root)
    plain(folder)
    (folder / ".git" / "HEAD").write_text("nothing\n")
    return folder


def passed_by(root: Path) -> Path:
    (root / ".git" / "HEAD").write_text("ref: elsewhere\n")
    return root


def no_branches(root: Path) -> Path:
    (root / ".git" / "refs").rmdir()
    return root


def head_link(root: Path) -> Path:
    (root / ".git" / "HEAD").rename(root / "x")
    (root / ".git" / "HEAD").symlink_to("../x")
    return root


def objects_link(root: Path) -> Path:
    (root / ".git" / "objects").rename(root.parent / "objects")
    (root / ".git" / "objects").symlink_to(root.parent / "objects")
    return root


def pack_link(root: Path) -> Path:
    (root / ".git" / "objects" / "pack").mkdir()
    (root / ".git" / "objects" / "pack" / "pack-1.pack").symlink_to("/elsewhere.pack")
    return root


def shared_index(root: Path) -> Path:
    (root / ".git" / "sharedindex.0123").touch()
    return root


def link(root: Path) -> Path:
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").symlink_to(root.parent / "elsewhere")
    return root


def pointer(root: Path) -> Path:
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").write_text("gitdir: ../elsewhere\n")
    return root


def common(root: Path) -> Path:
    (root / ".git" / "commondir").write_text("../../elsewhere\n")
    return root


def config_link(root: Path) -> Path:
    (root / ".git" / "config").rename(root / "x")
    (root / ".git" / "config").symlink_to("../x")
    return root


def config_pipe(root: Path) -> Path:
    (root / ".git" / "config").unlink()
    os.mkfifo(root / ".git" / "config")
    return root


def worktree_config(root: Path) -> Path:
    (root / ".git" / "config.worktree").write_text("[core]\n\tfsmonitor = evil\n")
    return root


def alternates(root: Path) -> Path:
    (root / ".git" / "objects" / "info").mkdir()
    (root / ".git" / "objects" / "info" / "alternates").write_text("/x\n")
    return root


def half(root: Path) -> Path:
    (root / ".git" / "objects").rmdir()
    return root


def gone(root: Path) -> Path:
    (root / ".git").rename(root / "git")
    return root


def submodule(root: Path) -> Path:
    entry = b"\0" * 24 + b"\0\0\xe0\0" + b"\0" * 34
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\1" + entry + b"\0\3sub\0")
    return root


def newer_index(root: Path) -> Path:
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\4\0\0\0\0")
    return root


@pytest.mark.parametrize(
    "change",
    [
        bare,
        bare_without_branch,
        bare_beside,
        passed_by,
        no_branches,
        head_link,
        objects_link,
        pack_link,
        shared_index,
        link,
        pointer,
        common,
        config_link,
        config_pipe,
        worktree_config,
        alternates,
        half,
        gone,
        submodule,
        newer_index,
    ],
)
def test_odd_repositories_are_asked_about(change: Callable[[Path], Path], root: Path) -> None:
    assert effect(root, root) == "none"
    assert effect(change(root), root) == "some"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("status", "some"),
        ("diff --name-only", "some"),
        ("diff --stat", "some"),
        ("diff-files --name-only", "some"),
        ("diff-index --stat HEAD", "some"),
        ("diff --cached --stat", "none"),
        ("log --stat", "none"),
        ("ls-files", "none"),
    ],
)
def test_what_looks_at_files_looks_into_submodules(line: str, expected: str, root: Path) -> None:
    """Names alone, too: whether a submodule changed, a git of its own says, by the filters its configuration names."""
    submodule(root)
    assert effect(root, root, *line.split()) == expected


def test_a_repository_that_a_clone_brings_along_is_obeyed_by_git(root: Path) -> None:
    """So that the case above stays one: git itself takes the folder for a repository."""
    folder = bare_without_branch(root)
    (folder / "config").write_text("[core]\n\tbare = true\n[x]\n\ty = obeyed\n")
    said = subprocess.run(["git", "config", "x.y"], cwd=folder, capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "obeyed"


def test_a_folder_of_a_repository_that_is_larger_than_what_was_opened(root: Path) -> None:
    inner = root / "packages" / "one"
    inner.mkdir(parents=True)
    assert effect(inner, inner, "status") == "none"
    assert effect(inner, inner, "diff") == "some"
    assert effect(inner, root, "diff") == "none"


def test_what_git_knows_of_and_may_not_be_read(root: Path) -> None:
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 62 + b"api/.env\0\0")
    assert effect(root, root, "diff") == "some"
    assert effect(root, root, "diff", "--stat") == "none"
    assert effect(root, root, "diff", "--stat", "-p") == "some"
    assert effect(root, root, "log", "--oneline") == "none"
    assert effect(root, root, "log", "-p") == "some"
    (root / ".git" / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 62 + b"api/.env.example\0\0")
    assert effect(root, root, "diff") == "none"


def test_addresses_with_passwords_are_not_shown(root: Path) -> None:
    assert effect(root, root, "remote", "-v") == "none"
    (root / ".git" / "config").write_text('[remote "origin"]\n\turl = https://a:b@example.org/x\n')
    assert effect(root, root, "remote", "-v") == "some"
    assert effect(root, root, "config", "--get", "remote.origin.url") == "some"
    assert effect(root, root, "status") == "none"


def test_a_worktree_of_git(root: Path) -> None:
    """Made by git itself, outside of what is opened."""
    real, other = root.parent / "real", root.parent / "other"
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (
        ["init", "-q", str(real)],
        ["-C", str(real), *settings, "commit", "-q", "--allow-empty", "-m", "x"],
        ["-C", str(real), "worktree", "add", "-q", str(other)],
    ):
        subprocess.run(["git", *words], check=True, capture_output=True)
    assert effect(other, other) == "none"
    (real / ".git" / "worktrees" / "other" / "gitdir").write_text("/somewhere/.git\n")
    assert effect(other, other) == "some"


@pytest.mark.parametrize("text", ["[a]\nb\n[c]\n", "\ufeff[a]\nb\n", "[a] b\n", "[A]\nB = 1 # x\n"])
def test_keys(text: str) -> None:
    assert keys(text) == ["a.b"]


def test_keys_of_subsections() -> None:
    assert keys('[Remote "X y"]\n url = 1\n') == ["remote.X y.url"]
    with pytest.raises(NotHarmless):
        keys("[a]\nb = \\\nc\n")
