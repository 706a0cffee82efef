"""Rich's Markdown, drawn for any terminal: headings on the left, code in the terminal's own colours and on its own
background."""

from typing import TYPE_CHECKING, ClassVar, get_args

from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table

from amanu.cli.code_colours import STYLES
from amanu.cli.styles import Theme, rich_style

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult

_CODE_THEMES = {
    theme: ANSISyntaxTheme(
        {tuple(kind.split(".")): Style.parse(rich_style(style, theme)) for kind, style in STYLES.items()}
    )
    for theme in get_args(Theme)
}


class LeftHeading(Heading):
    """A heading, however wide the terminal is."""

    LEVEL_ALIGN: ClassVar["dict[str, JustifyMethod]"] = {}


class TerminalCode(CodeBlock):
    """A block of code."""

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=_CODE_THEMES[self.theme], word_wrap=True, padding=(0, 2), tab_size=4)


class TerminalItem(ListItem):
    """An item of a list, its number with a dot."""

    def render_number(
        self, console: "Console", options: "ConsoleOptions", number: int, last_number: int
    ) -> "RenderResult":
        """`last_number` is one more than that."""
        width = len(str(last_number - 1)) + 3
        style = console.get_style("markdown.item.number", default="none")
        lead = f"{number}. ".rjust(width)
        for line in console.render_lines(self.elements, options.update(width=options.max_width - width)):
            yield Segment(lead, style)
            yield from line
            yield Segment.line()
            lead = " " * width


class TerminalTable(TableElement):
    """A table without the empty rows that are Rich's edges."""

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                table.show_edge = False
            yield table


class TerminalMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": TerminalCode,
        "code_block": TerminalCode,
        "list_item_open": TerminalItem,
        "table_open": TerminalTable,
    }
