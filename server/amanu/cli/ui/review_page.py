"""The page of a review on the screen, in the application of the chat. Imports prompt_toolkit."""

from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, HSplit
from prompt_toolkit.layout.containers import AnyContainer, Window
from prompt_toolkit.layout.controls import UIContent, UIControl

from amanu.cli.review_page import ReviewPage
from amanu.cli.review_page_text import Rows
from amanu.cli.ui.page_keys import PAGE_KEYS, PageAction

_WHY = " why not › "


class Paged(Protocol):
    """Whoever has the page."""

    page: ReviewPage | None

    def press(self, key: PageAction, words: str = "") -> None: ...
    def draft(self, text: str) -> None: ...


class PageView:
    """The page, and a line below it while words to the model are written."""

    def __init__(self, terminal: Paged, focus: Callable[[Window], None]) -> None:
        self._terminal = terminal
        self._focus = focus
        self._writes = False
        self._words = Buffer(multiline=False, on_text_changed=lambda _: self._keep_words())
        self.window = Window(_Drawn(self._rows))
        self._line = Window(
            BufferControl(self._words),
            height=1,
            get_line_prefix=lambda line, wrapped: [("class:prompt", _WHY)],
        )
        self.container: AnyContainer = HSplit(
            [self.window, ConditionalContainer(self._line, Condition(lambda: self._writes))]
        )

    def begin(self) -> None:
        self._writes = False
        self._focus(self.window)

    def bind(self, keys: KeyBindings) -> None:
        paged = Condition(lambda: self._terminal.page is not None)
        writing = Condition(lambda: self._writes)
        for key in PAGE_KEYS:
            for sequence in key.bound:
                keys.add(*sequence, filter=paged & ~writing)(self._pressing(key.action))  # pyright: ignore[reportArgumentType]
        keys.add("enter", filter=paged & writing)(self._send)
        keys.add("escape", filter=paged & writing)(self._cancelled)
        keys.add(Keys.BracketedPaste, filter=paged & ~writing)(self._pasted)

    def _pressing(self, action: PageAction) -> Callable[[KeyPressEvent], None]:
        def press(event: KeyPressEvent) -> None:
            page = self._terminal.page
            if action != "why":
                self._terminal.press(action)
            elif page is not None and page.can_refuse():
                self._words.text = page.words
                self._words.cursor_position = len(page.words)
                self._writes = True
                self._focus(self._line)

        return press

    def _cancelled(self, event: KeyPressEvent) -> None:
        self._stop_writing()

    def _send(self, event: KeyPressEvent) -> None:
        words = self._words.text.strip()
        self._stop_writing()
        self._terminal.press("why", words)

    def _stop_writing(self) -> None:
        self._writes = False
        self._focus(self.window)

    def _keep_words(self) -> None:
        if self._writes and self._terminal.page is not None:
            self._terminal.page.words = self._words.text

    def _pasted(self, event: KeyPressEvent) -> None:
        """No text goes anywhere on the page."""
        self._terminal.draft(event.data.replace("\r\n", "\n").replace("\r", "\n"))
        if self._terminal.page is not None:
            self._terminal.page.say("", "What you pasted is in your draft.")

    def _rows(self, columns: int, height: int) -> Rows:
        return self._terminal.page.rows(columns, height) if self._terminal.page is not None else []


class _Drawn(UIControl):
    """Rows that are made for the room there is."""

    def __init__(self, rows: Callable[[int, int], Rows]) -> None:
        self._rows = rows

    def create_content(self, width: int, height: int) -> UIContent:
        rows = [[(f"class:{style}" if style else "", text) for style, text in row] for row in self._rows(width, height)]
        return UIContent(lambda at: [*rows[at]], line_count=len(rows), show_cursor=False)

    def is_focusable(self) -> bool:
        return True
