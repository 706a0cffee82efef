"""A daemon that runs a command and waits to be killed: `python killed_daemon.py TIER COMMAND FOLDER`. Says when it has
started the command, and the first line of that. Everything is in the folder. As tier, `layer` is bubblewrap over a
layer."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from amanu.config import SandboxSettings as Settings
from amanu.core.place import SCRATCH
from amanu.core.requirements import SandboxRequirements
from amanu.home import find_home
from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.sandbox import Sandbox
from support.sandboxed_process import start


async def main(tier: Any, command: str, base: Path) -> None:
    tempfile.tempdir = str(base)
    root = base / "work"
    root.mkdir(exist_ok=True)
    home, need = find_home({"AMANU_HOME": str(base / "ours")}).make(), None
    if tier == "layer":
        layer = Layer.create(home.layers, [root])
        tier, need = "bubblewrap", SandboxRequirements(SCRATCH, layer=layer.folder)
    sandbox = Sandbox(Settings(), home, best=tier)
    handle = os.open(root, os.O_RDONLY)
    argv = ["/bin/bash", "-c", command]
    async with sandbox.launch(argv, need, [root], root, handle, {"PATH": "/usr/bin:/bin"}) as started:
        process = await start(started)
        print("started", flush=True)
        assert process.stdout is not None
        print((await process.stdout.readline()).decode(), end="", flush=True)
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
