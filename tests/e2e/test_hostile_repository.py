"""The hostile repository: opened, asked about and searched by a real daemon, which `strace` watches.

Nothing is executed but our own Python, and a ripgrep from outside; nothing is connected to but our own socket; no tool
reads a file outside; before trust, nothing of the repository is so much as opened by the daemon itself.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from amanu.daemon.sockets import socket_path
from amanu.home import find_home
from amanu.workspace.ripgrep import shipped_ripgrep
from support import hostile_repository
from support.hostile_repository import OBEY, SECRET, TRAPS, Ground
from support.raw_client import AMANU, RawClient
from support.required_programs import needs
from support.running_daemon import signal_daemon

SECONDS = 90.0
"""For everything; each system call is looked at by strace."""
TWO, THREE = "node_modules/phase-two.txt", "node_modules/phase-three.txt"
"""Read as the first thing of a phase, and searched by nobody: so the phases are told apart in the trace."""


def read(path: str) -> dict[str, Any]:
    return {"tool": "read_file", "arguments": {"path": path}}


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def script(ground: Ground) -> list[dict[str, Any]]:
    """What a model might do to find its way around: one step a line."""
    outside = [str(path) for path in ground.secrets]
    links = [
        "key.txt",
        "home/.netrc",
        "linked/id_ed25519",
        "src/up.txt",
        "src/system/passwd",
        "proc/environ",
        "environ.txt",
    ]
    odd = ["zero.txt", "tty.txt", "loop", "ring/a", "pipe", "socket", "huge.txt", "bomb.gz", "binary.py", "line.txt"]
    plain = ["src/main.py", "escapes.txt", "AGENTS.md", ".git/config", "odd/a\nb", "src/../../home/.netrc", "d/" * 300]
    looks = [
        use("list_directory"),
        use("list_directory", path="odd"),
        use("list_directory", path="home"),
        use("list_directory", path="/proc/self"),
        use("list_directory", path="d/d/d"),
        use("glob", pattern="**/*"),
        use("glob", pattern="*a" * 60),
        use("grep", pattern="needle"),
        use("grep", pattern=SECRET.replace("-", ".")),
        use("grep", pattern="needle", path="fixtures"),
        use("grep", pattern="(a+)+$", path="slow"),
        use("grep", pattern="needle", path=".git"),
        use("grep", pattern="--pre=sh", include="{a,b}"),
        use("read_many_files", paths=["src/**", "odd/*", ".mcp.json", "many/1*.txt"]),
        use("get_diagnostics", path="src/main.py"),
    ]
    around = [*map(read, [*outside, *links, *odd, *plain]), *looks]
    return [
        {"text": "Hello."},
        {"calls": [read(TWO)]},
        {"calls": around[:20]},
        {"calls": around[20:]},
        {"text": "That is what I found."},
        {"calls": [read(THREE)]},
        {"calls": [use("grep", pattern="needle", path="src"), use("list_directory", path="src")]},
        {"text": "Nothing else."},
    ]


@dataclass
class Stage:
    ground: Ground
    client: RawClient
    trace: Path

    async def request(self, method: str, **params: Any) -> Any:
        answer = await self.client.request(method, params, SECONDS)
        assert "error" not in answer, answer
        return answer["result"]

    async def say(self, text: str, prompt_id: str) -> dict[str, Any]:
        """A whole turn; the state after it."""
        await self.request("amanu/prompt/send", sessionId="s", promptId=prompt_id, text=text)
        while True:
            event = (await self.client.notification("amanu/event", SECONDS))["event"]
            if event["kind"] == "turnEnded":
                assert event["reason"] == "completed", event
                break
        return (await self.request("amanu/session/attach", sessionId="s"))["state"]


@pytest.fixture
def listening() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server, server.getsockname()[1]


@pytest_asyncio.fixture
async def stage(
    tmp_path: Path, listening: tuple[socket.socket, int], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    strace = needs("strace")
    ground = hostile_repository.build(tmp_path / "g", listening[1])
    for name in (TWO, THREE):
        ground.write(name, "here\n")
    steps = tmp_path / "script.json"
    steps.write_text(json.dumps(script(ground)))
    trace = tmp_path / "trace"
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "a"))
    (tmp_path / "a" / "config").mkdir(parents=True)
    (tmp_path / "a" / "config" / "config.toml").write_text(f'model = "scripted:{steps}"\n')
    paths = [
        *(str(ground.root / each) for each in (".", "node_modules/.bin", ".venv/bin")),
        ".",
        "",
        os.environ["PATH"],
    ]
    environment = {
        **os.environ,
        "HOME": str(ground.home),
        "PATH": os.pathsep.join(paths),
        "RIPGREP_CONFIG_PATH": str(ground.root / ".ripgreprc"),
        "AMANU_IDLE_SECONDS": "30",
    }
    calls = "trace=execve,execveat,connect,open,openat,openat2,sendto"
    watched = [strace, "-f", "-y", "-qq", "-s", "400", "-e", "signal=none", "-e", calls, "-o", str(trace)]
    serve = [sys.executable, "-P", "-m", "amanu", "serve"]
    client = await RawClient.spawn([*watched, *serve], environment, cwd=str(ground.root))
    try:
        yield Stage(ground, client, trace)
    finally:
        await end(client)
        ground.close()


async def end(client: RawClient) -> None:
    """The client, and the daemon that outlives it; strace goes with the last of them."""
    if client.process is not None and client.process.returncode is None:
        client.writer.close()
        signal_daemon()
        await client.exit_code(30)


@pytest.mark.skipif(os.getuid() != 0, reason="the daemon's open files are hidden from everybody but root")
async def test_nothing_of_it_happens(stage: Stage, listening: tuple[socket.socket, int]) -> None:
    ground, began = stage.ground, time.monotonic()
    root = str(ground.root)
    await stage.client.initialize(
        {"experimental": {"amanu": {"protocol": [4], **AMANU["experimental"]["amanu"]}}},
        workspaceFolders=[{"uri": ground.root.as_uri(), "name": "repository"}],
    )
    await proved(stage, ground.home.parent / BEGIN)
    made = await stage.request("amanu/session/create", sessionId="s", roots=[root])
    assert not made["state"]["trusted"]
    opened = {"uri": (ground.root / "AGENTS.md").as_uri(), "languageId": "markdown", "version": 1, "text": OBEY}
    stage.client.notify("textDocument/didOpen", {"textDocument": opened})
    commands = await stage.request("amanu/command/list", sessionId="s")
    assert {each["source"] for each in commands["commands"]} == {"daemon"}
    await stage.say("/look What is this?", "p1")  # phase one: only opened, and asked about
    state = await stage.say("What is in it?", "p2")  # phase two: looked at
    told = json.dumps(state)
    assert state["mode"] == "ask" and not state["trusted"] and state["approvals"] == []
    assert "".join(each["text"] for each in state["items"] if each["kind"] == "notice").count(OBEY) == 0

    shown = await stage.request("amanu/trust/get", root=root)
    assert {"AGENTS.md", "CLAUDE.md", "src/AGENTS.md", ".amanu/config.toml"} <= {
        each["path"] for each in shown["enables"]
    }
    ground.write(
        ".amanu/config.toml", ""
    )  # as it is, it asks for what no repository may: that is refused with a sentence
    shown = await stage.request("amanu/trust/get", root=root)
    await stage.request("amanu/trust/set", root=root, trusted=True, digest=shown["digest"])
    state = await stage.say("And now?", "p3")  # phase three: trusted
    assert state["trusted"]
    told += json.dumps([state, shown])
    for each in (SECRET, "root:x:0:0"):
        assert each not in told
    await end(stage.client)
    assert time.monotonic() - began < SECONDS

    assert sorted(path.name for path in ground.sprung.iterdir()) == []
    with pytest.raises(BlockingIOError):
        listening[0].accept()
    one, two, three = phases(stage.trace.read_text("utf-8", "replace"), root)
    for calls in (one, two, three):
        assert executed(calls, root, shipped_ripgrep() or shutil.which("rg")) == []
        assert connected(calls) == []
        assert outside(calls, ground) == []
    assert inside(one, root) == []
    assert inside(three, root), "what is trusted is read: the trace sees it"


async def proved(stage: Stage, folder: Path) -> None:
    """The sandbox has tried itself out, elsewhere: from now on the trace tells of the repository."""
    folder.mkdir()
    await stage.request("amanu/session/create", sessionId="elsewhere", roots=[str(folder)])
    while (await stage.request("amanu/session/attach", sessionId="elsewhere"))["state"]["sandbox"] is None:
        await asyncio.sleep(0.05)
    (folder / "AGENTS.md").write_text("Begin.\n")
    await stage.request("amanu/trust/get", root=str(folder))


def test_it_can_be_removed(tmp_path: Path) -> None:
    """Pytest removes the folders of former runs, also of one that was killed, with no more than this."""
    hostile_repository.build(tmp_path / "g", 9).close()
    shutil.rmtree(tmp_path / "g")


def test_there_are_enough_of_them() -> None:
    assert len(TRAPS) >= 40


# What the trace says ----------------------------------------------------------------------------------


BEGIN = "begin"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPENED = re.compile(r"\) = \d+<([^>]*)>")


def phases(trace: str, root: str) -> list[list[tuple[str, str]]]:
    """(name, arguments and result) of the calls, in three parts. strace cuts a line in two where processes meet: the
    second half stands with the first's process."""
    whole: list[tuple[str, str]] = []
    begun: dict[str, int] = {}
    for line in trace.splitlines():
        pid, _, rest = line.partition(" ")
        if found := re.match(r" *<\.\.\. (\w+) resumed>(.*)", rest):
            if pid in begun:
                at = begun.pop(pid)
                whole[at] = (whole[at][0], whole[at][1].removesuffix("<unfinished ...>") + found[2])
        elif found := re.match(r" *(\w+)\((.*)", rest):
            if rest.endswith("<unfinished ...>"):
                begun[pid] = len(whole)
            whole.append((found[1], found[2]))
    whole = whole[max(at for at, each in enumerate(whole) if f"/{BEGIN}/AGENTS.md" in each[1]) + 1 :]
    starts = [next(at for at, each in enumerate(whole) if f"/{name}>" in each[1]) for name in (TWO, THREE)]
    assert len(whole) > 1000, "the trace is of something else"
    return [whole[: starts[0]], whole[starts[0] : starts[1]], whole[starts[1] :]]


def executed(calls: list[tuple[str, str]], root: str, ripgrep: str | None) -> list[str]:
    """What was started, or tried to be, and is not ours."""
    found: list[str] = []
    for name, rest in calls:
        if not name.startswith("exec"):
            continue
        words = _STRING.findall(rest)
        program = os.path.realpath(words[0])
        ours = program == os.path.realpath(sys.executable) and (
            words[1:4] == [words[0], "-P", "-m"] or words[2:4] == ["-I", "-S"]
        )
        searches = ripgrep is not None and program == os.path.realpath(ripgrep) and "--no-config" in words
        if words[0].startswith(root) or not Path(words[0]).is_absolute() or not (ours or searches):
            found.append(rest)
    return found


def connected(calls: list[tuple[str, str]]) -> list[str]:
    """Where to, but our own socket."""
    own = f'sun_path="{socket_path(find_home())}"'
    return [
        rest
        for name, rest in calls
        if (name == "connect" and own not in rest) or (name == "sendto" and "sa_family=AF_INET" in rest)
    ]


def outside(calls: list[tuple[str, str]], ground: Ground) -> list[str]:
    """What was opened of the home beside, of devices and of what links lead to."""
    never = (str(ground.home), "/etc/passwd", "/etc/shadow", "/dev/zero", "/dev/tty", "/proc/self/environ")
    return [path for path in opened(calls) if path.startswith(never)]


def inside(calls: list[tuple[str, str]], root: str) -> list[str]:
    """Which files of the repository were opened. Folders are no files: they are held to."""
    return [path for path in opened(calls) if path.startswith(f"{root}/") and Path(path).is_file()]


def opened(calls: list[tuple[str, str]]) -> list[str]:
    return [found[1] for name, rest in calls if name.startswith("open") and (found := _OPENED.search(rest))]
