"""Expand one word of a line into the words the program receives, with quotes and expansions as bash does them.

Unquoting is exact or not done at all: a word that is not certain has no value.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amanu.shell.call import Word
from amanu.shell.expand import Char, braces, is_pattern, matching, tilde
from amanu.shell.state import State
from amanu.shell.syntax import ParseBudget, Unclear, no_gap, text, unclear

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True)
class Field(Word):
    """A word as the program receives it, and how it is written in the line."""

    raw: str = ""
    plain: bool = False
    """It was only unquoted; nothing was expanded."""


Substitute = Callable[["Node"], None]
"""Called with each command or process substitution, to judge its commands."""

_WORDS_TEXT = (
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion command_substitution "
    "process_substitution arithmetic_expansion brace_expression variable_name"
)
WORDS = frozenset(_WORDS_TEXT.split())
"""Kinds of syntax nodes that are a word."""

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_WORD = re.compile(r"(?:[^\s|&;()<>$`\"'\\]|\\[^\n])+")
_IN_QUOTES = re.compile(r"(?:[^\"$`\\]|\\[\s\S]|\$(?=[^\w{(\[@*#?$!'\"-]))*")
_IN_HERE_DOCUMENT = re.compile(r"(?:[^$`\\]|\\[\s\S]|\$(?=[^\w{(\[@*#?$!'\"-]))*")
_IN_ANSI = re.compile(r"(?:[^\\']|\\[\s\S])*")
_SIMPLE = re.compile(rf"\$(?:({NAME})|[0-9@*#?$!-])")
_BRACED = re.compile(
    rf"\$\{{(?:#?({NAME}|[0-9@*#?])(?:\[(?:[0-9]+|@|\*)\])?"
    rf"|({NAME}|[0-9]+)(?:\[(?:[0-9]+|@|\*)\])?(?::?[-+?]|##?|%%?|//?|\^\^?|,,?|:[0-9]+(?::[0-9]+)?(?=\}}))"
    r"(?:[^$`\"'\\{}<>]|[<>](?!\())*)\}"
)
_ARITHMETIC = re.compile(rf"\$\(\(((?:[0-9]+|{NAME}|\$\{{?{NAME}\}}?|[-+*/%()<>!~^ ]|==|!=|<=|>=|&&|\|\||[?:])*)\)\)")
_EMPTY = re.compile(r"''|\"\"|\\\n")
_SETS = re.compile(r"\+\+|--|<<=|>>=")
"""Operators that assign a variable in arithmetic."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_ANSI = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{char: char for char in "\\'\"?"},
}
_SAFE = re.compile(r"[^\s*?\[\\]+")
"""Text that word splitting and pathname expansion leave unchanged."""


class WordReader:
    """Expands the words at one point of a line. Raises `Unclear` for syntax it does not know."""

    def __init__(self, source: bytes, state: State, substitute: Substitute, budget: ParseBudget) -> None:
        self._source = source
        self._state = state
        self._substitute = substitute
        self._budget = budget

    def fields(self, node: "Node") -> list[Field]:
        """The words that a node expands to: one, or several by braces and patterns."""
        self._budget.check()
        raw = text(node)
        if raw.startswith("#"):
            raise unclear(node)
        chars = self._chars(node, quoted=False)
        literal = _is_literal(node)
        expanded = braces(chars, literal=literal)
        if node.type == "process_substitution" and raw.startswith("<("):
            return [Field(None, False, raw, pipe=True)]
        if expanded is None or (_EMPTY.search(raw) and _loose(chars)):
            return [Field(None, True, raw)]
        plain = literal and len(expanded) == 1
        return [field for chars in expanded for field in self._field(chars, raw, plain)]

    def value(self, node: "Node") -> str | None:
        """The value of an assignment or here-string, which is neither split nor matched against file names."""
        chars = self._chars(node, quoted=False)
        if any(char is None for char, _ in chars):
            return None
        if ("~", False) in chars:
            return None
        return "".join(char or "" for char, _ in chars)

    def here_document(self, node: "Node") -> None:
        """Check the text of an expanded here-document, and pass on its substitutions."""
        self._between(node, node.start_byte, node.end_byte, node.children, _IN_HERE_DOCUMENT)

    def _field(self, chars: Sequence[Char], raw: str, plain: bool) -> list[Field]:
        if any(char is None for char, _ in chars):
            return [Field(None, any(char is None and not quoted for char, quoted in chars), raw)]
        word, as_it_was = tilde(chars, self._state)
        if word is None:
            return [Field(None, False, raw)]
        if is_pattern(word):
            file_names = matching(word, self._state, self._budget)
            if file_names is None:
                return [Field(None, True, raw)]
            return [Field(name, False, raw) for name in file_names or ["".join(char or "" for char, _ in word)]]
        return [Field("".join(char or "" for char, _ in word), False, raw, plain and as_it_was)]

    def _chars(self, node: "Node", *, quoted: bool) -> list[Char]:
        match node.type:
            case "word" | "number" | "brace_expression" | "variable_name":
                return _unquoted(node)
            case "raw_string":
                inner = text(node)[1:-1]
                if "'" in inner:
                    raise unclear(node)
                return [(char, True) for char in inner]
            case "ansi_c_string":
                return _ansi(node)
            case "string":
                return self._string(node)
            case "concatenation":
                no_gap(node)
                *parts, last = node.children
                chars = [char for part in parts for char in self._chars(part, quoted=False)]
                if last.type == "$" and text(last) == "$":
                    return [*chars, ("$", True)]
                return [*chars, *self._chars(last, quoted=False)]
            case "simple_expansion":
                return self._simple(node, quoted)
            case "expansion":
                return self._braced(node, quoted)
            case "arithmetic_expansion":
                return self._arithmetic(node)
            case "command_substitution":
                if not quoted and text(node)[0] not in "$`":
                    raise unclear(node)
                self._substitute(node)
                return [(None, quoted)]
            case "process_substitution":
                self._substitute(node)
                return [(None, True)]
            case _:
                raise unclear(node)

    def _string(self, node: "Node") -> list[Char]:
        first, *inner, last = node.children
        if text(first) != '"' or text(last) != '"' or len(node.children) < 2:
            raise unclear(node)
        return self._between(node, first.end_byte, last.start_byte, inner, _IN_QUOTES)

    def _between(
        self, node: "Node", start: int, end: int, children: "Sequence[Node]", literal: "re.Pattern[str]"
    ) -> list[Char]:
        """The characters from start to end; the children among them are expansions or plain text."""
        chars: list[Char] = []
        position = start
        for child in children:
            if child.type in ("string_content", "heredoc_content", "$"):
                continue
            blanks = len(text(child)) - len(text(child).lstrip(" \t\n"))  # tree-sitter counts them as part of the node
            chars += self._literal(node, position, child.start_byte + blanks, literal)
            chars += self._chars(child, quoted=True)
            position = child.end_byte
        return chars + self._literal(node, position, end, literal, last=True)

    def _literal(
        self, node: "Node", start: int, end: int, literal: "re.Pattern[str]", *, last: bool = False
    ) -> list[Char]:
        raw = self._source[start:end].decode()
        checked = raw[:-1] if last and raw.endswith("$") and not raw.endswith("\\$") else raw
        if not literal.fullmatch(checked):
            raise unclear(node)
        raw = re.sub(r"\\([$`\"\\\n])", lambda match: "" if match[1] == "\n" else match[1], raw)
        return [(char, True) for char in raw]

    def _simple(self, node: "Node", quoted: bool) -> list[Char]:
        match = _SIMPLE.fullmatch(_trimmed(node, quoted))
        if not match:
            raise unclear(node)
        if match[0] == "$@" or match[1] is None:
            return [(None, quoted and match[0] != "$@")]
        return self._variable(match[1], quoted)

    def _braced(self, node: "Node", quoted: bool) -> list[Char]:
        raw = _trimmed(node, quoted)
        match = _BRACED.fullmatch(raw)
        if not match:
            raise unclear(node)
        if raw == f"${{{match[1]}}}":
            return self._variable(match[1], quoted and match[1] != "@")
        return [(None, quoted and "@" not in raw)]

    def _variable(self, name: str, quoted: bool) -> list[Char]:
        value = self._state.value(name)
        if value is None or not (quoted or _SAFE.fullmatch(value)):
            return [(None, quoted)]
        return [(char, True) for char in value]

    def _arithmetic(self, node: "Node") -> list[Char]:
        """Arithmetic evaluates variables, and their values can run commands: only whole numbers are accepted."""
        match = _ARITHMETIC.fullmatch(text(node))
        if not match or _SETS.search(match[1]):
            raise unclear(node)
        for name in re.findall(r"[A-Za-z_]\w*", match[1]):
            if not _WHOLE.fullmatch(self._state.value(name) or ""):
                raise Unclear(f"The value of {name} is not known, and arithmetic can run it.")
        return [(None, True)]


def _trimmed(node: "Node", quoted: bool) -> str:
    return text(node).lstrip(" \t\n") if quoted else text(node)


def _loose(chars: Sequence[Char]) -> bool:
    """Whether empty quotes, which leave no character behind, would matter: `~''` is not a home folder, `{1..''3}` not a
    range."""
    unquoted = [char for char, quoted in chars if not quoted]
    return "~" in unquoted or ("{" in unquoted and "." in unquoted)


def _is_literal(node: "Node") -> bool:
    if node.type in ("string", "concatenation"):
        return all(_is_literal(child) for child in node.children)
    return node.type in (
        "word",
        "number",
        "raw_string",
        "ansi_c_string",
        "string_content",
        "brace_expression",
        '"',
        "$",
    )


def _unquoted(node: "Node") -> list[Char]:
    raw = text(node)
    if not _WORD.fullmatch(raw):
        raise unclear(node)
    return [(escaped[-1], escaped[0] == "\\") for escaped in re.findall(r"\\.|.", raw)]


def _ansi(node: "Node") -> list[Char]:
    """The characters of `$'…'`. Escapes beyond ASCII, and NUL, which ends the word, count as unknown."""
    inner = text(node)[2:-1]
    if not _IN_ANSI.fullmatch(inner):
        raise unclear(node)
    chars: list[Char] = []
    for escaped in re.findall(r"\\x[0-9A-Fa-f]{1,2}|\\u[0-9A-Fa-f]{1,4}|\\[0-7]{1,3}|\\[\s\S]|[^\\]", inner):
        if escaped[0] != "\\":
            chars.append((escaped, True))
            continue
        if escaped[1] in _ANSI:
            chars.append((_ANSI[escaped[1]], True))
            continue
        digits = escaped[2:] if escaped[1] in "xu" else escaped[1:]
        if not re.fullmatch(r"[0-9A-Fa-f]+", digits) or escaped[1] not in "xu01234567":
            raise unclear(node)
        code = int(digits, 16 if escaped[1] in "xu" else 8)
        chars.append((chr(code) if 0 < code < 128 else None, True))
    return chars
