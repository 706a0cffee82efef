"""The parser of the whole command line, with what completes each option."""

import argparse
import importlib
from collections.abc import Iterator
from typing import Any, get_args

import shtab

from amanu.__main__ import VERBS
from amanu.models.key_services import KEY_SERVICES
from amanu_protocol.items import Effort, ServiceTier

_PATHS: dict[str, Any] = {"DIR": shtab.DIRECTORY, "FOLDER": shtab.DIRECTORY, "FILE": shtab.FILE, "PATH": shtab.FILE}
"""Metavar → what completes it."""
_CHOICES = {"LEVEL": get_args(Effort), "TIER": get_args(ServiceTier)}
_VALUES = {"model": "models", "session": "sessions"}
"""Name of an argument → kind of values that `amanu completion --values` prints."""


def whole_parser() -> argparse.ArgumentParser:
    """All commands as subcommands of `amanu`."""
    parser = argparse.ArgumentParser(prog="amanu", description="An AI pair programmer that lives behind the editor.")
    parser.add_argument("--version", action="store_true", help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, description) in VERBS.items():
        commands.add_parser(name, help=description)
        commands.choices[name] = importlib.import_module(module).parser()
        for each in _below(commands.choices[name]):
            _complete(each)
    return parser


def actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and arguments, `--help` aside."""
    own = parser._actions  # pyright: ignore[reportPrivateUsage]
    return [action for action in own if not isinstance(action, argparse._HelpAction)]  # pyright: ignore[reportPrivateUsage]


def subcommands(action: argparse.Action) -> "dict[str, tuple[str, argparse.ArgumentParser]]":
    """Name → description and parser, if `action` is the choice of a subcommand."""
    if not isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
        return {}
    described = {each.dest: each.help or "" for each in action._choices_actions}  # pyright: ignore
    return {name: (described[name], parser) for name, parser in action.choices.items()}  # pyright: ignore


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in actions(parser):
        for _, below in subcommands(action).values():
            yield from _below(below)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Add to the arguments the attribute that `shtab` reads."""
    for action in actions(parser):
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        values = _VALUES.get(action.dest)
        if parser.prog.startswith("amanu sessions ") and action.dest == "id":
            values = "sessions"
        if parser.prog in ("amanu auth set", "amanu auth forget"):
            action.choices = tuple(KEY_SERVICES)
        elif metavar in _CHOICES:
            action.choices = _CHOICES[metavar]
        elif values is not None and action.nargs != 0:
            action.complete = VALUES[values]  # pyright: ignore[reportAttributeAccessIssue]
        elif metavar in _PATHS:
            action.complete = _PATHS[metavar]  # pyright: ignore[reportAttributeAccessIssue]


VALUES = {
    kind: {
        "bash": f"_amanu_{kind}",
        "zsh": f"_amanu_{kind}",
        "fish": f"(amanu completion --values {kind} 2>/dev/null)",
    }
    for kind in _VALUES.values()
}
"""Kind → the function, or the command, that each shell completes it with."""
