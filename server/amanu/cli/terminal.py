"""A user at a terminal, by prompt_toolkit."""

import asyncio
import contextlib
import os
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amanu.cli.console import Span, Style
from amanu.cli.text import one_line
from amanu.client.daemon_client import Disconnected
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Line
from amanu_protocol.requests import MentionCompleteResult

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import Application
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output import Output

    from amanu.cli.review_prompt import Preview

LOOK_SECONDS = 0.1
"""How often an open question is checked for being settled elsewhere, and the status line redrawn."""
PREVIEW_ROWS = 8
MENU_ROWS = 6
"""Below a question, for paths to choose from."""
STILL_READING = 0.2
"""Seconds until it is asked again what may be mentioned, while the daemon reads a folder for the first time."""
ESC_SECONDS = 0.2
"""After Esc, for the rest of a sequence."""

_ABOVE: dict[Style, str] = {"green": "fg:ansigreen", "red": "fg:ansired", "bold": "bold"}


class AttentionNeeded(Exception):
    """Something else needs the user now; what was typed is kept as the draft."""


class Interrupted(Exception):
    """Ctrl-C. An ordinary exception: KeyboardInterrupt in a task would end the event loop."""


class StopRequested(Exception):
    """Esc: what runs is to stop. Like Ctrl-C, but it never leaves."""


class PromptContext:
    """The surroundings of a prompt, and what it can complete; by default nothing: slash commands at its start,
    mentions anywhere."""

    def __init__(self, slash_commands: Iterable[str] = ()) -> None:
        self.slash_commands = list(slash_commands)
        """May change while a prompt is open."""
        self.descriptions: dict[str, str] = {}

    async def mentions(self, text: str) -> MentionCompleteResult:
        """What the mention at the end of `text` may become."""
        return MentionCompleteResult(typed="", items=[])

    def begin_prompt(self) -> None:
        """The user types: called after each change of a text that is not empty."""

    def above(self) -> list[Span]:
        """Lines above the prompt."""
        return []

    def toolbar(self) -> str:
        """The line below the prompt."""
        return ""

    def next_mode(self) -> None:
        """Shift-Tab."""

    def stoppable(self) -> bool:
        """Whether Esc has something to stop."""
        return False


class Terminal:
    """One prompt at the bottom of the screen; what is printed meanwhile goes above it. `history` is the file of earlier
    prompts; `keyboard` and `screen` are those of the process by default."""

    def __init__(
        self,
        context: PromptContext,
        *,
        history: Path | None = None,
        keyboard: "Input | None" = None,
        screen: "Output | None" = None,
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        from amanu.cli.prompt_keyboard import PromptKeyboard

        self._own_keyboard = PromptKeyboard(sys.stdin) if keyboard is None and sys.stdin.isatty() else None
        keyboard = keyboard or self._own_keyboard
        self._context = context
        self._draft = ""
        self._prompt: PromptSession[str] = PromptSession(
            history=FileHistory(str(history)) if history is not None else InMemoryHistory(),
            completer=prompt_completer(context),
            complete_while_typing=Condition(self._types_slash_command),
            key_bindings=prompt_keys(context.stoppable, context.next_mode),
            multiline=True,
            erase_when_done=True,
            interrupt_exception=Interrupted,
            input=keyboard,
            output=screen,
        )
        self._prompt.default_buffer.on_text_changed += self._text_changed
        self._question: PromptSession[str] = PromptSession(
            key_bindings=question_keys(),
            interrupt_exception=Interrupted,
            input=keyboard,
            output=screen,
            complete_while_typing=False,
            reserve_space_for_menu=0,
        )
        for session in (self._prompt, self._question):
            # Esc may begin a sequence (Alt-Enter): nobody should wait a second to learn that it does not.
            session.app.ttimeoutlen = session.app.timeoutlen = ESC_SECONDS

    async def read(self, wake: Callable[[], bool]) -> str:
        """A prompt, of one line or many, never blank. Raises Interrupted on Ctrl-C, EOFError on Ctrl-D. What was typed
        stays as the draft when it raises anything else: AttentionNeeded when `wake` holds, StopRequested on Esc while
        something can be stopped."""
        try:
            text = await self._run(self._prompt, self._options, wake)
            if text is None or not text.strip():
                raise AttentionNeeded
        except (Interrupted, EOFError):
            raise
        except BaseException:
            self.draft(self._prompt.default_buffer.text)
            raise
        finally:
            self._prompt.default_buffer.reset()
        return text.strip()

    @property
    def app(self) -> "Application[str]":
        """What reads keys now."""
        return self._question.app if self._question.app.is_running else self._prompt.app

    @property
    def typed(self) -> str:
        """The text that the user has typed, or will find in the next prompt."""
        return self._prompt.default_buffer.text or self._draft

    def draft(self, text: str) -> None:
        """Give the user a text to change or send: the open prompt, or else the next one, begins with it."""
        app, buffer = self._prompt.app, self._prompt.default_buffer
        if app.is_running and not app.is_done:
            cursor = buffer.cursor_position
            buffer.text = _joined(text, buffer.text)
            buffer.cursor_position = len(buffer.text) if not cursor else len(text) + 1 + cursor
        else:
            self._draft = _joined(text, self._draft)

    def interrupt(self) -> bool:
        """Ctrl-C as a signal, which it is while no prompt makes a key of it. False when nothing here is to end with
        it."""
        if self._own_keyboard is not None and self._own_keyboard.lent:
            return True  # meant for the editor, which gets it as well
        app = self.app
        if app.is_running and not app.is_done:
            app.exit(exception=Interrupted(), style="class:aborting")
        return app.is_running

    async def ask(
        self,
        question: str,
        *,
        default: str = "",
        valid: Callable[[], bool],
        preview: "Preview | None" = None,
        again: Callable[[], None] | None = None,
        roots: Sequence[str] = (),
    ) -> str | None:
        """See `review_prompt.UserInput`. Raises Interrupted on Ctrl-C, StopRequested on Esc, EOFError on Ctrl-D."""
        from prompt_toolkit.completion import PathCompleter

        watched = LivePreview(preview, self._question) if preview is not None else None
        self._question.completer = PathCompleter(get_paths=lambda: list(roots), expanduser=True) if roots else None
        self._question.reserve_space_for_menu = MENU_ROWS if roots else 0
        self._question.bottom_toolbar = None if watched is None else watched.toolbar_text
        self._question.refresh_interval = 0 if watched is None else LOOK_SECONDS
        try:
            answer = await self._run(
                self._question, lambda: {"message": question, "default": default}, lambda: not valid()
            )
        finally:
            if watched is not None:
                watched.end()
        return None if answer is None else answer.strip()

    async def edit(self, text: str, suffix: str) -> str | None:
        """See `review_prompt.UserInput`: $VISUAL, $EDITOR, else vi, on a private temporary file."""
        from prompt_toolkit.application import run_in_terminal

        with self._lent_keyboard():
            return await run_in_terminal(lambda: edit_text(text, suffix), in_executor=True)

    async def view(self, text: str) -> None:
        """See `review_prompt.UserInput`: $PAGER, else less or more."""
        from prompt_toolkit.application import run_in_terminal

        with self._lent_keyboard():
            await run_in_terminal(lambda: page_text(text), in_executor=True)

    @contextlib.contextmanager
    def _lent_keyboard(self) -> Generator[None]:
        if self._own_keyboard is None:
            yield
            return
        self._own_keyboard.lent = True
        try:
            yield
        finally:
            self._own_keyboard.lent = False
            # An editor in a window of its own leaves them: nobody saw what they would do here.
            self._own_keyboard.discard_typed()

    async def _run(
        self, prompt: "PromptSession[str]", options: Callable[[], dict[str, Any]], until: Callable[[], bool]
    ) -> str | None:
        if until():
            return None
        app = prompt.app
        # A prompt that ended in the middle of a search leaves the keys with the search, which is over.
        app.layout.focus(prompt.default_buffer)

        async def ask() -> str:
            # The options not before it begins: what could not be sent may have come back just now. Ours is the signal
            # (`interrupt`), and what fails meanwhile is for the log.
            return await prompt.prompt_async(handle_sigint=False, set_exception_handler=False, **options())

        asking = asyncio.create_task(ask())
        try:
            while not (await asyncio.wait({asking}, timeout=LOOK_SECONDS))[0]:
                if until():
                    if app.is_running and not app.is_done:
                        app.exit(exception=AttentionNeeded(), style="class:aborting")
                    break
                if self._own_keyboard is not None and (keys := self._own_keyboard.unended_paste()):
                    app.key_processor.feed_multiple(keys)
                    app.key_processor.process_keys()
            return await asking
        except AttentionNeeded:
            return None
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})

    def _options(self) -> dict[str, Any]:
        draft, self._draft = self._draft, ""
        return {
            "message": self._message,
            "bottom_toolbar": self._bottom,
            "default": draft,
            "refresh_interval": LOOK_SECONDS,
        }

    def _text_changed(self, buffer: "Buffer") -> None:
        if buffer.text:
            self._context.begin_prompt()

    def _types_slash_command(self) -> bool:
        text = self._prompt.default_buffer.text
        return text.startswith("/") and not any(letter.isspace() for letter in text)

    def _message(self) -> list[tuple[str, str]]:
        above = [(_ABOVE.get(style, "fg:ansigray"), line + "\n") for style, line in self._context.above()]
        return [*above, ("bold fg:ansicyan", "› ")]

    def _bottom(self) -> list[tuple[str, str]]:
        return [("", self._context.toolbar())]


class LivePreview:
    """Says below a question what the text so far would do. The latest text counts; one is looked at at a time."""

    def __init__(self, preview: "Preview", prompt: "PromptSession[str]") -> None:
        self._preview = preview
        self._prompt = prompt
        self._previewed: str | None = None
        self._lines: Sequence[Line] = ()
        self._task: asyncio.Task[None] | None = None

    def toolbar_text(self) -> "StyleAndTextTuples":
        text = self._prompt.default_buffer.text
        if text != self._previewed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._update(text))
        width = max(20, shutil.get_terminal_size().columns - 1)
        rows = [row for line in self._lines for row in textwrap.wrap(one_line(line.text, 400), width)]
        return [("", "\n".join(rows[:PREVIEW_ROWS]) or " ")]

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _update(self, text: str) -> None:
        self._previewed = text
        try:
            self._lines = await self._preview(text)
        except (AmanuError, Disconnected) as error:
            self._lines = [Line(tone="bad", text=str(error))]


def _joined(*texts: str) -> str:
    return "\n".join(filter(None, texts))


def page_text(text: str, suffix: str = ".diff") -> None:
    """Open the user's pager and wait. Blocks: not for the event loop."""
    _with_program(os.environ.get("PAGER") or ("less" if shutil.which("less") else "more"), text, suffix)


def edit_text(text: str, suffix: str) -> str | None:
    """Open the user's editor and wait. Blocks: not for the event loop."""
    return _with_program(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi", text, suffix)


def _with_program(program: str, text: str, suffix: str) -> str | None:
    """What the program leaves of the text, which it gets in a private temporary file; None when it failed."""
    import subprocess

    command = shlex.split(program)
    number, name = tempfile.mkstemp(suffix=suffix, prefix="amanu-")
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(text)
        try:
            if subprocess.run([*command, name], check=False).returncode != 0:
                return None
        except OSError:
            return None
        with Path(name).open(encoding="utf-8", newline="", errors="surrogateescape") as file:
            return file.read()
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def prompt_keys(stoppable: Callable[[], bool], next_mode: Callable[[], None]) -> "KeyBindings":
    """Enter sends; Alt-Enter or Ctrl-J begins a new line, and so does Enter after a backslash. Esc stops what runs,
    where that is `stoppable`; Shift-Tab takes the next mode."""
    from prompt_toolkit.application.current import get_app
    from prompt_toolkit.filters import Condition, has_completions, is_searching
    from prompt_toolkit.key_binding import KeyPressEvent

    keys = _sane_keys()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.strip():
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def new_line(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.insert_text("\n")

    @keys.add("s-tab", filter=~has_completions)
    def change_mode(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        next_mode()

    @keys.add("escape", filter=Condition(stoppable) & ~is_searching & ~has_completions)
    def stop(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        if get_app().is_running:
            event.app.exit(exception=StopRequested(), style="class:aborting")

    return keys


def question_keys() -> "KeyBindings":
    """Enter answers; Esc stops what asks."""
    from prompt_toolkit.filters import is_searching
    from prompt_toolkit.key_binding import KeyPressEvent

    keys = _sane_keys()

    @keys.add("escape", filter=~is_searching)
    def stop(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.app.exit(exception=StopRequested(), style="class:aborting")

    return keys


def _sane_keys() -> "KeyBindings":
    """Without what prompt_toolkit does by default and nobody expects here: Ctrl-O sends, and takes up the next line of
    the history; elsewhere it shows more. An Alt with a key that means nothing is no Esc. The mouse, which nobody asked
    for, would fail on a button it does not know."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.keys import Keys

    keys = KeyBindings()

    @keys.add("c-o")
    @keys.add("escape", "<any>")
    @keys.add(Keys.Vt100MouseEvent)
    def nothing(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        pass

    return keys


def prompt_completer(context: PromptContext) -> "Completer":
    """Completes slash commands and mentions."""
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class PromptCompleter(Completer):
        """`/word` at the start, `@…` anywhere."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            typed = document.text_before_cursor
            if typed.startswith("/") and " " not in typed:
                for command in context.slash_commands:
                    if command.startswith(typed):
                        about = context.descriptions.get(command, "")
                        yield Completion(command, start_position=-len(typed), display_meta=about)

        async def get_completions_async(
            self, document: Document, complete_event: CompleteEvent
        ) -> AsyncGenerator[Completion]:
            for completion in self.get_completions(document, complete_event):
                yield completion
            if document.text_before_cursor.startswith("/") and " " not in document.text_before_cursor:
                return
            incomplete, offered = True, set[str]()
            while incomplete:
                try:
                    mentions = await context.mentions(document.text_before_cursor)
                except (AmanuError, Disconnected):
                    return
                for item in mentions.items:
                    if item.text not in offered:
                        label, detail = one_line(item.text), one_line(item.detail)
                        yield Completion(item.text, -len(mentions.typed), display=label, display_meta=detail)
                offered |= {item.text for item in mentions.items}
                if incomplete := mentions.incomplete:
                    await asyncio.sleep(STILL_READING)  # a text typed meanwhile waits until this has ended
                    incomplete = get_app().current_buffer.document == document

    return PromptCompleter()
