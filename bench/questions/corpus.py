"""The commands, as an agent gives them, in the order in which they are reported."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    group: str
    text: str
    needs: tuple[str, ...]
    """Programs without which it is not run."""


def load() -> list[Line]:
    with Path(__file__).with_name("corpus.toml").open("rb") as file:
        groups = tomllib.load(file)["group"]
    return [Line(each["name"], text, tuple(each.get("needs", ()))) for each in groups for text in each["lines"]]
