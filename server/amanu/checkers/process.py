"""A checker's process: where its program is found, what it is given, and how it ends."""

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from amanu.tools.processes import end_all, without_secrets
from amanu.unbroken import gone, start_process

NICE = 10
"""The person's own work goes first."""
_NODE_HEAP = "--max-old-space-size=2048"  # megabytes; most language servers are Node programs
_SAID = 400  # characters of its last words


class CheckFailed(Exception):
    """A checker could not say anything. A sentence for the person."""


def find(program: str, environment: Mapping[str, str], roots: Sequence[Path]) -> str | None:
    """The absolute path of a program, or None. One that the workspace brings along is the last choice, after all of
    `PATH`; the caller sees to it that the workspace is trusted. Blocking."""
    if Path(program).is_absolute():
        return program if os.access(program, os.X_OK) else None
    if os.sep in program:
        return None
    folders = [each for each in environment.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()]
    found = [shutil.which(program, path=folder) for folder in folders]
    outside = [each for each in found if each is not None and not _inside(each, roots)]
    if outside:
        return outside[0]
    own = [str(root / each) for root in roots for each in (".venv/bin", "venv/bin", "node_modules/.bin")]
    return next((each for each in found if each), None) or shutil.which(program, path=os.pathsep.join(own))


async def start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], key_variables: Collection[str]
) -> "Process":
    """Start it in that folder, without the keys of the environment. Raises `CheckFailed`."""
    mark = f"AMANU_CHECKER={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    kept = without_secrets(environment, key_variables)
    heap = f"{kept.get('NODE_OPTIONS', '')} {_NODE_HEAP}".strip()
    try:
        process = await start_process(
            lambda process: Process(process, mark).end(),
            *command,
            cwd=folder,
            env={**kept, "NODE_OPTIONS": heap, name: value},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CheckFailed(f"{command[0]} could not be started: {getattr(error, 'strerror', None) or error}.") from None
    with contextlib.suppress(OSError, AttributeError):  # gone already; Windows has no niceness
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    return Process(process, mark)


class Process:
    """A child with its streams. `end` it, whatever happens."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin = process.stdin
        self.stdout = process.stdout
        self._process = process
        self._mark = mark
        self._errors = ""
        self._listening = asyncio.create_task(self._listen(process.stderr))

    async def last_words(self) -> str:
        """Why it is gone, as far as it said; a sentence."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._process.wait()
                await asyncio.wait({self._listening}, timeout=0.2)
        lines = [line.strip() for line in self._errors.strip().splitlines() if line.strip()]
        telling = next((line for line in lines if "rror" in line), lines[-1] if lines else "")
        said = f": {telling[:_SAID]}" if telling else ""
        code = self._process.returncode
        return f"It ended{'' if code is None else f' with code {code}'}{said.rstrip('.')}."

    @property
    def memory(self) -> int:
        """Bytes it takes of the machine's memory, without its own children; 0 where that is not known. Blocking."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        return 0

    async def end(self) -> None:
        """It and all it started. Returns when they are gone."""
        self._listening.cancel()
        self.stdin.close()
        await end_all(self._process.pid, self._mark)
        await gone(self._process)

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while data := await stream.read(4096):
            self._errors = (self._errors + data.decode("utf-8", "replace"))[-2 * _SAID :]


def _inside(path: str, roots: Sequence[Path]) -> bool:
    places = {Path(path), Path(os.path.realpath(path))}
    return any(place.is_relative_to(spelling) for place in places for root in roots for spelling in (root, _real(root)))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
