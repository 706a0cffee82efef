"""What git prints of a repository, for a question to the user: in the sandbox, where it can change nothing."""

import asyncio
import shlex
from collections.abc import Sequence
from pathlib import Path

from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import ToolError
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.report import CommandEnd

_SECONDS = 3.0
_MOST_BYTES = 1 << 20


async def git_prints(
    launcher: CommandLauncher, words: Sequence[str], folder: Path, *, layer: Path | None = None
) -> str:
    """What `git WORDS` prints in that folder, of the `layer` where there is one; "" where it fails, or takes long."""
    need = SandboxRequirements(writes="nothing", layer=layer)
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


async def _always() -> bool:
    return True
