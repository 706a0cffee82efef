"""`words.toml`: what lines are made of. `/tmp/w` in it stands for the folder they run in."""

import tomllib
from pathlib import Path
from typing import Any, cast

from bench.soundness.sandbox import TOP

_TEXT = Path(__file__).with_name("words.toml").read_text("utf-8")
_ALL: dict[str, Any] = tomllib.loads(_TEXT.replace("/tmp/w/", f"{TOP}/"))


def listed(name: str) -> list[str]:
    """One of the lists."""
    return cast("list[str]", _ALL[name])


def table(name: str) -> dict[str, list[str]]:
    """Lists by the program they are for."""
    return cast("dict[str, list[str]]", _ALL[name])
