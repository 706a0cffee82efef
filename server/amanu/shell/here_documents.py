"""Here-documents (`cat <<EOF`). Their end is determined here again, since tree-sitter is not always right."""

import re
from typing import TYPE_CHECKING

from amanu.shell.syntax import text, unclear
from amanu.shell.words import WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_DELIMITER = re.compile(r"([A-Za-z0-9_.!@%+-]+)|'([^'\n]+)'|\"([^\"\n$`\\]+)\"|\\([A-Za-z0-9_]+)")

_DASH = re.compile(rb"[ \t]+-[ \t]*")


def lost_dash(node: "Node", source: bytes) -> "tuple[Node, Node] | tuple[None, None]":
    """The command and the here-document of `python3 - <<EOF`, where tree-sitter loses the `-` between the two."""
    if len(node.children) < 2 or node.children[1].type != "heredoc_redirect":
        return None, None
    last, document = node.children[:2]
    if not _DASH.fullmatch(source[last.end_byte : document.start_byte]):
        return None, None
    while last.type != "command":
        if not last.children:
            return None, None
        last = last.children[-1]
    return last, document


def here_document(node: "Node", source: bytes, reader: WordReader) -> "list[Node]":
    """Check a `heredoc_redirect`. Returns the other redirections and commands on its line. Raises `Unclear`."""
    operator, start, *parts = node.children
    delimiter = _DELIMITER.fullmatch(text(start))
    ends = [part for part in parts if part.type == "heredoc_end"]
    bodies = [part for part in parts if part.type == "heredoc_body"]
    others = [part for part in parts if part.type not in ("heredoc_end", "heredoc_body")]
    line_end = source.find(b"\n", start.end_byte)
    if delimiter is None or len(ends) != 1 or len(bodies) > 1 or line_end < 0:
        raise unclear(node)
    if source[operator.end_byte : start.start_byte].strip(b" \t"):
        raise unclear(node)
    if any(part.end_byte > line_end for part in others) or b"\\\n" in source[node.start_byte : line_end + 1]:
        raise unclear(node)
    delimiter_text = next(group for group in delimiter.groups() if group).encode()
    position = line_end + 1
    while True:
        end = source.find(b"\n", position)
        line = source[position : end if end >= 0 else len(source)]
        if text(operator) == "<<-":
            line = line.lstrip(b"\t")
        if line == delimiter_text:
            break
        if end < 0:
            raise unclear(node)
        position = end + 1
    shift = (source.find(b"\n", position) if end >= 0 else len(source)) - len(delimiter_text)
    if ends[0].start_byte != shift or ends[0].end_byte != shift + len(delimiter_text):
        raise unclear(node)
    for body in bodies:
        if body.start_byte <= line_end or body.end_byte > shift or source[line_end + 1 : body.start_byte].strip():
            raise unclear(body)
        if delimiter[1]:
            reader.here_document(body)
    if not bodies and source[line_end + 1 : position].strip():
        raise unclear(node)
    return [part for part in others if part.type not in ("&&", "||")]
