"""`amanu auth login openai` as a process: a browser that is a program, a service on this machine, and then a prompt."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from amanu.home import find_home
from support import fake_browser
from support.cli_process import AMANU, amanu
from support.fake_browser import visit
from support.strict_services.http import Say
from support.strict_services.openai_identity import OpenAIIdentityService
from support.strict_services.responses import Responses
from support.warm_process import warm

BROWSER = f"{sys.executable} {fake_browser.__file__} %s"
LOGIN = ("auth", "login", "openai")


pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def identity(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[OpenAIIdentityService]:
    service = OpenAIIdentityService()
    monkeypatch.setenv("AMANU_OPENAI_AUTH_URL", f"{await service.start()}/api/accounts")
    monkeypatch.setenv("BROWSER", BROWSER)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    yield service
    await service.stop()


async def run(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(amanu, *arguments, cwd=cwd, **variables)


async def test_sign_in_prompt_sign_out(tmp_path: Path, identity: OpenAIIdentityService) -> None:
    api = Responses([Say(text="Hello from your plan.")], plan=identity.valid)
    moved = {"OPENAI_BASE_URL": f"{await api.start()}/v1"}
    try:
        ran = [
            await run(*LOGIN, cwd=tmp_path),
            await run("run", "Greet me.", cwd=tmp_path, **moved),
            await run("auth", "logout", "openai", cwd=tmp_path),
            await run("auth", "logout", "openai", cwd=tmp_path),
        ]
    finally:
        await api.stop()
    assert [each.returncode for each in ran] == [0] * 4, [each.stderr for each in ran]
    assert "openai: signed in as ada@example.org" in ran[0].stdout and "which opens now" in ran[0].stdout
    assert "Hello from your plan." in ran[1].stdout
    assert ran[2].stdout == "openai: signed out on this machine\n"
    assert ran[3].stderr == "openai: you were not signed in\n"
    assert (identity.refused, api.refused, api.lint) == ([], [], [])
    told = "".join(each.stdout + each.stderr for each in ran)
    logged = "".join(path.read_text("utf-8") for path in find_home().logs.glob("*") if path.is_file())
    assert not re.search(r"(access|refresh)\.[0-9a-f]{8}", told + logged)


async def test_a_key_of_the_environment_goes_before(tmp_path: Path, identity: OpenAIIdentityService) -> None:
    key = {"OPENAI_API_KEY": "sk-proj-0123456789abcdef"}
    done = await run(*LOGIN, cwd=tmp_path, **key)
    status = await run("auth", "status", cwd=tmp_path, **key)
    assert "takes precedence over the sign-in: unset it" in done.stdout
    assert "(OPENAI_API_KEY); takes precedence over the sign-in as ada@example.org" in status.stdout


async def test_denied(tmp_path: Path, identity: OpenAIIdentityService) -> None:
    identity.consent = "access_denied"
    done = await run(*LOGIN, cwd=tmp_path)
    assert done.returncode == 4 and "access was denied in the browser" in done.stderr and "Traceback" not in done.stderr
    assert identity.renewals == 0 and not (find_home().config / "chatgpt.json").exists()


async def test_the_address_alone_is_printed(tmp_path: Path, identity: OpenAIIdentityService) -> None:
    """For an editor that opens it, or a user at another machine."""
    process = await started("--no-browser", cwd=tmp_path, SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
    address = await address_of(process)
    await asyncio.to_thread(visit, address)
    said, complained = await process.communicate()
    assert process.returncode == 0 and b"signed in as ada@example.org" in said and complained == b""
    assert b"ssh -L" in said
    assert identity.refused == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
async def test_ended_while_it_waits(
    tmp_path: Path, identity: OpenAIIdentityService, number: signal.Signals, code: int
) -> None:
    process = await started("--no-browser", cwd=tmp_path)
    address = await address_of(process)
    process.send_signal(number)
    _, complained = await process.communicate()
    assert process.returncode == code and b"Traceback" not in complained
    with pytest.raises(OSError):
        await asyncio.to_thread(visit, address)
    assert [path.name for path in find_home().config.iterdir() if path.stat().st_size] == []


async def started(*options: str, cwd: Path, **variables: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *warm([*AMANU, *LOGIN, *options]),
        cwd=cwd,
        env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def address_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(b"http"):
            return line.decode().strip()
    raise AssertionError("no address was printed")
