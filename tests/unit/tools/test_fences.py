"""A fence around a whole file is left out, and nothing else is."""

from pathlib import Path
from typing import Any

import pytest

from support.tool_harness import ToolHarness

CODE = "def f():\n    return 1\n"
FENCED = f"```python\n{CODE}```\n"
ADDED = FENCED.rstrip().replace("\n", "\n+")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", FENCED, CODE),
        ("a.py", f"\n```\n{CODE}```", CODE),
        ("a.py", f"~~~~ python title=x\n{CODE}~~~~  \n\n", CODE),
        ("a.py", FENCED.replace("\n", "\r\n"), CODE.replace("\n", "\r\n")),
        ("Dockerfile", "```dockerfile\nFROM x\n```\n", "FROM x\n"),
        ("a.json", "```json\n{}\n```", "{}\n"),
        *(
            (name, FENCED, FENCED)
            for name in (
                "a.md",
                "a.MDX",
                "a.rst",
                "a.txt",
                "README",
                "x.j2",
                "a.markdown",
                "a.qmd",
                "a.livemd",
                "a.typ",
            )
        ),
        *(
            ("a.py", text, text)
            for text in (
                CODE,
                f"{FENCED}{FENCED}",
                f"{FENCED}# more\n",
                f"# first\n{FENCED}",
                f"```python\n{CODE}",
                "```\n```\n",
                '''```python\n"""\n```\nx\n```\n"""\n```\n''',
                f"````python\n{CODE}```\n",
            )
        ),
    ],
)
async def test_a_fence_around_a_file(tmp_path: Path, path: str, text: str, expected: str) -> None:
    await check(tmp_path, "write_file", {"path": path, "content": text}, path, text, expected)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit_file", {"path": "a.py", "old_text": "", "new_text": FENCED}),
        ("edit_file", {"path": "old.py", "old_text": "old = 1\n", "new_text": FENCED}),
        ("write_file", {"path": "old.py", "content": FENCED}),
        ("apply_patch", {"patch": f"*** Begin Patch\n*** Add File: a.py\n+{ADDED}\n*** End Patch\n"}),
    ],
)
async def test_whatever_tool_writes_the_whole_of_it(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    path = arguments.get("path", "a.py")
    await check(tmp_path, tool, arguments, path, FENCED, CODE)


async def test_a_file_that_was_one_before_stays_one(tmp_path: Path) -> None:
    arguments = {"path": "fenced.x", "content": FENCED}
    await check(tmp_path, "write_file", arguments, "fenced.x", FENCED, FENCED)


async def check(root: Path, tool: str, arguments: dict[str, Any], path: str, text: str, expected: str) -> None:
    harness = ToolHarness(root, {"old.py": "old = 1\n", "fenced.x": "```\nold\n```\n"})
    outcome = await harness.run(tool, arguments)
    assert (harness.root / path).read_bytes().decode() == expected
    assert ("the fence around the whole text was left out" in outcome.for_model) == (text != expected)
