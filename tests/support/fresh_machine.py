"""A machine on which Amanu was never installed."""

import os
import sys
from pathlib import Path


def bare(workspace: Path, wheelhouse: str) -> dict[str, str]:
    """Python and no amanu, and a PATH that leads through the workspace first; pip stays offline."""
    python = Path(getattr(sys, "_base_executable", sys.executable)).parent
    return {
        "PATH": os.pathsep.join([str(workspace / ".venv" / "bin"), str(python), "/usr/bin", "/bin"]),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": wheelhouse,
    }
