"""The conditions `[ … ]` and `[[ … ]]`: their words, and whether evaluating them can run anything."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amanu.shell.syntax import blank, text, unclear
from amanu.shell.words import WORDS, Field, WordReader

if TYPE_CHECKING:
    from tree_sitter import Node

_INNER = ("binary_expression", "unary_expression", "parenthesized_expression")
_PATTERN = re.compile(r"[^\s$`\"'\\&;<>]+")
_ARITHMETIC = ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")


def flattened(node: "Node", source: bytes, reader: WordReader) -> tuple[Field, ...]:
    """The words of a `test_command`, in order. Raises `Unclear`."""
    leaves: list[Node] = []
    _collect(node, leaves)
    fields: list[Field] = []
    double = text(leaves[0]) == "[["
    for index, leaf in enumerate(leaves):
        if index:
            blank(source, leaves[index - 1].end_byte, leaf.start_byte, lines=False, needed=True)
        if leaf.type in WORDS and not double:
            fields += reader.fields(leaf)
        elif leaf.type in WORDS:
            fields.append(Field(reader.value(leaf), False, text(leaf)))
        elif leaf.type in ("extglob_pattern", "regex"):
            if not _PATTERN.fullmatch(text(leaf).rstrip("$")) or (not double and re.search(r"[*?\[]", text(leaf))):
                raise unclear(leaf)
            fields.append(Field(text(leaf), False, text(leaf)))
        elif not leaf.is_named or leaf.type == "test_operator":
            if not double and text(leaf) in ("<", ">", "(", ")", "&&", "||"):
                raise unclear(leaf)
            fields.append(Field(text(leaf), False, text(leaf)))
        else:
            raise unclear(leaf)
    return tuple(fields)


def runs_nothing(fields: Sequence[Field]) -> bool:
    """Whether `[[ … ]]` evaluates no operand as arithmetic or as a variable name."""
    for index, field in enumerate(fields):
        if field.raw in ("-v", "-R"):
            return False
        if field.raw in _ARITHMETIC:
            sides = (fields[index - 1], fields[index + 1]) if 0 < index < len(fields) - 1 else ()
            if not sides or not all(re.fullmatch(r"-?[0-9]+", side.value or "") for side in sides):
                return False
    return True


def _collect(node: "Node", leaves: "list[Node]") -> None:
    for child in node.children:
        if child.type in _INNER:
            _collect(child, leaves)
        else:
            leaves.append(child)
