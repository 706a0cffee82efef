"""The process of a server on this machine: started in the sandbox, and ended with all it started.

It reads the workspace and changes nothing, unless the user approved more (`config.Access`).
"""

import asyncio
import contextlib
import os
import shlex
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.mcp.config import Access
from amanu.mcp.opened_folders import SCRIPTS, is_reached_through
from amanu.mcp.server_log import ServerLog
from amanu.sandbox import sandboxed_process
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.sandbox.sandboxed_process import Program, SandboxedProcess

_LEAVE = 2.0
"""Seconds for a server to end by itself once its input is closed (MCP, lifecycle: shutdown)."""


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
    readable: tuple[Path, ...] = ()
    """Folders outside the roots that it may read with everything in them."""
    opened: tuple[Path, ...] = ()
    """Folders outside the roots that it may read, but for their secrets (`opened_folders.py`)."""

    @property
    def program(self) -> Program:
        """It starts in its folder, which need not be one of the workspace."""
        steps = () if self.folder is None else (f"cd -- {shlex.quote(str(self.folder))} || exit 126",)
        start = self.roots[0] if self.roots else Path("/")
        return Program(self.argv, start, self.roots, self.environment, self.requirements, steps=steps)

    @property
    def requirements(self) -> SandboxRequirements:
        return SandboxRequirements(
            self.access.place,
            readable=self.readable,
            opened=self.opened,
            writable=tuple(self.caches),
            programs=self._outside_files,
        )

    @property
    def _outside_files(self) -> tuple[str, ...]:
        """The program, and what of its arguments is a file by its absolute path, such as a script: who agreed to the
        server saw them. A repository could make those in the roots lead anywhere."""
        files = (word for word in self.argv if os.path.isabs(word) and os.path.isfile(word))  # noqa: PTH113, PTH117
        return tuple(file for file in dict.fromkeys(files) if self._is_outside(file))

    def _is_outside(self, file: str) -> bool:
        """Through a folder of the roots that is a link, only code counts: who approves it approves its content."""
        parent = Path(file).parent.resolve()
        if any(parent.is_relative_to(root) for root in self.roots):
            return False
        is_code = file == self.argv[0] or Path(file).suffix in SCRIPTS
        return is_code or not is_reached_through(file, self.roots)

    @property
    def caches(self) -> list[Path]:
        """The folders it may write, as real paths."""
        return [Path(os.path.realpath(folder.replace("~", str(self.home), 1))) for folder in self.access.caches]


class ServerProcess:
    """A running server."""

    def __init__(self, process: SandboxedProcess, log: ServerLog) -> None:
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process
        self._logging = asyncio.create_task(_copy(process.stderr, log))

    async def code(self) -> int | None:
        """What it ended with; None when it has not ended after a moment. What it still says is in the log then."""
        await self._process.ended(0.5)
        await asyncio.wait({self._logging}, timeout=0.2)
        return self._process.code

    async def leave(self) -> None:
        """Close its input, and give it a moment to end by itself."""
        with contextlib.suppress(OSError, RuntimeError):
            self.stdin.close()
        await self._process.ended(_LEAVE)


@asynccontextmanager
async def running(command: Command, sandbox: Sandbox, log: ServerLog) -> AsyncGenerator[ServerProcess]:
    """Start it; leaving the context ends it. Raises `StartFailed`."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            await asyncio.to_thread(_make, command.caches)
            process = await stack.enter_async_context(sandboxed_process.running(command.program, sandbox))
        except SandboxError as error:
            raise StartFailed(str(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StartFailed(f"{command.argv[0]} could not be started: {reason}.") from None
        server = ServerProcess(process, log)
        stack.push_async_callback(server.leave)
        yield server


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


def _make(folders: Sequence[Path]) -> None:
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


async def _copy(stream: asyncio.StreamReader, log: ServerLog) -> None:
    while data := await stream.read(1 << 16):
        log.write(data)
