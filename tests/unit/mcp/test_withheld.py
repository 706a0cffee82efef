"""The words of real servers when the sandbox withholds something lead to the setting that grants it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.mcp import connection
from amanu.mcp.config import Access
from amanu.mcp.withheld import withheld
from support.mcp_harness import harness, plain_server

SAYS: Mapping[str, tuple[str, str]] = {
    # what it says, the settings that are named
    "server-filesystem": ("EROFS: read-only file system, open '/w/new.txt'", "writes caches"),
    "git": ("fatal: Unable to create '/w/.git/index.lock': Read-only file system", "sandbox"),
    "uv": ("error: failed to create directory `/w/.venv`: Read-only file system (os error 30)", "writes caches"),
    "sqlite3": ("sqlite3.OperationalError: unable to open database file", "writes caches"),
    "sqlite": ("attempt to write a readonly database", "writes caches"),
    "node": ("getaddrinfo EAI_AGAIN api.example.com", "network"),
    "httpx": ("[Errno -3] Temporary failure in name resolution", "network"),
    "anything else": ("Error: Invalid API key", ""),
}


@pytest.mark.parametrize(("says", "settings"), SAYS.values(), ids=SAYS)
def test_the_setting_is_named(says: str, settings: str) -> None:
    def named(access: Access) -> str:
        return " ".join(
            key for key in ("writes", "caches", "network", "sandbox") if f"`{key} = " in withheld(access, says)
        )

    assert named(Access()) == settings
    assert named(Access(writes=True)) == settings.replace("writes ", "")
    assert named(Access(network=True)) == settings.replace("network", "")
    assert named(Access(sandbox=False)) == ""
    assert ('`caches = ["~/.npm", "FOLDER"]`' in withheld(Access(caches=("~/.npm",)), says)) == ("caches" in settings)


@pytest.mark.parametrize("says", ["EROFS: read-only file system", "Invalid API key"])
async def test_a_call_that_failed_for_it_says_so(tmp_path: Path, says: str) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=plain_server())
        await it.approved("sample")
        failed = await it.call("sample", "fail", text=says)
        with pytest.raises(ToolError, match=says) as refused:
            await it.call("sample", "refuse", text=says)
        fine = await it.call("sample", "echo", text=says)
        found = ["`writes = true`" in text for text in (failed.hint, str(refused.value), fine.hint)]
        assert found == [says[:5] == "EROFS", says[:5] == "EROFS", False]


async def test_a_server_that_ends_for_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BACK_OFF", (0.01,))
    async with harness(tmp_path) as it:
        table: dict[str, Any] = {"command": "sh", "args": ["-c", "echo x > ${workspaceFolder}/x"]}
        it.configure(sample=table)
        await it.approved("sample")
        await it.until(lambda: it.view("sample").state == "failed")
        if it.servers.sandbox.tier == "bubblewrap":
            assert "`writes = true`" in it.view("sample").reason
