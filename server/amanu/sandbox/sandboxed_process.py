"""A program that runs beside a session, a server, a hook or a checker: started in its sandbox with pipes to it, and
ended with all it started."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.entry_shell import EntryShell, plain_entry_shell
from amanu.sandbox.process_records import MARK
from amanu.sandbox.rlimits import limited_entry_shell, limits
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.system.process_tree import end_all
from amanu.system.tasks import run_to_completion, start_process, wait_killed

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOOK = 0.05
"""Seconds between two looks at whether it has ended, where somebody else holds its pipes."""


@dataclass(frozen=True)
class Program:
    """What is started."""

    argv: Sequence[str]
    folder: Path
    roots: Sequence[Path]
    """Real paths."""
    environment: Mapping[str, str]
    need: SandboxRequirements
    memory_parts: int | None = None
    """It may use the machine's memory divided by this; None: it is not limited."""
    steps: tuple[str, ...] = ()
    """Of bash, run in the sandbox before it."""

    def entry_shell(self) -> EntryShell | None:
        plain = plain_entry_shell()
        if plain is None:
            return None
        limited = limited_entry_shell(plain.bash, limits(self.memory_parts))
        return EntryShell(limited.bash, (*limited.steps, *self.steps))


class SandboxedProcess:
    """A running program."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, holders: int) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.stderr = process.stderr
        self._process = process
        self._mark = mark
        self._holders = holders

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """What its first process ended with; None while it runs."""
        return self._process.returncode

    async def ended(self, seconds: float) -> bool:
        """Wait that long for the end of its first process, whoever else holds its pipes: `Process.wait` would wait for
        those, too. Returns whether it has ended."""
        until = time.monotonic() + seconds
        waiting = asyncio.create_task(self._process.wait())
        try:
            while self.code is None and (remaining := until - time.monotonic()) > 0:
                await asyncio.wait({waiting}, timeout=min(_LOOK, remaining))
        finally:
            waiting.cancel()
        return self.code is not None

    async def end(self) -> None:
        """End it and all it started. Returns when they are gone."""
        await end_all(self.pid, self._mark, self._holders)
        await wait_killed(self._process)


@asynccontextmanager
async def running(program: Program, sandbox: Sandbox) -> AsyncGenerator[SandboxedProcess]:
    """Start it; leaving the context ends it. Raises `SandboxError`, `OSError`, `ValueError`."""
    need, mark, pipe = program.need, f"{MARK}{token_hex(8)}", asyncio.subprocess.PIPE
    name, _, value = mark.partition("=")
    variables = {**program.environment, name: value}
    handle = await asyncio.to_thread(os.open, program.folder, _FOLDER)
    try:
        async with sandbox.launch(
            program.argv, need, program.roots, program.folder, handle, variables, program.entry_shell()
        ) as command:
            # The tiers that cannot show it the bytes that were approved: the last moment to compare them.
            if changed := await asyncio.to_thread(_changed, need.pinned):
                raise SandboxError(f"{changed} has just been changed.")
            process = await start_process(
                lambda process: SandboxedProcess(process, mark, command.holders).end(),
                *command.argv,
                cwd=command.folder,
                env=command.environment,
                pass_fds=command.pass_fds,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
            sandboxed = SandboxedProcess(process, mark, command.holders)
            with sandbox.recorded(process.pid, mark, need):
                try:
                    yield sandboxed
                finally:
                    await run_to_completion(sandboxed.end())
                    await run_to_completion(asyncio.to_thread(command.settle))
    finally:
        os.close(handle)


def _changed(pinned: Mapping[str, bytes]) -> str:
    """The file that no longer holds what was approved; "" for none."""
    for path, data in pinned.items():
        try:
            if Path(path).read_bytes() != data:
                return path
        except OSError:
            return path
    return ""
