"""`words.toml`: what lines are made of."""

import tomllib
from pathlib import Path
from typing import Any, cast

_ALL: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def listed(name: str) -> list[str]:
    """One of the lists."""
    return cast("list[str]", _ALL[name])


def table(name: str) -> dict[str, list[str]]:
    """Lists by the program they are for."""
    return cast("dict[str, list[str]]", _ALL[name])
