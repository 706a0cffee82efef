"""The layout below the transcript, and its keys. Imports prompt_toolkit."""

import asyncio
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import DummyCompleter, DynamicCompleter, PathCompleter
from prompt_toolkit.filters import (
    Always,
    Condition,
    Filter,
    emacs_insert_mode,
    is_searching,
    vi_insert_mode,
    vi_mode,
    vi_navigation_mode,
)
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings import search
from prompt_toolkit.key_binding.bindings.named_commands import get_by_name
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Dimension, FormattedTextControl, HSplit, Layout
from prompt_toolkit.layout.containers import AnyContainer, DynamicContainer, Window
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from amanu.cli.review_page import ReviewPage
from amanu.cli.styles import LOOKS, Theme, toolkit_style
from amanu.cli.text import cell_width, cut, one_line, visible
from amanu.cli.ui import vi
from amanu.cli.ui.completer import PromptCompleter
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.dialog import MOST_PREVIEW, MOST_ROWS, ROW_KEYS, OpenDialog
from amanu.cli.ui.keys import Action, Combination, KeyMap
from amanu.cli.ui.page_keys import PageAction
from amanu.cli.ui.pastes import Pastes
from amanu.cli.ui.review_page import PageView
from amanu.config import Editing
from amanu_protocol.items import Line

DRAW_SECONDS = 0.1
"""The time between two drawings of what moves."""
DIGIT_SECONDS = 0.3
"""The time in which more typing makes words of a digit: "2 of them are wrong" is no second row."""
LIVE_ROWS = 8
MENU_ROWS = 8
PREVIEW_ROWS = 8
_ABOUT = 28
"""Columns that a long label leaves to what stands beside it."""
LINE_CHARACTERS = 400
"""The most characters of a line of a preview."""
_EVER = Always()
_REPORTS = (Keys.CPRResponse, Keys.Vt100MouseEvent, Keys.BracketedPaste, Keys.Ignore)
"""The terminal sends them by itself, with printing also right after Esc: that makes no Alt of it."""
_PROMPT, _FURTHER, _BAR = "› ", "  ", "  │ "
_TONES = {"plain": "class:dim", "good": "class:green", "warning": "class:yellow", "bad": "class:red"}


class Keyed(Protocol):
    """Whoever the keys are for, and what of it is drawn."""

    context: PromptContext
    keys: KeyMap
    editing: Editing
    pastes: Pastes
    dialog: OpenDialog | None
    below: Callable[[], Sequence[Line]] | None
    page: ReviewPage | None

    @property
    def leaves_question(self) -> bool: ...
    def submit(self) -> None: ...
    def answer(self, text: str | None) -> None: ...
    def leave_question(self, by: int, typed: str) -> None: ...
    def ctrl_c(self) -> None: ...
    def ctrl_d(self) -> None: ...
    def escape(self) -> None: ...
    def notice_typing(self) -> None: ...
    async def edit_composer(self) -> None: ...
    async def show_everything(self) -> None: ...
    async def take_picture(self) -> None: ...
    async def take_pasted(self, pasted: str) -> None: ...
    async def suspend(self) -> None: ...
    def press(self, key: PageAction, words: str = "") -> None: ...
    def draft(self, text: str) -> None: ...


class Screen:
    """The layout and the keys of one terminal."""

    def __init__(self, terminal: Keyed, history: Path | None, keyboard: Input | None, output: Output | None) -> None:
        self._terminal = terminal
        self._paths = PathCompleter(expanduser=True)
        self._roots: Sequence[str] = ()
        self._shows_keys = False
        self.composer = Buffer(
            multiline=True,
            history=FileHistory(str(history)) if history is not None else InMemoryHistory(),
            completer=PromptCompleter(terminal.context),
            complete_while_typing=Condition(self._completes_while_typing),
            on_text_changed=lambda _: self._composer_changed(),
        )
        self.answer = Buffer(
            multiline=True,
            completer=DynamicCompleter(lambda: self._paths if self._roots else DummyCompleter()),
            complete_while_typing=Condition(lambda: bool(self._roots)),
            on_text_changed=lambda _: self._answer_changed(),
        )
        self._search = SearchToolbar(
            forward_search_prompt="later prompt › ", backward_search_prompt=self._search_prompt
        )
        self._before_search = (0, 0)
        """The entry of the history, and the cursor in it."""
        self._composer_window = self._line_of(self.composer, lambda: _PROMPT, search=self._search)
        self._answer_window = self._line_of(self.answer, self._answer_prompt)
        self._page = PageView(terminal, lambda window: self.app.layout.focus(window))
        rows = self._rows()
        self.app: Application[None] = Application(
            layout=Layout(
                DynamicContainer(lambda: rows if terminal.page is None else self._page.container),
                focused_element=self._composer_window,
            ),
            key_bindings=self._keys(),
            style=styles("neutral"),
            input=keyboard,
            output=output,
            erase_when_done=True,
            include_default_pygments_style=False,
            cursor=vi.cursor(terminal.editing),
        )
        # Esc may begin a sequence (Alt-Enter): nobody should wait a second to learn that it does not.
        self.app.ttimeoutlen = self.app.timeoutlen = vi.ESC_SECONDS[terminal.editing]
        vi.edit_as(self.app, terminal.editing)

    def open_dialog(self, dialog: OpenDialog) -> None:
        self._roots = dialog.asked.roots
        self._paths.get_paths = lambda: list(dialog.asked.roots)
        marked = dialog.marked
        self.answer.reset()
        self.answer.text = dialog.text
        self.answer.cursor_position = len(dialog.text)
        dialog.marked = marked
        vi.edit_as(self.app, "emacs")
        self.app.layout.focus(self._answer_window)
        self.app.invalidate()

    def close_dialog(self) -> None:
        self.answer.reset()
        # A search leaves the keys with itself.
        vi.edit_as(self.app, self._terminal.editing)
        self.app.layout.focus(self._composer_window)
        self.app.invalidate()

    def draw_in(self, theme: Theme) -> None:
        self.app.style = styles(theme)
        self.app.invalidate()

    def open_page(self) -> None:
        """Everything else gives way: the page has the alternate screen, and the transcript stays as it is."""
        self._cover(True)
        vi.edit_as(self.app, "emacs")
        self._page.begin()

    def close_page(self) -> None:
        self._cover(False)
        vi.edit_as(self.app, self._terminal.editing)
        self.app.layout.focus(self._composer_window)

    def _cover(self, covered: bool) -> None:
        if self.app.is_running:
            self.app.renderer.erase()
        self.app.renderer.full_screen = covered
        self.app.invalidate()

    async def follow(self) -> None:
        """Draw again whenever something moves that no key moved: at rest nothing is drawn, nor sent to a terminal that
        may be far away."""
        drawn: list[object] = []
        while True:
            await asyncio.sleep(DRAW_SECONDS)
            now = [
                self._live_text(),
                self._choices_text(),
                self._answer_prompt(),
                self._below_text(),
                self._status_text(),
            ]
            if now != drawn or self._terminal.page is not None:  # what moves on a page, only it knows
                drawn = list[object](now)
                self.app.invalidate()

    # Rows ------------------------------------------------------------------------------------------------

    def _rows(self) -> AnyContainer:
        asked = Condition(lambda: self._terminal.dialog is not None)
        return HSplit(
            [
                _text(self._live_text, LIVE_ROWS),
                ConditionalContainer(HSplit([_text(self._choices_text, MOST_ROWS), self._answer_window]), asked),
                ConditionalContainer(HSplit([self._composer_window, self._search]), ~asked),
                _text(self._menu_text, MENU_ROWS),
                _text(self._below_text, MOST_PREVIEW),
                _text(self._keys_text, len(self._key_rows())),
                Window(FormattedTextControl(self._status_text), height=1, style="class:status"),
            ]
        )

    def _line_of(self, buffer: Buffer, prompt: Callable[[], str], search: SearchToolbar | None = None) -> Window:
        control = BufferControl(
            buffer, search_buffer_control=None if search is None else search.control, preview_search=True
        )
        return Window(
            control,
            height=lambda: Dimension(min=1, max=max(1, _size()[1] // 2)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda line, wrapped: [("class:prompt", _FURTHER if line or wrapped else prompt())],
        )

    def _live_text(self) -> StyleAndTextTuples:
        return _joined([[(f"class:{style}" if style else "", row)] for style, row in self._terminal.context.above()])

    def _answer_prompt(self) -> str:
        if self._terminal.dialog is None:
            return ""
        asked = self._terminal.dialog.asked
        return " · ".join(filter(None, [str(asked.place()), asked.prompt]))

    def _choices_text(self) -> StyleAndTextTuples:
        dialog = self._terminal.dialog
        if dialog is None:
            return []
        typed = self.answer.text
        rows = dialog.rows(typed)
        if dialog.asked.is_picker and not rows:
            return [("class:dim", "  Nothing has these words." if typed.strip() else "  Type to find others.")]
        # They are the answer, no row is.
        words = bool(typed.strip()) and not dialog.asked.is_picker and dialog.numbered(typed) is None
        selected = dialog.index(rows)
        height = dialog.list_height(_size()[1])
        first = max(0, min(selected - height // 2, len(rows) - height))
        seen = rows[first : first + height]
        labels = [cut(one_line(each.label), _size()[0] - (_ABOUT if each.about else 6)) for each in seen]
        width = max(map(cell_width, labels), default=0)
        shown: list[StyleAndTextTuples] = []
        for index, (choice, label) in enumerate(zip(seen, labels, strict=True), first):
            is_chosen = index == selected and not words
            number = "" if dialog.asked.is_picker else f"{index + 1}. "
            style = "class:chosen" if is_chosen else "class:dim" if words else ""
            row = f"{'❯' if is_chosen else ' '} {number}{label}" + " " * (width - cell_width(label))
            room = max(1, _size()[0] - cell_width(row) - 3)
            shown.append([(style, row), ("class:dim", f"  {one_line(choice.about, room)}" if choice.about else "")])
        return _joined(shown)

    def _menu_text(self) -> StyleAndTextTuples:
        state = self.app.current_buffer.complete_state
        if state is None or not state.completions:
            return []
        chosen = state.complete_index or 0
        first = max(0, min(chosen - MENU_ROWS // 2, len(state.completions) - MENU_ROWS))
        shown: list[StyleAndTextTuples] = []
        width = min(40, max(len(each.display_text) for each in state.completions))
        for index, each in enumerate(state.completions[first : first + MENU_ROWS], first):
            style = "class:chosen" if index == chosen else ""
            label = one_line(each.display_text, 60).ljust(width)
            about = one_line(each.display_meta_text, max(1, _size()[0] - len(label) - 5))
            shown.append([(style, f"  {label}"), ("class:dim", f"  {about}")])
        return _joined(shown)

    def _below_text(self) -> StyleAndTextTuples:
        dialog = self._terminal.dialog
        if self._terminal.below is None or dialog is None:
            return []
        lines = self._terminal.below()
        if not dialog.asked.is_picker:
            return _joined([[row] for row in _wrapped(lines, _size()[0] - 1, PREVIEW_ROWS)])
        height = dialog.preview_height(*_size())
        rows = _wrapped(lines, _size()[0] - len(_BAR) - 1, height) if height else []
        blank: StyleAndTextTuples = [("", "")]
        return _joined([*([("class:dim", _BAR), row] for row in rows), *[blank] * (height - len(rows))])

    def _keys_text(self) -> StyleAndTextTuples:
        if not self._shows_keys:
            return []
        return _joined([[("class:bold", f"  {name:22}"), ("class:dim", about)] for name, about in self._key_rows()])

    def _key_rows(self) -> Sequence[tuple[str, str]]:
        of_vi = [("Esc, i", "vi: normal mode, insert mode; in normal mode Esc does as above")]
        return [*self._terminal.keys.table(), *(of_vi if self._terminal.editing == "vi" else [])]

    def _status_text(self) -> StyleAndTextTuples:
        mode = f"{name} " if (name := vi.mode_name(self.app)) else ""
        return [("class:mode", mode), ("", self._terminal.context.toolbar(len(mode)))]

    # Keys ------------------------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        asked = Condition(lambda: self._terminal.dialog is not None)
        choosing = Condition(self._is_choosing)
        menu = Condition(lambda: self.app.current_buffer.complete_state is not None)
        nothing_typed = Condition(lambda: not self.app.current_buffer.text)

        def on(action: Action, filter: Filter = _EVER) -> Callable[[Callable[[KeyPressEvent], object]], None]:
            def add(handler: Callable[[KeyPressEvent], object]) -> None:
                for combination in self._terminal.keys.bound(action):
                    bind(combination, filter & ~vi.esc_is_vis if combination == ("escape",) else filter, handler)
                for combination in self._terminal.keys.released(action):
                    bind(combination, filter, _nothing)

            return add

        def bind(combination: Combination, filter: Filter, handler: Callable[[KeyPressEvent], object]) -> None:
            keys.add(*combination, filter=filter)(handler)  # pyright: ignore[reportArgumentType]

        chat = Condition(lambda: self._terminal.page is None)
        on("send", ~is_searching & chat)(lambda _: self._enter())
        on("newLine", ~is_searching & chat)(lambda event: event.current_buffer.insert_text("\n"))
        on("mode", ~menu & ~asked & chat)(lambda _: self._terminal.context.next_mode())
        on("stop", ~is_searching & chat)(lambda _: self._escape())
        on("interrupt", ~is_searching)(lambda _: self._terminal.ctrl_c())
        for action in ("interrupt", "editor"):
            on(action, is_searching)(self._leave_search)
        keys.add("escape", filter=is_searching, eager=True)(self._leave_search)
        on("leave", nothing_typed)(lambda _: self._terminal.ctrl_d())
        on("editor", ~asked & chat & ~is_searching)(lambda _: self._terminal.edit_composer())
        has_command = Condition(self._terminal.context.has_command)
        on("background", has_command & chat)(lambda _: self._terminal.context.background())
        on("everything", chat)(lambda _: self._terminal.show_everything())
        on("picture", ~asked & chat & ~vi_navigation_mode)(lambda _: self._terminal.take_picture())
        on("suspend")(lambda _: self._terminal.suspend())
        on("keys", nothing_typed & ~asked & chat)(lambda _: self._toggle_keys())
        for key in ROW_KEYS:
            keys.add(key, filter=Condition(partial(self._has_row_key, key)), eager=True)(partial(self._row_key, key))
        on("complete", vi_insert_mode | emacs_insert_mode)(get_by_name("menu-complete").call)
        on("search", ~is_searching & ~asked & chat & ~vi_navigation_mode)(self._begin_search)
        on("search", is_searching)(search.reverse_incremental_search.call)
        several = Condition(lambda: self._terminal.leaves_question)
        on("nextQuestion", several & ~menu)(lambda _: self._terminal.leave_question(1, self.answer.text))
        on("previousQuestion", several & ~menu)(lambda _: self._terminal.leave_question(-1, self.answer.text))
        keys.add("up", filter=choosing)(partial(self._move, -1))
        keys.add("down", filter=choosing)(partial(self._move, 1))
        for digit in "123456789":
            keys.add(digit, filter=asked)(self._digit)
        keys.add(Keys.BracketedPaste)(self._paste)
        self._page.bind(keys)

        # An Alt with a key that means nothing is no Esc. The mouse, which nobody asked for, would fail on a button it
        # does not know.
        keys.add("escape", "escape", filter=~vi_mode & chat)(self._escape_twice)
        keys.add("escape", "<any>", filter=~vi_mode)(_nothing)
        for report in _REPORTS:
            keys.add("escape", report, filter=~vi_mode & chat)(self._escape_before_report)
        keys.add(Keys.Vt100MouseEvent)(_nothing)
        return keys

    def _search_prompt(self) -> str:
        found = self.composer.document_for_search(self._search.control.searcher_search_state).text
        is_found = self._search.search_buffer.text in found
        return "earlier prompt › " if is_found else "no earlier prompt has this › "

    def _begin_search(self, event: KeyPressEvent) -> None:
        self._before_search = self.composer.working_index, self.composer.cursor_position
        search.start_reverse_incremental_search.call(event)

    def _leave_search(self, event: KeyPressEvent) -> None:
        """The draft is as it was."""
        search.abort_search.call(event)
        self.composer.working_index, self.composer.cursor_position = self._before_search

    def _enter(self) -> None:
        buffer = self.app.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif (dialog := self._terminal.dialog) is not None:
            buffer.cancel_completion()
            self._terminal.answer(dialog.answer(buffer.text))
        elif (state := buffer.complete_state) is not None and self._takes(state):
            buffer.go_to_completion(state.complete_index or 0)
            buffer.complete_state = None
        else:
            buffer.complete_state = None
            self._terminal.submit()
            if not buffer.text:
                self.app.vi_state.reset()  # the next prompt begins in insert mode

    def _takes(self, state: CompletionState) -> bool:
        """Whether Enter only takes a row of the popup: a file, or a command that wants an argument."""
        typed = state.original_document.text_before_cursor
        if typed.startswith("/") and "@" not in typed:
            rows = self._terminal.context.rows(typed)
            return state.complete_index is not None and not rows[state.complete_index].complete
        chosen = state.completions[state.complete_index or 0]
        return not self.composer.document.text_before_cursor.endswith(chosen.text)

    def _escape(self) -> None:
        if self._shows_keys:
            self._toggle_keys()
        elif self.app.current_buffer.complete_state is not None:
            self.app.current_buffer.cancel_completion()
        else:
            self._terminal.escape()

    def _escape_twice(self, event: KeyPressEvent) -> None:
        self._escape()
        self._escape()

    def _escape_before_report(self, event: KeyPressEvent) -> None:
        self._escape()
        event.app.key_processor.feed(event.key_sequence[-1], first=True)

    def _has_row_key(self, key: str) -> bool:
        dialog = self._terminal.dialog
        return dialog is not None and any(each.key == key for each in dialog.asked.row_keys)

    def _row_key(self, key: str, event: KeyPressEvent) -> None:
        if (dialog := self._terminal.dialog) is not None:
            self._terminal.answer(dialog.keyed(key, self.answer.text))

    def _digit(self, event: KeyPressEvent) -> None:
        self.answer.insert_text(event.data)
        dialog, typed = self._terminal.dialog, self.answer.text
        if dialog is not None and (chosen := dialog.numbered(typed)) is not None:
            dialog.marked = chosen
            asyncio.get_running_loop().call_later(DIGIT_SECONDS, self._choose_numbered, dialog, typed)

    def _choose_numbered(self, dialog: OpenDialog, typed: str) -> None:
        if self._terminal.dialog is dialog and self.answer.text == typed:
            self._terminal.answer(dialog.numbered(typed))

    def _paste(self, event: KeyPressEvent) -> Awaitable[None] | None:
        is_composer = event.current_buffer is self.composer
        text = self._terminal.pastes.folded(event.data) if is_composer else event.data.replace("\r", "\n")
        event.current_buffer.insert_text(text)
        return self._terminal.take_pasted(event.data) if is_composer else None

    def _move(self, by: int, event: KeyPressEvent) -> None:
        if self._terminal.dialog is not None:
            self._terminal.dialog.move(by, self.answer.text)

    def _toggle_keys(self) -> None:
        self._shows_keys = not self._shows_keys

    def _is_choosing(self) -> bool:
        dialog = self._terminal.dialog
        return dialog is not None and bool(dialog.asked.choices) and (dialog.asked.is_picker or not self.answer.text)

    def _completes_while_typing(self) -> bool:
        typed = self.composer.document.text_before_cursor
        return typed.startswith("/") or typed[typed.rfind(" ") + 1 :].startswith("@")

    def _composer_changed(self) -> None:
        self._shows_keys = False
        self._terminal.notice_typing()

    def _answer_changed(self) -> None:
        if self._terminal.dialog is not None:
            self._terminal.dialog.begin_again()


def styles(theme: Theme) -> Style:
    return Style.from_dict({name: toolkit_style(name, theme) for name in LOOKS})


def _text(text: Callable[[], StyleAndTextTuples], most: int) -> Window:
    """Rows that are not there while they are empty, and give way on a low screen."""
    control = FormattedTextControl(text)

    def height() -> Dimension:
        count = sum(part.count("\n") for _, part, *_ in text()) + 1 if text() else 0
        return Dimension(min=0, max=min(most, count), preferred=min(most, count))

    return Window(control, height=height, dont_extend_height=True)


def _wrapped(lines: Sequence[Line], width: int, most: int) -> list[tuple[str, str]]:
    """So many rows with their styles, the last one an ellipsis if there are more."""
    rows: list[tuple[str, str]] = []
    for line in lines:
        text = visible(line.text[:LINE_CHARACTERS]).expandtabs(4)
        rows += [(_TONES[line.tone], row) for row in _broken(text, max(20, width))]
        if len(rows) > most:
            return [*rows[: most - 1], ("class:dim", "…")]
    return rows


def _broken(text: str, width: int) -> list[str]:
    """Between words, but for scripts with wide characters, which hardly have any."""
    from rich.cells import chop_cells

    return (textwrap.wrap(text, width) if cell_width(text) == len(text) else chop_cells(text, width)) or [""]


def _joined(rows: Sequence[StyleAndTextTuples]) -> StyleAndTextTuples:
    joined: StyleAndTextTuples = []
    for index, row in enumerate(rows):
        joined += [("", "\n")] if index else []
        joined += row
    return joined


def _size() -> tuple[int, int]:
    """Columns and rows."""
    columns, rows = shutil.get_terminal_size()
    return columns, rows


def _nothing(event: KeyPressEvent) -> None:
    pass
