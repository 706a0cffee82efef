"""Files that come from a layer: all of a batch or none, wherever the process is killed or the disk refuses."""

import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from amanu.sandbox.layers.trees import TreeMove

from amanu.sandbox.layers.apply import Batch, Busy, Move, WorkspaceChanged
from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.layers.redo import finish_left, noted
from amanu.sandbox.layers.transfer import set_executable
from amanu.system.untrusted_files import TEMPORARY
from support.file_faults.sitecustomize import FileFaults
from support.sweeps import WHOLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers are Linux's")

BEFORE = {"a": "a\n", "b": "b\n", "gone": "gone\n"}
AFTER = {"a": "A\n", "b": "B\n", "new": "new\n", "d/e/f": "f\n"}
BITS = {"a.sh": True, "b.sh": False, "c.sh": True}
"""Files → whether they become executable."""
MOVES: dict[str, str | None] = {"new": "new\n", "d/e/f": "f\n", "a": "A\n", "b": "B\n", "gone": None}


@pytest.fixture(params=["same file system", "another file system"])
def layers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "same file system":
        yield tmp_path / "layers"
        return
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is on the same file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder) / "layers"


def laid_out(root: Path, layers: Path) -> tuple[Layer, Batch]:
    root.mkdir()
    for name, is_set in BITS.items():
        (root / name).write_text("")
        (root / name).chmod(0o644 if is_set else 0o755)
    for name, text in BEFORE.items():
        (root / name).write_text(text)
    layer = Layer.create(layers, [root])
    return layer, batch(layer, root / "lock")


def bits(root: Path) -> dict[str, bool]:
    """Which of those files are executable."""
    return {name: os.access(root / name, os.X_OK) for name in BITS}


def batch(layer: Layer, lock: Path | None = None) -> Batch:
    (held := layer.folder / "held").mkdir(exist_ok=True)
    moves: list[Move] = []
    for at, (name, text) in enumerate(MOVES.items()):
        stored = None if text is None else held / str(at)
        if stored is not None:
            stored.write_text(text or "")
        path = layer.roots[0].path / name
        below = (path.stat().st_ino, path.stat().st_ctime_ns) if path.exists() else None
        moves.append(Move(layer.roots[0], name, below, stored))
    return Batch("token", tuple(moves), lock)


def tree(root: Path) -> dict[str, str]:
    """Relative path → content; a link's is where it leads."""
    paths = [
        path for path in sorted(root.rglob("*")) if path.is_symlink() or (path.is_file() and path.name not in BITS)
    ]
    return {
        path.relative_to(root).as_posix(): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in paths
    }


@pytest.mark.parametrize("how", ["kill", "full", "refused"])
def test_wherever_it_ends_all_is_as_before_or_as_after(how: str, tmp_path: Path, layers: Path) -> None:
    armed, log = tmp_path / "armed", tmp_path / "log"
    armed.touch()
    stands: list[dict[str, str]] = []
    # A half of what is refused is tried on this file system, and the other half on another.
    skipped = -1 if WHOLE or how == "kill" else int(layers.parent == tmp_path)
    for nth in itertools.count(1):
        if nth > 1 and nth % 2 == skipped:
            continue
        root = tmp_path / f"work{nth}"
        layer, applied = laid_out(root, layers)
        executable = {root / name: is_set for name, is_set in BITS.items()}
        log.write_text("")
        if not (child := os.fork()):
            try:
                FileFaults(how, nth, str(armed), [str(root), str(layers)], str(log)).install()
                with noted(layer.folder, [applied], executable=executable):
                    set_executable(layer, executable)
                    applied.apply()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        layer.close()
        finish_left(layers)
        assert tree(root) in (BEFORE, AFTER), f"{log.read_text()}\n{tree(root)}"
        assert bits(root) in (BITS, {name: not is_set for name, is_set in BITS.items()})
        assert bits(root) == BITS or tree(root) == BEFORE
        assert not [*layer.folder.glob("redo/*")] or how == "kill"
        stands.append(tree(root))
        shutil.rmtree(layer.folder)  # or it would be finished each time again
        if len(log.read_text().splitlines()) < nth:
            break
    assert stands[0] == BEFORE and stands[-1] == AFTER and len(log.read_text().splitlines()) > 15


def test_a_power_failure_leaves_no_mix_either(tmp_path: Path, layers: Path) -> None:
    """What the disk has been told at the end of each step is what a later one relies on."""
    armed, log = tmp_path / "armed", tmp_path / "log"
    armed.touch()
    root = tmp_path / "work"
    layer, applied = laid_out(root, layers)
    if not (child := os.fork()):
        try:
            FileFaults("kill", 0, str(armed), [str(tmp_path), str(layers.parent)], str(log)).install()
            with noted(layer.folder, [applied]):
                applied.apply()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert tree(root) == AFTER
    steps = [(event, path.strip("'")) for _, event, path in map(str.split, log.read_text().splitlines())]
    synced = [path if event == "fsync" else "" for event, path in steps]
    at = steps.index
    noted_at = next(nth for nth, (event, path) in enumerate(steps) if event == "os.rename" and "/redo/" in path)
    ended = next(nth for nth, (event, path) in enumerate(steps) if event == "os.remove" and "/redo/" in path)
    first = next(nth for nth, (event, path) in enumerate(steps) if path.startswith(f"{root}/") and event != "fsync")
    for folder in (layer.folder / "redo", layer.folder, layers):
        assert str(folder) in synced[noted_at:first], f"the note is not on the disk: {folder}"
    for name in ("layer.json", *(f"held/{nth}" for nth, text in enumerate(MOVES.values()) if text is not None)):
        assert str(layer.folder / name) in synced[:noted_at], f"what the note names is not on the disk: {name}"
    for nth, (event, path) in enumerate(steps):
        if path.startswith(f"{root}/") and event in ("os.rename", "os.remove", "os.mkdir", "os.symlink"):
            assert str(Path(path).parent) in synced[nth:ended], (
                f"{event} {path} is not on the disk before the note goes"
            )
    if layers.parent != tmp_path:
        for nth, (name, text) in enumerate(MOVES.items()):
            if text is not None:
                made = at(("os.rename", str(root / name)))
                copied = str((root / name).parent / f".token-{nth}.amanu-tmp")
                assert copied in synced[:made], f"the copy of {name} is not on the disk"
                removed = at(("os.remove", str(layer.folder / "held" / str(nth))))
                assert str((root / name).parent) in synced[made:removed], f"what tells that {name} is made goes early"


def test_what_a_user_did_before_the_next_start_is_kept(tmp_path: Path, layers: Path) -> None:
    layer, killed = laid_out(tmp_path / "work", layers)
    context = noted(layer.folder, [killed])
    context.__enter__()
    (tmp_path / "work" / "b").write_text("the user's\n")
    layer.close()
    finish_left(layers)
    assert tree(tmp_path / "work") == BEFORE | {"b": "the user's\n"}


def test_a_note_of_an_earlier_version_is_finished(tmp_path: Path, layers: Path) -> None:
    """It does not know executable bits."""
    root = tmp_path / "work"
    layer, killed = laid_out(root, layers)
    built = layer.roots[0].upper / "built"
    built.write_text("x")
    context = noted(layer.folder, [killed], ignored=[(layer.roots[0], "built")])
    context.__enter__()
    (note,) = layer.folder.glob("redo/*.json")
    entry = json.loads(note.read_text())
    del entry["executable"]
    note.write_text(json.dumps(entry))
    layer.close()
    finish_left(layers)
    assert tree(root) == AFTER | {"built": "x"}


def test_what_is_sparse_takes_no_more_room(tmp_path: Path, layers: Path) -> None:
    (root := tmp_path / "work").mkdir()
    layer = Layer.create(layers, [root])
    stored = layer.folder / "stored"
    with stored.open("wb") as file:
        file.truncate(10 << 30)
        file.seek(5 << 30)
        file.write(b"data")
    Batch("token", (Move(layer.roots[0], "big", None, stored),)).apply()
    found = (root / "big").stat()
    assert found.st_size == 10 << 30 and found.st_blocks * 512 < 1 << 20
    with (root / "big").open("rb") as file:
        file.seek((5 << 30) - 2)
        assert file.read(8) == b"\0\0data\0\0"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda root: (root / "a").write_text("the user's\n"), WorkspaceChanged),
        (lambda root: (root / "new").write_text("the user's\n"), WorkspaceChanged),
        (lambda root: (root / "lock").write_text("git's\n"), Busy),
        (lambda root: (root / "lock").symlink_to("amanu other"), Busy),
    ],
)
def test_what_is_another_s_is_left(tmp_path: Path, layers: Path, change: object, error: type[Exception]) -> None:
    root = tmp_path / "work"
    _, applied = laid_out(root, layers)
    assert callable(change)
    change(root)
    before = tree(root)
    with pytest.raises(error):
        applied.apply()
    assert tree(root) == before


FINISHED: list[tuple[bool, dict[str, str], dict[str, str]]] = [
    (True, {"store/tree": "new"}, {"root/big": "new"}),
    (True, {"store/tree": "new", f"root/.t{TEMPORARY}": "half"}, {"root/big": "new"}),
    (True, {"store/tree": "new", "root/big": "mine"}, {"store/tree": "new", "root/big": "mine"}),
    (True, {"root/big": "new"}, {"root/big": "new"}),
    (False, {"root/big": "new"}, {"root/big": "new"}),
    (False, {f"root/.t{TEMPORARY}": "new"}, {"store/tree": "new"}),
    (False, {f"root/.t{TEMPORARY}": "new", "store/.tmp-t": "half"}, {"store/tree": "new"}),
    (False, {f"root/.t{TEMPORARY}": "half", "store/tree": "new"}, {"store/tree": "new"}),
]
"""Whether the folder was coming into the workspace, what a kill has left where, and what is there in the end."""


@pytest.mark.parametrize(("comes_in", "left", "expected"), FINISHED)
def test_a_folder_that_was_on_its_way_is_in_one_place(
    tmp_path: Path, comes_in: bool, left: dict[str, str], expected: dict[str, str]
) -> None:
    for name in ("root", "store"):
        (tmp_path / name).mkdir()
    for name, text in left.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
    layer = Layer.create(tmp_path / "layers", [tmp_path / "root"])
    TreeMove(layer.roots[0], "big", tmp_path / "store" / "tree", comes_in, "t").finish()
    places = [path for name in ("root", "store") for path in (tmp_path / name).iterdir()]
    assert {f"{path.parent.name}/{path.name}": (path / "file").read_text() for path in places} == expected
