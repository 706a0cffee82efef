"""Files that a rule protects are not read unasked, whichever tool is used for it, and whatever a link says."""

from pathlib import Path
from typing import Any

import pytest

from amanu.core.rules import parse_rule
from amanu.core.tool import CallContext, Preview, ToolError
from amanu.permissions.policy import built_in, decide, of_mode
from support.tool_harness import ToolHarness

SECRET = "KEY=s3cr3t e e"
FILES = {".env": f"{SECRET}\n", "sub/.ENV.local": f"{SECRET}\n", "a.py": f"# {SECRET}\n", "keys/k.txt": f"{SECRET}\n"}
RULES = (*built_in(), *of_mode("acceptEdits"), parse_rule("deny", "@read(keys/**)", "test"))


def harness(root: Path) -> ToolHarness:
    made = ToolHarness(root, FILES)
    (root / "ok.txt").symlink_to(".env")
    return made


def watched(held: ToolHarness) -> CallContext:
    call = held.context()
    call.allowed = lambda subjects: [each for each in subjects if decide(RULES, each).decision == "allow"]
    call.denied = lambda subjects: [each for each in subjects if decide(RULES, each).decision == "deny"]
    return call


@pytest.mark.parametrize(
    ("tool", "arguments", "shows"),
    [
        ("grep", {"pattern": "KEY="}, ["a.py"]),
        ("grep", {"pattern": "KEY=", "path": "sub"}, []),
        ("grep", {"pattern": "KEY=", "include": ".*"}, []),
        ("grep", {"pattern": ".", "context": 3}, ["a.py"]),
        ("grep", {"pattern": "KEY=", "path": ".env"}, [".env"]),  # named: that was decided on
        ("grep", {"pattern": "KEY=", "path": "ok.txt"}, [".env"]),
    ],
)
async def test_grep(tmp_path: Path, tool: str, arguments: dict[str, Any], shows: list[str]) -> None:
    held = harness(tmp_path)
    text = (await held.run(tool, arguments, call=watched(held))).for_model
    assert [name for name in (*FILES, "ok.txt") if f"{name}\n" in text] == shows
    assert (SECRET in text) == bool(shows)


async def test_what_grep_leaves_out_cannot_be_found_out_by_guessing(tmp_path: Path) -> None:
    held = harness(tmp_path)
    (tmp_path / "a.py").unlink()
    wrong, right = [await held.run("grep", {"pattern": f"KEY={guess}"}, call=watched(held)) for guess in ("x", "s")]
    left_out = (
        "[2 files with secrets not searched: .env, sub/.ENV.local. To search one, name it as path; the user is asked.]"
    )
    assert (wrong.for_model, wrong.for_user) == (f"Nothing matches KEY=x.\n{left_out}", "no matches")
    assert (right.for_model, right.for_user) == (f"Nothing matches KEY=s.\n{left_out}", "no matches")


@pytest.mark.parametrize("path", [".env", "ok.txt", "sub/.ENV.local"])
@pytest.mark.parametrize("old_text", ["KEY=s3cr3x", "e", "nothing like it"])
async def test_an_edit_that_does_not_fit_quotes_nothing(tmp_path: Path, path: str, old_text: str) -> None:
    held = harness(tmp_path)
    arguments = {"path": path, "old_text": old_text, "new_text": "KEY=s3cr3t"}
    with pytest.raises(ToolError) as caught:
        await held.preview("edit_file", arguments, call=watched(held))
    assert "needs the user's approval" in str(caught.value) and "line" not in str(caught.value)
    with pytest.raises(ToolError) as caught:
        await held.preview("edit_file", {**arguments, "path": "a.py"}, call=watched(held))
    assert "a.py" in str(caught.value) and "yes" not in str(caught.value)


def patch(text: str) -> dict[str, Any]:
    return {"patch": f"*** Begin Patch\n{text}*** End Patch\n"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "keys/k.txt", "old_text": "KEY=s3", "new_text": "KEY=s4"}),
        ("edit_file", {"path": "keys/k.txt", "old_text": "KEY=x", "new_text": "KEY=s4"}),
        ("move_file", {"path": "keys/k.txt", "new_path": "seen.txt"}),
        ("apply_patch", patch(f"*** Update File: keys/k.txt\n-{SECRET}\n+KEY=\n")),
        ("apply_patch", patch("*** Update File: keys/k.txt\n-KEY=x\n+KEY=\n")),
        ("apply_patch", patch(f"*** Update File: keys/k.txt\n*** Move to: a.txt\n-{SECRET}\n+KEY=\n")),
    ],
)
async def test_what_may_not_be_read_is_not_found_out_by_edits_that_fit(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    held = harness(tmp_path)
    with pytest.raises(ToolError, match="A rule denies reading") as caught:
        await held.preview(tool, arguments, call=watched(held))
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "keys/k.txt", "content": "new\n"}),
        ("delete_file", {"path": "keys/k.txt"}),
    ],
)
async def test_what_tells_nothing_of_a_file_needs_no_right_to_read_it(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    held = harness(tmp_path)
    call = watched(held)
    found = await held.preview(tool, arguments, call=call)
    assert decisions(found) == {"allow"}


def decisions(found: Preview) -> set[str]:
    return {decide(RULES, each).decision for each in (found.subject, *found.extra_subjects)}


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("move_file", {"path": "a.py", "new_path": "b.py"}, {"allow"}),
        ("move_file", {"path": "a.py", "new_path": ".git/hooks/pre-commit"}, {"allow", "ask"}),
        ("move_file", {"path": "a.py", "new_path": "sub/../.VSCODE/tasks.json"}, {"allow", "ask"}),
        ("move_file", {"path": "a.py", "new_path": "tools/x"}, {"allow", "ask"}),  # a link to .idea
        ("move_file", {"path": ".env", "new_path": "env.txt"}, {"allow", "ask"}),
        ("move_file", {"path": "secret/s.txt", "new_path": "b.txt"}, {"allow", "ask"}),
        ("delete_file", {"path": "sub/.ENV.local"}, {"ask"}),
        ("apply_patch", patch("*** Add File: b.py\n+x\n*** Add File: sub/agents.md\n+x\n"), {"allow", "ask"}),
        (
            "apply_patch",
            patch(f"*** Update File: a.py\n*** Move to: .mcp.json\n-# {SECRET}\n+x\n"),
            {"allow", "ask"},
        ),
        ("apply_patch", patch("*** Add File: b.py\n+x\n*** Delete File: ok.py\n"), {"allow"}),
    ],
)
async def test_where_a_file_goes_and_where_it_comes_from_are_both_decided_on(
    tmp_path: Path, tool: str, arguments: dict[str, Any], expected: set[str]
) -> None:
    held = harness(tmp_path)
    held.put("ok.py", "x\n")
    held.put("secret/s.txt", "x\n")
    held.put(".idea/workspace.xml", "x\n")
    (tmp_path / "tools").symlink_to(".idea")
    rules = (*RULES, parse_rule("mustAsk", "@read(secret/**)", "test"))
    found = await held.preview(tool, arguments, call=watched(held))
    assert {decide(rules, each).decision for each in (found.subject, *found.extra_subjects)} == expected


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "b.txt"}),
        ("read_many_files", {"paths": ["b.txt"]}),
        ("grep", {"pattern": "KEY", "path": "b.txt"}),
        ("glob", {"pattern": "*", "path": "folder"}),
        ("list_directory", {"path": "folder"}),
        ("run_shell_command", {"command": "pwd", "path": "folder"}),
    ],
)
async def test_a_link_put_in_after_the_decision_leads_nowhere(tmp_path: Path, tool: str, arguments: Any) -> None:
    held = ToolHarness(tmp_path, {**FILES, "b.txt": "harmless", "folder/x": ""})
    call = held.context()
    call.preview = await held.preview(tool, arguments, call=call)
    for name, target in (("b.txt", ".env"), ("folder", "keys")):
        (tmp_path / name).rename(tmp_path / f"{name}.old")
        (tmp_path / name).symlink_to(target)
    params = held.tools[tool].params.model_validate(arguments)
    try:
        said = (await held.tools[tool].run(params, call)).for_model
    except ToolError as error:
        said = str(error)
    assert "no longer leads to the same place" in said
    assert SECRET not in said and "k.txt" not in said and "keys" not in said
