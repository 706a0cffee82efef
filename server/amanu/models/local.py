"""Model servers on this machine: whether one answers, and whether the user approved it.

Whatever listens on a port would get the user's code; so a server is used only after it answered as a model
server and the user said yes once, for that address. Kept as `{"allowed": {vendor: address}}`.
"""

import asyncio
import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from amanu.models.http import tls_for
from amanu.models.local_windows import served_window
from amanu.system.private_file import read_private, write_private

_WINDOW_SECONDS = 10.0
"""How long an answer about a window is reused: a model may be loaded by the next prompt."""


class LocalServers:
    """What the user allowed. `path` is a file in the user's state folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._windows: dict[tuple[str, str], tuple[float, int | None]] = {}
        """Address and model → when its window was asked for, and the answer."""

    @property
    def vendors(self) -> Sequence[str]:
        """The servers that the user approved at some address."""
        return list(self._read())

    def allowed(self, vendor: str, base_url: str) -> bool:
        """Did the user approve this vendor at this address?"""
        return self._read().get(vendor) == base_url

    def allow(self, vendor: str, base_url: str) -> None:
        """The user says yes."""
        write_private(self._path, {"allowed": {**self._read(), vendor: base_url}})

    async def window(self, vendor: str, base_url: str, model: str) -> int | None:
        """`served_window`, cached for a few seconds."""
        cached = self._windows.get((base_url, model))
        if cached is None or time.monotonic() - cached[0] > _WINDOW_SECONDS:
            cached = self._windows[base_url, model] = (time.monotonic(), await served_window(vendor, base_url, model))
        return cached[1]

    def _read(self) -> dict[str, str]:
        allowed = read_private(self._path).get("allowed")
        return cast("dict[str, str]", allowed) if isinstance(allowed, dict) else {}


async def models_of(base_url: str, key: str | None = None) -> list[str] | None:
    """The models an OpenAI-compatible server offers (`GET …/v1/models`, or Ollama's `/api/tags`); None if nothing
    answers there as a model server within two seconds."""
    httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")  # a second, on a busy machine
    tls = await asyncio.to_thread(tls_for, base_url)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    root = base_url.removesuffix("/v1")
    async with httpx2.AsyncClient(verify=tls, timeout=2, trust_env=False, follow_redirects=False) as http:
        for address, listed, named in ((f"{base_url}/models", "data", "id"), (f"{root}/api/tags", "models", "name")):
            try:
                async with asyncio.timeout(2):
                    answer = await http.get(address, headers=headers)
                names = _names(answer.json(), listed, named) if answer.status_code == 200 else None
            except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError):
                continue
            if names is not None:
                return names
    return None


def _names(answer: Any, listed: str, named: str) -> list[str] | None:
    if not isinstance(answer, dict):
        return None
    entries: Any = cast("dict[str, Any]", answer).get(listed)
    if not isinstance(entries, list):
        return None
    names = [
        cast("dict[str, Any]", entry).get(named) for entry in cast("list[Any]", entries) if isinstance(entry, dict)
    ]
    return [name for name in names if isinstance(name, str) and name]
