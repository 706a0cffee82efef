"""The process of a server on this machine: started in the sandbox, and ended with all it started.

It reads the workspace and changes nothing, unless the user agreed to more (`config.Access`).
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from amanu.core.requirements import SandboxRequirements
from amanu.mcp.config import Access
from amanu.mcp.server_log import ServerLog
from amanu.sandbox.process_records import MARK
from amanu.sandbox.rlimits import limited_entry_shell, limits
from amanu.sandbox.sandbox import Sandbox, SandboxedCommand, SandboxError
from amanu.system.process_tree import end_all
from amanu.system.tasks import run_to_completion, start_process, wait_killed

_LEAVE = 2.0
"""Seconds for a server to end by itself once its input is closed (MCP, lifecycle: shutdown)."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class StartFailed(Exception):
    """A server could not be started. `str()` is a sentence for the user; trying again would not help."""


@dataclass(frozen=True)
class Command:
    """What is started: everything replaced and looked up."""

    argv: tuple[str, ...]
    folder: Path | None
    """Where it starts; None: in the first root."""
    environment: Mapping[str, str]
    access: Access
    roots: tuple[Path, ...]
    """Real paths."""
    home: Path
    plugin: Path | None = None
    """The folder of the plug-in whose server it is."""

    @property
    def requirements(self) -> SandboxRequirements:
        outside = tuple(folder for folder in (self.folder, self.plugin) if folder is not None)
        return SandboxRequirements(
            writes="workspace" if self.access.writes else "nothing",
            network=self.access.network,
            readable=outside,
            writable=tuple(self.caches),
            unsandboxed=not self.access.sandbox,
        )

    @property
    def caches(self) -> list[Path]:
        """The folders it may write, as real paths."""
        return [Path(os.path.realpath(folder.replace("~", str(self.home), 1))) for folder in self.access.caches]


class ServerProcess:
    """A running server."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, holders: int, log: ServerLog) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process
        self._mark = mark
        self._holders = holders
        self._logging = asyncio.create_task(_copy(process.stderr, log))

    @property
    def pid(self) -> int:
        return self._process.pid

    async def code(self) -> int | None:
        """What it ended with; None when it has not ended after a moment. What it still says is in the log then."""
        await self._ended(0.5)
        await asyncio.wait({self._logging}, timeout=0.2)
        return self._process.returncode

    async def end(self) -> None:
        """End it and all it started: its input is closed, then it is asked to, then made to. Returns when they are
        gone, whoever holds its pipes."""
        with contextlib.suppress(OSError, RuntimeError):
            self.stdin.close()
        await self._ended(_LEAVE)
        await end_all(self._process.pid, self._mark, self._holders)
        await wait_killed(self._process)
        self._logging.cancel()

    async def _ended(self, seconds: float) -> None:
        """Not `Process.wait`: that waits for the pipes too, which a child of the server may hold."""
        stop = time.monotonic() + seconds
        while self._process.returncode is None and time.monotonic() < stop:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running(command: Command, sandbox: Sandbox, log: ServerLog) -> AsyncGenerator[ServerProcess]:
    """Start it; leaving the context ends it. Raises `StartFailed`."""
    need, mark = command.requirements, f"{MARK}{token_hex(8)}"
    name, _, value = mark.partition("=")
    variables = {**command.environment, name: value}
    folder = command.roots[0] if command.roots else Path("/")
    async with contextlib.AsyncExitStack() as stack:
        try:
            await asyncio.to_thread(_make, command.caches)
            handle = await asyncio.to_thread(os.open, folder, _FOLDER)
            stack.callback(os.close, handle)
            started = await stack.enter_async_context(_launched(command, sandbox, folder, handle, variables))
            process = await start_process(
                lambda process: end_all(process.pid, mark, started.holders),
                *started.argv,
                cwd=started.folder,
                env=started.environment,
                pass_fds=started.pass_fds,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except SandboxError as error:
            raise StartFailed(str(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StartFailed(f"{command.argv[0]} could not be started: {reason}.") from None
        server = ServerProcess(process, mark, started.holders, log)
        stack.enter_context(sandbox.recorded(process.pid, mark, need))
        try:
            yield server
        finally:
            await run_to_completion(server.end())
            await run_to_completion(asyncio.to_thread(started.settle))


def find_program(program: str, path: str, folder: Path | None, roots: Sequence[Path]) -> str:
    """The absolute path of a program. A bare name is looked for on `path`, but not in the workspace: what lies there
    must be named by its path. Blocking. Raises `StartFailed`."""
    if "/" in program:
        base = folder or (roots[0] if roots else Path("/"))
        absolute = str(base / program)
        if not os.access(absolute, os.X_OK):
            raise StartFailed(f"{absolute} is not a program that can be run; check the command.")
        return absolute
    for place in path.split(os.pathsep):
        if os.path.isabs(place) and (candidate := shutil.which(program, path=place)) is not None:  # noqa: PTH117
            real = Path(os.path.realpath(place))
            if not any(real.is_relative_to(root) for root in roots):
                return candidate
    raise StartFailed(f"The program {program} was not found on PATH; install it, or give its absolute path.")


@asynccontextmanager
async def _launched(
    command: Command, sandbox: Sandbox, folder: Path, handle: int, variables: dict[str, str]
) -> AsyncGenerator[SandboxedCommand]:
    bash = "/bin/bash" if os.access("/bin/bash", os.X_OK) else None
    shell = None if bash is None else limited_entry_shell(bash, limits())
    if shell is not None and command.folder is not None:
        shell = shell.with_step(f"cd -- {shlex.quote(str(command.folder))} || exit 126")
    roots = list(command.roots)
    async with sandbox.launch(command.argv, command.requirements, roots, folder, handle, variables, shell) as started:
        yield started


def _make(folders: Sequence[Path]) -> None:
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


async def _copy(stream: asyncio.StreamReader, log: ServerLog) -> None:
    while data := await stream.read(1 << 16):
        log.write(data)
