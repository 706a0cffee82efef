"""The text of a command line → its syntax tree, or a sentence why there is none.

tree-sitter reads shell a little differently from bash. What it leaves between its nodes, and what it says is a word,
is therefore checked against what bash would make of it; where they could differ, the line counts as not understood.
"""

import re
import threading
import time
from typing import TYPE_CHECKING, Any
from unicodedata import category

from amanu.text.display import visible

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST = 64 * 1024
"""Bytes of a line."""
_CODE = 16 * 1024  # bytes of a line, the text of its here-documents not counted
_SECONDS = 0.016  # of processor time, for all that is made of a line: a busy machine is no reason to ask
_NAMES = 1_000  # of files that patterns are matched against
_PIPES = 300  # tree-sitter takes quadratic time for them, at once, so that no clock can stop it
_DEPTH = 60  # nodes in each other
_NODES = 6_000
_COMMANDS = 200
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]{0,9}(['\"])(\w{1,40})\1[^\n]*\n")
_HERE_DOCUMENTS = 20
_LONG = "It takes too long to analyze."
_CHUNK = 64  # bytes that are parsed between two looks at the clock
_PLAIN = bytes(range(0x80)) + b"\x01" * 0x80
"""What the parser is given for each byte. To bash all that is not ASCII is a character of a word and never one of a
name; tree-sitter-bash looks it up in tables that end at 255, and so ends the process. No line has this one itself."""


class Unclear(Exception):
    """Its text is the sentence for the user."""


class ParseBudget:
    """What one line may take, nested ones included."""

    def __init__(self) -> None:
        self.end = time.thread_time() + _SECONDS
        """When it must be done, as `time.thread_time()`."""
        self.names = _NAMES
        """How many names of files may still be looked at."""
        self._commands = _COMMANDS

    @property
    def over(self) -> bool:
        return time.thread_time() > self.end

    def command(self) -> None:
        """Count a command that is judged. Raises Unclear when there are too many."""
        self._commands -= 1
        if self._commands < 0:
            raise Unclear("It has too many commands to analyze.")
        self.check()

    def check(self) -> None:
        if self.over:
            raise Unclear(_LONG)


def refused(line: str) -> str | None:
    """Why a line is not even parsed. None: it may be."""
    if len(line) > LONGEST or len(line.encode("utf-8", "replace")) > LONGEST:
        return "It is too long to analyze."
    if "\0" in line:
        return "It contains a NUL character."
    if visible(line) != line:
        return "It contains control characters or invisible characters."
    if not line.isascii() and any(category(char) == "Zs" for char in line if char != " "):
        return "It contains characters that look like spaces but are not."
    if len(line) > _CODE and len(line) - _quoted_document_length(line) > _CODE:
        return "It is too long to analyze."
    if line.count("|") > _PIPES:
        return "It has too many pipes to analyze."
    return None


def _quoted_document_length(line: str) -> int:
    """Characters in here-documents whose delimiter is quoted (`<<'EOF'`): nothing in them is code."""
    count = position = 0
    for _ in range(_HERE_DOCUMENTS):
        begun = _HERE_DOCUMENT.search(line, position)
        ended = begun and re.compile(rf"^\t*{begun[2]}$", re.MULTILINE).search(line, begun.end())
        if not begun or not ended:
            break
        count += ended.start() - begun.end()
        position = ended.end()
    return count


def prepare() -> None:
    """Load the parser, outside of the time a line may take."""
    _parser()


def parse(source: bytes, budget: ParseBudget) -> "Node":
    """The tree of a line that is not `refused`. Raises Unclear when it takes too long or is too large."""
    parser = _parser()
    plain = source.translate(_PLAIN)
    parsed = late = False

    def chunk(offset: int, _point: Any) -> bytes:
        """Never raises, for that would end the process. What comes too late is cut off, and ends the parsing."""
        nonlocal late
        if parsed:
            return source[offset : offset + 1024]  # for the text of a node
        late = late or budget.over
        return b"" if late else plain[offset : offset + _CHUNK]

    tree = parser.parse(chunk)
    parsed = True
    if late:
        raise Unclear(_LONG)
    root = tree.root_node
    if root.descendant_count > _NODES or _deep(root, budget):
        raise Unclear("It is too long or nested too deeply to analyze.")
    return root


def blank(source: bytes, start: int, end: int, *, lines: bool, needed: bool = False) -> None:
    """Check what is between two nodes: nothing but blanks and continued lines. `lines`: line ends too; `needed`: at
    least one blank, or bash would see one word. Raises Unclear."""
    gap = source[start:end]
    if not gap and not needed:
        return
    remainder = gap.replace(b"\\\n", b"")
    fine = not remainder.strip(b" \t\n" if lines else b" \t") and (remainder or not (gap or needed))
    if not fine:
        raise Unclear(f"How bash reads {_excerpt(source[max(0, start - 8) : end + 8])} is not certain.")


def text(node: "Node") -> str:
    """Raises Unclear when the node ends within a character."""
    try:
        return (node.text or b"").decode()
    except UnicodeDecodeError:
        raise unclear(node) from None


def unclear(node: "Node") -> Unclear:
    return Unclear(f"Amanu does not understand {_excerpt(node.text or b'')}.")


def no_gap(node: "Node") -> None:
    """Check that nothing is between the children. Raises Unclear."""
    position = node.start_byte
    for child in node.children:
        if child.start_byte != position:
            raise unclear(node)
        position = child.end_byte


def _excerpt(source: bytes) -> str:
    one_line = re.sub(r"\s+", " ", source.decode("utf-8", "replace")).strip()
    return f"`{one_line if len(one_line) <= 60 else one_line[:59] + '…'}`"


def _deep(root: "Node", budget: ParseBudget) -> bool:
    cursor = root.walk()
    depth = 0
    while True:
        if cursor.goto_first_child():
            depth += 1
            if depth > _DEPTH:
                return True
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            depth -= 1
        budget.check()


def _parser() -> "Parser":
    """Of this thread: two that use one at the same time end the process."""
    if (parser := getattr(_threads, "parser", None)) is not None:
        return parser
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    _threads.parser = Parser(Language(tree_sitter_bash.language()))
    return _threads.parser


_threads = threading.local()
