"""`make demo-vscode`: the sample project of `amanu demo` in VS Code, in a browser. Only the model is no real one.

All that it writes is in one temporary folder, which it removes when it ends (Ctrl+C, SIGTERM). VS Code listens on
127.0.0.1 and wants the token of the address. It and the daemon have a home of their own, and no keys.
"""

import asyncio
import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path

from amanu.cli.demo import MODEL, PROMPT, copy_sample
from support.free_port import free_port
from support.running_daemon import daemon_pid
from support.vscode_server import started

STAGE = Path(__file__).with_name("browser_demo_stage")
"""An extension that opens the file and lays the prompt into the chat."""
SETTINGS = {
    "chat.disableAIFeatures": True,  # they have the same side bar
    "window.autoDetectColorScheme": True,
    "workbench.startupEditor": "none",
}
"""All that differs from VS Code's defaults, beside the trust in a folder that we made ourselves."""
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL")
"""Variables of ours that VS Code gets."""
SECONDS = 10
"""Seconds that a daemon has to end."""


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="amanu-demo-")).resolve()
    code = 0
    try:
        code = asyncio.run(show(folder))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("\nThe demo ends.", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return code


async def show(folder: Path) -> int:
    """Runs the demo in that empty folder until VS Code ends or this task is cancelled, as SIGTERM does."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    copy_sample(folder / "shop")
    port, token = free_port(), secrets.token_urlsafe(16)
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(token)  # not in the arguments, which everybody on this machine sees
    options = ["--connection-token-file", str(folder / "token"), "--disable-workspace-trust"]
    with homes(folder) as environment:
        async with started(folder, port, options, environment, STAGE) as process:
            welcome(f"http://127.0.0.1:{port}/?tkn={token}&folder={folder / 'shop'}")
            while process.poll() is None:
                await asyncio.sleep(0.5)
    print(f"VS Code has ended by itself:\n{(folder / 'server.log').read_text()[-2000:]}", file=sys.stderr)
    return 1


@contextlib.contextmanager
def homes(folder: Path) -> Generator[Mapping[str, str]]:
    """The environment of a user with nothing but the scripted model; at the end their daemon is stopped."""
    amanu = {"AMANU_HOME": str(folder / "amanu"), "AMANU_IDLE_SECONDS": "2"}
    (folder / "amanu" / "config").mkdir(parents=True)
    (folder / "amanu" / "config" / "config.toml").write_text(f'model = "{MODEL}"\n')
    machine = {"amanu.server.path": str(Path(sys.executable).with_name("amanu")), "amanu.server.environment": amanu}
    for place, settings in {"User": SETTINGS, "Machine": machine}.items():
        (folder / "user" / place).mkdir(parents=True)
        (folder / "user" / place / "settings.json").write_text(json.dumps(settings))
    for name in ("me", "tmp"):
        (folder / name).mkdir()
    gallery = {"EXTENSIONS_GALLERY": "{}"}  # else it asks one for extensions to recommend
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    places = {"HOME": str(folder / "me"), "TMPDIR": str(folder / "tmp"), "AMANU_DEMO_PROMPT": PROMPT}
    try:
        yield {**passed_on, **places, **gallery}
    finally:
        stop(amanu)


def stop(amanu: Mapping[str, str]) -> None:
    """End the daemon of that environment, and wait for it."""
    if sys.platform != "linux":  # elsewhere a socket does not tell whose it is; being idle, the daemon ends by itself
        return
    with contextlib.suppress(ProcessLookupError):
        if (pid := daemon_pid(amanu)) is not None:
            ended = os.pidfd_open(pid)
            os.kill(pid, signal.SIGTERM)
            select.select([ended], [], [], SECONDS)
            os.close(ended)


def welcome(url: str) -> None:
    print(f"Amanu in VS Code: {url}")
    print("Press Enter in the chat. The model is scripted, everything else is real.")
    print("Ctrl+C ends the demo and removes its folder.", flush=True)
    if sys.stdin.isatty() and (program := opener()) is not None:
        subprocess.Popen([program, url], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def opener() -> str | None:
    """The program that opens an address in the user's browser; None where there is no screen for one."""
    if sys.platform == "darwin":
        return shutil.which("open")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return shutil.which("xdg-open")
    return None


if __name__ == "__main__":
    sys.exit(main())
