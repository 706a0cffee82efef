"""The models and sessions that a shell completes with, read without a daemon."""

import asyncio
import os
import re
import sys
from typing import Literal

from amanu.cli import exits
from amanu.cli.models import open_registry
from amanu.cli.text import one_line
from amanu.home import find_home
from amanu.storage.session_index import SessionIndex
from amanu_protocol.errors import AmanuError

SESSIONS_SHOWN = 50
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)
"""Values that no shell reads as anything else: ids come from vendors' lists."""


def print_values(kind: Literal["models", "sessions"]) -> int:
    """Print a line for each value: itself, a tab, its description. Returns the exit code."""
    try:
        values = asyncio.run(_models() if kind == "models" else _sessions())
    except AmanuError as error:
        print(one_line(str(error), 400), file=sys.stderr)
        return exits.of_error(error)
    for value, description in values:
        if _PLAIN.fullmatch(value):
            print(f"{value}\t{one_line(description, 60)}")
    return exits.OK


async def _models() -> list[tuple[str, str]]:
    """The usable models, or all of them while there is no key."""
    registry = open_registry()
    try:
        models = await registry.list(os.environ)
    finally:
        await registry.close()
    usable = [info for info in models if info.available]
    return [(info.model_id, info.name) for info in usable or models]


async def _sessions() -> list[tuple[str, str]]:
    home = find_home()
    if not home.sessions.exists():
        return []
    index = await SessionIndex.open(home.sessions)
    try:
        listed = await index.list(limit=SESSIONS_SHOWN, agents=False, archived=False)
    finally:
        await index.close()
    latest = [("latest", "the latest session")] if listed else []
    return latest + [(each.session_id, each.title) for each in listed]
