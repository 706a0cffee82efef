"""What a call is called before it is looked at, and when that fails."""

from pathlib import Path
from typing import Any

import pytest

from amanu.cli.tool import ToolUse, run
from amanu.config import Settings
from amanu.tools.registry import preview_tools
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("read_file", {"path": "gone.py"}, "Read gone.py"),
        ("read_file", {"path": "/w/a.py"}, "Read a.py"),
        ("read_file", {}, "read_file"),
        ("list_directory", {"path": "src"}, "List src"),
        ("glob", {"pattern": "*.py"}, "Find *.py"),
        ("grep", {"pattern": "TODO"}, "Search for TODO"),
        ("read_many_files", {"paths": ["a", "b"]}, "Read files"),
        ("run_shell_command", {"command": "make test"}, "Run make test"),
        ("read_command", {"job": "job-1"}, "Read job-1"),
        ("stop_command", {"job": "job-1"}, "Stop job-1"),
        ("write_file", {"path": "a.py"}, "Write a.py"),
    ],
)
def test_a_call_is_named_by_what_it_is_about(tool: str, arguments: dict[str, Any], title: str) -> None:
    tools = preview_tools(Workspace([Path("/w")], Overlay(), ripgrep=None), {}, Settings())
    assert tools[tool].title_of(arguments) == title


async def test_a_call_that_failed_is_too_and_the_user_reads_no_advice_for_the_model(tmp_path: Path) -> None:
    done = await run(ToolUse("read_file", {"path": "gone.py"}, [tmp_path]), {"AMANU_HOME": str(tmp_path / "home")})
    assert (done["title"], done["error"]) == ("Read gone.py", "There is no file gone.py.")
