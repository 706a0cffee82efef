"""A checker's process: how its program is found, started in the sandbox, and ended.

The programs and settings in a workspace are somebody else's code: even a sandboxed command may have put them there. So
a checker runs in the sandbox of a command that only reads, or not at all.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.sandbox.entry_shell import plain_entry_shell
from amanu.sandbox.rlimits import limited_entry_shell, limits
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.system.process_tree import end_all
from amanu.system.tasks import start_process, wait_killed

NICE = 10
"""Niceness: the user's own programs go first."""
MEMORY_PARTS = 2
"""A checker may use the machine's memory divided by this: it runs without a question. Type checkers of large projects
need two gigabytes."""
_NODE_HEAP = "--max-old-space-size=2048"  # megabytes; most language servers are Node programs
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
    mark = f"AMANU_CHECKER={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    heap = f"{environment.get('NODE_OPTIONS', '')} {_NODE_HEAP}".strip()
    variables = {**environment, "NODE_OPTIONS": heap, name: value}
    stack = AsyncExitStack()
    try:
        handle = await asyncio.to_thread(os.open, folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, handle)
        need = SandboxRequirements(writes="nothing", readable=tuple(readable))
        plain = plain_entry_shell()
        entry_shell = None if plain is None else limited_entry_shell(plain.bash, limits(MEMORY_PARTS))
        started = await stack.enter_async_context(
            sandbox.launch(command, need, roots, folder, handle, variables, entry_shell)
        )
        caches = {"XDG_CACHE_HOME": os.path.join(started.environment["TMPDIR"], "cache")}  # noqa: PTH118
        process = await start_process(
            lambda process: CheckerProcess(process, mark, stack, started.holders).end(),
            *started.argv,
            cwd=started.folder,
            env={**started.environment, **caches},
            pass_fds=started.pass_fds,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except BaseException as error:
        await stack.aclose()
        if isinstance(error, SandboxError):
            raise CheckFailed(str(error)) from None
        if isinstance(error, OSError | ValueError):
            reason = getattr(error, "strerror", None) or error
            raise CheckFailed(f"{command[0]} could not be started: {reason}.") from None
        raise
    with contextlib.suppress(OSError, AttributeError):  # gone already; Windows has no niceness
        os.setpriority(os.PRIO_PGRP, process.pid, NICE)
    return CheckerProcess(process, mark, stack, started.holders)


class CheckerProcess:
    """A running checker with its streams. Whatever happens, it must be `end`ed."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str, stack: AsyncExitStack, holders: int) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process
        self._mark = mark
        self._stack = stack
        self._holders = holders
        self._errors = ""
        self._listening = asyncio.create_task(self._listen(process.stderr))

    async def end_reason(self) -> str:
        """Why it ended, as a sentence, with what it wrote to standard error."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._process.wait()
                await asyncio.wait({self._listening}, timeout=0.2)
        lines = [line.strip() for line in self._errors.strip().splitlines() if line.strip()]
        message = next((line for line in lines if "rror" in line), lines[-1] if lines else "")
        reason = f": {message[:_MAX_REASON]}" if message else ""
        code = self._process.returncode
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
        await end_all(self._process.pid, self._mark, self._holders)
        await wait_killed(self._process)
        await self._stack.aclose()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(4096):
            self._errors = (self._errors + data.decode("utf-8", "replace"))[-2 * _MAX_REASON :]


def _inside(path: str, roots: Sequence[Path]) -> bool:
    """Whether the path lies in a root, links followed or not."""
    spellings = (Path(path), Path(path).resolve())
    folders = [folder for root in roots for folder in (root, root.resolve())]
    return any(spelling.is_relative_to(folder) for spelling in spellings for folder in folders)
