"""What passes through a line's pipes, and where tree-sitter puts its redirections."""

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
"""Commands that only pass on whole lines of their input."""


def printed_path_start(
    child: "Node", commands: Sequence[Command], input_path_start: str | None, state: State, analysis: LineAnalysis
) -> str | None:
    """How the paths that one part of a pipeline prints begin, if it prints one path per line and nothing else, and all
    those files may be read. `commands` were found in that part; `input_path_start` is the same for its input. None when
    not certain."""
    if child.type == "redirected_statement" and text(child.children[-1]).replace(" ", "") == "2>/dev/null":
        child = child.children[0]
    if not only_words(child) or len(commands) != 1 or commands[0].effect != "none":
        return None
    argv = commands[0].words
    if argv[0] == "find" and "-exec" not in argv:
        return found_path_start(argv[1:], state, analysis)
    return input_path_start if _PASSES_LINES.fullmatch(" ".join(word or "?" for word in argv)) else None


def only_words(node: "Node") -> bool:
    """Whether a node is a command without redirections of its own."""
    return node.type == "command" and not any(child.type.endswith("_redirect") for child in node.children)


def redirected_around(node: "Node") -> bool:
    """Whether a redirection surrounds the node: tree-sitter attaches the last command's redirections to all before
    it."""
    parent = node.parent
    while parent is not None and parent.type in ("list", "pipeline", "negated_command"):
        parent = parent.parent
    return parent is not None and parent.type == "redirected_statement"


def after_a_pipe(node: "Node") -> bool:
    """Whether a node follows a pipe, where `time` is not a shell keyword but a program."""
    parent = node.parent
    while parent is not None and parent.type == "redirected_statement":
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "pipeline" and parent.children[0].id != node.id
