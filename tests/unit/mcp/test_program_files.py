"""The files that are approved with a server are those that it runs: found in the folder in which it is started."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.config_files import read_entry
from amanu.mcp.program_files import ProgramFiles
from amanu.mcp.variables import UserVariables


@pytest.mark.parametrize("source", ["mcp.toml", ".mcp.json", "an editor"])
@pytest.mark.parametrize(
    ("cwd", "own_home"), [("", ""), ("sub", ""), ("~/sub", ""), ("~/sub", "elsewhere"), ("{root}/sub", "elsewhere")]
)
def test_they_are_looked_for_where_it_starts(tmp_path: Path, source: str, cwd: str, own_home: str) -> None:
    root = tmp_path.resolve()
    for folder in (root, root / "sub", root / "elsewhere" / "sub"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "srv.py").write_text("")
    entry: dict[str, Any] = {"command": sys.executable, "args": ["srv.py"], "cwd": cwd.format(root=root)}
    entry["env"] = {"HOME": str(root / own_home)} if own_home else {}
    config = read_entry("srv", source, entry, root if source == ".mcp.json" else None, is_json=False)
    config = replace(config, session_id="s" if source == "an editor" else "")
    variables = UserVariables({"HOME": str(root), "PATH": "/usr/bin:/bin"}, ())
    started = variables.command(config, (root,))
    assert ProgramFiles(variables).paths(config, (root,)) == [(started.folder or root) / "srv.py"]
