"""A checker's process: how its program is found, started in the sandbox, and ended.

The programs and settings in a workspace are somebody else's code: even a sandboxed command may have put them there. So
a checker runs in the sandbox of a command that only reads, or not at all.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from amanu.core.place import READ_ONLY
from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.sandbox.sandboxed_process import Program, SandboxedProcess, running

NICE = 10
"""Niceness: the user's own programs go first."""
MEMORY_PARTS = 2
"""A checker may use the machine's memory divided by this: it runs without a question. Type checkers of large projects
need two gigabytes."""
_NODE_HEAP = "--max-old-space-size=2048"  # megabytes; most language servers are Node programs
_OWN_CACHE = 'export XDG_CACHE_HOME="$TMPDIR/cache"'
_MAX_REASON = 400  # characters of its error output


class CheckFailed(Exception):
    """A checker gave no findings. The message is a sentence for the user."""


def find(program: str, environment: Mapping[str, str], roots: Sequence[Path]) -> str | None:
    """The absolute path of a program, or None. One in the workspace is the last choice, after all of `PATH`; the caller
    makes sure that the workspace is trusted. Blocking."""
    if Path(program).is_absolute():
        return program if os.access(program, os.X_OK) else None
    if os.sep in program:
        return None
    folders = [folder for folder in environment.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    candidates = [shutil.which(program, path=folder) for folder in folders]
    outside = [candidate for candidate in candidates if candidate is not None and not _inside(candidate, roots)]
    if outside:
        return outside[0]
    project_folders = [
        str(root / subfolder) for root in roots for subfolder in (".venv/bin", "venv/bin", "node_modules/.bin")
    ]
    return next((candidate for candidate in candidates if candidate), None) or shutil.which(
        program, path=os.pathsep.join(project_folders)
    )


async def start(
    sandbox: Sandbox,
    command: Sequence[str],
    folder: Path,
    roots: Sequence[Path],
    environment: Mapping[str, str],
    readable: Sequence[Path] = (),
) -> "CheckerProcess":
    """Start it in that folder. It can read the roots and `readable`, write only temporary files, and has no network.
    Raises `CheckFailed`."""
    if (await sandbox.proved()).tier == "none":
        raise CheckFailed("No sandbox works on this machine, and checkers are not started without one.")
    heap = f"{environment.get('NODE_OPTIONS', '')} {_NODE_HEAP}".strip()
    need = SandboxRequirements(READ_ONLY, readable=tuple(readable))
    variables = {**environment, "NODE_OPTIONS": heap}
    program = Program(command, folder, roots, variables, need, MEMORY_PARTS, (_OWN_CACHE,))
    stack = AsyncExitStack()
    try:
        process = await stack.enter_async_context(running(program, sandbox))
    except SandboxError as error:
        raise CheckFailed(str(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckFailed(f"{command[0]} could not be started: {reason}.") from None
    with contextlib.suppress(OSError, AttributeError):  # gone already; Windows has no niceness
        os.setpriority(os.PRIO_PGRP, process.pid, NICE)
    return CheckerProcess(process, stack)


class CheckerProcess:
    """A running checker with its streams. Whatever happens, it must be `end`ed."""

    def __init__(self, process: SandboxedProcess, stack: AsyncExitStack) -> None:
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process
        self._stack = stack
        self._errors = ""
        self._listening = asyncio.create_task(self._listen(process.stderr))

    async def end_reason(self) -> str:
        """Why it ended, as a sentence, with what it wrote to standard error."""
        if await self._process.ended(0.5):
            await asyncio.wait({self._listening}, timeout=0.2)
        lines = [line.strip() for line in self._errors.strip().splitlines() if line.strip()]
        message = next((line for line in lines if "rror" in line), lines[-1] if lines else "")
        reason = f": {message[:_MAX_REASON]}" if message else ""
        code = self._process.code
        return f"It ended{'' if code is None else f' with code {code}'}{reason.rstrip('.')}."

    @property
    def memory(self) -> int:
        """Bytes of memory used by it and all it started; 0 where that is not known. Blocking."""
        pages, process_ids = 0, [str(self._process.pid)]
        while process_ids:
            process = Path("/proc", process_ids.pop())
            with contextlib.suppress(OSError, ValueError, IndexError):
                pages += int((process / "statm").read_text().split()[1])
                process_ids += (process / "task" / process.name / "children").read_text().split()
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def end(self) -> None:
        """End it and all it started. Returns when they are gone."""
        self._listening.cancel()
        self.stdin.close()
        await self._stack.aclose()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(4096):
            self._errors = (self._errors + data.decode("utf-8", "replace"))[-2 * _MAX_REASON :]


def _inside(path: str, roots: Sequence[Path]) -> bool:
    """Whether the path lies in a root, links followed or not."""
    spellings = (Path(path), Path(path).resolve())
    folders = [folder for root in roots for folder in (root, root.resolve())]
    return any(spelling.is_relative_to(folder) for spelling in spellings for folder in folders)
