"""A command of the sandbox's, started as the tool for commands starts it."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process

from amanu.sandbox.sandbox import SandboxedCommand


async def start(started: SandboxedCommand, *, stderr: int | None = None) -> Process:
    """Its output is to be read from a pipe; `stderr` as for `subprocess`, None: where ours goes."""
    return await asyncio.create_subprocess_exec(
        *started.argv,
        cwd=started.folder,
        env=started.environment,
        pass_fds=started.pass_fds,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=stderr,
        start_new_session=True,
    )
