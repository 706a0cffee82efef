"""The official conformance suite for MCP clients (npm `@modelcontextprotocol/conformance`).

Of its sign-in scenarios a sample; all of them, and what is known to fail:

    .venv/bin/node .tools/mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js client --suite auth \\
      --command "$PWD/.venv/bin/python -m support.mcp_conformance_client"     (PYTHONPATH=server:protocol:tests)

`auth/scope-step-up` (more rights in the middle of a call) and `auth/pre-registration` (a client id of the user's) fail,
and `auth/basic-cimd` warns: a program on the user's machine has no address to publish its metadata at.
"""

import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest

from support.required_programs import needs_mcp_server
from support.warm_process import warm

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "scenario",
    [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "auth/metadata-default",
        "auth/token-endpoint-auth-basic",
    ],
)
async def test_the_official_suite(tmp_path: Path, scenario: str) -> None:
    _, program = needs_mcp_server("conformance")
    node = str(Path(sys.prefix) / "bin" / "node")  # the suite needs Node 22
    client = shlex.join(warm([sys.executable, "-P", "-m", "support.mcp_conformance_client"]))
    command = [node, program, "client", "--command", client, "--scenario", scenario, "--timeout", "90000"]
    paths = os.pathsep.join(str(ROOT / part) for part in ("server", "protocol", "tests"))
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode("utf-8", "replace")
