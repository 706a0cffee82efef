"""A process with an MCP server that waits to be killed: `python killed_mcp_daemon.py TIER FOLDER`. Says when the server
runs."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from amanu.config import SandboxSettings
from amanu.home import find_home
from amanu.mcp.servers import Servers
from amanu.sandbox.sandbox import Sandbox
from support.mcp_harness import SUPPORT, Folder, Harness, python_server


async def main(tier: Any, base: Path) -> None:
    home = find_home({"AMANU_HOME": str(base / "ours")}).make()
    (base / "work").mkdir(exist_ok=True)
    (base / "home").mkdir(exist_ok=True)
    read = (str(SUPPORT.parents[1]), sys.prefix, sys.base_prefix)
    sandbox = Sandbox(SandboxSettings(read=read), home, best=tier)
    servers = Servers(home, sandbox, variables={"PATH": "/usr/bin:/bin", "HOME": str(base / "home")})
    it = Harness(servers, home, Folder([base / "work"]))
    it.configure(bad=python_server("hostile_mcp_server.py", ["ignores ends"]))
    await it.approved("bad")
    print(it.view("bad").state, flush=True)
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
