"""Rich's Markdown, drawn for any terminal: headings on the left, code in the terminal's own colours and on its own
background."""

from typing import TYPE_CHECKING, ClassVar

from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax

from amanu.cli.code_colours import STYLES

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

THEME = {
    "markdown.h1": "bold",
    "markdown.code": "bold cyan",
    "markdown.code_block": "none",
}
"""Styles that take the place of Rich's."""
_CODE_THEME = ANSISyntaxTheme({tuple(kind.split(".")): Style.parse(style) for kind, style in STYLES.items()})


class LeftHeading(Heading):
    """A heading, however wide the terminal is."""

    LEVEL_ALIGN: ClassVar["dict[str, JustifyMethod]"] = {}


class TerminalCode(CodeBlock):
    """A block of code."""

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=_CODE_THEME, word_wrap=True, padding=(0, 2), tab_size=4)


class TerminalMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": TerminalCode,
        "code_block": TerminalCode,
    }
