"""A real ssh server on loopback, for one test: it lets in one key, as the user that runs the tests."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.required_programs import needs

_POLL = 0.02  # seconds


@dataclass(frozen=True)
class SshServer:
    address: str
    """ssh://127.0.0.1:PORT"""
    key: Path
    """The private key that it lets in."""
    settings: Path
    """For `ssh -F`: the client knows the server, and has no key of its own."""


@asynccontextmanager
async def ssh_server(folder: Path) -> AsyncGenerator[SshServer]:
    """`folder` is created, and holds all files of the server."""
    sshd, keygen = needs("sshd"), needs("ssh-keygen")
    folder.mkdir(mode=0o700)
    host_key, key = folder / "host", folder / "id_ed25519"
    for path in (host_key, key):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # root's sshd confines itself there, and wants it to exist
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    known, settings, server = folder / "known", folder / "settings", folder / "server"
    known.write_text(f"[127.0.0.1]:{port} {host_key.with_suffix('.pub').read_text()}")
    settings.write_text(f"BatchMode yes\nUserKnownHostsFile {known}\nIdentityFile none\n")
    server.write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {host_key}\nAuthorizedKeysFile {key.with_suffix('.pub')}\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n"
    )
    process = await asyncio.create_subprocess_exec(sshd, "-D", "-f", server, "-E", folder / "log")
    try:
        while not _listens(port):
            assert process.returncode is None, (folder / "log").read_text()
            await asyncio.sleep(_POLL)
        yield SshServer(f"ssh://127.0.0.1:{port}", key, settings)
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def ssh_agent(address: Path, key: Path) -> AsyncGenerator[None]:
    """An agent that holds the key, at that socket (`SSH_AUTH_SOCK`)."""
    agent, add = needs("ssh-agent"), needs("ssh-add")
    process = await asyncio.create_subprocess_exec(agent, "-D", "-a", address, stdout=asyncio.subprocess.DEVNULL)
    try:
        while not address.exists():
            assert process.returncode is None
            await asyncio.sleep(_POLL)
        subprocess.run([add, "-q", key], check=True, env={**os.environ, "SSH_AUTH_SOCK": str(address)})
        yield
    finally:
        process.terminate()
        await process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
