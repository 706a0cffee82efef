"""What commands reach instead of the internet, all on loopback: package registries, GitHub, and the git remote."""

import base64
import hashlib
import io
import json
import re
import socket
import subprocess
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

_VERSION = "1.0.0"
"""Of every package: whichever is asked for exists, and is empty."""

INSTALLED: dict[str, tuple[str]] = {}
"""Packages that the project has in another version."""


class Services:
    """`with Services(folder) as services:` — `folder` holds the remotes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def __enter__(self) -> "Services":
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._git_port = _free_port()
        self._git = subprocess.Popen(
            [
                *("git", "daemon", "--export-all", "--enable=receive-pack", "--reuseaddr", "--listen=127.0.0.1"),
                *(f"--port={self._git_port}", f"--base-path={self._folder}", str(self._folder)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_for(self._git_port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._git.terminate()
        self._git.wait()
        self._server.shutdown()
        self._server.server_close()

    @property
    def packages(self) -> str:
        """Python's."""
        return f"http://127.0.0.1:{self.port}/simple/"

    @property
    def registry(self) -> str:
        """npm's."""
        return f"http://127.0.0.1:{self.port}/"

    def address(self, remote: Path) -> str:
        """Of a repository in the folder."""
        return f"git://127.0.0.1:{self._git_port}/{remote.relative_to(self._folder)}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if found := re.fullmatch(r"/simple/([\w.-]+)/", path):
            file = f"{found[1].replace('-', '_')}-{_VERSION}-py3-none-any.whl"
            self._answer(f'<a href="/wheel/{file}">{file}</a>'.encode(), "text/html")
        elif found := re.fullmatch(r"/wheel/([\w.]+)-\d.*\.whl", path):
            self._answer(_wheel(found[1]), "application/zip")
        elif found := re.fullmatch(r"/tarball/([\w.@/-]+@[\w.-]+)\.tgz", path):
            self._answer(_tarball(*found[1].rsplit("@", 1)), "application/octet-stream")
        elif path.startswith("/api/"):
            self._answer(b"{}")
        else:
            self._answer(self._package(path.strip("/").replace("%2f", "/")))

    def do_HEAD(self) -> None:
        """uv asks so whether it can have parts of a file. It cannot."""
        self.do_GET()

    def do_POST(self) -> None:
        """npm asks for advisories."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _package(self, name: str) -> bytes:
        versions = {version: self._version(name, version) for version in (_VERSION, *INSTALLED.get(name, ()))}
        return json.dumps({"name": name, "dist-tags": {"latest": max(versions)}, "versions": versions}).encode()

    def _version(self, name: str, version: str) -> dict[str, Any]:
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(_tarball(name, version)).digest()).decode()
        dist = {"tarball": f"http://{self.headers['Host']}/tarball/{name}@{version}.tgz", "integrity": integrity}
        return {"name": name, "version": version, "dist": dist}

    def _answer(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _wheel(name: str) -> bytes:
    data = io.BytesIO()
    about = f"{name}-{_VERSION}.dist-info"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {_VERSION}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return data.getvalue()


def _tarball(name: str, version: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=0) as archive:
        text = json.dumps({"name": name, "version": version}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    # The header of gzip holds the time: without it, the same package has the same digest each time.
    return data.getvalue()[:4] + b"\0\0\0\0" + data.getvalue()[8:]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("git daemon does not answer: is it installed?")
