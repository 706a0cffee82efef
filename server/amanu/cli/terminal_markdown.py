"""Rich's Markdown, drawn for any terminal: headings on the left, code in the terminal's own colours and on its own
background."""

from typing import TYPE_CHECKING, ClassVar, get_args

from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax

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


class TerminalMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": TerminalCode,
        "code_block": TerminalCode,
    }
