"""Several edits of a file in one call, deleting, moving, and what all tools that edit have in common."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import CallContext, Outcome, ToolError
from amanu.proposals.proposals import Proposals
from amanu.tools.edits.move_file import MoveFile
from amanu.tools.environment import ToolEnvironment
from amanu.workspace import file_names as names
from amanu.workspace.file_names import fold_name, listed_name
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from support.tool_harness import ToolHarness, hunks

FILES = {"a.py": "one\ntwo\nthree\n", "src/b.py": "four\n", "crlf": "one\r\ntwo\r\n", "empty": ""}


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path, FILES)


def edits(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"path": "a.py", "edits": [{"old_text": old, "new_text": new} for old, new in pairs], **more}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (edits(("one", "1"), ("three", "3")), "1\ntwo\n3\n"),
        (edits(("one", "x"), ("x\ntwo", "y")), "y\nthree\n"),  # each on the result of the one before
        (edits(("one\n", ""), ("two\n", "two\none\n")), "two\none\nthree\n"),
        ({**edits(("two", "2")), "old_text": "", "new_text": ""}, "one\n2\nthree\n"),  # every field filled
        ({**edits(("two", "2")), "old_text": None, "new_text": None, "explanation": None}, "one\n2\nthree\n"),
        ({"path": "a.py", "old_text": "two", "new_text": "2", "edits": []}, "one\n2\nthree\n"),
        ({"path": "a.py", "edits": [{"old_text": "e", "new_text": "E", "replace_all": True}]}, "onE\ntwo\nthrEE\n"),
        ({**edits(("two", "2\n2"), ("one\n2", "1\n2")), "path": "crlf"}, "one\r\n2\r\n2\r\n".replace("one", "1")),
        ({**edits(("", "x\ny\n"), ("y", "z")), "path": "new"}, "x\nz\n"),
    ],
)
async def test_several_edits(harness: ToolHarness, arguments: Mapping[str, Any], expected: str) -> None:
    await harness.run("edit_file", arguments)
    assert harness.on_disk(arguments["path"]).decode() == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (edits(("one", "1"), ("nine", "9")), ["Edit 2 of 2", "not in a.py"]),
        (edits(("one\ntwo", "1\n2"), ("two\nthree", "2\n3")), ["Edit 2 of 2", "overlaps edit 1"]),
        (edits(("one", "1"), ("two", "2"), ("one\n", "x")), ["Edit 3 of 3", "overlaps edit 1"]),
        (edits(("three", "two"), ("two", "2")), ["Edit 2 of 2", "2 times"]),
        (edits(("one", "1"), ("", "x")), ["Edit 2 of 2", "not empty"]),
        (edits(("one", "1"), ("two", "two")), ["Edit 2 of 2", "the same"]),
        (edits(("one", "1"), old_text="two", new_text="2"), ["not both"]),
        ({"path": "a.py"}, ["old_text is missing"]),
        ({"path": "a.py", "edits": []}, ["old_text is missing"]),
        ({"path": "a.py", "old_text": "one"}, ["new_text is missing"]),
        ({"path": "gone", "edits": [{"old_text": "x", "new_text": "y"}, {"old_text": "y", "new_text": "z"}]},
         ["Edit 1 of 2", "There is no file gone"]),
    ],
)  # fmt: skip
async def test_edits_of_which_one_does_not_fit(
    harness: ToolHarness, arguments: Mapping[str, Any], told: list[str]
) -> None:
    with pytest.raises(ToolError) as caught:
        await harness.run("edit_file", arguments)
    assert all(each in str(caught.value) for each in (*told, "othing w"))
    assert (harness.on_disk("a.py"), harness.versions) == (FILES["a.py"].encode(), [])


async def test_deleting(harness: ToolHarness) -> None:
    call = harness.context()
    call.preview = await harness.preview("delete_file", {"path": "src/b.py"}, call=call)
    assert call.preview.title == "Delete src/b.py" and "src/b.py  +0 −1  deleted" in call.preview.detail
    assert harness.on_disk("src/b.py") == b"four\n"
    outcome = await harness.tools["delete_file"].run(None, call)
    assert (outcome.for_model, outcome.for_user) == ("Deleted src/b.py.", "Changes: 1 applied")
    assert not (harness.root / "src" / "b.py").exists() and (harness.root / "src").is_dir()
    assert harness.preimages == [(harness.root / "src" / "b.py", b"four\n", 0o644)]


async def test_moving(harness: ToolHarness) -> None:
    call = harness.context()
    call.preview = await harness.preview("move_file", {"path": "src/b.py", "new_path": "lib/deep/c.py"}, call=call)
    assert call.preview.title == "Rename src/b.py to lib/deep/c.py"
    assert "src/b.py → lib/deep/c.py  renamed\n" in call.preview.detail
    assert [(each.effect, each.text) for each in (call.preview.subject, *call.preview.extra_subjects)] == [
        ("write", "src/b.py"),
        ("write", "lib/deep/c.py"),
        ("read", "src/b.py"),
    ]
    assert call.preview.writes == {str(harness.root / "src" / "b.py"), str(harness.root / "lib" / "deep" / "c.py")}
    assert harness.on_disk("src/b.py") == b"four\n"
    outcome = await harness.tools["move_file"].run(None, call)
    assert outcome.for_model == "Renamed src/b.py to lib/deep/c.py."
    assert harness.on_disk("lib/deep/c.py") == b"four\n" and not (harness.root / "src" / "b.py").exists()


async def test_a_patch_moves_and_changes(harness: ToolHarness) -> None:
    patch = "*** Update File: a.py\n*** Move to: src/a.py\n-two\n+zwei\n"
    outcome = await harness.run("apply_patch", {"patch": patch})
    assert "Renamed a.py to src/a.py" in outcome.for_model
    assert harness.on_disk("src/a.py") == b"one\nzwei\nthree\n" and not (harness.root / "a.py").exists()


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("delete_file", {"path": "gone.py"}, "There is no file gone.py"),
        ("delete_file", {"path": "B.py"}, "There is no file B.py"),
        ("delete_file", {"path": "src"}, "is a folder"),
        ("delete_file", {"path": "."}, "folder"),
        ("delete_file", {"path": "/etc/hostname"}, "outside the workspace"),
        ("delete_file", {"path": "typed.py"}, "unsaved changes in the editor"),
        ("delete_file", {"path": "fresh.py"}, "unsaved changes in the editor"),
        ("delete_file", {"path": "link.py"}, "is a symbolic link to a.py"),
        ("move_file", {"path": "gone.py", "new_path": "x"}, "There is no file gone.py"),
        ("move_file", {"path": "src", "new_path": "lib"}, "is a folder"),
        (
            "move_file",
            {"path": "a.py", "new_path": "src"},
            "src is a folder. Give the whole new path, for example src/a.py",
        ),
        ("move_file", {"path": "a.py", "new_path": "."}, "folder"),
        ("move_file", {"path": "a.py", "new_path": "src/b.py"}, "src/b.py already exists"),
        ("move_file", {"path": "a.py", "new_path": "fresh.py"}, "fresh.py already exists"),
        ("move_file", {"path": "a.py", "new_path": "a.py"}, "already at"),
        ("move_file", {"path": "a.py", "new_path": "./src/../a.py"}, "already at"),
        ("move_file", {"path": "a.py", "new_path": "../x"}, "outside the workspace"),
        ("move_file", {"path": "a.py", "new_path": ""}, "path is empty"),
        ("move_file", {"path": "a.py", "new_path": "crlf/x"}, "not a folder"),
        ("move_file", {"path": "a.py", "new_path": "dangling"}, "symbolic link"),
        ("move_file", {"path": "a.py", "new_path": "pipe"}, "already exists"),
        ("move_file", {"path": "link.py", "new_path": "x"}, "is a symbolic link to a.py"),
        ("move_file", {"path": "typed.py", "new_path": "x"}, "unsaved changes in the editor"),
    ],
)
async def test_what_is_not_removed(harness: ToolHarness, tool: str, arguments: Mapping[str, Any], told: str) -> None:
    harness.put("typed.py", "saved\n")
    harness.editor.put(harness.root / "typed.py", "typed\n")
    harness.editor.put(harness.root / "fresh.py", "fresh\n")
    (harness.root / "link.py").symlink_to("a.py")
    (harness.root / "dangling").symlink_to("nowhere")
    os.mkfifo(harness.root / "pipe")
    before = sorted(harness.root.rglob("*"))
    with pytest.raises(ToolError) as caught:
        await harness.run(tool, arguments)
    assert told in str(caught.value)
    assert (sorted(harness.root.rglob("*")), harness.versions) == (before, [])
    assert harness.on_disk("a.py") == FILES["a.py"].encode()


@pytest.mark.parametrize(
    ("path", "new_path", "expected"),
    [
        ("one/a", "b", "one/b"),
        ("two/a2", "b", "two/b"),  # where the file is
        ("two/a2", "one/b", "one/b"),  # across roots
        ("one/a", "{root}/two/b", "two/b"),
    ],
)
async def test_of_several_roots(tmp_path: Path, path: str, new_path: str, expected: str) -> None:
    for name in ("one/a", "two/a2"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x\n")
    workspace = Workspace([tmp_path / "one", tmp_path / "two"], Overlay())

    async def save(*_: object) -> None: ...

    proposals = Proposals(workspace, lambda _: None, save)
    tool = MoveFile(ToolEnvironment(workspace, proposals, ToolHarness(tmp_path), {}))
    params = tool.params(path=path, new_path=new_path.format(root=tmp_path))
    preview = await tool.preview(params, CallContext("c", "t", 1))
    assert preview.writes == {str(tmp_path / path), str(tmp_path / expected)}


@pytest.mark.parametrize(
    ("name", "listed", "expected"),
    [
        ("a.py", ["a.py"], "a.py"),
        ("A.py", ["a.py"], "a.py"),
        ("A.py", ["a.py", "A.py"], "A.py"),
        ("STRASSE", ["straße"], "straße"),
        ("caf\u00e9", ["cafe\u0301"], "cafe\u0301"),
        ("a.py", ["b.py"], "a.py"),
    ],
)
def test_the_name_a_folder_has(name: str, listed: list[str], expected: str) -> None:
    assert listed_name(name, listed) == expected
    assert fold_name(expected) == fold_name(name)


async def test_where_the_system_folds_case(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows: the folder finds `a.py` under any case."""

    def spelt(_: object, path: Path) -> Path | None:
        there = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        name = listed_name(path.name, there)
        return path.with_name(name) if name in there else None

    monkeypatch.setattr("amanu.tools.edits.base.spelling_on_disk", spelt)
    monkeypatch.setattr("amanu.tools.edits.base.ignores_case", lambda _: True)  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(ToolError, match=r"called a\.py.*Use a\.py"):
        await harness.preview("write_file", {"path": "A.py", "content": "x"})
    with pytest.raises(ToolError, match=r"src/b\.py already exists|already exists"):
        await harness.preview("move_file", {"path": "a.py", "new_path": "src/B.py"})
    with pytest.raises(ToolError, match="the same file on this system"):
        await harness.preview("apply_patch", {"patch": "*** Add File: n.py\n+x\n*** Add File: N.py\n+y\n"})
    preview = await harness.preview("move_file", {"path": "a.py", "new_path": "A.py"})
    assert preview.title == "Rename a.py to A.py"


async def test_names_that_differ_in_case_are_two_files_elsewhere(harness: ToolHarness) -> None:
    if names.ignores_case(harness.root):
        pytest.skip("this file system folds case")
    await harness.run("apply_patch", {"patch": "*** Add File: A.py\n+x\n*** Add File: n\n+1\n*** Add File: N\n+2\n"})
    assert [harness.on_disk(name) for name in ("a.py", "A.py", "n", "N")] == [
        b"one\ntwo\nthree\n",
        b"x\n",
        b"1\n",
        b"2\n",
    ]


EDITING = {
    "edit_file": {"path": "a.py", "old_text": "two", "new_text": "2"},
    "write_file": {"path": "a.py", "content": "2\n"},
    "apply_patch": {"patch": "*** Update File: a.py\n-two\n+2"},
    "move_file": {"path": "a.py", "new_path": "b.py"},
    "delete_file": {"path": "a.py"},
}


@pytest.mark.parametrize("tools", [("edit_file", "move_file"), ("move_file", "edit_file")])
async def test_a_file_moves_only_when_the_move_was_allowed(harness: ToolHarness, tools: tuple[str, str]) -> None:
    """Both calls are of one step and so in one proposal; the edit is allowed by a rule, the move is asked about."""
    calls = {tool: harness.context() for tool in tools}
    for tool in tools:
        await harness.preview(tool, EDITING[tool], call=calls[tool])
    await harness.tools["edit_file"].run(None, calls["edit_file"])
    assert harness.on_disk("a.py") == FILES["a.py"].encode()
    await harness.tools["move_file"].run(None, calls["move_file"])
    assert harness.on_disk("b.py") == b"one\n2\nthree\n"


@pytest.mark.parametrize("tool", EDITING)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("  Two things,\n\tbriefly. ", "Two things, briefly."),
        ("x" * 1000, "x" * 199 + "…"),
        ("a\u202eb\x00", "a<U+202E>b<U+0000>"),
    ],
)
async def test_what_an_edit_is_for(harness: ToolHarness, tool: str, given: str | None, said: str) -> None:
    preview = await harness.preview(tool, {**EDITING[tool], "explanation": given})
    assert {hunk.explanation for hunk in hunks(harness.versions[-1])} == {said}
    assert preview.detail.startswith(f"The model says: {said}\n")


@pytest.mark.parametrize("tool", EDITING)
def test_the_path_is_first_and_the_reason_last(harness: ToolHarness, tool: str) -> None:
    """Live edits are drawn while the call is written: its path must be known before its text."""
    schema = harness.tools[tool].spec().parameters
    fields = list(schema["properties"])
    assert fields[0] == ("patch" if tool == "apply_patch" else "path") and fields[-1] == "explanation"
    assert "explanation" not in schema["required"]
    assert json.dumps(schema) == json.dumps(harness.tools[tool].spec().parameters)


@pytest.mark.parametrize("given", [{}, {"explanation": None}, {"explanation": ""}, {"explanation": " \n"}])
@pytest.mark.parametrize("tool", EDITING)
async def test_a_call_need_not_say_what_it_is_for(harness: ToolHarness, tool: str, given: dict[str, Any]) -> None:
    preview = await harness.preview(tool, {**EDITING[tool], **given})
    assert {hunk.explanation for hunk in hunks(harness.versions[-1])} == {""}
    assert "The model says" not in preview.detail


def move(path: str, new_path: str) -> tuple[str, dict[str, Any]]:
    return "move_file", {"path": path, "new_path": new_path}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old_text": old, "new_text": new}


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def delete(path: str) -> tuple[str, dict[str, Any]]:
    return "delete_file", {"path": path}


def patch(*lines: str) -> tuple[str, dict[str, Any]]:
    return "apply_patch", {"patch": "\n".join(lines)}


@pytest.mark.parametrize("allowed", ["in order", "backwards", "at once"])
@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([move("a.py", "b.py"), edit("b.py", "two", "2")], {"b.py": "one\n2\nthree\n"}),
        ([move("a.py", "b.py"), edit("a.py", "two", "2")], {"b.py": "one\n2\nthree\n"}),
        ([move("a.py", "b.py"), edit("b.py", "two", "2"), edit("b.py", "2", "3")], {"b.py": "one\n3\nthree\n"}),
        ([move("a.py", "b.py"), patch("*** Update File: b.py", "-two", "+2")], {"b.py": "one\n2\nthree\n"}),
        ([move("a.py", "b.py"), write("b.py", "new\n")], {"b.py": "new\n"}),
        ([move("a.py", "b.py"), move("b.py", "c.py")], {"c.py": "one\ntwo\nthree\n"}),
        ([patch("*** Update File: a.py", "*** Move to: b.py", "-two", "+2"), edit("b.py", "2", "3")],
         {"b.py": "one\n3\nthree\n"}),
        ([edit("a.py", "two", "2"), move("a.py", "b.py")], {"b.py": "one\n2\nthree\n"}),
        ([edit("a.py", "two", "2"), delete("a.py")], {}),
        ([edit("a.py", "two", "2"), write("a.py", "new\n")], {"a.py": "new\n"}),
        ([write("a.py", "new\n"), edit("a.py", "new", "old")], {"a.py": "old\n"}),
        ([delete("a.py"), write("a.py", "one\nnew\n")], {"a.py": "one\nnew\n"}),
        ([delete("a.py"), patch("*** Add File: a.py", "+new")], {"a.py": "new\n"}),
        ([delete("a.py"), write("a.py", "new\n"), edit("a.py", "new", "old")], {"a.py": "old\n"}),
        ([delete("a.py"), write("a.py", "new\n"), delete("a.py")], {}),
        ([write("n.py", "new\n"), edit("n.py", "new", "old")], {"a.py": "one\ntwo\nthree\n", "n.py": "old\n"}),
        ([write("n.py", "new\n"), write("n.py", "old\n")], {"a.py": "one\ntwo\nthree\n", "n.py": "old\n"}),
        ([write("n.py", "new\n"), patch("*** Update File: n.py", "-new", "+old")],
         {"a.py": "one\ntwo\nthree\n", "n.py": "old\n"}),
        ([patch("*** Add File: n.py", "+new", "*** Update File: n.py", "-new", "+old")],
         {"a.py": "one\ntwo\nthree\n", "n.py": "old\n"}),
    ],
)  # fmt: skip
async def test_edits_of_one_step_build_on_each_other(
    tmp_path: Path, calls: list[tuple[str, dict[str, Any]]], expected: dict[str, str], allowed: str
) -> None:
    harness = ToolHarness(tmp_path, {"a.py": "one\ntwo\nthree\n"})
    contexts = [harness.context() for _ in calls]
    last: Outcome | None = None
    for (name, arguments), context in zip(calls, contexts, strict=True):
        context.preview = await harness.preview(name, arguments, call=context)
    assert harness.on_disk("a.py") == b"one\ntwo\nthree\n"
    runs = [(name, context) for (name, _), context in zip(calls, contexts, strict=True)]
    if allowed == "at once":
        await harness.proposals.accept_all(harness.versions[-1].proposal_id)
    else:
        for name, context in runs[:: -1 if allowed == "backwards" else 1]:
            last = await harness.tools[name].run(None, context)
        assert last is not None and not last.is_error and "Nothing is left" not in last.for_model
    assert {path.name: path.read_text() for path in harness.root.iterdir()} == expected
    await harness.proposals.undo(
        harness.versions[-1].proposal_id, [hunk.hunk_id for hunk in hunks(harness.versions[-1])]
    )
    assert {path.name: path.read_text() for path in harness.root.iterdir()} == {"a.py": "one\ntwo\nthree\n"}


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([write("n.py", "x\n"), delete("n.py")], "n.py does not exist yet: this step creates it. To delete it"),
        ([write("n.py", "x\n"), move("n.py", "m.py")], "n.py does not exist yet: this step creates it. To move it"),
        ([write("n.py", "x\n"), patch("*** Update File: n.py", "*** Move to: m.py", "-x", "+y")], "does not exist yet"),
        ([write("n.py", "x\n"), patch("*** Add File: n.py", "+y")], "n.py already exists"),
        ([write("n.py", "x\n"), move("a.py", "n.py")], "n.py is changed in this same step"),
        ([delete("a.py"), edit("a.py", "two", "2")], "There is no file a.py"),
        ([delete("a.py"), patch("*** Update File: a.py", "-two", "+2")], "in this step deletes it"),
        ([delete("a.py"), delete("a.py")], "in this step deletes it"),
        ([delete("a.py"), move("a.py", "b.py")], "in this step deletes it"),
        ([delete("a.py"), move("src/b.py", "a.py")], "a.py is changed in this same step"),
        ([move("a.py", "b.py"), delete("a.py")], "a.py moves to b.py in this same step. Use b.py if"),
        ([move("a.py", "b.py"), delete("b.py")], "This same step moves a.py to b.py"),
        ([move("a.py", "b.py"), move("a.py", "c.py")], "a.py moves to b.py in this same step"),
        ([move("a.py", "b.py"), write("a.py", "x\n")], "a.py moves to b.py in this same step"),
        ([move("a.py", "b.py"), patch("*** Add File: a.py", "+x")], "a.py moves to b.py in this same step"),
        ([move("a.py", "b.py"), patch("*** Add File: b.py", "+x")], "b.py already exists"),
        ([move("a.py", "b.py"), move("src/b.py", "b.py")], "b.py is changed in this same step"),
        ([move("a.py", "b.py"), move("src/b.py", "a.py")], "a.py is changed in this same step"),
        ([move("a.py", "b.py"), move("b.py", "a.py")], "a.py is changed in this same step"),
        ([move("a.py", "b.py"), edit("b.py", "nine", "9")], "not in b.py"),
        ([patch("*** Update File: a.py", "*** Move to: b.py", "*** Update File: b.py", "-two", "+2")],
         "An earlier part moves a file to b.py; put all changes to a file in one part"),
        ([patch("*** Delete File: a.py", "*** Add File: a.py", "+x")], "An earlier part removes a.py; put all"),
        ([patch("*** Add File: n.py", "+x", "*** Delete File: n.py")], "An earlier part edits n.py; put all"),
        ([patch("*** Update File: a.py", "-two", "+2", "*** Delete File: a.py")], "An earlier part edits a.py"),
        ([patch("*** Update File: a.py", "*** Move to: b.py", "*** Add File: a.py", "+x")], "An earlier part removes"),
        ([patch("*** Delete File: src/b.py", "*** Update File: a.py", "*** Move to: src/b.py")],
         "src/b.py is changed in this same step"),
    ],
)  # fmt: skip
async def test_what_one_step_cannot_do_together(
    harness: ToolHarness, calls: list[tuple[str, dict[str, Any]]], told: str
) -> None:
    for name, arguments in calls[:-1]:
        await harness.preview(name, arguments)
    proposed = list(harness.versions)
    with pytest.raises(ToolError) as caught:
        await harness.preview(*calls[-1])
    assert told in str(caught.value) and "othing was changed" in str(caught.value)
    assert harness.versions == proposed


async def test_a_step_that_takes_itself_back(harness: ToolHarness) -> None:
    await harness.preview("delete_file", {"path": "a.py"})
    outcome = await harness.run("write_file", {"path": "a.py", "content": FILES["a.py"]})
    assert "cancel each other out" in outcome.for_model and harness.on_disk("a.py").decode() == FILES["a.py"]


async def test_a_moved_file_is_not_quoted_where_its_old_name_may_not_be_read(harness: ToolHarness) -> None:
    harness.put(".env", "TOKEN=secret\n")
    await harness.preview("move_file", {"path": ".env", "new_path": "plain.txt"})
    call = harness.context()
    call.allowed = lambda subjects: [each for each in subjects if each.text != ".env"]
    with pytest.raises(ToolError) as caught:
        await harness.preview("edit_file", {"path": "plain.txt", "old_text": "TOKEN=", "new_text": "TOKEN="}, call=call)
    assert "secret" not in str(caught.value) and "Read the file first" in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("delete_file", {"path": "a b.bin"}, "only text files are deleted by this tool. Use run_shell_command, for "
         "example: rm -- 'a b.bin'"),
        ("move_file", {"path": "a b.bin", "new_path": "c.bin"}, "mv -- 'a b.bin' c.bin"),
        ("apply_patch", {"patch": "*** Delete File: a b.bin"}, "rm -- 'a b.bin'"),
        ("apply_patch", {"patch": "*** Update File: a b.bin\n*** Move to: c.bin"}, "mv -- 'a b.bin' c.bin"),
        ("edit_file", {"path": "a b.bin", "old_text": "x", "new_text": "y"}, "is a binary file"),
        ("write_file", {"path": "a b.bin", "content": "y"}, "is a binary file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("data", [b"x\0y", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"])
async def test_files_that_are_no_text(
    harness: ToolHarness, tool: str, arguments: Mapping[str, Any], told: str, data: bytes
) -> None:
    harness.put("a b.bin", data)
    with pytest.raises(ToolError) as caught:
        await harness.run(tool, arguments)
    assert told in str(caught.value) and "othing was changed" in str(caught.value)
    assert (harness.on_disk("a b.bin"), harness.versions) == (data, [])


NEAR = {
    "exact": ("    two\n", ""),
    "indentation": ("\ttwo\n\tthree\n", "matched with different indentation."),
    "blanks at line ends": ("    two \n    three\n", "matched with different blanks at line ends."),
}


@pytest.mark.parametrize(("old", "told"), NEAR.values(), ids=NEAR)
@pytest.mark.parametrize("tool", ["edit_file", "edits", "apply_patch"])
async def test_what_was_forgiven_is_told(harness: ToolHarness, tool: str, old: str, told: str) -> None:
    harness.put("a.py", "one\n    two\n    three\nfour\n")
    new = old.replace("two", "2")
    if tool == "apply_patch":
        lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
        arguments: dict[str, Any] = {"patch": "\n".join(["*** Update File: a.py", *lines])}
    else:
        arguments = edits((old, new)) if tool == "edits" else {"path": "a.py", "old_text": old, "new_text": new}
    call = harness.context()
    outcome = await harness.run("edit_file" if tool == "edits" else tool, arguments, call=call)
    assert call.preview is not None
    for text in (outcome.for_model, call.preview.detail):
        assert ("matched with" in text) == bool(told) and told in text


async def test_an_approval_says_where_a_file_goes(harness: ToolHarness) -> None:
    patch = "*** Update File: a.py\n*** Move to: src/a.py\n-two\n+zwei\n"
    preview = await harness.preview("apply_patch", {"patch": patch})
    assert "\nrename a.py → src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@" in preview.detail
    assert (await harness.preview("move_file", {"path": "src/b.py", "new_path": "c.py"})).detail.endswith(
        "rename src/b.py → c.py\n"
    )
