"""Programs of the tests that run as an ordinary user, where the tests run as root."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY = 65534
TESTS = Path(__file__).parents[1]
USERS = (0, NOBODY) if os.geteuid() == 0 else (os.geteuid(),)


@functools.cache
def program(user: int) -> tuple[list[str], dict[str, str]]:
    """A Python that this user can start, with our packages."""
    site = next(each for each in sys.path if each.endswith("site-packages"))
    sources = [str(TESTS.parent / each) for each in ("server", "protocol", "tests")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join([*sources, site])}
    for python in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        try:
            subprocess.run([python, "-c", "import pydantic"], user=user, group=user, check=True, env=environment)
        except (OSError, subprocess.CalledProcessError):
            continue
        return [python], environment
    sentence = "there is no Python that an ordinary user can start"
    pytest.fail(sentence) if os.environ.get("CI") == "true" else pytest.skip(sentence)


def started_as(user: int, script: str, *arguments: str, takes_input: bool = False) -> subprocess.Popen[str]:
    """A script of `support/`, started as that user. Its output is to be read from a pipe."""
    python, environment = program(user)
    argv = [*python, str(TESTS / "support" / script), *arguments]
    root = os.geteuid() == 0
    return subprocess.Popen(
        argv,
        user=user if root else None,
        group=user if root else None,
        extra_groups=[] if root else None,
        env=environment,
        stdin=subprocess.PIPE if takes_input else None,
        stdout=subprocess.PIPE,
        text=True,
    )
