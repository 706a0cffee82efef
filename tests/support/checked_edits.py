"""A model that makes a mistake, hears of it from ruff with the result of its edit, and mends it."""

import json
import sys
from pathlib import Path
from typing import Any

from amanu.home import find_home
from support.cli_process import call
from support.required_programs import needs

FILE = "a.py"
MENDED = "import os\n\nprint(os, 2)\n"


def edit(old: str, new: str) -> dict[str, Any]:
    return call("edit_file", path=FILE, old_text=old, new_text=new)


STEPS: list[dict[str, Any]] = [
    {"calls": [edit("print(os)", "print(os, countt)")]},
    {
        "expect": f"Checked {FILE}: this change adds 1 error (line: severity: message):\n- 3: error: Undefined name",
        "calls": [edit("countt", "2")],
    },
    {"expect": f"Checked {FILE}: this change fixes 1 and adds nothing new.", "text": "Heard."},
]


def prepare(folder: Path) -> None:
    """The file, and settings by which only ruff checks it."""
    ruff = [needs("ruff"), "server"]
    sandbox = f"[sandbox]\nread = {json.dumps([sys.prefix, sys.base_prefix])}\n"
    only = f"[checks.checkers]\npyright = false\nruff = {json.dumps(ruff)}\n"
    (find_home().make().config / "config.toml").write_text(f"{sandbox}[checks]\nwait_seconds = 20\n{only}")
    (folder / FILE).write_text("import os\n\nprint(os)\n")
