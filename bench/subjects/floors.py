"""The smallest possible Python agents (`bench/floors/`)."""

import sys
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any

from bench.floors.tools import PARAMETERS
from bench.subject import Agent, Deed, Place, Subject
from bench.subjects.acp import AcpAgent
from bench.subjects.environment import ROOT, environment

_FLOORS = {
    "raw HTTP": ("chat", ["bench.floors.raw"], "httpx2"),
    "raw HTTP, Responses": ("responses", ["bench.floors.raw_responses"], "httpx2"),
    "genai": ("gemini", ["bench.floors.genai"], "google-genai"),
    "genai, raw history": ("gemini", ["bench.floors.genai", "raw"], "google-genai"),
    "anthropic": ("anthropic", ["bench.floors.anthropic"], "anthropic"),
}


def subjects() -> list[Subject]:
    return [
        Subject(name, wire, True, partial(_start, module), _uses, version(package))
        for name, (wire, module, package) in _FLOORS.items()
    ]


async def _start(module: list[str], place: Place) -> Agent:
    env = environment(place.home, PYTHONPATH=str(ROOT), BENCH_URL=place.url)
    return await AcpAgent().start([sys.executable, "-m", *module], env, place)


def _uses(deed: Deed, what: Mapping[str, str]) -> dict[str, Any] | None:
    if deed not in PARAMETERS:
        return None
    return {"tool": deed, "arguments": {name: what[name] for name in PARAMETERS[deed]}}
