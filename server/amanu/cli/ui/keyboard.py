"""Standard input as prompts read it. Imports prompt_toolkit."""

import re
import select
import termios
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from amanu.cli.ui.background import ANSWER, QUESTION, UNFINISHED, WAIT_SECONDS, Background, answered
from amanu.cli.ui.sequences import write_now

PASTE_SECONDS = 2.0
"""After its last byte, a paste that has no end is taken as it is."""
PASTE_START, PASTE_END, CTRL_C = "\x1b[200~", "\x1b[201~", "\x03"
FOCUS_GAINED, FOCUS_LOST = "\x1b[I", "\x1b[O"
REPORT_FOCUS, NO_FOCUS = "\x1b[?1004h", "\x1b[?1004l"
for _sequence in (FOCUS_GAINED, FOCUS_LOST):  # prompt_toolkit would take them for Esc and letters
    ANSI_SEQUENCES[_sequence] = Keys.Ignore


class PromptKeyboard(Vt100Input):
    """A terminal on which every key stays what it is. While something is printed above a prompt, prompt_toolkit would
    let the terminal edit lines: a Ctrl-D typed just then is lost, an Enter becomes a line feed. Bytes that are no text
    become replacement characters, for no message can hold them."""

    focused: bool | None = None
    """Whether the process's terminal has the focus; None while it does not say."""
    reports_focus = False
    """Whether that terminal was asked to say."""

    def __init__(self, stdin: TextIO) -> None:
        super().__init__(stdin)
        self.stdin_reader = PosixStdinReader(self.fileno(), errors="replace", encoding=stdin.encoding)
        self.vt100_parser = self._parser = _Parser(self._pressed)
        self._lent = False

    @property
    def lent(self) -> bool:
        """Another program reads the keys: the user's editor."""
        return self._lent

    @lent.setter
    def lent(self, lent: bool) -> None:
        self._lent = lent
        if self.reports_focus:
            write_now(NO_FOCUS if lent else REPORT_FOCUS)

    def cooked_mode(self) -> AbstractContextManager[None]:
        return super().cooked_mode() if self.lent else nullcontext()

    def _pressed(self, key: KeyPress) -> None:
        if key.data in (FOCUS_GAINED, FOCUS_LOST):
            PromptKeyboard.focused = key.data == FOCUS_GAINED
        self._buffer.append(key)

    def unended_paste(self) -> list[KeyPress]:
        """The paste whose end does not come, as when a connection broke in the middle of it: it would take every key
        that is typed later."""
        return self.flush_keys() if self._parser.end_stalled_paste() else []

    def wait_for_background(self) -> None:
        """Read until the terminal has said what it was asked (`ask_background`), for a moment; what is typed
        meanwhile is for the prompt. Blocking; not while a prompt reads."""
        ends = time.monotonic() + WAIT_SECONDS
        while self.is_asked and (left := ends - time.monotonic()) > 0:
            if select.select([self.fileno()], [], [], left)[0]:
                self.vt100_parser.feed(self.stdin_reader.read())
        store_typeahead(self, self.flush_keys())

    @property
    def is_asked(self) -> bool:
        """Whether the terminal has not said yet all that it was asked."""
        return self._parser.is_asked

    @property
    def background(self) -> Background | None:
        """As the terminal says; None while it does not."""
        return self._parser.background

    def ask_background(self) -> None:
        self._parser.is_asked = True
        write_now(QUESTION)

    def discard_typed(self) -> None:
        """Forget the keys that nobody has read yet."""
        termios.tcflush(self.fileno(), termios.TCIFLUSH)


class _Parser(Vt100Parser):
    """Ends a paste that has no end: with Ctrl-C, or when nothing more comes. What the terminal answers is no key,
    however late it comes."""

    background: Background | None = None
    is_asked = False
    _unfinished = ""
    """The first part of an answer."""
    _fed_at = 0.0
    _lacks_end = False
    """A paste was ended without its mark, which may come yet."""

    def feed(self, data: str) -> None:
        self._fed_at = time.monotonic()
        if self._in_bracketed_paste:
            if data and not data.strip(CTRL_C):
                self._end_paste()
        elif self._lacks_end:
            before, mark, after = data.partition(PASTE_END)
            if mark and PASTE_START not in before:
                self._lacks_end = False
                data = before + after
        if self.is_asked and not self._in_bracketed_paste:
            data = self._without_answers(data)
        super().feed(data)

    def _without_answers(self, data: str) -> str:
        typed, *pasted = re.split(f"(?={re.escape(PASTE_START)})", self._unfinished + data, maxsplit=1)
        typed = ANSWER.sub(self._answered, typed)
        unfinished = UNFINISHED.search(typed) if self.is_asked and not pasted else None
        self._unfinished = unfinished[0] if unfinished is not None else ""
        return "".join([typed.removesuffix(self._unfinished), *pasted])

    def _answered(self, found: re.Match[str]) -> str:
        if found[1] is None:  # to the second question, which every terminal answers
            self.is_asked = False
        else:
            self.background = answered(found[1])
        return ""

    def end_stalled_paste(self) -> bool:
        if not self._in_bracketed_paste or time.monotonic() - self._fed_at < PASTE_SECONDS:
            return False
        self._end_paste()
        return True

    def _end_paste(self) -> None:
        super().feed(PASTE_END)
        self._lacks_end = True
