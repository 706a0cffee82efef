"""What is kept of a listing is at every moment what listing anew would find."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.workspace import file_list, search
from amanu.workspace.file_list import FileList
from amanu.workspace.outer_rules import outer_rules
from amanu.workspace.search import Search
from support.required_programs import needs
from support.sweeps import sample_pairs
from support.tool_harness import ToolHarness

TREE: dict[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n",
    "a.py": "",
    "keep/b.log": "",
    "keep/.env": "",
    "build/out.py": "",
    "sub/.gitignore": "!x.log\n",
    "sub/x.log": "",
    "sub/deep/y.py": "",
    "sub/deep/id_rsa": "",
    "node_modules/m.js": "",
}

Change = Callable[[Path], object]


def put(name: str, text: str = "") -> Change:
    def write(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return write


CHANGES: dict[str, list[Change]] = {
    "nothing": [lambda root: None],
    "a new file": [put("new.py"), put("sub/deep/new.py"), put("sub/deep/.env.local")],
    "a file is deleted": [lambda root: (root / "sub/deep/y.py").unlink(), lambda root: (root / "a.py").unlink()],
    "a file is renamed": [lambda root: (root / "a.py").rename(root / "sub/c.py")],
    "a file is written": [put("a.py", "changed")],
    "a file is replaced": [put("new", "x"), lambda root: (root / "new").replace(root / "a.py")],
    "a new folder": [put("fresh/er/z.py"), put("fresh/er/y.py")],
    "an empty folder": [lambda root: (root / "empty").mkdir(), put("empty/z.py")],
    "a folder of what is ignored": [put("noise/a.log"), put("noise/z.py")],
    "a folder is renamed": [lambda root: (root / "sub").rename(root / "moved"), put("moved/deep/z.py")],
    "a folder is deleted": [lambda root: shutil.rmtree(root / "sub")],
    "folders change places": [
        lambda root: (root / "keep").rename(root / "k"),
        lambda root: (root / "sub").rename(root / "keep"),
        lambda root: (root / "k").rename(root / "sub"),
    ],
    "what is ignored": [put("b.log"), put("build/more.py"), put("sub/x.log"), put("node_modules/n.js"), put(".git/x")],
    "a rule": [put(".gitignore", "*.py\n"), put("keep/d.log")],
    "a rule of an inner folder": [put("sub/.gitignore", "deep\n"), put("sub/deep/z.py"), put("sub/z.log")],
    "a new file of rules": [put("keep/.gitignore", "!b.log\n.env\n"), put("keep/c.log")],
    "no rules any more": [lambda root: (root / ".gitignore").unlink(), put("build/z.py")],
    "no rules any more in a folder": [lambda root: (root / "sub" / ".gitignore").unlink()],
    "a file becomes a link": [lambda root: (root / "a.py").unlink(), lambda root: (root / "a.py").symlink_to("sub")],
    "a folder becomes a link": [
        lambda root: shutil.rmtree(root / "sub"),
        lambda root: (root / "sub").symlink_to("keep"),
        put("keep/z.py"),
    ],
    "a folder becomes a file": [lambda root: shutil.rmtree(root / "sub"), put("sub")],
    "a name that is no text": [lambda root: os.close(os.open(os.fsencode(root) + b"/\xff.py", os.O_CREAT))],
    "a folder nobody may read": [lambda root: (root / "sub").chmod(0), lambda root: (root / "sub").chmod(0o755)],
    "rules in a link": [
        lambda root: (root / ".gitignore").rename(root / "rules"),
        lambda root: (root / ".gitignore").symlink_to("rules"),
        put("rules", "*.py\n"),
    ],
}


async def kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> ToolHarness:
    """A workspace whose listing is kept."""
    monkeypatch.setattr(file_list, "SETTLED", 20_000_000)  # as on a file system with a quick clock
    monkeypatch.setattr(file_list, "_keeps_times", lambda path: True)  # pyright: ignore[reportUnknownLambdaType]
    held = ToolHarness(root, TREE)
    found = held.environment.search
    while not await is_kept(found, held.root):
        await found.files(held.root)
        await asyncio.sleep(0.01)
    return held


async def is_kept(found: Search, root: Path) -> bool:
    return await found._kept_files(root) is not None  # pyright: ignore[reportPrivateUsage]


PLACES = [(folder, ripgrep) for folder in (".", "sub", "sub/deep") for ripgrep in (True, False)]
"""From which folder, and with which engine, files are listed."""


@pytest.mark.parametrize(("change", "place"), sample_pairs(list(CHANGES), PLACES, 2))
async def test_changes(tmp_path: Path, change: str, place: tuple[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ripgrep = place
    program = needs("rg") if ripgrep else None
    monkeypatch.setattr(search, "find_ripgrep", lambda workspace: program)
    held = await kept(tmp_path, monkeypatch)
    for happens in CHANGES[change]:
        happens(held.root)
        start = held.root / folder
        if os.path.isdir(start) and not start.is_symlink():  # noqa: PTH112 (it may not be allowed to look)
            found = held.environment.search
            files = await found.files(start)
            with monkeypatch.context() as anew:
                for look in ("_look", "_look_whole"):
                    anew.setattr(Search, look, lambda *_: None)
                assert files == await found.files(start)
                expected = (await found.listing(start))[1]
            assert (await found.listing(start))[1] == expected


async def test_what_has_not_changed_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await kept(tmp_path, monkeypatch)

    async def run(*_: object) -> object:
        raise AssertionError("it was listed")

    monkeypatch.setattr(search, "_run", run)
    found = held.environment.search
    assert await found.files(held.root) == [
        *(".gitignore", "a.py", "keep/.env", "sub/.gitignore", "sub/deep/id_rsa", "sub/deep/y.py", "sub/x.log"),
    ]
    assert (await found.listing(held.root))[1] == ["keep/.env", "sub/deep/id_rsa"]
    held.put("sub/deep/.env", "")
    assert (await found.listing(held.root / "sub"))[1] == ["sub/deep/.env", "sub/deep/id_rsa"]
    held.editor.put(held.root / "sub" / "new.key", "only here")
    assert (await found.listing(held.root / "sub"))[1] == ["sub/deep/.env", "sub/deep/id_rsa", "sub/new.key"]


@pytest.mark.parametrize("name", [".gitignore", "keep/.gitignore", "sub/deep/.gitignore", "sub/.rgignore"])
async def test_a_pipe_in_the_place_of_rules(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside it nothing is kept, so that it is looked for when it holds ripgrep."""
    held = await kept(tmp_path, monkeypatch)
    (held.root / name).unlink(missing_ok=True)
    os.mkfifo(held.root / name)
    assert not await is_kept(held.environment.search, held.root)


@pytest.mark.parametrize("reason", ["its file system keeps no times", "very much has changed", "nobody asks"])
async def test_what_cannot_be_kept_is_listed_anew(tmp_path: Path, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = await kept(tmp_path, monkeypatch)
    found = held.environment.search
    if reason == "nobody asks":
        monkeypatch.setattr(search, "KEPT", 0)
        await found.files(held.root)
        while any(each._paths for each in found._kept.values()):  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
    elif reason == "very much has changed":
        monkeypatch.setattr(file_list, "MAX_CHANGED", 3)
        for number in range(5):
            held.put(f"new/{number}/x.py", "")
        assert not await is_kept(found, held.root)
    else:
        monkeypatch.setattr(file_list, "_keeps_times", lambda path: False)  # pyright: ignore[reportUnknownLambdaType]
        held.put("sub/.gitignore", "")
        await found.files(held.root)
        await asyncio.sleep(0)
        assert not await is_kept(found, held.root)
    held.put("keep/z.py", "")
    assert "keep/z.py" in await found.files(held.root)


@pytest.mark.parametrize(
    ("mounts", "keeps"),
    [
        ("1 0 8:1 / / rw - ext4 /dev/a rw\n", True),
        ("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / /srv rw shared:1 - nfs4 host:/a rw\n", False),
        ("1 0 8:1 / / rw - 9p a rw\n2 1 0:9 / /srv\\040a rw - xfs b rw\n", False),
        ("1 0 8:1 / / rw - 9p a rw\n2 1 0:9 / /srv/tree rw - xfs b rw\n", True),
        ("", False),
    ],
)
def test_file_systems_that_keep_times(
    tmp_path: Path, mounts: str, keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    monkeypatch.setattr(file_list.sys, "platform", "linux")
    monkeypatch.setattr(file_list, "MOUNTS", str(tmp_path / "mounts"))
    assert file_list._keeps_times(Path("/srv/tree")) is keeps  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("mounts", "keeps"),
    [
        ("1 0 8:1 / / rw - ext4 a rw\n2 1 0:9 / /mnt/Müller rw - cifs b rw\n", False),
        ("1 0 8:1 / / rw - ext4 a rw\n2 1 0:9 / /mnt/M\\303\\274ller rw - cifs b rw\n", False),
        ("1 0 8:1 / / rw - cifs a rw\n2 1 0:9 / /mnt/Müller rw - ext4 b rw\n", True),
    ],
)
def test_places_that_are_no_ascii(tmp_path: Path, mounts: str, keeps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(mounts, "utf-8")
    monkeypatch.setattr(file_list.sys, "platform", "linux")
    monkeypatch.setattr(file_list, "MOUNTS", str(tmp_path / "mounts"))
    assert file_list._keeps_times(Path("/mnt/Müller/tree")) is keeps  # pyright: ignore[reportPrivateUsage]


def test_a_list_by_rules_that_changed_meanwhile_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "SETTLED", 20_000_000)
    monkeypatch.setattr(file_list, "_keeps_times", lambda path: True)  # pyright: ignore[reportUnknownLambdaType]
    (tmp_path / "sub").mkdir()
    for name in (".gitignore", "sub/a.log"):
        (tmp_path / name).write_text("")
    time.sleep(0.03)
    began = time.time_ns()
    (tmp_path / ".gitignore").write_text("*.log\n")
    time.sleep(0.03)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        listed = FileList()
        listed.keep(handle, tmp_path, [".gitignore", "sub/a.log"], began, outer_rules(tmp_path))
        assert listed.paths(handle) is None
        again = FileList()
        again.keep(handle, tmp_path, [".gitignore"], time.time_ns(), outer_rules(tmp_path))
        assert again.paths(handle) == [".gitignore"]
    finally:
        os.close(handle)


def test_a_folder_that_was_moved_since_it_was_listed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_list, "SETTLED", 0)
    (tmp_path / "moved" / "deep").mkdir(parents=True)
    (tmp_path / "moved" / "deep" / "y.py").write_text("")
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        kept_list = FileList()
        kept_list.keep(handle, tmp_path, ["sub/deep/y.py"], time.time_ns() + 3_600 * 10**9, outer_rules(tmp_path))
        assert kept_list.paths(handle) == ["moved/deep/y.py"]
    finally:
        os.close(handle)
