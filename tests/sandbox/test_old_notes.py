"""Notes that a daemon from before protocol 3 left when it was killed are finished by the next one."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.layers.redo import finish_left

ROOT = {"a": "old\n", "gone": "old\n", "tool": "old\n"}
DONE = {"a": "new\n", "sub/b": "new\n", "tool": "755: old\n", "built": "new\n"}
CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "all of it": ({}, DONE),
    "half was done": ({"done": "a"}, DONE),
    "the user has saved one since": ({"saved": "a"}, {**ROOT, "a": "mine\n", "tool": "755: old\n", "built": "new\n"}),
    "malformed": ({"note": {"batches": 1}}, ROOT),
    "no object": ({"note": []}, ROOT),
}
"""What is otherwise, and the workspace afterwards."""


def look(root: Path) -> dict[str, str]:
    bits = {path: f"{path.stat().st_mode & 0o777:o}: " for path in root.rglob("*") if path.stat().st_mode & 0o100}
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): bits.get(path, "") + path.read_text() for path in files}


@pytest.mark.parametrize("case", CASES)
def test_an_old_note_is_finished(tmp_path: Path, case: str) -> None:
    given, expected = CASES[case]
    root, layers = tmp_path / "w", tmp_path / "layers"
    root.mkdir()
    for name, text in ROOT.items():
        (root / name).write_text(text)
    layer = Layer.create(layers, [root])
    held = layer.folder / "held"
    held.mkdir()
    moves: list[list[Any]] = []
    for name, below in (("a", "a"), ("sub/b", None), ("gone", "gone")):
        found = None if below is None else (root / below).lstat()
        stored = None if name == "gone" else held / name.replace("/", "-")
        if stored is not None:
            stored.write_text("new\n")
        identity = None if found is None else [found.st_ino, found.st_ctime_ns]
        moves.append(["0", name, identity, None if stored is None else str(stored)])
    (layer.roots[0].upper / "built").write_text("new\n")
    note = {
        "batches": [{"moves": moves, "token": "t", "lock": None}],
        "ignored": [["0", "built"]],
        "begun": None,
        "executable": [[str(root / "tool"), True]],
    }
    if given.get("done"):
        (held / given["done"]).rename(root / given["done"])
    if given.get("saved"):
        (root / given["saved"]).write_text("mine\n")
    (layer.folder / "redo").mkdir()
    (layer.folder / "redo" / "1.json").write_text(json.dumps(given.get("note", note)))
    layer.close()
    finish_left(layers)
    assert look(root) == expected
