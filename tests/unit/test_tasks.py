"""Processes that are ended: that is waited for, and nothing else."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE

import pytest

from amanu.system.tasks import wait_killed

HELD = "sleep 60 & echo $!; wait"
"""Another process has its pipes, too."""
FULL = "echo $$; exec yes"
"""Says more than anybody reads: asyncio stops listening, and hears no end."""
DEAF = "echo $$; exec sleep 60"
"""Never reads what it is told."""


@pytest.mark.parametrize("command", [HELD, FULL, DEAF])
async def test_a_process_that_was_killed_is_gone_whatever_becomes_of_its_pipes(command: str) -> None:
    argv = ("/bin/sh", "-c", command)
    process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=1024)
    assert process.stdin is not None and process.stdout is not None
    other = int(await process.stdout.readline())
    process.stdin.write(bytes(1 << 20))
    process.stdin.close()
    await asyncio.sleep(0.05)
    process.kill()
    async with asyncio.timeout(50):
        await wait_killed(process)
    assert process.returncode == -signal.SIGKILL
    with contextlib.suppress(ProcessLookupError):
        os.kill(other, signal.SIGKILL)


async def test_a_process_that_the_kernel_holds_is_not_waited_for() -> None:
    process = await asyncio.create_subprocess_exec("/bin/sleep", "60", stdout=PIPE)  # in its place, one that lives
    async with asyncio.timeout(50):
        await wait_killed(process, 0.05)
        while process.returncode is None:  # it is killed, for asyncio gives it up
            await asyncio.sleep(0.01)
