"""The answers of a session on standard output while they are written, for a reader who cannot scroll back."""

from collections.abc import Callable
from typing import Protocol, TextIO

from amanu.cli.blocks import Blocks
from amanu.cli.console import Console, PlainConsole
from amanu.cli.text import Stripper
from amanu_protocol.events import (
    Event,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    StepEnded,
    TurnEnded,
)
from amanu_protocol.items import Answer, Item


class AnswerStream:
    """Feed it every event. What an attempt wrote that is then discarded stands on the page already: an attempt that
    says the same again goes on behind it, and what another one says is written below. `before` is called before
    anything is written. Raises BrokenPipeError."""

    def __init__(self, out: TextIO, console: Console, before: Callable[[], None]) -> None:
        is_plain = isinstance(console, PlainConsole)
        self._page: _Page = TextPage(out, before) if is_plain else BlockPage(console, before)
        self._item_id: str | None = None
        self._received = 0
        """Characters of the item so far."""
        self._stripper = Stripper()
        self._written = ""
        """The item's."""
        self._completed: dict[str, str] = {}
        """Item → the answer, of this step."""
        self._discarded: list[str] = []
        """On the page from an attempt that was discarded, and not said again yet. Only the last may be half an answer:
        the page is open then."""

    @property
    def in_line(self) -> bool:
        """The next piece goes on in the line that is written."""
        return isinstance(self._page, TextPage) and self._page.is_open

    def show(self, event: Event) -> None:
        match event:
            case ItemStarted(item=item):
                self._open(item)
            case ItemDelta(item_id=item_id, text=text) if item_id == self._item_id:
                self._add(text)
            case ItemCompleted(item=item):
                self._open(item)
                if item.item_id == self._item_id:
                    self._complete(item.item_id)
            case ItemsReplaced(items=items, withdrawn=withdrawn):
                self._withdraw(withdrawn)
                for item in items:
                    self._open(item)
            case ItemsWithdrawn(item_ids=item_ids):
                self._withdraw(item_ids)
            case StepEnded():
                self._completed.clear()
            case TurnEnded():
                self._page.end()
            case _:
                pass

    def _open(self, item: Item) -> None:
        """A sub-agent's words are for the model."""
        if isinstance(item, Answer) and item.agent_id is None:
            if item.item_id != self._item_id:
                self._item_id, self._received, self._written, self._stripper = item.item_id, 0, "", Stripper()
            self._add(item.text[self._received :])

    def _add(self, text: str) -> None:
        self._received += len(text)
        self._write(self._stripper.feed(text))

    def _write(self, text: str) -> None:
        self._written += text
        if not self._discarded:
            self._page.write(text)
        elif not self._discarded[0].startswith(self._written):
            self._diverge()

    def _diverge(self) -> None:
        """It is no repetition, or more than one."""
        half = self._discarded[0] if len(self._discarded) == 1 and self._page.is_open else None
        self._discarded.clear()
        if half is not None and self._written.startswith(half):
            self._page.write(self._written.removeprefix(half))
        else:
            self._page.abandon()
            self._page.write(self._written)

    def _complete(self, item_id: str) -> None:
        self._write(self._stripper.end())
        if self._discarded and self._discarded[0] != self._written:
            self._diverge()
        self._discarded = self._discarded[1:]
        if not self._discarded:
            self._page.end()
        self._completed[item_id] = self._written
        self._item_id = None

    def _withdraw(self, item_ids: list[str]) -> None:
        said = [text for item_id, text in self._completed.items() if item_id in item_ids]
        if self._item_id in item_ids:
            # Half of a repetition that is discarded as well says less than what stands there.
            self._discarded = [*said, *(self._discarded or [self._written])]
            self._item_id = None
        else:
            self._discarded = [*said, *self._discarded]
        self._completed.clear()


class _Page(Protocol):
    """One answer after the other."""

    is_open: bool
    """An answer has begun and is not complete."""

    def write(self, text: str) -> None: ...

    def end(self) -> None:
        """The answer is complete."""
        ...

    def abandon(self) -> None:
        """It never will be, and another one follows."""
        ...


class TextPage:
    """Every character at once. Newlines around an answer do not count."""

    def __init__(self, out: TextIO, before: Callable[[], None]) -> None:
        self._out = out
        self._before = before
        self.is_open = False
        self._held: str = ""
        """Blank, and written only if more follows."""

    def write(self, text: str) -> None:
        text = self._held + text
        end = len(text.rstrip())
        self._held = text[end:]
        if end:
            self._before()
            self._out.write(text[:end] if self.is_open else text[:end].lstrip("\n"))
            self._out.flush()
            self.is_open = True

    def end(self) -> None:
        if self.is_open:
            self._before()
            self._out.write(self._held.rstrip("\n") + "\n\n")
            self._out.flush()
        self._held, self.is_open = "", False

    abandon = end


class BlockPage:
    """Whole blocks of Markdown, as a terminal shows them."""

    def __init__(self, console: Console, before: Callable[[], None]) -> None:
        self._console = console
        self._before = before
        self._blocks = Blocks()
        self.is_open = False

    def write(self, text: str) -> None:
        self.is_open = self.is_open or bool(text)
        self._print(self._blocks.feed(text))

    def end(self) -> None:
        self._print(self._blocks.end())
        self.is_open = False

    def abandon(self) -> None:
        self._blocks = Blocks()
        self.is_open = False

    def _print(self, blocks: list[str]) -> None:
        for block in blocks:
            self._before()
            self._console.markdown(block)
