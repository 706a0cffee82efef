"""Relays and the daemon behind them, as real processes: who starts, who replaces, who leaves when."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from amanu import __version__
from amanu.daemon.sockets import socket_path
from amanu.home import find_home
from support.raw_client import RawClient, python
from support.running_daemon import daemon_pid, signal_daemon

SERVER = str(Path(__file__).parents[1] / "support" / "fake_session_server.py")
AMANU_SERVE = [sys.executable, "-P", "-m", "amanu", "serve"]
Spawn = Callable[..., Awaitable[RawClient]]


@pytest_asyncio.fixture
async def spawn() -> AsyncIterator[Spawn]:
    """Starts relays in the test's own home; afterwards no daemon of that home is left."""
    clients: list[RawClient] = []

    async def start(mode: str = "relay", idle: float = 60, **environment: str) -> RawClient:
        more = {"AMANU_IDLE_SECONDS": str(idle), "AMANU_LOG_LEVEL": "debug", **environment}
        client = await RawClient.spawn(python(SERVER, mode), {**os.environ, **more})
        clients.append(client)
        return client

    yield start
    for client in clients:
        await client.stop()
    if (pid := signal_daemon()) is not None:
        await gone(pid)


async def gone(pid: int) -> None:
    async with asyncio.timeout(50):
        while is_running(pid):
            await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    return False


async def session(client: RawClient, session_id: str = "s") -> dict[str, Any]:
    await client.initialize()
    return (await client.request("amanu/session/create", {"sessionId": session_id, "roots": ["/"]}))["result"]


def prompt(text: str, prompt_id: str = "p", session_id: str = "s") -> dict[str, str]:
    return {"sessionId": session_id, "promptId": prompt_id, "text": text}


def log_text() -> str:
    return (find_home().logs / "daemon.log").read_text()


async def test_two_editors_share_a_daemon_that_outlives_them(spawn: Spawn) -> None:
    one = await spawn()
    await session(one)
    pid = daemon_pid()
    assert pid is not None and os.getsid(pid) != os.getsid(0)
    two = await spawn()
    await session(two)
    assert daemon_pid() == pid
    await one.request("amanu/prompt/send", prompt("hello"))
    assert (await two.notification("amanu/event"))["event"]["kind"] == "turnStarted"
    assert await one.leave() == 0
    assert await two.leave() == 0
    three = await spawn()
    state = (await session(three))["state"]
    assert [item["text"] for item in state["items"]] == ["hello"]
    assert daemon_pid() == pid


async def test_an_editor_that_ends_its_relay_with_all_children_does_not_end_the_daemon(spawn: Spawn) -> None:
    """As vscode-languageclient does to what still runs two seconds after it said goodbye. The daemon serves others by
    then: a session that was just being created came back empty."""
    relay = await spawn()
    await session(relay)
    pid = daemon_pid()
    assert pid is not None and relay.process is not None
    assert pid not in descendants(relay.process.pid)


def descendants(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(each for child in children for each in descendants(child))]


async def test_many_relays_at_once_start_one_daemon(spawn: Spawn) -> None:
    clients = await asyncio.gather(*(spawn() for _ in range(5)))
    await asyncio.gather(*(client.initialize() for client in clients))
    await asyncio.gather(*(client.request("amanu/rule/preview", {"rule": "x"}) for client in clients))
    assert log_text().count("listens on") == 1


async def test_everything_is_private(spawn: Spawn) -> None:
    await session(await spawn())
    home = find_home()
    made_now = (folder for folder in home if folder is not None and folder != home.data)  # that one is for plug-ins
    for folder in made_now:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    mine = (home.logs / "daemon.log", home.logs / "daemon.out", home.runtime / "daemon.lock")
    for file in (socket_path(home), home.token, *mine):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


async def test_each_client_brings_its_own_environment_and_the_daemon_keeps_no_keys(spawn: Spawn) -> None:
    canaries = {"A_API_KEY": "canary-one-1234567", "AWS_PROFILE": "canary-two", "PLAIN": "one"}
    one = await spawn(**canaries)
    await session(one, "s")
    two = await spawn(PLAIN="two")
    await session(two, "t")
    for client, session_id, name, value in [
        (one, "s", "PLAIN", "one"),
        (one, "s", "A_API_KEY", "canary-one-1234567"),
        (two, "t", "PLAIN", "two"),
        (two, "t", "A_API_KEY", "?"),
    ]:
        await client.request("amanu/prompt/send", prompt(f"env {name}", name, session_id))
        while (event := (await client.notification("amanu/event"))["event"])["kind"] != "itemCompleted":
            pass
        assert event["item"]["text"] == value
    pid = daemon_pid()
    for file in find_home().logs.iterdir():
        assert "canary" not in file.read_text()
    if os.getuid() == 0:  # root may read it whatever we do; what matters is that there is nothing to read
        assert b"canary" not in Path(f"/proc/{pid}/environ").read_bytes()
    else:
        with pytest.raises(PermissionError):
            Path(f"/proc/{pid}/environ").read_bytes()


async def test_the_daemon_leaves_when_idle_and_unattached(spawn: Spawn) -> None:
    client = await spawn(idle=0.3)
    await session(client)
    pid = daemon_pid()
    assert pid is not None
    await asyncio.sleep(0.6)
    assert is_running(pid), "somebody is attached"
    await client.request("amanu/prompt/send", prompt("slowly 0.1"))
    await client.request("amanu/prompt/send", prompt("forever"))
    await client.leave()
    await asyncio.sleep(0.6)
    assert is_running(pid), "a turn runs"
    os.kill(pid, signal.SIGTERM)
    await gone(pid)
    assert not socket_path(find_home()).exists()
    client = await spawn(idle=0.3)
    await session(client)
    pid = daemon_pid()
    assert pid is not None
    await client.leave()
    await gone(pid)
    assert not socket_path(find_home()).exists()


async def test_sigterm_ends_in_good_order(spawn: Spawn) -> None:
    client = await spawn()
    await session(client)
    await client.request("amanu/prompt/send", prompt("forever"))
    pid = daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    assert await client.exit_code() == 1
    await gone(pid)
    assert "leaving" in log_text() and "Traceback" not in log_text()


async def test_kill_9_of_the_daemon_ends_the_relay_with_1_and_the_next_starts_anew(spawn: Spawn) -> None:
    client = await spawn()
    await session(client)
    pid = daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert await client.exit_code() == 1
    assert client.process is not None and client.process.stderr is not None
    assert b"ended unexpectedly" in await client.process.stderr.read()
    client = await spawn()
    await session(client)
    assert daemon_pid() not in (None, pid)


async def test_kill_9_of_the_relay_ends_no_turn(spawn: Spawn) -> None:
    client = await spawn()
    await session(client)
    await client.request("amanu/prompt/send", prompt("flood 300 1000"))
    await client.notification("amanu/event")
    assert client.process is not None
    client.process.kill()
    other = await spawn()
    await other.initialize()
    async with asyncio.timeout(50):
        while True:
            state = (await other.request("amanu/session/attach", {"sessionId": "s"}))["result"]["state"]
            if state["lastTurn"] is not None:
                break
    assert len(state["items"][0]["text"]) == 300_000


async def test_a_daemon_whose_relay_was_killed_before_it_listened_serves_the_next(spawn: Spawn) -> None:
    read, write = os.pipe()
    started = subprocess.Popen(python(SERVER, "daemon", "--ready", str(write)), pass_fds=[write])
    os.close(read)
    os.close(write)
    while daemon_pid() is None and started.poll() is None:
        await asyncio.sleep(0.05)
    await session(await spawn())
    assert daemon_pid() == started.pid
    signal_daemon()
    await asyncio.to_thread(started.wait, 10)


@pytest.mark.parametrize("build", ["0.0.1", __version__], ids=["another version", "from before protocol 3"])
async def test_another_build_replaces_the_daemon_which_serves_its_clients_to_the_end(spawn: Spawn, build: str) -> None:
    old = subprocess.Popen(python(SERVER, "old-daemon", build), env={**os.environ, "AMANU_IDLE_SECONDS": "60"})
    while daemon_pid() is None:
        await asyncio.sleep(0.05)
    assert daemon_pid() == old.pid
    served = await RawClient.greet(find_home(), version=build)
    await session(served)
    client = await spawn()
    await session(client)
    assert daemon_pid() not in (None, old.pid)
    assert "result" in await served.request("amanu/session/list"), "the old one still serves"
    assert old.poll() is None
    served.writer.close()
    await asyncio.to_thread(old.wait, 10)
    assert old.returncode == 0
    again = await spawn()
    await session(again)


async def test_a_daemon_that_cannot_start_is_told_to_the_user(spawn: Spawn) -> None:
    home = find_home().make()
    (home.config / "config.toml").write_text("idle_seconds = 'soon'")
    client = await spawn(**{"AMANU_IDLE_SECONDS": ""})
    await client.initialize()
    shown = await client.notification("window/showMessage")
    assert shown["type"] == 1
    assert "config.toml" in shown["message"] and "idle_seconds" in shown["message"]
    assert await client.exit_code() == 1


async def test_the_relay_leaves_with_its_parent(spawn: Spawn) -> None:
    """The editor dies; somebody else still holds the relay's stdin and stdout."""
    command = json.dumps(python(SERVER, "relay"))
    code = f"import subprocess, time; p = subprocess.Popen({command}); print(p.pid, flush=True); time.sleep(600)"
    held, theirs = socket.socketpair()
    environment = {**os.environ, "AMANU_IDLE_SECONDS": "60"}
    with held, theirs:
        editor = subprocess.Popen(
            [sys.executable, "-c", code], stdin=theirs.fileno(), stdout=subprocess.PIPE, env=environment
        )
        assert editor.stdout is not None
        relay = int(editor.stdout.readline())
        body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
        held.sendall(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert b"Content-Length" in editor.stdout.readline()
        editor.kill()
        await gone(relay)
        editor.communicate()


async def test_end_of_stdin_ends_the_relay(spawn: Spawn) -> None:
    client = await spawn()
    await session(client)
    client.writer.write_eof()
    assert await client.exit_code() == 1  # no shutdown was said
    client = await spawn()
    await client.initialize()
    await client.request("shutdown")
    client.writer.write_eof()
    assert await client.exit_code() == 0
    client = await spawn()
    client.writer.write_eof()
    assert await client.exit_code() == 0  # nobody said anything


async def test_a_home_too_deep_for_a_socket(spawn: Spawn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / ("d" * 60) / ("e" * 60)))
    path = socket_path(find_home().make())
    assert len(os.fsencode(path)) <= 100 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    client = await spawn()
    await session(client)
    assert path.exists()
    path.parent.chmod(0o755)
    with pytest.raises(PermissionError):
        socket_path(find_home())
    path.parent.chmod(0o700)


async def test_nothing_of_the_workspace_is_imported(spawn: Spawn, tmp_path: Path) -> None:
    """The editor runs in a folder whose modules are named like ours (invariant 16)."""
    for name in ("json.py", "socket.py", "amanu.py", "pydantic.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('hijacked')")
    client = await RawClient.spawn(python(SERVER, "relay"), os.environ, cwd=str(tmp_path))
    try:
        await session(client)
        pid = daemon_pid()
        assert pid is not None
        if os.getuid() == 0:  # from others the daemon hides what can be read of it
            assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    finally:
        await client.stop()


async def test_alone(spawn: Spawn) -> None:
    client = await spawn("alone")
    await session(client)
    await client.request("amanu/prompt/send", prompt("hello"))
    assert (await client.notification("amanu/event"))["event"]["kind"] == "turnStarted"
    assert daemon_pid() is None
    assert await client.leave() == 0
    client = await spawn("alone")
    await session(client)
    assert client.process is not None
    client.process.send_signal(signal.SIGTERM)
    assert await client.exit_code() == 1
    client = await spawn("alone")
    await session(client)
    client.writer.write_eof()
    assert await client.exit_code() == 1


@pytest.mark.parametrize("alone", [[], ["--alone"]], ids=["daemon", "alone"])
async def test_an_editor_may_listen_on_a_socket_instead_of_stdin_and_stdout(tmp_path: Path, alone: list[str]) -> None:
    path = tmp_path / "pipe"
    came: asyncio.Future[RawClient] = asyncio.get_running_loop().create_future()
    editor = await asyncio.start_unix_server(lambda reader, writer: came.set_result(RawClient(reader, writer)), path)
    command = [*AMANU_SERVE, f"--pipe={path}", *alone]
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(50):
        client = await came
        assert (await client.initialize())["serverInfo"]["name"] == "amanu"
        await client.request("shutdown", None)
        client.notify("exit", None)
        output, _ = await process.communicate()
        client.writer.close()
        await client.writer.wait_closed()
    editor.close()
    assert (output, process.returncode) == (b"", 0)
    if (pid := signal_daemon()) is not None:
        await gone(pid)


async def test_a_socket_on_which_nobody_listens_is_named(tmp_path: Path) -> None:
    command = [*AMANU_SERVE, "--pipe", str(tmp_path / "none")]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert (process.returncode, said.decode()) == (
        1,
        f"amanu: nothing listens at {tmp_path / 'none'}: No such file or directory.\n",
    )
