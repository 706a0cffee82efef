"""A daemon that runs a command which leaves processes behind in every way, and waits to be killed:
`python dying.py TIER NUMBER FOLDER`; they sleep for that number of seconds. Says when it has started the command, and
when they are there. Everything is in the folder."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from amanu.config import Sandbox as Settings
from amanu.home import find_home
from amanu.sandbox.sandbox import Sandbox
from walls.starting import start

COMMAND = """
setsid -f sleep {n}
(env -i setsid sleep {n} &)
sleep {n} &
while [ $(pgrep -cxf "sleep {n}") -lt 3 ]; do :; done
echo 3
wait
"""


async def main(tier: Any, number: str, base: Path) -> None:
    tempfile.tempdir = str(base)
    root = base / "work"
    root.mkdir()
    sandbox = Sandbox(Settings(), find_home({"AMANU_HOME": str(base / "amanu")}).make(), best=tier)
    handle = os.open(root, os.O_RDONLY)
    argv = ["/bin/bash", "-c", COMMAND.replace("{n}", number)]
    async with sandbox.launch(argv, None, [root], root, handle, {"PATH": "/usr/bin:/bin"}) as started:
        process = await start(started)
        print("started", flush=True)
        assert process.stdout is not None
        print((await process.stdout.readline()).decode(), end="", flush=True)
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
