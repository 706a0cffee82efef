"""Parse a command line into a syntax tree, or say why that is not possible.

tree-sitter reads shell a little differently from bash. The gaps between its nodes and what it calls a word are
therefore checked against bash's rules; where the two could differ, the line counts as unclear (`Unclear`).
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
_SECONDS = 0.016  # of processor time for the whole analysis, so that a busy machine does not cause questions
_NAMES = 1_000  # file names that patterns are matched against
_PIPES = 300  # tree-sitter takes quadratic time for them in one go that no clock can stop
_DEPTH = 60  # nesting of nodes
_NODES = 6_000
_COMMANDS = 200
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]{0,9}(['\"])(\w{1,40})\1[^\n]*\n")
_HERE_DOCUMENTS = 20
_LONG = "It takes too long to analyze."
_CHUNK = 64  # bytes that are parsed between two checks of the clock
_PLAIN = bytes(range(0x80)) + b"\x01" * 0x80
"""What the parser gets for each byte. Bash allows any non-ASCII character in words but not in names; tree-sitter-bash
looks it up in tables that end at 255, and so crashes the process. No line contains the stand-in byte itself."""


class Unclear(Exception):
    """The line, or a part of it, cannot be analyzed. `str()` is the sentence for the user."""


class ParseBudget:
    """How much time, and how many commands and file names, one line may take, nested lines included."""

    def __init__(self) -> None:
        self.end = time.thread_time() + _SECONDS
        """When the analysis must end, as `time.thread_time()`."""
        self.names = _NAMES
        """How many file names may still be looked at."""
        self._commands = _COMMANDS

    @property
    def over(self) -> bool:
        return time.thread_time() > self.end

    def command(self) -> None:
        """Count one judged command. Raises `Unclear` when there are too many."""
        self._commands -= 1
        if self._commands < 0:
            raise Unclear("It has too many commands to analyze.")
        self.check()

    def check(self) -> None:
        if self.over:
            raise Unclear(_LONG)


def refused(line: str) -> str | None:
    """Why a line is not even parsed; None when it can be."""
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
    """The number of characters in here-documents with a quoted delimiter (`<<'EOF'`), which contain no code."""
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
    """Load the parser before a line's time starts to count."""
    _parser()


def parse(source: bytes, budget: ParseBudget) -> "Node":
    """The syntax tree of a line that is not `refused`. Raises `Unclear` when it takes too long or is too large."""
    parser = _parser()
    plain = source.translate(_PLAIN)
    parsed = late = False

    def chunk(offset: int, _point: Any) -> bytes:
        """Never raises, since that would crash the process. Once late, returns nothing, which ends the parsing."""
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
    """Check that there is nothing between two nodes but blanks and continued lines; with `lines`, also line ends. With
    `needed`, at least one blank is required, or bash would see one word. Raises `Unclear`."""
    gap = source[start:end]
    if not gap and not needed:
        return
    remainder = gap.replace(b"\\\n", b"")
    fine = not remainder.strip(b" \t\n" if lines else b" \t") and (remainder or not (gap or needed))
    if not fine:
        raise Unclear(f"How bash reads {_excerpt(source[max(0, start - 8) : end + 8])} is not certain.")


def text(node: "Node") -> str:
    """The text of a node. Raises `Unclear` when the node ends within a character."""
    try:
        return (node.text or b"").decode()
    except UnicodeDecodeError:
        raise unclear(node) from None


def unclear(node: "Node") -> Unclear:
    """The error for a node that is not understood."""
    return Unclear(f"Amanu does not understand {_excerpt(node.text or b'')}.")


def no_gap(node: "Node") -> None:
    """Check that there are no gaps between the children. Raises `Unclear`."""
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
    """This thread's parser: two threads that use one at the same time crash the process."""
    if (parser := getattr(_threads, "parser", None)) is not None:
        return parser
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    _threads.parser = Parser(Language(tree_sitter_bash.language()))
    return _threads.parser


_threads = threading.local()
