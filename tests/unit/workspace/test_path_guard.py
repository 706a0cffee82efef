"""No path leads out of the roots, whoever swaps what for a link meanwhile."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.workspace import disk
from amanu.workspace import path_guard as guard
from amanu.workspace.disk_changes import make_all
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.replacement import Replacement
from support.sweeps import examples


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret")
    (tmp_path / "rootless").mkdir()
    (root / "in").symlink_to("src")
    (root / "in_absolute").symlink_to(root / "src")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out_file").symlink_to(tmp_path / "outside" / "a.txt")
    (root / "loop").symlink_to("loop")
    (root / "proc").symlink_to("/proc/self/root")
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        (".config/amanu/auth.json", True),
        (".config/amanu", True),
        (".config/amanu/new/file", True),
        (".config/AMANU/auth.json", True),  # on some systems it is the same file
        (".config/../.config/amanu/rules.toml", True),
        ("to_own/auth.json", True),
        ("to_state", True),
        (".config/amanu-other/x", False),
        (".config", False),
        (".", False),
    ],
)
def test_amanus_own_folders_are_in_no_workspace(tmp_path: Path, path: str, refused: bool) -> None:
    home, own, state = tmp_path / "home", tmp_path / "home/.config/amanu", tmp_path / "home/.local/state/amanu"
    for each in (own, state):
        each.mkdir(parents=True)
    (own / "auth.json").write_text("key")
    (home / "to_own").symlink_to(own)
    (home / "to_state").symlink_to(state)
    guarded = PathGuard([home], [own, state, tmp_path / "elsewhere"])
    if refused:
        with pytest.raises(ToolError, match="of Amanu itself"):
            guarded.resolve(path)
    else:
        assert guarded.resolve(path) == home / os.path.normpath(path)
    assert sorted(guarded.private_below(home)) == [".config/amanu", ".local/state/amanu"]
    with pytest.raises(ToolError, match="of Amanu itself"):
        PathGuard([own], [own]).resolve("auth.json")


@pytest.mark.parametrize("root", ["", "config"])
def test_the_folder_of_an_admitted_file_is_in_the_root_around_it(tmp_path: Path, root: str) -> None:
    own = tmp_path / "config"
    own.mkdir()
    (own / "AGENTS.md").write_text("mine")
    guarded = PathGuard([tmp_path / root], [own], memory=own / "AGENTS.md")
    assert guarded.locate(own) == (0, own.relative_to(tmp_path / root))
    assert guarded.locate(own / "AGENTS.md") == (1, Path("AGENTS.md"))
    assert guarded.private_below(own) == (["config"] if root == "" else [])
    assert guarded.is_private(own) and guarded.is_private(own / "AGENTS.md")
    with guarded.file(own / "AGENTS.md") as handle:
        assert os.pread(handle, 9, 0) == b"mine"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.txt", "src/a.txt"),
        ("./src//a.txt", "src/a.txt"),
        ("src/../src/a.txt", "src/a.txt"),
        (".", "."),
        ("in/a.txt", "src/a.txt"),
        ("in_absolute/a.txt", "src/a.txt"),
        ("new/folder/file", "new/folder/file"),
        ("src/é \n.txt", "src/é \n.txt"),
        ("@/src/a.txt", "src/a.txt"),
        ("", "is empty"),
        ("  ", "is empty"),
        ("a\0b", "NUL"),
        ("file:///a%00b", "NUL"),
        ("'file:///a%00b'", "'file:/a%00b'"),
        (f"'{'a' * 300}/b'", f"'{'a' * 300}/b'"),
        ("\ud800", "characters"),
        ("file:///etc/passwd", "outside"),
        ("https://example.org/a", "URI"),
        ("..", "outside"),
        ("../rootless", "outside"),
        ("@less", "outside"),
        ("src/../../outside/a.txt", "outside"),
        ("/etc/passwd", "outside"),
        ("out/a.txt", "outside"),
        ("out/new", "outside"),
        ("out_file", "outside"),
        ("in/../../outside/a.txt", "outside"),
        ("proc/etc/passwd", "outside"),
        ("loop/../out/a.txt", "outside"),
    ],
)
def test_resolve(tree: Path, path: str, expected: str) -> None:
    guard = PathGuard([tree])
    path = path.replace("@", str(tree), 1)
    try:
        found = guard.locate(guard.resolve(path))[1].as_posix()
    except ToolError as error:
        found = str(error)
        assert expected in found
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.txt", "inside"),
        ("loop", "symbolic link"),
        ("fifo", "pipe"),
        ("src", "folder"),
        ("src/a.txt/b", "not a folder"),
    ],
)
@pytest.mark.parametrize("kernel", [True, False])
def test_read(tree: Path, path: str, expected: str, kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernel:
        monkeypatch.setattr(guard, "_libc", None)
    held = PathGuard([tree])
    try:
        stored = disk.read(held, held.resolve(path))
    except ToolError as error:
        assert expected in str(error)
    else:
        assert stored is not None and stored.data.decode() == expected


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("swapped", ["src", "src/deep", "src/deep/a.txt"])
def test_a_link_put_in_after_the_check_is_not_followed(
    tmp_path: Path, swapped: str, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        monkeypatch.setattr(guard, "_libc", None)
    root, outside = tmp_path / "root", tmp_path / "outside"
    for top in (root, outside):
        (top / "src" / "deep").mkdir(parents=True)
        (top / "src" / "deep" / "a.txt").write_text(top.name)
    held = PathGuard([root])
    path = held.resolve("src/deep/a.txt")
    (root / swapped).rename(tmp_path / "away")
    (root / swapped).symlink_to(outside / swapped)
    with pytest.raises(ToolError):
        disk.read(held, path)
    with pytest.raises((ToolError, disk.BaseChanged)):
        make_all(held, [Replacement(path, b"outside", b"changed")])
    assert (outside / "src" / "deep" / "a.txt").read_text() == "outside"


NFC, NFD = "caf\u00e9 \ud55c\uae00", "cafe\u0301 \u1112\u1161\u11ab\u1100\u1173\u11af"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src\\a.txt", "src/a.txt"),
        (".\\src\\a.txt", "src/a.txt"),
        ("in\\a.txt", "src/a.txt"),
        ('"src/a.txt"', "src/a.txt"),
        ("`'src/a.txt'`", "src/a.txt"),
        (" src/a.txt\n", "src/a.txt"),
        ("@src/a.txt", "src/a.txt"),
        ("@my\\ dir/a b.txt", "my dir/a b.txt"),
        ("my\\ dir/a\\ b.txt", "my dir/a b.txt"),
        ("file://{root}/src/a.txt", "src/a.txt"),
        ("file://localhost{root}/my%20dir/a%20b.txt", "my dir/a b.txt"),
        ("file:src/a.txt", "src/a.txt"),
        ("file://{root}/new%20one.txt", "new one.txt"),
        (f"{NFC}/{NFC}.txt", f"{NFD}/{NFD}.txt"),
        (f"{NFC}/{NFD}.txt", f"{NFD}/{NFD}.txt"),
        (f"{{root}}/{NFC}/{NFC}.txt", f"{NFD}/{NFD}.txt"),
        (f"{NFC}\\{NFC}.txt", f"{NFD}/{NFD}.txt"),
        (f"'{NFC}/{NFC}.txt' ", f"{NFD}/{NFD}.txt"),
        (f"{NFC}/new.txt", f"{NFD}/new.txt"),
        (f"{NFC}/new/{NFC}.txt", f"{NFD}/new/{NFC}.txt"),
        ("both \u00e9", "both \u00e9"),
        ("both e\u0301", "both e\u0301"),
        ("shot 10.00 AM.png", "shot 10.00\u202fAM.png"),
        ("od\\d", "od\\d"),  # what is there as it is written comes first
        (" blank ", " blank "),
        ("src\\new.txt", "src/new.txt"),
        ("'src/new.txt' ", "src/new.txt"),
        ("new\\folder\\a.txt", "new\\folder\\a.txt"),
        ("linked \u00e9/a.txt", "src/a.txt"),
    ],
)
def test_what_is_there_is_found_however_it_is_written(tree: Path, path: str, expected: str) -> None:
    names = (
        "my dir/a b.txt",
        f"{NFD}/{NFD}.txt",
        "both \u00e9",
        "both e\u0301",
        "shot 10.00\u202fAM.png",
        "od\\d",
        "od/d",
    )
    for name in (*names, " blank ", "blank"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("")
    (tree / "linked e\u0301").symlink_to("src")
    assert PathGuard([tree]).resolve(path.replace("{root}", str(tree))) == tree / expected


@pytest.mark.parametrize(
    "path",
    [
        *(
            "out\\a.txt",
            '"../outside/a.txt"',
            "..\\outside\\a.txt",
            "file:///etc/passwd",
            "@/etc/passwd",
            " /etc/passwd ",
        ),
        *("file://{root}/../outside/a.txt", "file:///%2e%2e/etc", "linked \u00e9/a.txt", "linked \u00e9", "http://x/y"),
    ],
)
def test_no_other_spelling_leads_out(tree: Path, path: str) -> None:
    (tree / "linked e\u0301").symlink_to(tree.parent / "outside")
    guarded = PathGuard([tree])
    try:
        found = guarded.resolve(path.replace("{root}", str(tree)))
    except ToolError:
        return
    assert not os.path.lexists(found), found


def test_several_roots(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").touch()
        (tmp_path / name / name).touch()
    held = PathGuard([tmp_path / "one", tmp_path / "two"])
    assert held.resolve("two/same") == tmp_path / "two" / "same"
    assert held.resolve("nowhere") == tmp_path / "one" / "nowhere"
    assert held.resolve("two/new") == tmp_path / "two" / "new"
    for path in ("same", "two"):
        with pytest.raises(ToolError, match="several roots"):
            held.resolve(path)


_names = st.sampled_from(["..", ".", "src", "in", "out", "out_file", "loop", "proc", "a.txt", "in_absolute", "x", ""])


@settings(max_examples=examples(300, 100), deadline=None)
@given(st.lists(_names, min_size=1, max_size=7), st.booleans())
def test_whatever_resolves_lies_inside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool
) -> None:
    tree = _shared_tree(tmp_path_factory)
    held = PathGuard([tree])
    path = "/".join(parts)
    try:
        found = held.resolve(f"{tree}/{path}" if absolute else path)
    except ToolError:
        return
    real = Path(os.path.realpath(found))
    assert real == tree or tree in real.parents


_made: list[Path] = []


def _shared_tree(factory: pytest.TempPathFactory) -> Path:
    if not _made:
        base = factory.mktemp("guard").resolve()
        (base / "root" / "src").mkdir(parents=True)
        (base / "root" / "src" / "a.txt").touch()
        (base / "outside").mkdir()
        for name, target in {
            "in": "src",
            "in_absolute": str(base / "root" / "src"),
            "out": str(base / "outside"),
            "out_file": "../outside/a.txt",
            "loop": "loop",
            "proc": "/proc/self/root",
        }.items():
            (base / "root" / name).symlink_to(target)
        _made.append(base / "root")
    return _made[0]


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("skill/a.md", True),
        ("skill/deep/b.md", True),
        ("link/a.md", True),  # the folder by another name
        ("skill/../outside/a.txt", False),
        ("skill/out", False),
        ("skill", False),
        ("skillful/a.md", False),
        ("own/auth.json", False),
    ],
)
def test_an_admitted_folder_is_only_read(tmp_path: Path, tree: Path, path: str, is_read: bool) -> None:
    for name in ("skill/deep/b.md", "skill/a.md", "skillful/a.md", "own/auth.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("read")
    (tmp_path / "skill" / "out").symlink_to(tmp_path / "outside" / "a.txt")
    (tmp_path / "link").symlink_to(tmp_path / "skill")
    paths = PathGuard([tree], [tmp_path / "own"])
    paths.admit_folder(tmp_path / "skill")
    paths.admit_folder(tmp_path)  # one of ours lies in it
    with pytest.raises(ToolError):
        paths.resolve(str(tmp_path / path))
    if not is_read:
        with pytest.raises(ToolError):
            paths.resolve_to_read(str(tmp_path / path))
        return
    resolved = paths.resolve_to_read(str(tmp_path / path))
    assert paths.is_only_readable(resolved)
    stored = disk.read(paths, resolved)
    assert stored is not None and stored.data == b"read"


def test_a_link_that_is_put_into_an_admitted_folder_is_not_followed(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "skill").mkdir()
    file = tmp_path / "skill" / "a.md"
    file.write_text("read")
    paths = PathGuard([tree])
    paths.admit_folder(tmp_path / "skill")
    resolved = paths.resolve_to_read(str(file))
    file.unlink()
    file.symlink_to(tmp_path / "outside" / "a.txt")
    with pytest.raises(ToolError):
        disk.read(paths, resolved)


def test_the_current_folder_may_be_gone(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    paths = PathGuard([tree], plan=tmp_path / "plan.md")
    assert paths.resolve("src/a.txt") == tree / "src" / "a.txt"
    assert paths.resolve_to_read(str(tmp_path / "plan.md")) == tmp_path / "plan.md"
