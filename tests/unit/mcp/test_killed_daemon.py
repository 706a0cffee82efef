"""A daemon that is killed leaves no server behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amanu.config import SandboxSettings
from amanu.home import find_home
from amanu.sandbox import sandbox
from amanu.sandbox.sandbox import Sandbox
from support.mcp_harness import SUPPORT, processes


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock", "none"])
async def test_none_is_left(tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = [sys.executable, str(SUPPORT / "killed_mcp_daemon.py"), tier, str(tmp_path)]
    path = os.pathsep.join(
        [str(SUPPORT.parent), str(SUPPORT.parents[1] / "server"), str(SUPPORT.parents[1] / "protocol")]
    )
    daemon = subprocess.Popen(program, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
    assert daemon.stdout is not None
    try:
        assert daemon.stdout.readline() == b"ready\n"
        assert processes(tmp_path)
    finally:
        daemon.kill()
        daemon.wait()
        daemon.stdout.close()
    if tier == "none":  # without a sandbox, the next daemon ends it
        monkeypatch.setattr(sandbox, "_proofs", {})  # each daemon tries the sandbox once, and sweeps then
        next_daemon = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "ours")}))
        await next_daemon.proved()
        await next_daemon.close()
    stop = time.monotonic() + 50
    while processes(tmp_path) and time.monotonic() < stop:
        time.sleep(0.05)
    assert processes(tmp_path) == []
