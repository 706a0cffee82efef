"""A user at a terminal, by prompt_toolkit: one application below the transcript, from the first key to the last.

It shows what runs, then the composer or the open question, then a status line. What is printed meanwhile goes above it.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amanu.cli.console import is_dumb
from amanu.cli.review_page import Decision, HunkEdit, ReviewPage
from amanu.cli.styles import Theme
from amanu.cli.ui.background import WAIT_SECONDS, Background
from amanu.cli.ui.clipboard import clipboard_picture
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.dialog import Dialog, OpenDialog, Preview
from amanu.cli.ui.keys import KeyMap, key_map
from amanu.cli.ui.page_keys import PageAction
from amanu.cli.ui.pastes import Pastes
from amanu.cli.ui.pictures import Pictures, pasted_paths, read_picture
from amanu.cli.ui.programs import edit_text, page_text
from amanu.cli.ui.transcript import Transcript
from amanu.client.daemon_client import Disconnected
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Line

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from amanu.config import Editing

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
"""An open question is checked that often for being settled elsewhere."""
TWICE_SECONDS = 0.6
"""A second Esc within that time goes back."""
PAUSE_SECONDS = 0.7
"""A pause of that length in typing a prompt lets a question take the keys."""


DECIDING: Collection[PageAction] = ("accept", "reject", "why", "edit", "undo", "acceptFile", "rejectFile")


class AttentionNeeded(Exception):
    """Something else needs the user now; what was typed stays in the composer."""


class Interrupted(Exception):
    """Ctrl-C. An ordinary exception: KeyboardInterrupt in a task would end the event loop."""


class StopRequested(Exception):
    """Esc: what runs is to stop. Like Ctrl-C, but it never leaves."""


class QuestionLeft(Exception):
    """Another question is to be asked: the next (1) or the one before (-1). `typed` stands at the one that was left."""

    def __init__(self, by: int, typed: str) -> None:
        super().__init__()
        self.by = by
        self.typed = typed


class RewindRequested(Exception):
    """Esc twice while nothing runs."""


class Terminal:
    """The application at the bottom of the screen. It begins with the first question or prompt, and ends with `close`.
    `history` is the file of earlier prompts; `keyboard` and `screen` are those of the process by default. `transcript`
    is where is printed, above it."""

    def __init__(
        self,
        context: PromptContext,
        *,
        history: Path | None = None,
        keys: KeyMap | None = None,
        editing: "Editing" = "emacs",
        keyboard: "Input | None" = None,
        screen: "Output | None" = None,
        transcript: Transcript | None = None,
        has_pages: bool | None = None,
    ) -> None:
        from amanu.cli.ui.keyboard import PromptKeyboard
        from amanu.cli.ui.screen import Screen

        self._own_keyboard = PromptKeyboard(sys.stdin) if keyboard is None and sys.stdin.isatty() else None
        self.context = context
        self.keys = keys or key_map({})[0]
        self.editing: Editing = editing
        self.pastes = Pastes()
        self.pictures = Pictures()
        self.dialog: OpenDialog | None = None
        """The open question."""
        self.below: Callable[[], Sequence[Line]] | None = None
        """The effect that the words typed at the question would have."""
        self.page: ReviewPage | None = None
        """The page that covers everything else."""
        self._transcript = transcript
        self.has_pages = self._own_keyboard is not None and not is_dumb() if has_pages is None else has_pages
        self._pressed: Decision | HunkEdit | Literal["back"] | None = None
        """The wish of a key on the page."""
        self._reader: asyncio.Future[str] | None = None
        """The one that waits for the user."""
        self._submitted: deque[str | type[EOFError]] = deque()
        """Sent while nobody waited for it."""
        self._moves: int | None = None
        """While one question gives way to another: how many further ones the user has gone on meanwhile."""
        self._typed_at = 0.0
        self._escaped_at = 0.0
        self._application: asyncio.Task[None] | None = None
        self._screen = Screen(self, history, self._own_keyboard or keyboard, screen)

    # What the chat asks for ------------------------------------------------------------------------------

    async def read(self, wake: Callable[[], bool]) -> str:
        """A prompt, of one line or many, never blank. Raises Interrupted on Ctrl-C, EOFError on Ctrl-D,
        AttentionNeeded when `wake` holds, StopRequested on Esc while something can be stopped, RewindRequested on Esc
        twice."""
        self._moves = None
        await self._start()
        if not wake() and self._submitted:
            text = self._submitted.popleft()
            if not isinstance(text, str):
                raise text
            return text
        text = await self._wait(wake)
        if text is None:
            raise AttentionNeeded
        return text

    async def ask(self, dialog: Dialog) -> str | None:
        """See `review_prompt.UserInput`. Raises Interrupted on Ctrl-C, StopRequested on Esc, EOFError on Ctrl-D,
        QuestionLeft where several wait."""
        await self._pause(dialog.valid)
        self._take_back()
        moves, self._moves = self._moves, None
        if moves:
            raise QuestionLeft(moves, dialog.typed)
        shown = self.dialog = OpenDialog(dialog)
        watched = None
        if dialog.preview is not None:
            watched = LivePreview(dialog.preview, lambda: shown.answer(self._screen.answer.text), dialog.is_picker)
            self.below = watched.lines
        self._screen.open_dialog(shown)
        try:
            answer = await self._wait(lambda: not dialog.valid())
            if not dialog.valid():
                self._give_back(dialog, self._screen.answer.text if answer is None else answer)
                return None
        finally:
            self._close_dialog()
            if watched is not None:
                watched.end()
        return None if answer is None else answer.strip()

    @contextlib.asynccontextmanager
    async def paged(self, page: ReviewPage) -> AsyncGenerator[None]:
        """Show the page until the end of the block. What is printed meanwhile stands in the transcript afterwards; what
        was written on it and not sent is the user's draft."""
        await self._start()
        self.page = page
        if self._transcript is not None:
            self._transcript.hold()
        self._screen.open_page()
        try:
            yield
        finally:
            self.page = None
            self._screen.close_page()
            if self._transcript is not None:
                self._transcript.release()
            for text in filter(str.strip, (*page.kept_texts.values(), page.words)):
                self.draft(text)

    async def pressed(self, until: Callable[[], bool]) -> Decision | HunkEdit | Literal["back"] | None:
        """The next thing that a key on the page asks for; None as soon as `until` holds. Raises what keys raise."""
        self._pressed = None
        self.app.invalidate()
        await self._wait(until)
        return self._pressed

    async def edit(self, text: str, suffix: str) -> str | None:
        """See `review_prompt.UserInput`."""
        return await self._lent(lambda: edit_text(text, suffix))

    async def view(self, text: str) -> None:
        """See `review_prompt.UserInput`."""
        await self._lent(lambda: page_text(text))

    async def background(self) -> Background | None:
        """As the terminal says, which has a moment to answer; None where it does not."""
        keyboard = self._own_keyboard
        if keyboard is None:
            return None
        keyboard.ask_background()
        if not self.app.is_running:
            await asyncio.to_thread(keyboard.wait_for_background)
        ends = time.monotonic() + WAIT_SECONDS
        while keyboard.is_asked and time.monotonic() < ends:  # noqa: ASYNC110  the application reads it among the keys
            await asyncio.sleep(LOOK_SECONDS / 10)
        return keyboard.background

    def draw_in(self, theme: Theme) -> None:
        self._screen.draw_in(theme)

    @property
    def app(self) -> "Application[None]":
        return self._screen.app

    @property
    def waits(self) -> bool:
        """Whether the chat waits for the user."""
        return self._reader is not None and not self._reader.done()

    @property
    def typed(self) -> str:
        """The text in the composer."""
        return self._screen.composer.text

    def draft(self, text: str) -> None:
        """Give the user a text to change or send: it stands before what is typed."""
        composer = self._screen.composer
        cursor = composer.cursor_position
        composer.text = "\n".join(filter(None, [text, composer.text]))
        composer.cursor_position = len(composer.text) if not cursor else len(text) + 1 + cursor

    def interrupt(self) -> bool:
        """Ctrl-C as a signal. False when nothing here is to end with it."""
        if self._own_keyboard is not None and self._own_keyboard.lent:
            return True  # meant for the editor, which gets it as well
        return self._raise(Interrupted())

    async def close(self) -> None:
        """Leave the screen as it is without the application."""
        if self._application is not None:
            if self.app.is_running and not self.app.is_done:
                self.app.exit()
            await asyncio.wait({self._application})
            self._application = None

    # What keys ask for -----------------------------------------------------------------------------------

    def submit(self) -> None:
        """Enter in the composer."""
        composer = self._screen.composer
        text = self.pastes.unfolded(composer.text).strip()
        if text.startswith("/"):
            text = self.context.taken(text)
        if not text:
            return
        self._remember(text)
        composer.reset()
        self.pastes.forget()
        if not self.waits or self.dialog is not None:
            self._submitted.append(text)
        else:
            self._give(text)

    def answer(self, text: str | None) -> None:
        """A row was chosen, or words were typed at the question."""
        if text is not None and self.dialog is not None:
            self._give(text)
            self._close_dialog()  # what is typed from now on is no answer to it

    @property
    def leaves_question(self) -> bool:
        """Whether another question can be gone to, or is about to come."""
        if self.dialog is None:
            return self._moves is not None
        return self.dialog.asked.place().count > 1

    def leave_question(self, by: int, typed: str) -> None:
        if self.dialog is not None and self._raise(QuestionLeft(by, self.dialog.left_with(typed))):
            self._moves = 0
            self._close_dialog()  # what is typed from now on is no word to it
        elif self._moves is not None:
            self._moves += by

    def ctrl_c(self) -> None:
        """Clear what is typed; else interrupt whatever the chat does. A prompt that is cleared is in the history."""
        if self.dialog is not None and self._screen.answer.text:
            self._screen.answer.reset()
        elif self.dialog is None and self.page is None and self._screen.composer.text:
            self._remember(self.pastes.unfolded(self._screen.composer.text))
            self._screen.composer.reset()
        elif not self._raise(Interrupted()):
            signal.raise_signal(signal.SIGINT)

    def ctrl_d(self) -> None:
        if not self._raise(EOFError()):
            self._submitted.append(EOFError)

    def escape(self) -> None:
        """Stop what runs, or decline the question; twice while nothing runs: go back."""
        now = time.monotonic()
        twice, self._escaped_at = now - self._escaped_at < TWICE_SECONDS, now
        if self.dialog is not None or self.context.stoppable():
            self._raise(StopRequested())
        elif twice and not self._screen.composer.text:
            self._raise(RewindRequested())

    def press(self, key: PageAction, words: str = "") -> None:
        """A key on the page."""
        page = self.page
        if page is None:
            return
        if key == "back":
            self._pressed = None if page.escape() else "back"
        elif not self.waits and key in DECIDING:
            page.say("yellow", "Wait: the last decision is being carried out.")
            return
        else:
            self._pressed = page.editing() if key == "edit" else page.press(key, words)
        if self._pressed is not None:
            self._give("")

    def notice_typing(self) -> None:
        self._typed_at = time.monotonic()
        if self._screen.composer.text:
            self.context.begin_prompt()

    async def edit_composer(self) -> None:
        composer = self._screen.composer
        text = self.pastes.unfolded(composer.text)
        edited = await self.edit(text, ".md")
        if edited is not None and edited.rstrip("\n") != text.rstrip("\n"):
            composer.text = edited.rstrip("\n")
            composer.cursor_position = len(composer.text)

    async def take_picture(self) -> None:
        """Put the picture in the clipboard into the prompt."""
        try:
            word = self.pictures.add("Pasted image", await clipboard_picture())
        except AmanuError as error:
            self.context.tell(error)
        else:
            self._screen.composer.insert_text(word)

    async def take_pasted(self, pasted: str) -> None:
        """Pictures take the place of their pasted paths, which stay when they are none, or changed meanwhile."""
        paths = pasted_paths(pasted)
        read = [await asyncio.to_thread(read_picture, path) for path in paths]
        if not paths or None in read:
            return
        try:
            pictures = zip(paths, filter(None, read), strict=True)
            words = " ".join([self.pictures.add(path.name, data) for path, data in pictures])
        except AmanuError as error:
            self.context.tell(error)
            return
        composer = self._screen.composer
        before, found, after = composer.text.rpartition(pasted)
        if found:
            after_cursor = len(composer.text) - composer.cursor_position
            composer.text = before + words + after
            composer.cursor_position = max(0, len(composer.text) - after_cursor)

    async def suspend(self) -> None:
        """Back to the shell, until it brings the chat to the foreground: with the keyboard as the shell had it."""
        await self._lent(lambda: os.killpg(0, signal.SIGTSTP), discards=False)  # what is typed after it is for the chat

    async def show_everything(self) -> None:
        if text := self.context.everything():
            await self.view(text)

    # Waiting ---------------------------------------------------------------------------------------------

    def _remember(self, text: str) -> None:
        try:
            self._screen.composer.history.append_string(text)
        except OSError as error:  # a full disk must not keep a prompt from being sent
            log.error("the prompt is not in the history", exc_info=error)

    def _close_dialog(self) -> None:
        self.dialog = self.below = None
        self._screen.close_dialog()

    def _give_back(self, dialog: Dialog, typed: str) -> None:
        """Put words into the composer that were typed at a question which is over."""
        if typed.strip() and not dialog.is_picker and typed not in (dialog.default, *(e.value for e in dialog.choices)):
            self.draft(typed)

    def _take_back(self) -> None:
        """Put back into the composer what was sent before this question was drawn: it may be meant for the last one."""
        while self._submitted:
            text = self._submitted.popleft()
            if not isinstance(text, str):
                raise text
            self.draft(text)

    async def _wait(self, until: Callable[[], bool]) -> str | None:
        """The next thing that the user gives; None as soon as `until` holds. Raises what a key raises."""
        assert self._reader is None, "one thing is asked at a time"
        reader = self._reader = asyncio.get_running_loop().create_future()
        try:
            while not reader.done() and not until():
                await asyncio.wait({reader}, timeout=LOOK_SECONDS)
                if self._own_keyboard is not None and (keys := self._own_keyboard.unended_paste()):
                    self.app.key_processor.feed_multiple(keys)
                    self.app.key_processor.process_keys()
                await self._start()
            return reader.result() if reader.done() else None
        finally:
            self._reader = None
            reader.cancel()

    async def _pause(self, valid: Callable[[], bool]) -> None:
        """Wait for a pause in typing a prompt: no key that was meant for that may answer a question."""
        await self._start()
        while time.monotonic() - self._typed_at < PAUSE_SECONDS and valid():  # noqa: ASYNC110  no event says so
            await asyncio.sleep(LOOK_SECONDS / 2)

    async def _start(self) -> None:
        """Raises what made the application fail; then the next call begins it anew."""
        if self._application is not None and self._application.done():
            failed, self._application = self._application, None
            failed.result()
        if self._application is None:
            begun = asyncio.Event()
            self._application = asyncio.create_task(self._run(begun))
            starting = asyncio.create_task(begun.wait())
            await asyncio.wait({starting, self._application}, return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()

    async def _run(self, begun: asyncio.Event) -> None:
        def begin() -> None:
            self.app.create_background_task(self._screen.follow())
            begun.set()

        # Ours is the signal (`interrupt`), and what fails meanwhile is for the log.
        await self.app.run_async(pre_run=begin, handle_sigint=False, set_exception_handler=False)

    def _give(self, text: str) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(text)

    def _raise(self, error: Exception) -> bool:
        if self._reader is None or self._reader.done():
            return False
        self._reader.set_exception(error)
        return True

    async def _lent(self, program: Callable[[], Any], *, discards: bool = True) -> Any:
        """Run another program on the terminal."""
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.application.current import set_app

        with self._lent_keyboard(discards=discards), set_app(self.app):
            return await run_in_terminal(program, in_executor=True)

    @contextlib.contextmanager
    def _lent_keyboard(self, *, discards: bool) -> Generator[None]:
        if self._own_keyboard is None:
            yield
            return
        self._own_keyboard.lent = True
        try:
            yield
        finally:
            self._own_keyboard.lent = False
            if discards:  # an editor in a window of its own leaves keys: nobody saw what they would do here
                self._own_keyboard.discard_typed()


class LivePreview:
    """Says below a question what the answer so far would do. The latest counts; one is looked at at a time. `each`:
    the answers are different things, of which each is looked at once; else one text that changes, whose last lines
    stay until there are others."""

    def __init__(self, preview: Preview, answer: Callable[[], str | None], each: bool) -> None:
        self._preview = preview
        self._answer = answer
        self._each = each
        self._known: dict[str, Sequence[Line]] = {}
        self._last: Sequence[Line] = ()
        self._task: asyncio.Task[None] | None = None

    def lines(self) -> Sequence[Line]:
        answer = self._answer()
        if answer is None:
            return ()
        if answer not in self._known and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._update(answer))
        return self._known.get(answer, () if self._each else self._last)

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _update(self, answer: str) -> None:
        self._known = {**self._known, answer: ()} if self._each else {answer: self._last}
        try:
            lines = await self._preview(answer)
        except (AmanuError, Disconnected) as error:
            lines = [Line(tone="bad", text=str(error))]
        self._known[answer] = self._last = lines
