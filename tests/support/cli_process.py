"""`amanu` as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.warm_process import warm

AMANU = (sys.executable, "-P", "-m", "amanu")


def amanu(*arguments: str, cwd: Path, typed: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run to the end, standard input a pipe with `typed` in it."""
    return subprocess.run(
        warm([*AMANU, *arguments]),
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, **variables},
    )


def script(folder: Path, *steps: dict[str, Any]) -> str:
    """A scripted model that plays these steps."""
    path = folder / "script.json"
    path.write_text(json.dumps(steps))
    return f"scripted:{path}"


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}
