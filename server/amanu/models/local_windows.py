"""The window with which a model server on this machine runs a model; what the model itself could do may be far more."""

import asyncio
import importlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from amanu.models.http import tls_for
from amanu.models.listing import WINDOWS

_SECONDS = 1.0


async def served_window(vendor: str, base_url: str, model: str) -> int | None:
    """Tokens; None for other vendors, and if the server does not say within a second. `base_url` with `/v1`."""
    ask = _SERVERS.get(vendor)
    if ask is None:
        return None
    httpx2 = await asyncio.to_thread(importlib.import_module, "httpx2")
    tls = await asyncio.to_thread(tls_for, base_url)
    try:
        async with (
            asyncio.timeout(_SECONDS),
            httpx2.AsyncClient(verify=tls, timeout=_SECONDS, trust_env=False) as http,
        ):
            return await ask(http, base_url.removesuffix("/v1"), model)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError):
        return None


async def _ollama(http: Any, root: str, model: str) -> int | None:
    """The actual one if the model is loaded, else the one its Modelfile sets; else the server chooses one by the
    machine's memory when it loads the model."""
    for fields in _entries((await http.get(f"{root}/api/ps")).json(), "models"):
        window = _window(fields.get("context_length"))
        names = (fields.get("name"), fields.get("model"))
        if window is not None and (model in names or f"{model}:latest" in names):
            return window
    shown = (await http.post(f"{root}/api/show", json={"model": model})).json()
    match = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(_object(shown).get("parameters")), re.MULTILINE)
    return _window(int(match[1])) if match is not None else None


async def _llamacpp(http: Any, root: str, model: str) -> int | None:
    """Of the model it was started with. A router of several models is not made to load one."""
    props = (await http.get(f"{root}/props", params={"model": model, "autoload": "false"})).json()
    return _window(_object(_object(props).get("default_generation_settings")).get("n_ctx"))


async def _vllm(http: Any, root: str, model: str) -> int | None:
    entries = _entries((await http.get(f"{root}/v1/models")).json(), "data")
    return next((_window(fields.get("max_model_len")) for fields in entries if fields.get("id") == model), None)


_SERVERS: Mapping[str, Callable[[Any, str, str], Awaitable[int | None]]] = {
    "ollama": _ollama,
    "llamacpp": _llamacpp,
    "vllm": _vllm,
}


def _entries(answer: Any, field: str) -> list[dict[str, Any]]:
    entries: Any = _object(answer).get(field)
    return [_object(entry) for entry in cast("list[Any]", entries)] if isinstance(entries, list) else []


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _window(value: Any) -> int | None:
    is_sane = isinstance(value, int) and WINDOWS[0] <= value <= WINDOWS[1]
    return value if is_sane else None
