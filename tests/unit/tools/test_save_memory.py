"""`save_memory`: which file is proposed, what of it changes, what is refused, and that no other tool gets there."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from amanu.core.tool import ToolError
from support.tool_harness import ToolHarness

FACT = "Use tabs."
SECTION = f"## Remembered\n\n- {FACT}\n"


def make(tmp_path: Path, files: Mapping[str, str | bytes] | None = None) -> ToolHarness:
    (tmp_path / "config").mkdir()
    (tmp_path / "work").mkdir()
    return ToolHarness(tmp_path / "work", files, memory=tmp_path / "config" / "AGENTS.md")


async def save(harness: ToolHarness, scope: str, fact: str = FACT) -> str:
    return (await harness.run("save_memory", {"fact": fact, "scope": scope})).for_model


@pytest.mark.parametrize(
    ("files", "scope", "name", "expected"),
    [
        ({}, "project", "AGENTS.md", SECTION.encode()),
        ({"AGENTS.md": "# Rules\n"}, "project", "AGENTS.md", f"# Rules\n\n{SECTION}".encode()),
        ({"CLAUDE.md": "x"}, "project", "CLAUDE.md", f"x\n\n{SECTION}".encode()),
        ({"CLAUDE.md": "x", "GEMINI.md": "y"}, "project", "GEMINI.md", f"y\n\n{SECTION}".encode()),
        ({"AGENTS.md": b"caf\xe9\r\n"}, "project", "AGENTS.md", b"caf\xe9\r\n\r\n## Remembered\r\n\r\n- Use tabs.\r\n"),
        ({"AGENTS.md": b"\xef\xbb\xbfx\n"}, "project", "AGENTS.md", b"\xef\xbb\xbfx\n\n" + SECTION.encode()),
        ({"AGENTS.md": "# theirs\n"}, "user", "../config/AGENTS.md", SECTION.encode()),
    ],
)
async def test_the_fact_is_added_to_one_file(
    tmp_path: Path, files: Mapping[str, str | bytes], scope: str, name: str, expected: bytes
) -> None:
    harness = make(tmp_path, files)
    others = {other: harness.on_disk(other) for other in files if other != name}
    told = await save(harness, scope)
    assert told.startswith(("Applied to", "Created"))
    assert harness.on_disk(name) == expected
    assert all(harness.on_disk(other) == data for other, data in others.items())
    with pytest.raises(ToolError, match="already remembered"):
        await save(harness, scope)


@pytest.mark.parametrize(
    ("fact", "says"),
    [
        ("", "empty"),
        ("x" * 10_000, "too long"),
        ("The key is sk-ant-api03-" + "aB3dE5gH7j" * 9, "seems to contain a key"),
        ("Read @docs/rules.md", "import a file"),
    ],
)
@pytest.mark.parametrize("scope", ["user", "project"])
async def test_what_is_refused(tmp_path: Path, scope: str, fact: str, says: str) -> None:
    harness = make(tmp_path)
    with pytest.raises(ToolError, match=says):
        await save(harness, scope, fact)
    assert list(tmp_path.rglob("*.md")) == []


def a_folder(path: Path) -> None:
    path.mkdir()


def binary(path: Path) -> None:
    path.write_bytes(b"\0\1\2")


def huge(path: Path) -> None:
    path.write_text("x" * 100_000)


def a_link_out(path: Path) -> None:
    (path.parent.parent / "elsewhere.md").write_text("theirs\n")
    path.symlink_to("../elsewhere.md")


@pytest.mark.parametrize(
    ("make_file", "says"),
    [(a_folder, "folder"), (binary, "binary"), (huge, "full"), (a_link_out, "link|outside the workspace")],
)
@pytest.mark.parametrize("scope", ["user", "project"])
async def test_a_file_that_cannot_be_edited(tmp_path: Path, scope: str, make_file: object, says: str) -> None:
    harness = make(tmp_path)
    path = tmp_path / ("config" if scope == "user" else "work") / "AGENTS.md"
    assert callable(make_file)
    make_file(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(ToolError, match=says):
        await save(harness, scope)
    assert before == (None if path.is_dir() else path.read_bytes())


async def test_a_link_within_the_workspace_is_followed(tmp_path: Path) -> None:
    harness = make(tmp_path, {"docs/AGENTS.md": "x\n"})
    (harness.root / "AGENTS.md").symlink_to("docs/AGENTS.md")
    await save(harness, "project")
    assert harness.on_disk("docs/AGENTS.md") == f"x\n\n{SECTION}".encode()
    assert (harness.root / "AGENTS.md").is_symlink()


async def test_a_read_only_file_stays(tmp_path: Path) -> None:
    harness = make(tmp_path, {"AGENTS.md": "x\n"})
    (harness.root / "AGENTS.md").chmod(0o444)
    assert "read-only" in await save(harness, "project")
    assert harness.on_disk("AGENTS.md") == b"x\n"


@pytest.mark.parametrize("scope", ["user", "project"])
async def test_an_open_editor_gets_the_fact(tmp_path: Path, scope: str) -> None:
    harness = make(tmp_path)
    path = tmp_path / ("config" if scope == "user" else "work") / "AGENTS.md"
    path.write_text("saved\n")
    harness.editor.put(path, "typed\n")
    await save(harness, scope)
    assert harness.editor.open[path].text == f"typed\n\n{SECTION}" and path.read_text() == "saved\n"


async def test_no_other_tool_gets_to_the_users_own_file(tmp_path: Path) -> None:
    harness = make(tmp_path)
    own = tmp_path / "config" / "AGENTS.md"
    own.write_text("mine\n")
    (tmp_path / "config" / "auth.json").write_text("{}")
    for tool, arguments in (
        ("read_file", {"path": str(own)}),
        ("edit_file", {"path": str(own), "old_text": "mine", "new_text": "theirs"}),
        ("write_file", {"path": "../config/AGENTS.md", "content": "theirs"}),
        ("move_file", {"path": str(own), "new_path": "a.md"}),
        ("delete_file", {"path": str(own)}),
        ("list_directory", {"path": str(own.parent)}),
        ("grep", {"pattern": "mine", "path": str(own.parent)}),
    ):
        with pytest.raises(ToolError, match="outside the workspace"):
            await harness.run(tool, arguments)
    assert own.read_text() == "mine\n"


async def test_no_other_tool_gets_there_where_the_workspace_lies_around_it(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    own = tmp_path / "config" / "AGENTS.md"
    harness = ToolHarness(tmp_path, {"config/AGENTS.md": "mine\n"}, memory=own)
    for path in (str(own), "config/AGENTS.md", "CONFIG/AGENTS.md"):
        with pytest.raises(ToolError, match=r"Amanu itself|no file|outside"):
            await harness.run("edit_file", {"path": path, "old_text": "mine", "new_text": "theirs"})
    assert (await harness.run("grep", {"pattern": "mine"})).for_model == "Nothing matches mine."
    await save(harness, "user")
    assert own.read_text() == f"mine\n\n{SECTION}"
    preview = await harness.preview("save_memory", {"fact": "Other.", "scope": "user"})
    assert preview.title == "Remember for all projects: Other." and str(own) in preview.detail
    preview = await harness.preview("save_memory", {"fact": "Other.", "scope": "project"})
    assert preview.title == "Remember for this project, in AGENTS.md: Other."


async def test_a_workspace_that_is_the_folder_of_the_users_own_file(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"AGENTS.md": "mine\n", "auth.json": "mine"}, memory=tmp_path / "AGENTS.md")
    with pytest.raises(ToolError, match="Use scope user"):
        await save(harness, "project")
    for tool in ("glob", "grep"):
        with pytest.raises(ToolError, match="of Amanu itself"):
            await harness.run(tool, {"pattern": "*" if tool == "glob" else "mine"})
    await save(harness, "user")
    assert harness.on_disk("AGENTS.md") == f"mine\n\n{SECTION}".encode()
