"""The daemon's socket against those who should not have it, and a daemon whose peers stand still, as real processes."""

import asyncio
import contextlib
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from amanu.daemon.sockets import TOKEN_BYTES, opening, read_token, socket_path
from amanu.frontends.lsp.handshake import BUILD
from amanu.home import Home, find_home
from support.raw_client import RawClient, hello, python

SERVER = str(Path(__file__).parents[1] / "support" / "fake_session_server.py")
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
FRAME = b"Content-Length: %d\r\n\r\n%b" % (len(INITIALIZE), INITIALIZE)
LOG = "daemon.log"


class Daemon:
    """A daemon of a home of its own, and connections to it."""

    def __init__(self, home: Home, process: "subprocess.Popen[bytes]") -> None:
        self.home = home
        self.process = process

    def log(self) -> str:
        return (self.home.logs / LOG).read_text()

    async def client(self, **environment: str) -> RawClient:
        client = await RawClient.greet(self.home, **environment)
        await client.initialize()
        return client


@contextlib.contextmanager
def daemon(folder: Path, command: list[str], before: Callable[[], None] | None = None) -> Generator[Daemon]:
    environment = {**os.environ, "AMANU_HOME": str(folder), "AMANU_IDLE_SECONDS": "60"}
    ready, theirs = os.pipe()
    with subprocess.Popen(
        [*command, "--ready", str(theirs)],
        env=environment,
        stdin=subprocess.DEVNULL,
        pass_fds=(theirs,),
        preexec_fn=before,
    ) as process:
        os.close(theirs)
        try:
            assert os.read(ready, 1) == b"1", "it did not start"
            yield Daemon(find_home({"AMANU_HOME": str(folder)}), process)
        finally:
            os.close(ready)
            process.terminate()
            assert process.wait(15) == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with daemon(tmp_path_factory.mktemp("d"), python(SERVER, "daemon")) as found:
        yield found


@pytest_asyncio.fixture
async def bystander(served: Daemon) -> AsyncIterator[RawClient]:
    """Somebody with every right to be there; whatever others do, it is answered afterwards."""
    client = await served.client()
    yield client
    assert "result" in await client.request("amanu/session/list")
    await client.stop()


async def said_to(served: Daemon, data: bytes) -> bytes:
    """All that the daemon answers to these bytes until it closes."""
    reader, writer = await asyncio.open_unix_connection(socket_path(served.home))
    answer = b""
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(50):
            answer = await reader.read()
    writer.close()
    return answer


PROPER: Mapping[str, Any] = {"version": BUILD, "environment": {}}
NO_HELLO: Mapping[str, Callable[[str], bytes]] = {
    "nothing": lambda token: b"",
    "an empty line": lambda token: b"\n",
    "an empty object": lambda token: b"{}\n",
    "http": lambda token: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9,
    "a frame at once": lambda token: FRAME * 4,
    "a lot": lambda token: b"x" * 9_000_000,
    "a lot, deep": lambda token: b"[" * 9_000_000,
    "a hello from before there were tokens": lambda token: b'{"version":"%b","environment":{}}\n' % BUILD.encode(),
    "no token": lambda token: hello("", **PROPER),
    "another token": lambda token: hello("0" * len(token), **PROPER),
    "all of the token but the end": lambda token: hello(token[:-1] + ("0" if token[-1] != "0" else "1"), **PROPER),
    "the token in capitals": lambda token: hello(token.upper() + "F", **PROPER),
    "half the token": lambda token: hello(token[: len(token) // 2], **PROPER),
    "the token not at the beginning": lambda token: b'{"version":"1","token":"%b","environment":{}}\n' % token.encode(),
    "the token alone": lambda token: token.encode() + b"\n",
    "the token, then no object": lambda token: opening(token) + b"]\n",
    "the token, then no environment": lambda token: hello(token, version=BUILD),
    "the token, then numbers for an environment": lambda token: hello(token, version=1, environment={"a": 1}),
    "the token, then more than a hello holds": lambda token: opening(token) + b"x" * 9_000_000,
    "the token, then something deep": lambda token: opening(token) + b'"a":' + b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("said", NO_HELLO.values(), ids=NO_HELLO)
async def test_without_the_token_nothing_is_interpreted(
    served: Daemon, bystander: RawClient, said: Callable[[str], bytes]
) -> None:
    token = read_token(served.home)
    assert len(token) == 2 * TOKEN_BYTES
    answer = await said_to(served, said(token) + FRAME)
    assert answer == b""


async def test_with_the_token_it_answers(served: Daemon) -> None:
    answer = await said_to(served, hello(read_token(served.home), **PROPER) + FRAME)
    assert b'"accepted": true' in answer and b'"capabilities"' in answer


async def test_another_version_without_the_token_does_not_end_it(served: Daemon, bystander: RawClient) -> None:
    assert await said_to(served, hello("0" * 64, version="9.9.9", environment={})) == b""
    assert socket_path(served.home).exists()
    (await served.client()).writer.close()


def test_the_token_is_for_this_user_alone(served: Daemon) -> None:
    found = served.home.token.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, os.getuid())
    assert read_token(served.home) not in served.log()


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="becoming another user takes root on Linux")
async def test_another_user_is_not_served_whatever_they_hold(
    served: Daemon, bystander: RawClient, tmp_path: Path
) -> None:
    """As if folder, socket and token had all been left open."""
    place, token = socket_path(served.home), read_token(served.home)
    act = (
        "import os, socket, sys\n"
        f"link = socket.socket(socket.AF_UNIX); folder = os.open({str(place.parent)!r}, os.O_PATH)\n"
        "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)\n"
        "try: link.connect(f'/proc/self/fd/{folder}/daemon.sock')\n"
        "except PermissionError: print('refused'); sys.exit()\n"
        "link.settimeout(10)\n"
        f"try: link.sendall({hello(token, **PROPER) + FRAME!r}); print(link.recv(99))\n"
        "except ConnectionError: print(b'')\n"
    )
    opened = (place.parent, 0o700, 0o755), (place, 0o600, 0o666)
    answers: list[str] = []
    for open_to_all in (False, True):
        for path, private, public in opened:
            path.chmod(public if open_to_all else private)
        done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", act], capture_output=True, text=True)
        answers.append(done.stdout.strip() or done.stderr)
    for path, private, _ in opened:
        path.chmod(private)
    assert answers == ["refused", "b''"]


async def test_many_who_say_nothing_keep_nobody_out(served: Daemon, bystander: RawClient) -> None:
    """The one that waited longest makes room; `amanu doctor` and the like connect so, too."""
    silent = [await asyncio.open_unix_connection(socket_path(served.home)) for _ in range(60)]
    client = await served.client()
    async with asyncio.timeout(50):
        assert await silent[0][0].read() == b""  # long before the ten seconds a hello may take
    assert "result" in await client.request("amanu/session/list")
    client.writer.close()
    for _, writer in silent:
        writer.close()


# No port --------------------------------------------------------------------------------------------


def sockets_of(process: int) -> set[str]:
    """Inodes of the sockets a process has open."""
    found: set[str] = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            kind, _, rest = str(handle.readlink()).partition(":")
            if kind == "socket":
                found.add(rest.strip("[]"))
    return found


def of_the_network(process: int) -> set[str]:
    """Of its sockets those that are of a network, listening or not, as the kernel lists them."""
    network: set[str] = set()
    for name in ("tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6", "packet"):
        table = Path(f"/proc/{process}/net/{name}")
        column = 8 if name == "packet" else 9
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        network |= {line.split()[column] for line in lines}
    return sockets_of(process) & network


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.skipif(os.getuid() != 0, reason="the daemon's open files are hidden from everybody but root")
async def test_the_daemon_has_no_port(tmp_path: Path) -> None:
    """The real one, with a client and a session in it."""
    with daemon(tmp_path, [sys.executable, "-P", "-m", "amanu.daemon.main"]) as real:
        client = await real.client()
        await client.request(
            "amanu/session/create", {"sessionId": "s", "roots": [str(tmp_path)], "modelId": "scripted:demo"}
        )
        assert len(sockets_of(real.process.pid)) > 2, "it has its own, and one for the client"
        async with asyncio.timeout(50):  # the sandbox that tries itself out listens for a moment
            while of_the_network(real.process.pid):
                await asyncio.sleep(0.05)
        await client.stop()
    with socket.create_server(("127.0.0.1", 0)):
        assert len(of_the_network(os.getpid())) == 1, "one would have been seen"


# Open files -----------------------------------------------------------------------------------------


NO_MORE = "no connection can be accepted now: Too many open files"


def served_no_more(real: Daemon) -> bool:
    return NO_MORE in real.log()


async def test_without_a_free_file_handle_it_goes_on_and_says_so(tmp_path: Path) -> None:
    """More connections than it can open: who is served stays served, what needs a handle fails by name, and when there
    are handles again new clients are taken."""

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 48))

    with daemon(tmp_path, [sys.executable, "-P", "-m", "amanu.daemon.main"], few) as real:
        client = await real.client()
        limits = Path(f"/proc/{real.process.pid}/limits")
        if limits.exists():
            line = next(each for each in limits.read_text().splitlines() if each.startswith("Max open files"))
            assert line.split()[3:5] == ["48", "48"], "it asks for all it may have"
        others: list[asyncio.StreamWriter] = []
        while not served_no_more(real):  # one after the other, since of strangers only so many are held
            reader, writer = await asyncio.open_unix_connection(socket_path(real.home))
            others.append(writer)
            writer.write(hello(read_token(real.home), **PROPER))
            answered = asyncio.create_task(reader.readline())
            while not answered.done() and not served_no_more(real):
                await asyncio.sleep(0.01)
            answered.cancel()
        made = await client.request(
            "amanu/session/create", {"sessionId": "s", "roots": [str(tmp_path)], "modelId": "scripted:demo"}
        )
        assert made["error"]["data"]["kind"] == "storageError", made
        assert "open files" in made["error"]["message"]
        assert real.log().count(NO_MORE) == 1
        for writer in others:
            writer.close()
        late = await real.client()
        made = await late.request(
            "amanu/session/create", {"sessionId": "s", "roots": [str(tmp_path)], "modelId": "scripted:demo"}
        )
        assert "result" in made, made
        await late.stop()
        await client.stop()
