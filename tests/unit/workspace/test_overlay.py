"""Every tool sees what the user sees: text of open buffers, of every editor, over the disk."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.frontends.lsp.buffers import Buffers, EditorClient
from amanu.workspace import search
from amanu.workspace.text_file import sha256
from amanu_protocol.requests import EditorApplyParams
from support.range_edits import apply_range_edits
from support.required_programs import needs
from support.tool_harness import ToolHarness, states

FILES: dict[str, str | bytes] = {
    ".gitignore": "build/\n*.log\n",
    "a.py": "disk a\n",
    "b.py": "disk b\n",
    "build/out.py": "disk out\n",
    "sub/c.py": "disk c\n",
}


class Editor:
    """Documents of one connection, in an editor that applies what it is asked to and does not save."""

    def __init__(self, held: ToolHarness, name: str) -> None:
        self.root = held.root
        self.buffers = Buffers(EditorClient(name, self.ask, "utf-16", own_apply=True), held.overlay.notify_changed)
        held.overlay.add(self.buffers)

    def open(self, name: str, text: str) -> None:
        self.buffers.opened((self.root / name).as_uri(), 1, text)

    def type(self, name: str, text: str) -> None:
        self.buffers.changed((self.root / name).as_uri(), 2, [text])

    def save(self, name: str) -> None:
        (self.root / name).write_text(self.shown(name))
        self.buffers.saved((self.root / name).as_uri())

    def shown(self, name: str) -> str:
        buffer = self.buffers.buffer(self.root / name)
        assert buffer is not None
        return buffer.text

    async def ask(self, method: str, params: Any) -> Any:
        assert isinstance(params, EditorApplyParams)
        path = Path(params.path)
        buffer = self.buffers.buffer(path)
        assert buffer is not None
        text = apply_range_edits(buffer.text, params.edits, "utf-16")
        self.buffers.changed(path.as_uri(), buffer.version + 1, [text])
        return {"status": "success", "version": buffer.version + 1, "saved": False}


@pytest.fixture(params=[True, False], ids=["ripgrep", "scan"])
def held(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolHarness:
    """Two editors: a.py typed in, in the first; everything that is only in an editor in the second."""
    path = needs("rg") if request.param else None
    monkeypatch.setattr(search, "find_ripgrep", lambda workspace: path)  # pyright: ignore[reportUnknownLambdaType]
    made = ToolHarness(tmp_path, FILES)
    one, two = Editor(made, "One"), Editor(made, "Two")
    one.open("a.py", "disk a\n")
    one.type("a.py", "typed a\n")
    two.open("b.py", "disk b\n")
    two.open("sub/new.py", "typed new\n")
    two.open("fresh/deep/x.py", "typed x\n")
    two.open("noise.log", "typed log\n")
    two.open("build/out.py", "typed out\n")
    return made


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read_file", {"path": "sub/new.py"},
         "[unsaved in the editor: this is the editor's text; commands see an older version on disk]\ntyped new\n"),
        ("read_file", {"path": "b.py"}, "disk b\n"),
        ("glob", {"pattern": "*.py"}, "a.py\nb.py\nfresh/deep/x.py\nsub/c.py\nsub/new.py\n"),
        ("glob", {"pattern": "*", "path": "fresh"}, "fresh/deep/x.py\n"),
        ("glob", {"pattern": "*.py", "path": "build"}, "build/out.py\n"),
        ("list_directory", {},
         "build/\nfresh/ (not saved yet)\nsub/\n.gitignore (13 bytes)\na.py (7 bytes, unsaved in the editor)\n"
         "b.py (7 bytes)\nnoise.log (not saved yet)\n"),
        ("list_directory", {"path": "sub"}, "c.py (7 bytes)\nnew.py (not saved yet)\n"),
        ("list_directory", {"path": "fresh"}, "deep/ (not saved yet)\n"),
        ("list_directory", {"path": "fresh/deep"}, "x.py (not saved yet)\n"),
        # One order, of disk and editors; the text on disk of what is unsaved is not found.
        ("grep", {"pattern": "disk|typed"},
         "a.py (unsaved in the editor)\n1: typed a\nb.py\n1: disk b\nfresh/deep/x.py (unsaved in the editor)\n"
         "1: typed x\nsub/c.py\n1: disk c\nsub/new.py (unsaved in the editor)\n1: typed new\n"),
        ("grep", {"pattern": "disk a"}, "Nothing matches disk a."),
        ("grep", {"pattern": "typed", "path": "fresh"}, "fresh/deep/x.py (unsaved in the editor)\n1: typed x\n"),
        ("grep", {"pattern": "TYPED", "ignore_case": True, "path": "fresh/deep/x.py"},
         "fresh/deep/x.py (unsaved in the editor)\n1: typed x\n"),
        ("grep", {"pattern": "typed", "include": "sub/**"}, "sub/new.py (unsaved in the editor)\n1: typed new\n"),
        # Who names what is ignored wants to see it, as the editor has it.
        ("grep", {"pattern": "out", "path": "build"}, "build/out.py (unsaved in the editor)\n1: typed out\n"),
        ("grep", {"pattern": "typed", "path": "noise.log"}, "noise.log (unsaved in the editor)\n1: typed log\n"),
        ("read_many_files", {"paths": ["fresh/**", "a.py"]},
         "--- fresh/deep/x.py ---\n[unsaved in the editor: this is the editor's text; commands see an older version "
         "on disk]\ntyped x\n--- a.py ---\n[unsaved in the editor: this is the editor's text; commands see an older "
         "version on disk]\ntyped a\n"),
    ],
)  # fmt: skip
async def test_the_tools(held: ToolHarness, tool: str, arguments: Mapping[str, Any], expected: str) -> None:
    assert (await held.run(tool, arguments)).for_model == expected


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("grep", {"pattern": "x", "path": "gone"}),
        ("glob", {"pattern": "*", "path": "gone"}),
        ("list_directory", {"path": "gone"}),
    ],
)
async def test_a_folder_that_is_nowhere(held: ToolHarness, tool: str, arguments: Mapping[str, Any]) -> None:
    with pytest.raises(ToolError, match="The folder gone does not exist"):
        await held.run(tool, arguments)


async def test_a_command_says_which_files_it_saw_otherwise(held: ToolHarness) -> None:
    text = (await held.run("run_shell_command", {"command": "cat a.py"})).for_model
    unsaved = "a.py, build/out.py, fresh/deep/x.py, noise.log, sub/new.py"
    assert text.endswith(f"\nUnsaved in the editor, so the command saw an older version: {unsaved}.")


async def test_many_buffers_are_all_searched(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path)
    for at in range(30):
        Editor(held, f"E{at}").open(f"f{at:02}.txt", f"needle {at}\n")
    text = (await held.run("grep", {"pattern": "needle"})).for_model
    assert text.count("(unsaved in the editor)") == 30
    assert (await held.run("run_shell_command", {"command": "true"})).for_model.endswith(
        "f18.txt, f19.txt and 10 more."
    )


def test_of_two_editors_paths_are_listed_once(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path, FILES)
    for name in ("One", "Two"):
        Editor(held, name).open("a.py", name)
    assert [buffer.text for buffer in held.overlay.buffers()] == ["Two"]


Two = list[tuple[str, str, str]]
"""What two editors do with a.py: (one or two, open, type, save or disk, text)."""


@pytest.mark.parametrize("swapped", [False, True], ids=["in this order", "connected the other way round"])
@pytest.mark.parametrize(
    ("does", "text", "unsaved", "by"),
    [
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n")], "disk a\n", False, None),
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n"), ("one", "type", "1\n")], "1\n", True, "one"),
        ([("one", "open", "disk a\n"), ("one", "type", "1\n"), ("two", "open", "disk a\n")], "1\n", True, "one"),
        # Saved in both, typed in one of them since.
        ([("one", "open", "x\n"), ("two", "open", "x\n"), ("one", "type", "y\n"), ("one", "save", ""),
          ("two", "type", "y\n"), ("two", "save", ""), ("one", "type", "z\n")], "z\n", True, "one"),
        # Saved in one; the other did not read it again yet.
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n"), ("one", "type", "1\n"), ("one", "save", "")],
         "1\n", False, "one"),
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n"), ("disk", "", "new\n"), ("two", "type", "new\n")],
         "new\n", False, "two"),
        # Typed in both: the last one.
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n"), ("two", "type", "2\n"), ("one", "type", "1\n")],
         "1\n", True, "one"),
        # Typed and taken back in one, without a save; the other's is the only text not on disk.
        ([("one", "open", "disk a\n"), ("two", "open", "disk a\n"), ("two", "type", "2\n"), ("one", "type", "1\n"),
          ("one", "type", "disk a\n")], "2\n", True, "two"),
    ],
)  # fmt: skip
async def test_of_two_editors_the_unsaved_text_wins(
    tmp_path: Path, does: Two, text: str, unsaved: bool, by: str | None, swapped: bool
) -> None:
    held = ToolHarness(tmp_path, FILES)
    names = ("two", "one") if swapped else ("one", "two")
    editors = {name: Editor(held, name) for name in names}
    for who, what, content in does:
        match what:
            case "open":
                editors[who].open("a.py", content)
            case "type":
                editors[who].type("a.py", content)
            case "save":
                editors[who].save("a.py")
            case _:
                held.put("a.py", content)
    file = await held.workspace.read(held.root / "a.py")
    assert (file.text, file.unsaved) == (text, unsaved)
    before = {name: editor.shown("a.py") for name, editor in editors.items()}
    await held.run("edit_file", {"path": "a.py", "old_text": text, "new_text": "edited\n"})
    assert states(held.versions[-1]) == ["applied"]  # in that very editor; the other's text is as it was
    edited = [name for name, editor in editors.items() if editor.shown("a.py") == "edited\n"]
    assert edited == [by] or (by is None and len(edited) == 1)
    assert all(editors[name].shown("a.py") == before[name] for name in editors if name not in edited)


async def test_a_new_file_that_only_an_editor_has_is_edited_there(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path, FILES)
    editor = Editor(held, "One")
    editor.open("sub/new.py", "typed new\n")
    await held.run("edit_file", {"path": "sub/new.py", "old_text": "typed", "new_text": "edited"})
    assert editor.shown("sub/new.py") == "edited new\n"
    assert not (tmp_path / "sub" / "new.py").exists()
    assert "not saved" in held.proposals.report(held.versions[-1].tool_call_ids[0])


async def test_one_file_by_two_names(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path / "work", FILES)
    (tmp_path / "link").symlink_to("work")
    (held.root / "alias.py").symlink_to("a.py")
    editor = Editor(held, "One")
    editor.root = tmp_path / "link"
    editor.open("a.py", "disk a\n")
    editor.type("a.py", "by the link\n")
    Editor(held, "Two").open("alias.py", "disk a\n")
    for path in ("a.py", "alias.py"):
        assert "by the link\n" in (await held.run("read_file", {"path": path})).for_model
    assert (await held.run("grep", {"pattern": "link|disk a"})).for_model == (
        "a.py (unsaved in the editor)\n1: by the link\n"
    )


async def test_a_big_file_is_what_the_disk_says_whatever_its_times_say(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path, {"a.txt": ""})
    path = held.root / "a.txt"
    for encoding, letter in (("utf-8", "a"), ("utf-8", "b"), ("utf-8", "a"), ("utf-16", "a"), ("latin-1", "ä")):
        text = f"{letter}\n" * 100_000
        path.write_bytes(text.encode(encoding))
        os.utime(path, (1, 1))
        for _ in range(2):
            file = await held.workspace.read(path)
            assert (file.text, file.encode(text)) == (text, path.read_bytes())
            assert file.sha256 == sha256(path.read_bytes())
