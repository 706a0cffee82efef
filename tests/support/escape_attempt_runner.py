"""Tries every act in one tier and prints JSON of act → "done" or why not: `python escape_attempt_runner.py TIER`. As
tier, `layer` is bubblewrap over a layer.

A program of its own, so that it can be run as another user.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from amanu.checks.process import CheckFailed, find
from amanu.checks.process import start as start_checker
from amanu.config import SandboxSettings as Settings
from amanu.core.place import READ_ONLY, WORKSPACE, Place, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.home import find_home
from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.sandbox import Sandbox
from support.sandboxed_process import start

ACTS = Path(sys.modules[Sandbox.__module__].__file__ or "").with_name("escape_attempts.py")
PYTHON = next(each for each in ("/usr/bin/python3", sys.executable) if os.access(each, os.X_OK))


def lay_out(base: Path) -> dict[str, dict[str, list[Any]]]:
    """The stage, and for each need the acts that are tried with it."""
    home, root = base / "home", base / "home" / "work"
    outside, ours = base / "outside", base / "amanu"
    for folder in (root / "sub", root / "lib", home / ".ssh", home / ".cargo" / "bin", ours):
        folder.mkdir(parents=True)
    for file in (
        outside,
        home / ".ssh" / "id",
        home / "notes",
        home / ".cargo" / "bin" / "tool",
        root / "a",
        root / "b",
    ):
        file.write_text("here\n")
    (root / ".env").write_text("KEY=1\n")
    (root / "AGENTS.md").write_text("obey\n")
    (root / ".idea").mkdir()
    (root / "sub" / ".vscode").mkdir()
    (root / "sub" / ".vscode" / "settings.json").write_text("{}")
    for args in (("init", "-q"), ("config", "user.name", "x"), ("config", "user.email", "x@y"), ("add", "a")):
        subprocess.run(["git", "-C", str(root), *args], check=True)
    (root / "sub" / ".git").mkdir()
    system = Path("/var/lib") / f"amanu-acts-{os.getpid()}"
    with contextlib.suppress(OSError):
        system.write_text("here\n")
    name = f"\0amanu-acts-{os.getpid()}"
    tcp, local, abstract = (
        socket.create_server(("127.0.0.1", 0)),
        socket.socket(socket.AF_UNIX),
        socket.socket(socket.AF_UNIX),
    )
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    udp.setblocking(False)
    local.bind(str(base / "socket"))
    local.listen()
    abstract.bind(name)
    abstract.listen()
    near, deep, dead = (socket.socket(socket.AF_UNIX) for _ in range(3))
    (root / "lib" / "more").mkdir()
    os.chdir(root / "lib")  # as many servers do: no whole path is known to the system then
    near.bind("near.sock")
    deep.bind("more/deep.sock")
    dead.bind("dead.sock")
    os.chdir("/")
    near.listen()
    deep.listen()
    dead.close()
    global keep
    letters, letters_abstract = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
    letters.bind(str(base / "letters"))
    letters_abstract.bind(f"{name}-letters")
    shared = Path("/dev/shm") / f"amanu-acts-{os.getpid()}"
    shared.write_text("here\n")
    terminal = os.openpty()
    keep = (tcp, udp, local, abstract, (system, shared), near, deep, letters, letters_abstract, terminal)
    me = os.getpid()
    network: dict[str, list[Any]] = {
        "tcp": ["tcp", tcp.getsockname()[1]],
        "local socket": ["local", str(base / "socket")],
        "abstract socket": ["local", name],
        "socket in the workspace": ["local", str(root / "lib" / "near.sock")],
    }
    return {
        "": {
            "spawn": ["spawn"],
            "change the workspace": ["change", str(root / "a")],
            "new file in a folder of it": ["write", str(root / "lib" / "new")],
            "new file at its top": ["write", str(root / "new")],
            "read .env": ["read", str(root / ".env")],
            "read a tool in home": ["read", str(home / ".cargo" / "bin" / "tool")],
            "own server": ["serve"],
            "change outside": ["change", str(outside)],
            "change a file of the system": ["change", str(system)],
            "change a tool in home": ["change", str(home / ".cargo" / "bin" / "tool")],
            "truncate outside": ["truncate", str(outside)],
            "chmod outside": ["chmod", str(outside)],
            "read a file in home": ["read", str(home / "notes")],
            "read a secret in home": ["read", str(home / ".ssh" / "id")],
            "read our state": ["read", str(ours / "state" / "canary")],
            "read /etc/shadow": ["read", "/etc/shadow"],
            "new git hook": ["write", str(root / ".git" / "hooks" / "pre-commit")],
            "change git config": ["change", str(root / ".git" / "config")],
            "rename .git": ["rename", str(root / ".git"), str(root / "x")],
            "link to git config": ["link", str(root / ".git" / "config"), str(root / "lib" / "x")],
            "absent .vscode": ["folder", str(root / ".vscode")],
            "absent .mcp.json": ["write", str(root / ".mcp.json")],
            "present .idea": ["write", str(root / ".idea" / "x")],
            "present AGENTS.md": ["change", str(root / "AGENTS.md")],
            "replace AGENTS.md": ["rename", str(root / "b"), str(root / "AGENTS.md")],
            "nested .vscode": ["change", str(root / "sub" / ".vscode" / "settings.json")],
            "nested .git": ["write", str(root / "sub" / ".git" / "config")],
            "new nested .git": ["folder", str(root / "lib" / ".git")],
            **network,
            "socket deep in the workspace": ["local", str(root / "lib" / "more" / "deep.sock")],
            "own socket in the workspace": ["serve_local", str(root / "lib" / "own.sock")],
            "own socket where a dead one was": ["serve_local", str(root / "lib" / "dead.sock")],
            "datagram": ["datagram", str(base / "letters")],
            "abstract datagram": ["datagram", f"{name}-letters"],
            "udp": ["udp", udp.getsockname()[1]],
            "vsock": ["vsock"],
            "odd sockets": ["odd_sockets"],
            "signal": ["signal_", me],
            "see processes": ["see", me],
            "read environments": ["environment", me],
            "read memory": ["other_memory", me],
            "read open files": ["other_files", me],
            "set limits": ["limits", me],
            "shared memory": ["shared_memory", _segment()],
            "file of shared memory": ["read", str(shared)],
            "queue": ["shared_queue", _queue()],
            "read a terminal": ["terminal", os.ttyname(terminal[1])],
            "read the disk": ["disk"],
            "ptrace": ["ptrace"],
            "remount": ["remount", str(outside)],
            "mount": ["mount", str(root)],
            "mount anew": ["mount_anew", str(root)],
            "chroot": ["chroot", str(root)],
            "user namespace": ["namespace"],
            "kernel programs": ["kernel_programs"],
            "rights of another user": ["gain"],
            "kernel setting": ["kernel_setting"],
            "io_uring": ["io_uring"],
            "keyring": ["keyring"],
            "type ahead": ["type_ahead"],
            "handles of the host": ["handles"],
            "outlive": ["outlive", str(root / "a")],
        },
        "unasked": {
            "read .env": ["read", str(root / ".env")],
            "change the workspace": ["change", str(root / "a")],
            "new file at its top": ["write", str(root / "newer")],
        },
        "nothing": {
            "change the workspace": ["change", str(root / "a")],
            "new file in a folder of it": ["write", str(root / "lib" / "new2")],
            "read the workspace": ["read", str(root / "a")],
            "read .env": ["read", str(root / ".env")],
            "socket in the workspace": network["socket in the workspace"],
            "git status": ["git", str(root), "status"],
        },
        "git": {
            "git commit": ["git", str(root), "commit", "-qm", "x"],
            "git branch": ["git", str(root), "branch", "other"],
            "new git hook": ["write", str(root / ".git" / "hooks" / "pre-commit")],
            "change git config": ["change", str(root / ".git" / "config")],
            "replace git config": ["rename", str(root / "b"), str(root / ".git" / "config")],
            "rename .git": ["rename", str(root / ".git"), str(root / "x")],
        },
        "network": {
            **network,
            "datagram": ["datagram", str(base / "letters")],
            "abstract datagram": ["datagram", f"{name}-letters"],
        },
    }


def _segment() -> int:
    """The key of a segment of shared memory, that goes when we do."""
    key = 0x616D0000 | os.getpid() & 0xFFFF
    segments.append(_libc.shmget(key, 4096, 0o1666))
    return key


def _queue() -> str:
    name = f"amanu-acts-{os.getpid()}"
    _libc.syscall(
        180 if os.uname().machine == "aarch64" else 240,
        name.encode(),
        os.O_CREAT | os.O_RDWR | os.O_CLOEXEC,
        0o600,
        None,
    )
    queues.append(name)
    return name


segments: list[int] = []
queues: list[str] = []
_libc = ctypes.CDLL(None, use_errno=True)

keep: tuple[Any, ...] = ()
NEEDS = {
    "": Place(reach=Reach(secrets=True)),
    "unasked": WORKSPACE,
    "git": Place(reach=Reach(secrets=True, git="files")),
    "nothing": READ_ONLY,
    "network": Place(reach=Reach(network=True, secrets=True)),
}


def _need(place: Place, layer: Layer | None) -> SandboxRequirements:
    if layer is None:
        return SandboxRequirements(place)
    return SandboxRequirements(replace(place, base="fork", finds="saved", then="dropped"), layer=layer.folder)


async def main(tier: Any) -> dict[str, str]:
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="acts-")))
    plan = lay_out(base)
    root = base / "home" / "work"
    environment = {"HOME": str(base / "home"), "PATH": "/usr/bin:/bin"}
    ours = find_home({"AMANU_HOME": str(base / "amanu")}).make()
    (ours.state / "canary").write_text("secret")
    # A clone may lie in a folder that commands do not see.
    best = "bubblewrap" if tier == "layer" else tier
    sandbox = Sandbox(Settings(read=(str(ACTS.parent),)), ours, best=best)
    found: dict[str, str] = {}
    untouched = contents(root)
    try:
        proof = await sandbox.proved()
        assert proof.tier == best, proof.summary
        for name, acts in plan.items():
            before = state(root)
            layer = Layer.create(ours.layers, [root]) if tier == "layer" else None
            need = _need(NEEDS[name], layer)
            said = await act(sandbox, need, root, environment, acts)
            if layer is not None:
                layer.remove()
            if tier != "none" and state(root) == before:
                said |= {key: "undone" for key in (*OBEYED, "link to git config") if said.get(key) == "done"}
            if "outlive" in acts:
                before = (root / "a").stat().st_size
                time.sleep(0.1)
                said["outlive"] = "done" if (root / "a").stat().st_size != before else "ended"
            if "udp" in acts:
                try:
                    keep[1].recv(9)
                    said["udp"] = "done"
                except OSError:
                    said["udp"] = "not heard"
            found |= {f"{name}: {key}" if name else key: value for key, value in said.items()}
        layer = Layer.create(ours.layers, [root]) if tier == "layer" else None
        need = _need(NEEDS[""], layer)
        found |= await planted(sandbox, need, root, environment)
        if layer is not None:
            layer.remove()
        left = {each.name for each in root.iterdir()} - {
            ".venv",
            "a",
            "b",
            "sub",
            "lib",
            ".env",
            "AGENTS.md",
            ".idea",
            ".git",
            "new",
            "newer",
            "x",
        }
        found["left in the workspace"] = ", ".join(sorted(left))
        if tier == "layer" and contents(root) != untouched:
            found["left in the workspace"] = "not what was there before"
    finally:
        await sandbox.close()
        with contextlib.suppress(OSError):
            for each in keep[4]:
                each.unlink(missing_ok=True)
        for each in segments:
            _libc.shmctl(each, 0, None)  # IPC_RMID
        for each in queues:
            _libc.syscall(181 if os.uname().machine == "aarch64" else 241, each.encode())
        for _ in range(9):  # without a sandbox what outlives may write there just now
            with contextlib.suppress(OSError):
                shutil.rmtree(base)
                break
    return found


def contents(root: Path) -> dict[str, Any]:
    """All that is in the workspace."""
    status = {path: path.lstat() for path in root.rglob("*")}
    return {
        str(path): (
            found.st_mode,
            found.st_ino,
            found.st_nlink,
            found.st_mtime_ns,
            path.is_file() and path.read_bytes(),
        )
        for path, found in status.items()
    }


def state(root: Path) -> dict[str, Any]:
    """Of what git, editors and agents obey: where it is, and what is in it."""
    found: dict[str, Any] = {}
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        passed_by = {"objects", "refs", "logs", "index", "COMMIT_EDITMSG"} & {*parts} or parts == (
            "lib",
            ".git",
        )  # the new one
        if {*parts} & {".git", ".vscode", ".mcp.json", ".idea", "AGENTS.md"} and not passed_by:
            status = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = (status.st_mode, text, path.is_dir() or status.st_nlink)
    return found


OBEYED = (
    *("new git hook", "change git config", "rename .git", "replace git config", "absent .vscode", "absent .mcp.json"),
    *("present .idea", "present AGENTS.md", "replace AGENTS.md", "nested .vscode", "nested .git"),
)


PLANT = """
mkdir -p .venv/bin
for name in python shellcheck; do
  echo '#!/bin/sh' > .venv/bin/$name
  echo "echo > \\"\\$OUTSIDE/$name.done\\"; echo > '$PWD/.venv/bin/$name.done'" >> .venv/bin/$name
  chmod 755 .venv/bin/$name
done
"""


async def planted(
    sandbox: Sandbox, need: SandboxRequirements, root: Path, environment: dict[str, str]
) -> dict[str, str]:
    """A command leaves programs where a project has its checkers, and checkers are started afterwards, as for an edit:
    one that was planted, and one that is run by the planted Python."""
    handle = os.open(root, os.O_RDONLY)
    try:
        argv = ["/bin/sh", "-c", PLANT]
        async with sandbox.launch(argv, need, [root], root, handle, environment) as started:
            await (await start(started)).communicate()
    finally:
        os.close(handle)
    outside = root.parents[1] / "planted"
    outside.mkdir()
    folder = root / ".venv" / "bin"
    there = folder / "shellcheck"
    is_planted = there.exists() if need.layer is None else Layer.open(need.layer).visible(there) is not None
    found = {"plant a checker": "done" if is_planted else "it is not there"}
    for act, name in (("planted checker", "shellcheck"), ("planted .venv/bin/python", "python")):
        program = find(name, {"PATH": ""}, [root])
        try:
            if program is not None:
                checker = await start_checker(
                    sandbox, [program], root, [root], {**environment, "OUTSIDE": str(outside)}
                )
                found[act] = await checker.end_reason()
                await checker.end()
        except CheckFailed as error:
            found[act] = str(error)
        if (outside / f"{name}.done").exists() or (folder / f"{name}.done").exists():
            found[act] = "done"
        found.setdefault(act, "it is not there")
    return found


async def act(
    sandbox: Sandbox, need: SandboxRequirements, root: Path, environment: dict[str, str], acts: dict[str, list[Any]]
) -> dict[str, str]:
    argv = [PYTHON, "-I", "-S", str(ACTS), json.dumps(acts)]
    handle = os.open(root, os.O_RDONLY)
    try:
        async with sandbox.launch(argv, need, [root], root, handle, environment) as started:
            process = await start(started)
            said = (await process.communicate())[0]
    finally:
        os.close(handle)
    return json.loads(said)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
