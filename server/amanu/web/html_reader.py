"""Which elements an HTML page consists of, and which text is in them: in one pass and without a tree, so that neither
depth nor size costs more than reading.

What a browser would not show is dropped, as far as the page's elements and their own styles tell: style sheets are not
read.
"""

import functools
import html.parser
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
_NESTING = frozenset(("audio", "canvas", "datalist", "svg", "template", "video"))
_SILENT = _NESTING | {"iframe", "noembed", "noframes", "noscript", "script", "style", "title"}
"""Elements whose content is not shown: the former contain elements, the others text. Only their own end tag ends
them."""
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
TABLE_PARTS = frozenset(("caption", "tbody", "td", "tfoot", "th", "thead", "tr"))
_CLOSES_P = frozenset(
    (
        *("address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "li", "main", "menu", "nav", "ol"),
        *("p", "pre", "search", "section", "summary", "table", "ul", *HEADINGS),
    )
)
BLOCKS = _CLOSES_P | TABLE_PARTS | {"body", "html", "legend"}
_SCOPES = ("table", "td", "th", "caption", "button", "object")
"""Elements that a tag inside them cannot end."""
_SECTIONS = ("tbody", "thead", "tfoot")
_IMPLIED_END = {
    "a": ("a",),
    "li": ("li",),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd")),
    "option": ("option",),
    "optgroup": ("option", "optgroup"),
    **dict.fromkeys(("td", "th"), ("td", "th", "caption")),
    "tr": ("td", "th", "caption", "tr"),
    **dict.fromkeys(_SECTIONS, ("td", "th", "caption", "tr", *_SECTIONS)),
}
"""Which open elements a start tag ends."""
_IMPLIED_WITHIN = {
    "a": ("",),
    "li": ("ul", "ol", "menu", *_SCOPES),
    **dict.fromkeys(("dt", "dd"), ("dl", *_SCOPES)),
    **dict.fromkeys(("option", "optgroup"), ("select",)),
    **dict.fromkeys(("td", "th"), ("table", "tr")),
    **dict.fromkeys(("tr", *_SECTIONS), ("table",)),
}
"""Elements that limit how far an end tag reaches: see `_pop_nearest`."""
_NO_CHARACTER = re.compile(r"&#(?:\d{9,}|[xX][\da-fA-F]{9,});?", re.ASCII)
_EMPTY_COMMENT = re.compile("<!---?>")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?|\\(.)", re.IGNORECASE)
_NOTHING = re.compile(r"[+-]?0*\.?0*(?:[a-z]+|%)?")
_FAR_OUT = re.compile(r"-(?:9\d+|\d{4,})")
_MOVES = ("left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top")
_NO_CLIP = ("rect(0000)", "rect(1111)")
_NO_SHAPE = ("inset(50%", "inset(100%", "circle(0")
_NO_SCALE = re.compile(r"scale\(0(?:\.0*)?(?:,0(?:\.0*)?)?\)")


@dataclass
class _Element:
    tag: str
    leave: Callable[[], None] | None
    """Called at its end; None for hidden elements, whose end does nothing."""


class PageWriter(Protocol):
    """Is told what a page shows."""

    def enter(self, tag: str, attributes: Mapping[str, str]) -> Callable[[], None] | None:
        """An element begins. Returns what its end does."""
        ...

    def void(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element without content."""
        ...

    def text(self, text: str) -> None: ...

    def apart(self) -> None:
        """Separate the next text from the text before."""
        ...


class HtmlReader(html.parser.HTMLParser):
    """Feed it the page, and close it."""

    def __init__(self, writer: PageWriter) -> None:
        super().__init__()
        self.title = ""
        self._writer = writer
        self._stack: list[_Element] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        """Tag → where its open elements are in the stack."""
        self._blocks: list[int] = []
        """Positions of the open blocks in the stack."""
        self._hidden: int | None = None
        """Position of the outermost hidden element in the stack."""
        self._silent, self._silent_depth = "", 0

    def feed(self, data: str) -> None:
        super().feed(_NO_CHARACTER.sub("\ufffd", data))  # the library makes numbers of them, however long

    def close(self) -> None:
        super().close()
        self._pop_to(0)
        self._writer.apart()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent:
            self._silent_depth += tag == self._silent and tag in _NESTING
            return
        if tag in _SILENT:
            self._silent, self._silent_depth = tag, 1
            return
        if tag in _VOID:
            attributes = {name: value or "" for name, value in reversed(attrs)}
            if self._hidden is None and not _is_hidden(tag, attributes):
                self._writer.void(tag, attributes)
            return
        if tag in _CLOSES_P:
            self._pop_nearest("p", _SCOPES)
        for other in _IMPLIED_END.get(tag, ()):
            self._pop_nearest(other, _IMPLIED_WITHIN[tag])
        attributes = {name: value or "" for name, value in reversed(attrs)}  # the first of two counts
        leave = None
        if self._hidden is None:
            if _is_hidden(tag, attributes):
                if tag in BLOCKS:
                    self._writer.apart()
                self._hidden = len(self._stack)
            else:
                leave = self._writer.enter(tag, attributes)
        self._places[tag].append(len(self._stack))
        if tag in BLOCKS:
            self._blocks.append(len(self._stack))
        self._stack.append(_Element(tag, leave))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "svg":  # elsewhere the slash means nothing
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            self._silent_depth -= tag == self._silent
            if not self._silent_depth:
                self._silent = ""
        elif tag == "br":
            self.handle_starttag(tag, [])
        elif tag == "table":
            self._pop_nearest("table", ())
        elif tag in TABLE_PARTS:
            self._pop_nearest(tag, ("table",))
        elif tag in BLOCKS or tag in _SCOPES:
            self._pop_nearest(tag, (*_SCOPES, "ul", "ol") if tag == "li" else _SCOPES)
        else:
            self._pop_nearest(tag, ("",))

    def handle_data(self, data: str) -> None:
        if self._silent:
            if self._silent == "title" and not self.title and self._hidden is None:
                self.title = " ".join(data.split())
        elif self._hidden is None:
            self._writer.text(data)

    # The library raises for sections it does not know, and shows a comment without an end. Not so browsers.

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        return self.parse_bogus_comment(i)

    def parse_comment(self, i: int, report: bool = True) -> int:
        if empty := _EMPTY_COMMENT.match(self.rawdata, i):
            return empty.end()
        end = super().parse_comment(i, report)
        return len(self.rawdata) if end < 0 else end

    def _pop_nearest(self, tag: str, scopes: tuple[str, ...]) -> None:
        """End the innermost such element and all within it, unless it is outside of a scope ("": any block)."""
        if not self._places[tag]:
            return
        place = self._places[tag][-1]
        for scope in scopes:
            places = self._places[scope] if scope else self._blocks
            if places and places[-1] > place:
                return
        self._pop_to(place)

    def _pop_to(self, place: int) -> None:
        while len(self._stack) > place:
            element = self._stack.pop()
            self._places[element.tag].pop()
            if element.tag in BLOCKS:
                self._blocks.pop()
            if self._hidden == len(self._stack):
                self._hidden = None
            if element.leave is not None:
                element.leave()


# What is hidden -------------------------------------------------------------------------------------


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    if tag in ("html", "body"):  # shown by a script, when it is ready
        return False
    if "hidden" in attributes or (tag == "dialog" and "open" not in attributes):
        return True
    return bool(style := attributes.get("style")) and _hides(style)


@functools.lru_cache(1024)
def _hides(style: str) -> bool:
    """Whether an element with this style, and what it contains, cannot be seen."""
    declared = defaultdict[str, str](str)
    for declaration in _ESCAPE.sub(_unescaped, _COMMENT.sub("", style)).lower().split(";"):
        name, _, value = declaration.partition(":")
        declared[name.strip()] = "".join(value.partition("!")[0].split())
    none = {name for name, value in declared.items() if "0" in value and _NOTHING.fullmatch(value)}
    return (
        declared["display"] == "none"
        or declared["visibility"] in ("hidden", "collapse")
        or declared["content-visibility"] == "hidden"
        or declared["color"] == "transparent"
        or not none.isdisjoint(("opacity", "font-size"))
        or (bool(none & {"width", "height", "max-width", "max-height"}) and declared["overflow"] in ("hidden", "clip"))
        or any(_FAR_OUT.match(declared[name]) for name in _MOVES)
        or declared["clip"].replace("px", "").replace(",", "") in _NO_CLIP
        or declared["clip-path"].startswith(_NO_SHAPE)
        or _NO_SCALE.search(declared["transform"]) is not None
    )


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1], 16) if match[1] else 0
    return match[2] or (chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd")
