"""A daemon that is told to go goes, and says what kept it."""

import subprocess
import sys

STUCK = """
import asyncio, logging, sys, threading
from amanu.daemon.exit_deadline import leave_by

async def never():
    await asyncio.Event().wait()

async def main():
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    leave_by(0.2)
    {how}

asyncio.run(main())
"""


def check(how: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", STUCK.format(how=how)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "leaving anyway" in done.stdout, done
    assert said in done.stdout


def test_what_waits_for_ever_is_named() -> None:
    check("await asyncio.create_task(never(), name='turn p1')", "turn p1 at Event.wait")


def test_a_thread_that_does_not_end() -> None:
    check("threading.Thread(target=threading.Event().wait).start()", "threads")


def test_who_goes_in_time_is_not_disturbed() -> None:
    done = subprocess.run([sys.executable, "-c", STUCK.format(how="pass")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
