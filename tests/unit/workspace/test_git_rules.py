"""Files count as git says, and globs fit as ripgrep says, for random trees and rules."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amanu.workspace import file_list, outer_rules, search
from amanu.workspace.placed_globs import place
from amanu.workspace.search import Search
from support.required_programs import needs
from support.sweeps import examples
from support.tool_harness import ToolHarness

NAMES = st.sampled_from(["a", "b", "dist", "a.js", "b.log", "x.min.js", ".env", "é.js"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
RULE = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(
        st.sampled_from(["a", "b", "dist", "*.js", "*.log", "x.*", "[ab]", "?", "*", "é*"]), min_size=1, max_size=2
    ).map("/".join),
    st.sampled_from(["", "", "/"]),
)
RULES = st.lists(RULE, min_size=1, max_size=4).map("\n".join)
WHERE = st.sampled_from(["", "a/", "b/", "a/b/", "dist/", "a/dist/"])
INNER = st.lists(st.tuples(WHERE, RULES), max_size=3)


def make(top: Path, paths: Sequence[str], rules: Mapping[str, str]) -> None:
    for path in paths:
        file = top / path
        if not any(parent.is_file() for parent in file.parents) and not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("needle\n")
    for folder, text in rules.items():
        if (top / folder).is_dir():
            (top / folder / ".gitignore").write_text(text + "\n")


async def listed(root: Path, ripgrep: str | None) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "find_ripgrep", lambda workspace: ripgrep)
        found = Search(ToolHarness(root).workspace)
        return [*await found.files(root)]


def git_files(root: Path) -> list[str]:
    """The files that git does not ignore, in a repository without commits."""
    out = subprocess.run(
        [needs("git"), "ls-files", "-o", "-z", "--exclude-standard"], cwd=root, check=True, capture_output=True
    ).stdout
    return sorted(name for name in out.decode().split("\0") if name)


def is_ignored(root: Path) -> bool:
    return subprocess.run([needs("git"), "check-ignore", "-q", "."], cwd=root, check=False).returncode == 0


@settings(max_examples=examples(400, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PATHS, min_size=3, max_size=10), INNER, st.none() | RULES, st.none() | RULES, WHERE)
async def test_git_is_the_referee(
    paths: Sequence[str], rules: Sequence[tuple[str, str]], exclude: str | None, excludes: str | None, folder: str
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        above = Path(temporary).resolve()
        (above / ".gitignore").write_text("*\n")  # of no repository
        top = above / "top"
        subprocess.run([needs("git"), "init", "-q", top], check=True)
        make(top, paths, dict(rules))
        (top / ".git" / "info").mkdir(exist_ok=True)
        (top / ".git" / "info" / "exclude").write_text(exclude or "")
        root = top / folder if (top / folder).is_dir() else top
        anchored = any("/" in rule.strip("/!") or rule.startswith(("/", "!/")) for rule in (excludes or "").split())
        if excludes and not (anchored and root != top):
            (above / "user").write_text(excludes + "\n")
            subprocess.run([needs("git"), "config", "core.excludesFile", above / "user"], cwd=top, check=True)
        if is_ignored(root):
            return  # all that is in it is ignored; whoever opens it wants to see it
        expected = git_files(root)
        assert await listed(root, None) == expected
        assert await listed(root, needs("rg")) == expected


@pytest.mark.parametrize("ripgrep", [True, False])
@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("top/.gitignore", "*.js\n"),
        ("top/.gitignore", "/pk/web/a.js\n"),
        ("top/pk/.gitignore", "a.js\n"),
        ("top/.git/info/exclude", "*.js\n"),
        ("top/.git/info/exclude", "[z-a]\n*.js\n"),
        ("home/.gitconfig", "[user]\n\tname = x\n[core]\n\texcludesFile = ~/ignored # mine\n"),
        ("config/git/config", '[core]\nExcludesFile="~/ignored"\n'),
        ("config/git/ignore", "*.js\n"),
        ("top/.git/config", "[core]\n\texcludesfile = ../home/ignored\n"),
    ],
)
async def test_each_place_of_rules_counts_at_once(
    tmp_path: Path, place: str, text: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a list that is kept."""
    monkeypatch.setattr(file_list, "_keeps_times", lambda path: True)  # pyright: ignore[reportUnknownLambdaType]
    for module in (file_list, outer_rules):
        monkeypatch.setattr(module, "SETTLED", 1)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    program = needs("rg") if ripgrep else None
    monkeypatch.setattr(search, "find_ripgrep", lambda workspace: program)
    root = tmp_path / "top" / "pk" / "web"
    for folder in (root, tmp_path / "home", tmp_path / "config" / "git"):
        folder.mkdir(parents=True)
    (tmp_path / "home" / "ignored").write_text("*.js\n")
    subprocess.run([needs("git"), "init", "-q", tmp_path / "top"], check=True)
    held = ToolHarness(root, {"a.js": "needle\n", "b.ts": "needle\n"})
    found = held.environment.search
    assert await found.files(root) == ["a.js", "b.ts"]
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(text)
    for _ in range(2):
        assert await found.files(root) == git_files(root) == ["b.ts"]
        assert (await held.run("grep", {"pattern": "needle"})).for_model == "b.ts\n1: needle\n"
    (tmp_path / place).unlink()
    if not place.endswith(".git/config"):
        assert await found.files(root) == ["a.js", "b.ts"]


@pytest.mark.parametrize("ripgrep", [True, False])
async def test_repositories_in_and_around_each_other(
    tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = needs("git")
    program = needs("rg") if ripgrep else None
    top = tmp_path / "top"
    subprocess.run([git, "init", "-q", top], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([git, *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=top, check=True)
    subprocess.run([git, "worktree", "add", "-q", tmp_path / "tree"], cwd=top, check=True)
    subprocess.run([git, "init", "-q", top / "inner"], check=True)
    (top / ".gitignore").write_text("*.js\nignored/\n")
    (top / ".git" / "info" / "exclude").write_text("*.log\n")
    (top / "inner" / ".git" / "info" / "exclude").write_text("*.ts\n")
    for folder in (top, top / "inner", tmp_path / "tree", top / "ignored" / "deep"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("a.js", "b.log", "c.ts", "d.md"):
            (folder / name).write_text("")
    for root, expected in (
        (top, ".gitignore c.ts d.md inner/a.js inner/b.log inner/d.md"),
        (top / "inner", "a.js b.log d.md"),
        (tmp_path / "tree", "a.js c.ts d.md"),
        (top / "ignored", "deep/a.js deep/b.log deep/c.ts deep/d.md"),  # it was opened
        (top / "ignored" / "deep", "a.js b.log c.ts d.md"),
    ):
        assert " ".join(name for name in await listed(root, program) if name != ".git") == expected, root


SEGMENT = st.sampled_from(["a", "b", "a*", "?", "[ab]", "[!a]", "{a,b}", "*", "**"])
LAST = st.sampled_from(["*.js", "a.js", "?.{js,log}", "[xa]*.js", "*.{js,min.js}", "{a,b}.*"])
FOLDERS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3)
FILES = st.builds(
    lambda folders, name: "/".join([*folders, name]), FOLDERS, st.sampled_from(["a.js", "b.log", "x.min.js"])
)


@settings(max_examples=examples(600, 40), deadline=None)
@given(st.lists(FILES, min_size=2, max_size=10), st.lists(SEGMENT, max_size=3), LAST)
def test_ripgrep_is_the_referee_of_globs(files: Sequence[str], segments: Sequence[str], last: str) -> None:
    glob = "/".join([*segments, last])
    with tempfile.TemporaryDirectory() as temporary:
        held = ToolHarness(Path(temporary), dict.fromkeys(files, ""))
        run = subprocess.run(
            [needs("rg"), "--files", "--no-ignore", "--hidden", "-g", glob, "./"],
            cwd=held.root,
            check=False,
            capture_output=True,
        )
        expected = sorted(os.fsdecode(name).removeprefix("./") for name in run.stdout.splitlines())
        found = {name for each in place(held.workspace, glob) for name in each.matching(sorted(set(files)))}
        assert sorted(found) == expected
