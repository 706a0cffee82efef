"""What git prints of a repository, for a question to the user: in the sandbox, where it can change nothing."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.report import CommandEnd

_COMMITS = 20
_STATUS = {"A": " (new)", "D": " (deleted)"}
_SECONDS = 3.0
_MOST_BYTES = 1 << 20


async def git_prints(
    launcher: CommandLauncher, words: Sequence[str], folder: Path, *, layer: Path | None = None
) -> str:
    """What `git WORDS` prints in that folder, of the `layer` where there is one; "" where it fails, takes long, or no
    sandbox works."""
    need = SandboxRequirements(writes="nothing", layer=layer)
    if not await launcher.has_sandbox():
        return ""
    plan = CommandPlan(shlex.join(["git", *words]), folder, need, by_user=False, still_valid=_always)
    end, output = CommandEnd(), bytearray()

    def take(data: bytes, is_error: bool) -> None:
        if not is_error and len(output) < _MOST_BYTES:
            output.extend(data)

    try:
        async with asyncio.timeout(_SECONDS), launcher.launched(plan, end) as process:
            await process.read(take)
            await process.process.wait()
    except (TimeoutError, ToolError):
        return ""
    return output.decode("utf-8", "replace") if end.code == 0 else ""


async def latest_commits(launcher: CommandLauncher, folder: Path, layer: Path) -> Mapping[str, Sequence[str]]:
    """The last commits that HEAD was at: hash → its files, "a.txt", "b.txt (new)", "c.txt (deleted)"."""
    words = ["-c", "core.quotePath=false", "log", "-g", f"-n{_COMMITS}", "--no-renames", "--name-status", "--format=%H"]
    commits: dict[str, list[str]] = {}
    files: list[str] = []
    for line in (await git_prints(launcher, words, folder, layer=layer)).splitlines():
        status, tab, name = line.partition("\t")
        if tab:
            files.append(f"{name}{_STATUS.get(status, '')}")
        elif status:
            files = commits[status] = []
    return commits


async def _always() -> bool:
    return True
