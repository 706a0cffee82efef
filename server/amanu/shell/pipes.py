"""What goes through the pipes of a line, and where tree-sitter sees its redirections."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amanu.core.command import Command
from amanu.shell.effects import LineAnalysis, found_path_start
from amanu.shell.state import State
from amanu.shell.syntax import text

if TYPE_CHECKING:
    from tree_sitter import Node

_PASSES_LINES = re.compile(r"(?:head|tail)(?: -n ?[0-9]+| -[0-9]+)?|sort(?: -[nru]+)?")
"""What hands on whole lines of its input, and nothing else."""


def printed_path_start(
    child: "Node", commands: Sequence[Command], input_path_start: str | None, state: State, analysis: LineAnalysis
) -> str | None:
    """Of a part of a pipeline and the commands found in it: how the paths begin that it prints, one a line and nothing
    else, when all of those files may be read. `came`: the same of what it reads. None: not certain."""
    if child.type == "redirected_statement" and text(child.children[-1]).replace(" ", "") == "2>/dev/null":
        child = child.children[0]
    if not only_words(child) or len(commands) != 1 or commands[0].effect != "none":
        return None
    argv = commands[0].words
    if argv[0] == "find" and "-exec" not in argv:
        return found_path_start(argv[1:], state, analysis)
    return input_path_start if _PASSES_LINES.fullmatch(" ".join(word or "?" for word in argv)) else None


def only_words(node: "Node") -> bool:
    """A command whose input and output are those of its place in the line."""
    return node.type == "command" and not any(child.type.endswith("_redirect") for child in node.children)


def redirected_around(node: "Node") -> bool:
    """tree-sitter hangs the redirections of a last command over all that is before it."""
    parent = node.parent
    while parent is not None and parent.type in ("list", "pipeline", "negated_command"):
        parent = parent.parent
    return parent is not None and parent.type == "redirected_statement"


def after_a_pipe(node: "Node") -> bool:
    """There, `time` is no word of the shell but a program."""
    parent = node.parent
    while parent is not None and parent.type == "redirected_statement":
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "pipeline" and parent.children[0].id != node.id
