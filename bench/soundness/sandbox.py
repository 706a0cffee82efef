"""The sandbox the lines are run within: bubblewrap, nothing of the machine to write, no network, no other process."""

import shutil
import sys
from pathlib import Path

from bench.subjects.environment import ROOT

_EMPTY = ("/tmp", "/var/tmp", "/run", "/root", "/home", "/dev/shm")
_SHOWN = tuple(dict.fromkeys(map(Path, (str(ROOT), sys.prefix, sys.base_prefix))))


def folder(name: str) -> Path:
    """A folder of that name in the `/tmp` of the lines, the same within and without; with a number behind it where
    this checkout or its Python lies there."""
    names = (name, *(f"{name}{number}" for number in range(2, 9)))
    return next(
        Path("/tmp", each) for each in names if not any(shown.is_relative_to(f"/tmp/{each}") for shown in _SHOWN)
    )


TOP = folder("w")
"""Where the lines run."""


class NoSandbox(Exception):
    """bubblewrap is not there, or cannot be used here."""


def within(*words: str) -> list[str]:
    """What to execute to run this Python with those words in a sandbox. Raises `NoSandbox`."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise NoSandbox("bwrap is not installed.")
    sandbox = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for each in _EMPTY:
        sandbox += ["--tmpfs", each]
    sandbox += ["--dir", str(TOP)]
    for shown in _SHOWN:
        if any(shown.is_relative_to(empty) for empty in _EMPTY):
            sandbox += ["--ro-bind", str(shown), str(shown)]
    unshared = (
        "--unshare-net",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--new-session",
    )
    return [*sandbox, *unshared, "--chdir", str(ROOT), sys.executable, *words]
