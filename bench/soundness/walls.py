"""The walls the lines are run within: bubblewrap, nothing of the machine to write, no network, no other process."""

import shutil
import sys
from pathlib import Path

from bench.subjects.environment import ROOT

_EMPTY = ("/tmp", "/var/tmp", "/run", "/root", "/home", "/dev/shm")


class NoWalls(Exception):
    """bubblewrap is not there, or cannot be used here."""


def within(*words: str) -> list[str]:
    """What to execute to run this Python with those words within walls. Raises `NoWalls`."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise NoWalls("bwrap is not installed.")
    walls = [bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for each in _EMPTY:
        walls += ["--tmpfs", each]
    walls += ["--dir", "/tmp/w"]
    for each in dict.fromkeys((str(ROOT), sys.prefix, sys.base_prefix)):
        if any(Path(each).is_relative_to(empty) for empty in _EMPTY):
            walls += ["--ro-bind", each, each]
    unshared = (
        "--unshare-net",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--new-session",
    )
    return [*walls, *unshared, "--chdir", str(ROOT), sys.executable, *words]
