"""A page's visible content as Markdown."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urljoin

from amanu.web.html_reader import BLOCKS, HEADINGS, TABLE_PARTS

_MARKS = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
    "a": "[",
}
_WORDS = frozenset(("button", "optgroup", "option", "select", "textarea"))
"""Apart from the words before and after them."""
_NESTED = 20
"""Quotes and lists in each other that are shown as such."""
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LINE_ENDS = re.compile(r" *\n[ \n]*")
_BRACKET = re.compile(r"[\[\]]")
_UNSAFE = re.compile(r"[\s()<>\x00-\x1f]")
_SCHEME = re.compile(r"[\s\x00-\x1f]*([a-zA-Z][a-zA-Z0-9+.-]*):")
_IGNORED_IN_ADDRESS = re.compile(r"[\t\r\n]")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([\w+#.-]{1,30})")
_FENCE = re.compile("`+")


@dataclass
class _Mark:
    """Emphasis, code or a link that begins at that piece of the current block."""

    kind: str
    start: int
    address: str = ""


@dataclass
class _Container:
    """A quote, or an item of a list."""

    first: str
    rest: str


@dataclass
class _Table:
    is_layout: bool
    """It holds more than text: its cells are blocks."""
    rows: int = 0
    cells: list[str] = field(default_factory=list[str])
    """The cells of the current row."""
    in_cell: bool = False


class MarkdownWriter:
    """A `PageWriter`. `url` is where the page comes from: links become whole addresses, and what leads elsewhere than
    to the web keeps its words only."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._out: list[str] = []
        self._inline: list[str] = []
        """The pieces of the current block."""
        self._after_space = True
        self._marks: list[_Mark] = []
        self._containers: list[_Container] = []
        self._after_item = False
        self._lists: list[int | None] = []
        """The number of the next item in each open list; None for a list without numbers."""
        self._tables: list[_Table] = []
        self._pre: list[str] | None = None
        self._language = ""

    def written(self) -> str:
        return "\n".join(self._out)

    def void(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "br":
            self._add("\n")
        elif tag == "hr" and not self._in_cell:
            self.apart()
            self._emit("---")
        elif tag == "img" and self._pre is None:
            words = _BRACKET.sub(r"\\\g<0>", " ".join(attributes.get("alt", "").split()))
            address = self._address(attributes.get("src", ""))
            self._add(f"![{words}]({address})" if address else words)
        elif tag == "base" and (address := self._address(attributes.get("href", ""))):
            self._base = address

    def enter(self, tag: str, attributes: Mapping[str, str]) -> Callable[[], None] | None:
        if self._pre is not None:
            self._language = self._language or _language(attributes)
            return self._enter_line() if tag in BLOCKS else None
        if tag in _MARKS:
            return self._enter_mark(_MARKS[tag], attributes)
        if tag == "q":
            self.text('"')
            return lambda: self.text('"')
        if tag in _WORDS:
            self._add(" ")
            return lambda: self._add(" ")
        if tag not in BLOCKS:
            return None
        if (self._tables and tag == "table") or (self._in_cell and (tag == "pre" or tag in HEADINGS)):
            self._lay_out(self._tables[-1])
        self.apart()
        if tag == "table":
            return self._enter_table(attributes)
        if tag in TABLE_PARTS and self._tables:
            return self._enter_table_part(tag, self._tables[-1])
        if tag == "pre":
            return self._enter_pre(attributes)
        if self._in_cell:
            return self.apart
        if tag in ("ul", "ol", "menu"):
            return self._enter_list(tag, attributes)
        if tag == "blockquote":
            return self._enter_container(_Container("> ", "> "))
        if tag == "li":
            return self._enter_item()
        return lambda: self._end_block(_heading(tag))

    def _enter_line(self) -> Callable[[], None]:
        """A block in preformatted text is lines of it."""

        def new_line() -> None:
            if self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")

        new_line()
        return new_line

    def _enter_mark(self, kind: str, attributes: Mapping[str, str]) -> Callable[[], None] | None:
        kinds = [mark.kind for mark in self._marks]
        if kind == "[" and kind in kinds:  # the one before, which a block keeps open
            self._end_mark(kind)
        elif kind in kinds or "`" in kinds:
            return None
        address = self._address(attributes.get("href", "")) if kind == "[" else ""
        if kind == "[" and not address:
            return None
        self._marks.append(_Mark(kind, len(self._inline), address))
        return lambda: self._end_mark(kind)

    def _enter_pre(self, attributes: Mapping[str, str]) -> Callable[[], None]:
        self._pre, self._language = [], _language(attributes)
        return self._end_pre

    def _end_pre(self) -> None:
        text, self._pre = "".join(self._pre or ()), None
        text = text.removeprefix("\n").rstrip()
        if text:
            fence = "`" * max(3, *(len(run) + 1 for run in _FENCE.findall(text)), 3)
            self._emit(f"{fence}{self._language}\n{text}\n{fence}")

    def _enter_list(self, tag: str, attributes: Mapping[str, str]) -> Callable[[], None]:
        start = attributes.get("start", "")
        self._lists.append((int(start) if start.isdecimal() and len(start) < 9 else 1) if tag == "ol" else None)

        def leave() -> None:
            self._end_block()
            self._lists.pop()

        return leave

    def _enter_item(self) -> Callable[[], None]:
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        marker = "- " if number is None else f"{number}. "
        return self._enter_container(_Container(marker, " " * len(marker)))

    def _enter_container(self, container: _Container) -> Callable[[], None]:
        self._containers.append(container)

        def leave() -> None:
            self._end_block()
            self._containers.pop()

        return leave

    def _enter_table(self, attributes: Mapping[str, str]) -> Callable[[], None]:
        self._tables.append(_Table(attributes.get("role") in ("presentation", "none")))

        def leave() -> None:
            self.apart()
            self._tables.pop()

        return leave

    def _enter_table_part(self, tag: str, table: _Table) -> Callable[[], None]:
        if table.is_layout or tag not in ("td", "th", "tr"):
            return self.apart
        if tag == "tr":
            return lambda: self._end_row(table)
        table.in_cell = True
        return lambda: self._end_cell(table)

    def _end_cell(self, table: _Table) -> None:
        if table.is_layout:
            self._end_block()
        else:
            table.cells.append(self._taken().replace("\n", " ").replace("|", r"\|"))
            table.in_cell = False

    def _end_row(self, table: _Table) -> None:
        self.apart()
        if any(table.cells):
            self._emit(f"| {' | '.join(table.cells)} |", follows=table.rows > 0)
            if not table.rows:
                self._emit("|" + " --- |" * len(table.cells), follows=True)
            table.rows += 1
        table.cells = []

    def _lay_out(self, table: _Table) -> None:
        """It turns out to hold more than text."""
        table.is_layout, table.in_cell = True, False
        rest = self._taken()
        for text in (*table.cells, rest):
            if text:
                self._emit(text)
        table.cells = []

    # Text -------------------------------------------------------------------------------------------

    @property
    def _in_cell(self) -> bool:
        return bool(self._tables) and self._tables[-1].in_cell

    def text(self, text: str) -> None:
        if self._pre is None:
            text = _SPACES.sub(" ", text)
            if self._marks and any(mark.kind == "[" for mark in self._marks):
                text = _BRACKET.sub(r"\\\g<0>", text)
        self._add(text)

    def _add(self, piece: str) -> None:
        if self._pre is not None:
            self._pre.append(piece)
        elif piece := piece.lstrip(" ") if self._after_space else piece:
            self._inline.append(piece)
            self._after_space = piece[-1] in " \n"

    def apart(self) -> None:
        """Separate the next text from the text before."""
        if self._in_cell:
            self._add(" ")
        else:
            self._end_block()

    def _end_block(self, heading: str = "") -> None:
        if text := self._taken():
            self._emit(heading + text.replace("\n", " ") if heading else text)

    def _taken(self) -> str:
        """The text of the current block. Marks end with it; those that have no text yet go on in the next."""
        going_on = [mark for mark in reversed(self._marks) if not self._wrap(mark)]
        text = _LINE_ENDS.sub(lambda match: "\n\n" if match[0].count("\n") > 1 else "\n", "".join(self._inline)).strip()
        self._inline, self._after_space = [], True
        self._marks = [_Mark(mark.kind, 0, mark.address) for mark in reversed(going_on)]
        return text

    def _end_mark(self, kind: str) -> None:
        for mark in self._marks:
            if mark.kind == kind:
                self._marks.remove(mark)
                self._wrap(mark)
                break

    def _wrap(self, mark: _Mark) -> bool:
        """Write it round its text, and return whether it has any."""
        content = "".join(self._inline[mark.start :])
        text = content.strip()
        if not text:
            return False
        before, after = content[: content.index(text[0])], content[len(content.rstrip()) :]
        if mark.kind == "[":
            text = f"[{text}]({mark.address})"
        elif mark.kind == "`":
            ticks = "`" * (1 + max((len(run) for run in _FENCE.findall(text)), default=0))
            text = f"{ticks} {text} {ticks}" if len(ticks) > 1 else f"`{text}`"
        else:
            text = f"{mark.kind}{text}{mark.kind}"
        self._inline[mark.start :] = [before + text + after]
        return True

    def _emit(self, text: str, *, follows: bool = False) -> None:
        """Write a block; one that `follows` has no empty line before it."""
        containers = self._containers[:_NESTED]
        is_item = bool(containers) and bool(self._lists)
        first, rest = "".join(each.first for each in containers), "".join(each.rest for each in containers)
        begins_item = first != rest
        for container in containers:
            container.first = container.rest
        if self._out and not follows and not (begins_item and self._after_item):
            self._out.append("")
        self._after_item = is_item
        lines = text.split("\n")
        self._out.append(first + lines[0])
        self._out += [(rest + line).rstrip() for line in lines[1:]]

    def _address(self, address: str) -> str:
        """The whole address; "" for what leads elsewhere than to the web."""
        address = _IGNORED_IN_ADDRESS.sub("", address).strip()
        scheme = _SCHEME.match(address)
        if not address or address.startswith("#") or (scheme and scheme[1].lower() not in ("http", "https", "mailto")):
            return ""
        try:
            return _UNSAFE.sub(lambda match: quote(match[0]), urljoin(self._base, address))
        except ValueError:
            return ""


def _language(attributes: Mapping[str, str]) -> str:
    found = _LANGUAGE.search(attributes.get("class", "")[:500])
    return found[1] if found else ""


def _heading(tag: str) -> str:
    return "#" * int(tag[1]) + " " if tag in HEADINGS else ""
