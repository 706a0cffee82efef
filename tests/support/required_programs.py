"""Tools and editors that not every machine has."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def needs(tool: str) -> str:
    """The path of a program a test cannot do without: from the environment the tests run in, else from PATH.

    Without it the test is skipped, and the reason printed, on a person's machine; where `CI=true` it fails:
    there, what is not tested is not done.
    """
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin")  # servers are in the last
    found = shutil.which(tool, path=os.pathsep.join(folders))
    return found or _missing(f"{tool} is not installed, or not on PATH")


def needs_mcp_server(name: str) -> tuple[str, str]:
    """The command of a server that `make test` installs: node, and the program of `@modelcontextprotocol/NAME`."""
    program = Path(__file__).parents[2] / ".tools/mcp/node_modules/@modelcontextprotocol" / name / "dist/index.js"
    return needs("node"), str(program) if program.exists() else _missing(f"{name} is not in .tools/mcp")


def needs_acp() -> Path:
    """The folder with the ACP clients that `make test` installs."""
    folder = Path(__file__).parents[2] / ".tools/acp/node_modules"
    return folder if folder.exists() else _missing("the TypeScript SDK is not in .tools/acp")


def needs_acp_python() -> Path:
    """The folder with ACP's Python SDK, and its own copy of pydantic, that `make test` installs."""
    folder = Path(__file__).parents[2] / ".tools/acp-python"
    return folder if (folder / "acp").exists() else _missing("the Python SDK is not in .tools/acp-python")


def _missing(sentence: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{sentence}; with CI=true nothing is skipped", pytrace=False)
    pytest.skip(sentence)
