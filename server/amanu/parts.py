"""The features that are parts: each has a folder here, with its tools, texts, requests and slash commands, and a line
in `PARTS`. Nothing outside its folder imports it.

    amanu/NAME/__init__.py    VERB: the description of `amanu NAME`, or None
    amanu/NAME/part.py        DAEMON_PART: the class of the part (`session/daemon_part.py`)
    amanu/NAME/verb.py        main(arguments): the exit code of `amanu NAME`
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

PARTS: tuple[str, ...] = (
    "hooks",
    "agents",
)
"""The parts, in the order in which they are asked."""


def daemon_parts() -> Sequence[type[Any]]:
    """The classes of the parts: subclasses of `DaemonPart`."""
    return [importlib.import_module(f"amanu.{name}.part").DAEMON_PART for name in PARTS]


def verbs() -> Mapping[str, tuple[str, str]]:
    """Command-line verb → (its module, its description)."""
    described = {name: importlib.import_module(f"amanu.{name}").VERB for name in PARTS}
    return {name: (f"amanu.{name}.verb", verb) for name, verb in described.items() if verb is not None}
