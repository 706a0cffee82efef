"""What the model gets from the file tools, and what it is told when it asks for what cannot be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from support.tool_harness import ToolHarness, states

FILES: dict[str, str | bytes] = {
    "a.py": "one\ntwo\nthree\n",
    "src/b.py": "def f():\n    return 1\n",
    "src/empty": "",
    "latin.txt": b"caf\xe9\n",
    "bin": b"\0\1\2",
    "many.txt": "".join(f"line {at}\n" for at in range(1, 2502)),
    "wide.txt": "x" * 3000 + "\nend\n",
    "crlf.txt": "one\r\ntwo\r\n",
}


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path, FILES)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read_file", {"path": "a.py"}, "one\ntwo\nthree\n"),
        ("read_file", {"path": "a.py", "start_line": 2, "end_line": 2},
         "[lines 2–2 of 3; read on with start_line 3]\ntwo\n"),
        ("read_file", {"path": "src/empty"}, "[the file is empty]\n"),
        ("read_file", {"path": "latin.txt"},
         "[encoding unknown, shown as latin-1; edits keep its bytes, and add only ASCII]\ncafé\n"),
        ("read_many_files", {"paths": ["*.py", "gone"]},
         "--- a.py ---\none\ntwo\nthree\n--- src/b.py ---\ndef f():\n    return 1\n--- gone ---\n[not read: There is "
         "no file gone. Use glob or list_directory to find it.]\n"),
        ("list_directory", {"path": "src"}, "b.py (22 bytes)\nempty (0 bytes)\n"),
        ("list_directory", {"ignore": ["*.txt", "bin"]}, "src/\na.py (14 bytes)\n"),
        ("glob", {"pattern": "*.py"}, "a.py\nsrc/b.py\n"),
        ("glob", {"pattern": "*.py", "path": "src"}, "src/b.py\n"),
        ("glob", {"pattern": "*.rs"}, "No file matches *.rs."),
        ("grep", {"pattern": "t(wo|hree)", "include": "*.py"}, "a.py\n2: two\n3: three\n"),
        ("grep", {"pattern": "return", "context": 1}, "src/b.py\n1- def f():\n2:     return 1\n"),
        ("grep", {"pattern": "TWO", "ignore_case": True, "path": "a.py"}, "a.py\n2: two\n"),
        ("grep", {"pattern": "a.b", "fixed": True}, "Nothing matches a.b.\n[1 binary file not searched: bin.]"),
    ],
)  # fmt: skip
async def test_reading(harness: ToolHarness, tool: str, arguments: Mapping[str, Any], expected: str) -> None:
    outcome = await harness.run(tool, arguments)
    assert outcome.for_model == expected
    assert outcome.for_user and not outcome.is_error


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("read_file", {"path": "a.py"}, "3 lines"),
        ("read_file", {"path": "a.py", "start_line": 2}, "lines 2–3"),
        ("read_file", {"path": "a.py", "start_line": 2, "end_line": 2}, "line 2"),
        ("read_file", {"path": "many.txt"}, "lines 1–2000"),
        ("grep", {"pattern": "t(wo|hree)", "include": "*.py"}, "2 matches in 1 file"),
        ("glob", {"pattern": "*.py"}, "2 files"),
    ],
)
async def test_how_it_went_on_one_line(
    harness: ToolHarness, tool: str, arguments: Mapping[str, Any], line: str
) -> None:
    assert (await harness.run(tool, arguments)).line == line


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read_file", {"path": "A.PY"}, "Did you mean a.py?"),
        ("read_file", {"path": "no/such/file"}, "no folder no/such"),
        ("read_file", {"path": "bin"}, "binary"),
        ("read_file", {"path": "src"}, "list_directory"),
        ("read_file", {"path": "a.py", "start_line": 9}, "has 3 lines"),
        ("read_file", {"path": "a.py", "start_line": 3, "end_line": 1}, "before start_line"),
        ("read_file", {"path": "/etc/passwd"}, "outside the workspace"),
        ("read_many_files", {"paths": ["*.none"]}, "No file matches"),
        ("list_directory", {"path": "gone"}, "The folder gone does not exist"),
        ("list_directory", {"path": "a.py"}, "Use read_file"),
        ("grep", {"pattern": "(("}, "set fixed to true"),
        ("grep", {"pattern": "a\nb"}, "one by one"),
        ("grep", {"pattern": "a", "path": "gone"}, "The folder gone does not exist"),
        ("write_file", {"path": "a.py", "content": "one\ntwo\nthree\n"}, "exactly this content"),
        ("write_file", {"path": "a.py", "content": "one\n# ... rest of the code ...\n"}, "left out"),
        ("write_file", {"path": "a.py", "content": "one\n// rest of code\n"}, "left out"),
        ("write_file", {"path": "src", "content": "x"}, "folder"),
        ("read_file", {"path": "."}, "is a folder. Use list_directory"),
        ("edit_file", {"path": ".", "old_text": "a", "new_text": "b"}, "is a folder"),
        ("write_file", {"path": "a.py/x", "content": "x"}, "not a folder"),
        ("write_file", {"path": "../x", "content": "x"}, "outside"),
        ("write_file", {"path": "latin.txt", "content": "€"}, "convert it to UTF-8"),
        ("edit_file", {"path": "a.py", "old_text": "two", "new_text": "two"}, "the same"),
        ("edit_file", {"path": "a.py", "old_text": "", "new_text": "x"}, "not empty"),
        ("edit_file", {"path": "gone", "old_text": "x", "new_text": "y"}, "Use write_file"),
        ("edit_file", {"path": "a.py", "old_text": "o", "new_text": "y"}, "2 times (at lines 1, 2)"),
        ("edit_file", {"path": "a.py", "old_text": "two", "new_text": "two\n# … existing code …"}, "left out"),
        ("edit_file", {"path": "bin", "old_text": "x", "new_text": "y"}, "binary"),
    ],
)
async def test_refusals(harness: ToolHarness, tool: str, arguments: Mapping[str, Any], told: str) -> None:
    before = {path: path.read_bytes() for path in harness.root.rglob("*") if path.is_file()}
    with pytest.raises(ToolError) as caught:
        await harness.run(tool, arguments)
    assert told in str(caught.value)
    assert {path: path.read_bytes() for path in harness.root.rglob("*") if path.is_file()} == before
    assert harness.versions == []


@pytest.mark.parametrize(
    ("tool", "arguments", "name", "data"),
    [
        ("write_file", {"path": "new/x.py", "content": "a\n"}, "new/x.py", b"a\n"),
        ("write_file", {"path": "crlf.txt", "content": "1\n2\n"}, "crlf.txt", b"1\r\n2\r\n"),
        ("write_file", {"path": "latin.txt", "content": "é"}, "latin.txt", b"\xe9"),
        ("edit_file", {"path": "a.py", "old_text": "two", "new_text": "2"}, "a.py", b"one\n2\nthree\n"),
        ("edit_file", {"path": "a.py", "old_text": "o", "new_text": "0", "replace_all": True},
         "a.py", b"0ne\ntw0\nthree\n"),
        ("edit_file", {"path": "a.py", "old_text": "three\n", "new_text": "three"}, "a.py", b"one\ntwo\nthree"),
        ("edit_file", {"path": "src/empty", "old_text": "", "new_text": "x"}, "src/empty", b"x"),
        ("edit_file", {"path": "fresh", "old_text": "", "new_text": "x"}, "fresh", b"x"),
        ("edit_file", {"path": "crlf.txt", "old_text": "one\ntwo", "new_text": "1\n2"}, "crlf.txt", b"1\r\n2\r\n"),
    ],
)  # fmt: skip
async def test_writing(harness: ToolHarness, tool: str, arguments: Mapping[str, Any], name: str, data: bytes) -> None:
    outcome = await harness.run(tool, arguments)
    assert harness.on_disk(name) == data
    assert not outcome.is_error and name in outcome.for_model


async def test_preview_says_everything_and_does_nothing(harness: ToolHarness) -> None:
    call = harness.context()
    preview = await harness.preview(
        "edit_file", {"path": "./src/../a.py", "old_text": "two", "new_text": "t\u202ewo"}, call=call
    )
    assert preview.title == "Edit a.py"
    assert (preview.subject.tool, preview.subject.effect, preview.subject.text) == ("edit_file", "write", "a.py")
    assert preview.writes == {str(harness.root / "a.py")}
    assert "a.py  +1 −1" in preview.detail and "-two\n+t<U+202E>wo\n" in preview.detail
    assert preview.proposal_id == harness.versions[-1].proposal_id
    assert harness.on_disk("a.py") == b"one\ntwo\nthree\n"
    assert await harness.tools["edit_file"].reject(None, call, "not that") is None
    assert states(harness.versions[-1]) == ["rejected"]


async def test_after_a_review_run_only_reports(harness: ToolHarness) -> None:
    call = harness.context()
    call.accept_all = False
    outcome = await harness.run("edit_file", {"path": "a.py", "old_text": "two", "new_text": "2"}, call=call)
    assert "open, not applied" in outcome.for_model and not outcome.is_error
    assert harness.on_disk("a.py") == b"one\ntwo\nthree\n"
    await harness.proposals.reject_all(harness.versions[-1].proposal_id, "no")
    outcome = await harness.tools["edit_file"].run(None, call)
    assert "rejected by the user: no" in outcome.for_model and outcome.is_error


async def test_edits_of_one_step_build_on_each_other(harness: ToolHarness) -> None:
    one, two = harness.context(), harness.context()
    first = await harness.preview("edit_file", {"path": "a.py", "old_text": "two", "new_text": "zwei"}, call=one)
    second = await harness.preview("edit_file", {"path": "a.py", "old_text": "zwei\n", "new_text": "2\n"}, call=two)
    assert first.proposal_id == second.proposal_id
    tool = harness.tools["edit_file"]
    assert "waits" in (await tool.run(None, one)).for_model
    assert (await tool.run(None, two)).for_model == "Applied to a.py: line 2."
    assert harness.on_disk("a.py") == b"one\n2\nthree\n"


async def test_unsaved_text_is_read_and_named(harness: ToolHarness) -> None:
    harness.editor.put(harness.root / "a.py", "typed\n")
    harness.editor.put(harness.root / "src" / "new.py", "fresh\n")
    assert (await harness.run("read_file", {"path": "a.py"})).for_model.startswith("[unsaved in the editor")
    assert "typed\n" in (await harness.run("read_many_files", {"paths": ["a.py"]})).for_model
    assert "a.py (unsaved in the editor)\n1: typed\n" in (await harness.run("grep", {"pattern": "typed"})).for_model
    assert "src/new.py" in (await harness.run("glob", {"pattern": "new*"})).for_model
    assert "new.py (not saved yet)" in (await harness.run("list_directory", {"path": "src"})).for_model


async def test_an_editor_that_spells_the_path_otherwise(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    harness = ToolHarness(tmp_path / "real", {"a.py": "disk\n"})
    (tmp_path / "link").symlink_to("real")
    harness.editor.put(tmp_path / "link" / "a.py", "typed\n")
    assert "typed\n" in (await harness.run("read_file", {"path": "a.py"})).for_model


@pytest.mark.parametrize(
    ("tool", "arguments", "length", "told"),
    [
        ("read_file", {"path": "many.txt"}, 2001, "[lines 1–2000 of 2501; read on with start_line 2001]"),
        ("read_file", {"path": "wide.txt"}, 3, "[1 lines were cut at 2000 characters"),
        ("grep", {"pattern": "line", "path": "many.txt"}, 102, "matches in 1 files; 900 of them left out"),
        ("grep", {"pattern": "line", "limit": 5}, 7, "left out"),
    ],
)
async def test_limits(harness: ToolHarness, tool: str, arguments: Mapping[str, Any], length: int, told: str) -> None:
    text = (await harness.run(tool, arguments)).for_model
    assert told in text and text.count("\n") == length


async def test_many_files_are_capped(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {f"f{at:03}": "x" * 1000 + "\n" for at in range(600)})
    preview = await harness.preview("read_many_files", {"paths": ["f*"]})
    assert len(preview.extra_subjects) == 99 and len(preview.reads) == 100
    text = (await harness.run("read_many_files", {"paths": ["f*"]})).for_model
    assert "[500 files left out" in text
    assert "[100 more files left out" in (await harness.run("glob", {"pattern": "f*"})).for_model


def test_the_tools_and_their_schemas(harness: ToolHarness) -> None:
    assert list(harness.tools) == [
        "read_file", "read_many_files", "list_directory", "glob", "grep", "get_diagnostics", "find_definition",
        "find_references", "list_symbols", "inspect_symbol", "read_output", "edit_file", "write_file", "apply_patch",
        "move_file", "delete_file", "rename_symbol", "run_shell_command", "read_command", "write_command",
        "stop_command", "web_fetch", "write_todos", "enter_plan_mode", "exit_plan_mode", "save_memory",
        "ask_user",
    ]  # fmt: skip
    for tool in harness.tools.values():
        schema = tool.spec().parameters
        assert schema["type"] == "object" and "$defs" not in schema
        for field in schema["properties"].values():
            assert field["type"] in ("string", "integer", "number", "boolean", "array")
