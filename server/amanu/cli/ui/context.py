"""The surroundings of the composer: what moves above it, what stands below it, and what can complete it."""

from collections.abc import Sequence

from amanu.cli.console import Span
from amanu.cli.ui.completions import Row
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import MentionCompleteResult


class PromptContext:
    """A context without anything."""

    def rows(self, typed: str) -> Sequence[Row]:
        """The rows below a slash command that is being typed, the best first."""
        return ()

    def taken(self, typed: str) -> str:
        """The slash command that Enter sends, while no row is chosen."""
        return typed

    async def learn(self, typed: str) -> None:
        """Ask for what `rows` needs to know. Raises AmanuError or Disconnected."""

    async def mentions(self, text: str) -> MentionCompleteResult:
        """Completions of the mention at the end of `text`."""
        return MentionCompleteResult(typed="", items=[])

    def tell(self, error: AmanuError) -> None:
        """Say why a key did nothing."""

    def begin_prompt(self) -> None:
        """The user types: called after each change of a text that is not empty."""

    def above(self) -> list[Span]:
        """The moving lines above the composer."""
        return []

    def toolbar(self, taken: int = 0) -> str:
        """The status line, beside what takes so many columns."""
        return ""

    def next_mode(self) -> None:
        """Shift-Tab."""

    def stoppable(self) -> bool:
        """Whether Esc has something to stop."""
        return False

    def has_command(self) -> bool:
        """Whether a command runs that the turn waits for."""
        return False

    def background(self) -> None:
        """Ctrl-B, while one runs."""

    def everything(self) -> str:
        """All that was cut from what was printed lately, for the pager."""
        return ""
