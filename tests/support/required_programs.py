"""Tools and editors that not every machine has."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def needs(tool: str) -> str:
    """The path of a program a test cannot do without: from the environment the tests run in, else from PATH.

    Without it the test is skipped, and the reason printed, on a person's machine; where `CI=true` it fails:
    there, what is not tested is not done.
    """
    found = shutil.which(tool, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is not None:
        return found
    sentence = f"{tool} is not installed, or not on PATH"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{sentence}; with CI=true nothing is skipped", pytrace=False)
    pytest.skip(sentence)


def needs_ripgrep() -> str:
    """The path of the ripgrep that `make test` installs, else of the machine's own."""
    return os.environ.get("AMANU_TEST_RIPGREP") or needs("rg")
