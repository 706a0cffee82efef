"""Amanu's processes without their start-up: forked from an interpreter that has imported what they import.

A test that starts `python -P -m amanu …` starts `warm([…])` instead. It gets a process of its own with the same
arguments, environment, files, working folder and signals, and so does the daemon which that one starts. What is saved
is a second of the processor for each; so tests of start-up itself, of the interpreter's options and of what a process
is seen as from outside take the command as it is.
"""

import atexit
import functools
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

INTERPRETER = Path(__file__).with_name("warm_interpreter.py")
STAND_IN = Path(__file__).with_name("warm_stand_in.py")


def warm(command: Sequence[str]) -> list[str]:
    """A command that does the same: `python -P -m MODULE …` or `python -P FILE …`."""
    assert list(command[:2]) == [sys.executable, "-P"], command
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", str(STAND_IN), _interpreter(), *command]


@functools.cache
def _interpreter() -> str:
    """One for all workers of a run: started by the first that needs it, ends with the last. Returns its socket."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}-{secrets.token_hex(4)}")
    address = Path("/tmp") / f"warm-{run}" / "socket"  # short: it must fit in 108 bytes
    try:
        address.parent.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        command = [sys.executable, "-P", str(INTERPRETER), str(address)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", start_new_session=True)
        atexit.register(_leave, process)
    for _ in range(600):
        if address.exists():
            link = socket.socket(socket.AF_UNIX)
            atexit.register(link.close)  # as long as it is open, the interpreter stays
            link.connect(str(address))
            link.sendall(b"user")
            return str(address)
        time.sleep(0.1)
    raise AssertionError("the warm interpreter does not start")


def _leave(process: "subprocess.Popen[bytes]") -> None:
    """It stays as long as other workers need it."""
    assert process.stdin is not None
    process.stdin.close()
    process.returncode = 0  # it is not ours to wait for
