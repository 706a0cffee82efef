"""Files that a command renames are one change."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu_protocol.items import Mode
from support.draft_session import decide_all
from support.required_programs import needs
from support.row_session import (
    all_states,
    changed,
    changed_by,
    decide,
    fresh,
    look,
    over,
    rows,
    undo,
)
from support.scripted_session import TWELVE, ScriptedSession

pytestmark = pytest.mark.layers

MODES: list[Mode] = ["ask", "acceptEdits", "draft"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def proposed(d: ScriptedSession) -> list[str]:
    """The open or applied changes, in words."""

    def name(path: str | None) -> str:
        return "" if path is None else Path(path).relative_to(d.root).as_posix()

    files = [
        f"{file.change} {name(file.path)}{f' {name(file.new_path)}' if file.new_path else ''}"
        for each in d.session.state.proposals
        for file in each.files
        if any(hunk.state in ("pending", "applied", "reverted") for hunk in file.hunks)
    ]
    found = [
        f"{row.kind} {name(row.path)}{f' {name(row.new_path)}' if row.new_path else ''}"
        for row in rows(d)
        if row.state in ("pending", "applied", "reverted")
    ]
    return sorted([*files, *found])


KINDS: dict[str, tuple[str, dict[str, str | None], list[str]]] = {
    "text": ("mv notes.txt other.txt", {"notes.txt": None, "other.txt": TWELVE}, ["rename notes.txt other.txt"]),
    "text that changes": (
        "mv notes.txt other.txt; echo more >> other.txt",
        {"notes.txt": None, "other.txt": f"{TWELVE}more\n"},
        ["rename notes.txt other.txt"],
    ),
    "executable text": (
        "mkdir bin; mv run.sh bin/run.sh",
        {"run.sh": None, "bin/run.sh": "755: echo\n"},
        ["rename run.sh bin/run.sh"],
    ),
    "text that becomes executable": (
        "mv notes.txt other.txt; chmod +x other.txt",
        {"notes.txt": None, "other.txt": f"755: {TWELVE}"},
        ["create other.txt", "delete notes.txt", "mode other.txt"],
    ),
    "binary file": ("mv pic.bin moved.bin", {"pic.bin": None, "moved.bin": "old\0"}, ["rename pic.bin moved.bin"]),
    "binary file of the user alone": (
        "mv own.bin sub/own.bin",
        {"own.bin": None, "sub/own.bin": "600: own\0"},
        ["rename own.bin sub/own.bin"],
    ),
    "binary file that becomes executable": (
        "mv pic.bin moved.bin; chmod +x moved.bin",
        {"pic.bin": None, "moved.bin": "755: old\0"},
        ["rename pic.bin moved.bin"],
    ),
    "binary file that changes": (
        "mv pic.bin moved.bin; printf x >> moved.bin",
        {"pic.bin": None, "moved.bin": "old\0x"},
        ["deletion pic.bin", "file moved.bin"],
    ),
    "folder": (
        "mv sub other",
        {"sub/a.txt": None, "sub/deep/b.bin": None, "other/a.txt": "a\n", "other/deep/b.bin": "b\0"},
        [
            "deletion sub",
            "deletion sub/deep",
            "rename sub/a.txt other/a.txt",
            "rename sub/deep/b.bin other/deep/b.bin",
        ],
    ),
    "link": ("mv link other", {"link": None, "other": "-> notes.txt"}, ["deletion link", "link other"]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rename_is_accepted_undone_and_done_again(tmp_path: Path, mode: Mode, kind: str) -> None:
    line, changes, expected = KINDS[kind]
    async with changed_by(tmp_path, mode, line) as d:
        assert proposed(d) == expected
        before, after = look(d.root), {}
        if mode != "acceptEdits":
            assert all_states(d) == {"pending"}
            after = changed(before, changes)
            await decide_all(d, "accept")
            await over(d)
        else:
            after, before = before, look(fresh(tmp_path))
            assert after == changed(before, changes)
            await decide(d, "keep")
        assert (look(d.root), all_states(d)) == (after, {"applied"})
        for restarts in (False, True):
            if restarts:
                await d.reopen()
            undone = await undo(d)
            assert [each for file in undone for each in file.skipped] == []
            assert all_states(d) == {"reverted"}
            assert {name: text for name, text in look(d.root).items() if text != "/" or name == "empty"} == before
            await decide(d, "redo")
            assert (look(d.root), all_states(d)) == (after, {"applied"})
