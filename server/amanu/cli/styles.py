"""All styles of the terminal, in the 16 colours that its user chose: one table, and which colours a theme takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Style = Literal["", "dim", "bold", "red", "green", "yellow", "magenta", "cyan", "heading"]
Span = tuple[Style, str]

Theme = Literal["dark", "light", "neutral", "plain"]
"""Themes for a dark background, a light one, or either; and one without colours."""
Hue = Literal["red", "green", "yellow", "magenta", "cyan"]
"""Looks of things that are bad, good, a warning, a keyword, or stand out otherwise."""
Colour = Literal[Hue, "blue", "bright red", "bright magenta"]

COLOURS: Mapping[Theme, Mapping[Hue, Colour]] = {
    "dark": {"red": "bright red", "green": "green", "yellow": "yellow", "magenta": "bright magenta", "cyan": "cyan"},
    "light": {"red": "red", "green": "green", "yellow": "magenta", "magenta": "magenta", "cyan": "blue"},
    "neutral": {"red": "bright red", "green": "green", "yellow": "yellow", "magenta": "bright magenta", "cyan": "cyan"},
    "plain": {},
}
NUMBERS: Mapping[Colour, int] = {
    **{"red": 1, "green": 2, "yellow": 3, "blue": 4, "magenta": 5, "cyan": 6},
    **{"bright red": 9, "bright magenta": 13},
}
"""Among the 16."""


@dataclass(frozen=True)
class Look:
    """One style: a hue, unless it is the terminal's own colour, and bold, dim, italic or underline."""

    hue: Hue | None = None
    attributes: str = ""


_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4"}
_ACCENT = Look("cyan", "bold")
LOOKS: Mapping[str, Look] = {
    "dim": Look(attributes="dim"),
    "bold": Look(attributes="bold"),
    "red": Look("red"),
    "green": Look("green"),
    "yellow": Look("yellow"),
    "magenta": Look("magenta"),
    "cyan": Look("cyan"),
    "heading": _ACCENT,
    # The rows below the transcript.
    "prompt": _ACCENT,
    "chosen": _ACCENT,
    "status": Look(attributes="dim"),
    "mode": Look(attributes="bold"),
    "search-toolbar": Look(attributes="dim"),
    # Markdown, by Rich's names.
    "markdown.h1": Look(attributes="bold"),
    "markdown.h2": Look("magenta", "underline"),
    "markdown.h3": Look("magenta", "bold"),
    "markdown.h4": Look("magenta", "italic"),
    "markdown.code": _ACCENT,
    "markdown.code_block": Look(),
    "markdown.block_quote": Look("magenta"),
    "markdown.list": Look("cyan"),
    "markdown.item.number": Look("cyan"),
    "markdown.link": Look("cyan"),
    "markdown.link_url": Look("cyan", "underline"),
    "markdown.table.border": Look("cyan"),
    "markdown.table.header": Look("cyan"),
    "markdown.kbd": Look("yellow", "bold"),
}


def sgr(style: str, theme: Theme) -> str:
    """The parameters that switch it on (ECMA-48); "" for text as it is."""
    look, colour = _look(style, theme)
    codes = [_ATTRIBUTES[each] for each in look.attributes.split()]
    if colour is not None:
        number = NUMBERS[colour]
        codes.append(str(30 + number if number < 8 else 82 + number))
    return ";".join(codes)


def rich_style(style: str, theme: Theme) -> str:
    look, colour = _look(style, theme)
    return " ".join(filter(None, [look.attributes, colour.replace(" ", "_") if colour else ""])) or "none"


def toolkit_style(style: str, theme: Theme) -> str:
    """In prompt_toolkit's words. What is not dim is not so within a row that is."""
    look, colour = _look(style, theme)
    ansi = f"ansi{colour.replace(' ', '')}" if colour else ""
    return " ".join(filter(None, [look.attributes, ansi, "" if look.attributes == "dim" else "nodim"]))


def _look(style: str, theme: Theme) -> tuple[Look, Colour | None]:
    look = LOOKS.get(style, Look())
    return look, COLOURS[theme].get(look.hue) if look.hue else None
