"""Files that a command renames are one change."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu_protocol.items import Mode
from support.draft_session import DONE, decide_all, end_daemon, turn
from support.required_programs import needs
from support.row_session import (
    all_states,
    changed,
    changed_by,
    decide,
    files,
    fresh,
    look,
    over,
    rows,
    undo,
)
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from unit.test_session_layer import shell

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


MORE: list[tuple[tuple[str, ...], dict[str, str | None], list[str]]] = [
    (("mv notes.txt b.txt", "true"), {"notes.txt": None, "b.txt": TWELVE}, ["rename notes.txt b.txt"]),
    (("mv notes.txt b.txt", "mv b.txt c.txt"), {"notes.txt": None, "c.txt": TWELVE}, ["rename notes.txt c.txt"]),
    (
        ("mv notes.txt b.txt", "echo x >> b.txt", "mv b.txt c.txt"),
        {"notes.txt": None, "c.txt": f"{TWELVE}x\n"},
        ["rename notes.txt c.txt"],
    ),
    (
        ("echo x >> notes.txt", "mv notes.txt b.txt"),
        {"notes.txt": None, "b.txt": f"{TWELVE}x\n"},
        ["rename notes.txt b.txt"],
    ),
    (
        ("mv notes.txt b.txt", "chmod +x b.txt"),
        {"notes.txt": None, "b.txt": f"755: {TWELVE}"},
        ["mode b.txt", "rename notes.txt b.txt"],
    ),
    (
        ("chmod +x tool.sh", "mv tool.sh b.sh"),
        {"tool.sh": None, "b.sh": "755: echo\n"},
        ["create b.sh", "delete tool.sh", "mode b.sh"],
    ),
    (("mv run.sh b.sh", "mv b.sh c.sh"), {"run.sh": None, "c.sh": "755: echo\n"}, ["rename run.sh c.sh"]),
    (("mv notes.txt b.txt", "rm b.txt"), {"notes.txt": None}, ["delete notes.txt"]),
    (("mv notes.txt b.txt", "mv b.txt notes.txt"), {}, []),
    (("mv notes.txt b.txt", "cp b.txt notes.txt"), {"b.txt": TWELVE}, ["create b.txt"]),
    (
        ("mv notes.txt b.txt", "echo x > notes.txt"),
        {"notes.txt": "x\n", "b.txt": TWELVE},
        ["create b.txt", "edit notes.txt"],
    ),
    (("mv run.sh b.sh", "cp b.sh run.sh"), {"b.sh": "755: echo\n"}, ["create b.sh"]),
    (("echo x > b.txt", "mv b.txt c.txt"), {"c.txt": "x\n"}, ["create c.txt"]),
    (
        ("rm notes.txt", "seq -f 'line %g' 12 > b.txt"),
        {"notes.txt": None, "b.txt": TWELVE},
        ["create b.txt", "delete notes.txt"],
    ),
    (("mv pic.bin b.bin", "true"), {"pic.bin": None, "b.bin": "old\0"}, ["rename pic.bin b.bin"]),
    (("mv pic.bin b.bin", "mv b.bin c.bin"), {"pic.bin": None, "c.bin": "old\0"}, ["rename pic.bin c.bin"]),
    (
        ("mv pic.bin b.bin", "chmod +x b.bin", "mv b.bin c.bin"),
        {"pic.bin": None, "c.bin": "755: old\0"},
        ["rename pic.bin c.bin"],
    ),
    (("mv pic.bin b.bin", "rm b.bin"), {"pic.bin": None}, ["deletion pic.bin"]),
    (
        ("mv pic.bin b.bin", "printf 'x\\0' > b.bin"),
        {"pic.bin": None, "b.bin": "x\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
    (("mv pic.bin b.bin", "echo x > b.bin"), {"pic.bin": None, "b.bin": "x\n"}, ["create b.bin", "deletion pic.bin"]),
    (("mv pic.bin b.bin", "mv b.bin pic.bin"), {}, []),
    (("mv pic.bin b.bin", "cp b.bin pic.bin"), {"b.bin": "old\0"}, ["file b.bin"]),
    (
        ("mv pic.bin b.bin", "printf 'x\\0' > pic.bin"),
        {"pic.bin": "x\0", "b.bin": "old\0"},
        ["file b.bin", "file pic.bin"],
    ),
    (("mv pic.bin b.bin", "mv b.bin c.bin; cp c.bin pic.bin"), {"c.bin": "old\0"}, ["file c.bin"]),
    (("printf 'x\\0' > b.bin", "mv b.bin c.bin"), {"c.bin": "x\0"}, ["file c.bin"]),
    (
        ("rm pic.bin", "printf 'old\\0' > b.bin"),
        {"pic.bin": None, "b.bin": "old\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
    (
        ("printf 'x\\0' > pic.bin", "mv pic.bin b.bin"),
        {"pic.bin": None, "b.bin": "x\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
]
"""The commands of one draft, the changes that a yes makes, and what is proposed."""


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("lines", "changes", "expected"), MORE, ids=["; then ".join(case[0]) for case in MORE])
async def test_later_commands_of_a_draft_go_on_with_a_rename(
    tmp_path: Path, restarts: bool, lines: tuple[str, ...], changes: dict[str, str | None], expected: list[str]
) -> None:
    steps = [each for line in (*lines, "true") for each in (step("", shell(line)), DONE)]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        for at in range(len(lines) + 1):
            await turn(d, f"p{at + 1}")
            if restarts:
                await end_daemon(d)
        assert proposed(d) == expected
        assert look(d.root) == before
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, changes)
        await undo(d)
        if lines[1] != "chmod +x b.txt":  # the bits go to the old file
            assert look(d.root) == before
