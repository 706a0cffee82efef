"""The pipe a command line ends with: bash gives the line the exit code of the pipe's last command only."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amanu.shell.syntax import ParseBudget, Unclear, parse, refused

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST = 60  # characters of a command's text
_BROKEN_PIPE = 128 + 13
"""The status of a command whose reader needed no more, as in `yes | head`."""
_NO_MATCH = frozenset(
    (
        "grep",
        "egrep",
        "fgrep",
        "zgrep",
        "rg",
        "ag",
        "ack",
        "diff",
        "cmp",
        "pgrep",
        "pidof",
        "which",
        "test",
        "[",
        "expr",
    )
)
"""Programs that say "nothing found" or "not equal" by ending with 1."""
_PROGRAM = re.compile(r"(?:\w+=\S*\s+)*(?:\S*/)?([^\s/]+)")


class PipedCommand(NamedTuple):
    text: str
    """The command on one line, cut."""
    program: str
    """Its name without a folder; "" for a group or subshell."""


def last_pipe(line: str) -> tuple[PipedCommand, ...]:
    """The commands of the pipe that the line ends with; () where it ends with none, or cannot be parsed. Blocking, for
    some milliseconds."""
    if "|" not in line or refused(line):
        return ()
    try:
        node = parse(line.encode(), ParseBudget())
    except Unclear:
        return ()
    if node.has_error:
        return ()
    while node.type in ("program", "list"):
        children = [child for child in node.named_children if child.type != "comment"]
        if not children:
            return ()
        node = children[-1]
    commands = [child for child in node.named_children if child.type != "comment"]
    if node.type != "pipeline" or commands[0].type == "negated_command":
        return ()
    return tuple(map(_piped, commands))


def hidden_failures(pipe: Sequence[PipedCommand], statuses: Sequence[int]) -> Iterable[tuple[str, int]]:
    """The commands of a pipe that failed without the pipe's exit code saying so, each with its own. `statuses` is
    bash's `PIPESTATUS`; none if it belongs to another pipe."""
    if len(statuses) != len(pipe):
        return
    for command, status in zip(pipe[:-1], statuses[:-1], strict=True):
        if status not in (0, _BROKEN_PIPE) and not (status == 1 and command.program in _NO_MATCH):
            yield command.text, status


def _piped(node: "Node") -> PipedCommand:
    source, end, first = node.text or b"", node.end_byte, node
    while first.type in ("list", "redirected_statement"):  # a redirection counts as the whole list's
        first = first.children[0 if first.type == "redirected_statement" else -1]
    whole = " ".join(
        source[first.start_byte - node.start_byte : end - node.start_byte].decode("utf-8", "replace").split()
    )
    named = _PROGRAM.match(whole) if first.type == "command" else None
    text = whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 1]}…"
    return PipedCommand(text, "" if named is None else named[1])
