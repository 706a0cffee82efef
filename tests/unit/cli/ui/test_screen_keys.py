"""Keys at the composer, as the user's settings have them: others, or vi's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest
from prompt_toolkit.application.current import set_app
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.output import DummyOutput

from amanu.cli.ui import vi
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.cli.ui.keys import key_map
from amanu.cli.ui.terminal import Interrupted, StopRequested, Terminal
from amanu.config import Editing

ESC, ENTER, ALT_ENTER, CTRL_C, CTRL_D = "\x1b", "\r", "\x1b\r", "\x03", "\x04"
F2, SHIFT_TAB = "\x1bOQ", "\x1b[Z"


class Running(PromptContext):
    """A turn runs, which Esc may stop; each change of the mode is written down."""

    def __init__(self) -> None:
        self.modes = 0

    def stoppable(self) -> bool:
        return True

    def next_mode(self) -> None:
        self.modes += 1


@asynccontextmanager
async def composer(
    context: PromptContext, keyboard: PipeInput, keys: Mapping[str, str], editing: Editing
) -> AsyncGenerator[tuple[Terminal, asyncio.Task[str]]]:
    terminal = Terminal(context, keyboard=keyboard, screen=DummyOutput(), keys=key_map(keys)[0], editing=editing)
    reading = asyncio.create_task(terminal.read(lambda: False))
    async with asyncio.timeout(50):
        while not (terminal.waits and terminal.app.is_running):
            await asyncio.sleep(0.01)
    try:
        yield terminal, reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await terminal.close()


@pytest.mark.parametrize(
    ("keys", "typed", "modes", "expected"),
    [
        ({}, f"{SHIFT_TAB}{SHIFT_TAB}a{ENTER}", 2, "a"),
        ({"mode": "f2"}, f"{F2}{SHIFT_TAB}a{ENTER}", 1, "a"),
        ({"send": "f2"}, f"a{F2}", 0, "a"),
        ({"newLine": "f2"}, f"a\n{F2}b{ENTER}", 0, "a\nb"),  # Ctrl-J has no meaning then
        ({"stop": "f2"}, f"a{F2}", 0, StopRequested),
        ({"interrupt": "f2"}, F2, 0, Interrupted),
        ({"interrupt": "f2"}, CTRL_C, 0, Interrupted),
        ({"leave": "f2"}, f"{CTRL_D}{F2}", 0, EOFError),
        ({"keys": "f2"}, f"?{ENTER}", 0, "?"),
        ({"search": "f2"}, f"\x12a{ENTER}", 0, "a"),
    ],
)
async def test_a_key_does_what_the_settings_say(
    keys: dict[str, str], typed: str, modes: int, expected: str | type[Exception]
) -> None:
    context = Running()
    with create_pipe_input() as keyboard:
        async with composer(context, keyboard, keys, "emacs") as (_, reading):
            keyboard.send_text(typed)
            (read,) = await asyncio.gather(reading, return_exceptions=True)
    assert context.modes == modes
    assert read == expected or (isinstance(expected, type) and isinstance(read, expected))


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([f"ab{ENTER}"], "ab"),
        (["ab", ESC, f"xic{ENTER}"], "ca"),
        (["ab cd", ESC, f"0dw{ENTER}"], "cd"),
        ([f"ab{ESC}x{ENTER}"], "a"),  # typed fast, it is no Alt
        (["a", ALT_ENTER, f"b{ENTER}"], "a\nb"),
        (["ab", ESC, ESC], StopRequested),
        (["ab", ESC, "d", ESC, f"x{ENTER}"], "a"),  # the first half of a command
        (["ab", ESC, "v", ESC, f"x{ENTER}"], "a"),  # a selection
        ([ESC, ESC], StopRequested),
        (["ab", ESC, CTRL_C, CTRL_C], Interrupted),
        ([ESC, CTRL_D], EOFError),
        (["ab", ESC, f"{SHIFT_TAB}{ENTER}"], "ab"),
    ],
)
async def test_vis_keys(typed: list[str], expected: str | type[Exception]) -> None:
    with create_pipe_input() as keyboard:
        async with composer(Running(), keyboard, {}, "vi") as (terminal, reading):
            for keys in typed:
                await press(terminal, keys)
            (read,) = await asyncio.gather(reading, return_exceptions=True)
    assert read == expected or (isinstance(expected, type) and isinstance(read, expected))


async def press(terminal: Terminal, text: str) -> None:
    """Until it is known that an Esc at the end begins no sequence."""
    processor = terminal.app.key_processor
    parser = Vt100Parser(processor.feed)
    parser.feed(text)
    parser.flush()
    with set_app(terminal.app):
        processor.process_keys()
    async with asyncio.timeout(50):
        while processor.key_buffer:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("editing", "typed", "mode"),
    [
        ("emacs", ["a"], ""),
        ("emacs", ["a", ESC], ""),
        ("vi", ["a"], "INSERT"),
        ("vi", ["a", ESC], "NORMAL"),
        ("vi", ["a", ESC, "i"], "INSERT"),
        ("vi", ["a", ESC, "v"], "VISUAL"),
        ("vi", ["a", ESC, "R"], "REPLACE"),
        ("vi", ["a", ESC, "o"], "INSERT"),
    ],
)
async def test_the_mode_has_a_name(editing: Editing, typed: list[str], mode: str) -> None:
    with create_pipe_input() as keyboard:
        async with composer(PromptContext(), keyboard, {}, editing) as (terminal, _):
            for keys in typed:
                await press(terminal, keys)
            assert vi.mode_name(terminal.app) == mode


async def test_a_question_has_no_modes_and_the_next_prompt_begins_in_insert_mode() -> None:
    with create_pipe_input() as keyboard:
        async with composer(PromptContext(), keyboard, {}, "vi") as (terminal, reading):
            for keys in ("ab", ESC, ENTER):
                await press(terminal, keys)
            assert (await reading, vi.mode_name(terminal.app)) == ("ab", "INSERT")
            asking = asyncio.create_task(terminal.ask(Dialog("? ", valid=lambda: True)))
            while terminal.dialog is None:
                await asyncio.sleep(0.01)
            assert vi.mode_name(terminal.app) == ""
            keyboard.send_text(f"x{ENTER}")
            assert (await asking, vi.mode_name(terminal.app)) == ("x", "INSERT")


CURSOR_REPORT, MOUSE, CTRL_R, CTRL_G = "\x1b[1;31R", "\x1b[M !!", "\x12", "\x07"


@pytest.mark.parametrize(
    ("typed", "stops"),
    [
        ([ESC], True),
        ([ESC + CURSOR_REPORT], True),  # the terminal reports where the cursor is after each print
        ([ESC + MOUSE], True),
        ([CURSOR_REPORT], False),
        (["\x1bx"], False),  # Alt-X
    ],
)
async def test_esc_stops_whatever_the_terminal_sends_after_it(typed: list[str], stops: bool) -> None:
    with create_pipe_input() as keyboard:
        async with composer(Running(), keyboard, {}, "emacs") as (terminal, reading):
            for keys in typed:
                await press(terminal, keys)
            await asyncio.wait({reading}, timeout=50 if stops else 0)
            assert reading.done() == stops
            assert not stops or isinstance(reading.exception(), StopRequested)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["draft", CTRL_R, "old", ENTER], "an old one"),
        (["draft", CTRL_R, "old", ESC], "draft"),
        (["draft", CTRL_R, "old", CTRL_R, ESC], "draft"),
        (["draft", CTRL_R, "old", CTRL_C], "draft"),
        (["draft", CTRL_R, "old", CTRL_G], "draft"),
        (["draft", CTRL_R, "nothing like it", ESC], "draft"),
        (["draft", CTRL_C, "\x1b[A"], "draft"),  # what is cleared is in the history
    ],
)
async def test_a_search_that_is_left_leaves_the_draft(typed: list[str], expected: str) -> None:
    with create_pipe_input() as keyboard:
        async with composer(Running(), keyboard, {}, "emacs") as (terminal, _):
            for prompt in ("an old one", "a later one"):
                terminal.app.current_buffer.history.append_string(prompt)
            terminal.app.current_buffer.reset()
            for keys in typed:
                await drawn(terminal)
                await press(terminal, keys)
            assert terminal.typed == expected


async def drawn(terminal: Terminal) -> None:
    """Drawing reads the history, beside the loop."""
    terminal.app.invalidate()
    await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["2"], "b"),
        (["2", ENTER], "b"),
        (["2 requests are fine, so no", ENTER], "2 requests are fine, so no"),
        (["no", CTRL_C, "yes", ENTER], "yes"),
    ],
)
async def test_a_digit_chooses_unless_words_follow(typed: list[str], expected: str) -> None:
    with create_pipe_input() as keyboard:
        async with composer(Running(), keyboard, {}, "emacs") as (terminal, reading):
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            rows = [Choice("a", "Allow"), Choice("b", "Allow once")]
            asking = asyncio.create_task(terminal.ask(Dialog("› ", rows, valid=lambda: True)))
            async with asyncio.timeout(50):
                while terminal.dialog is None:
                    await asyncio.sleep(0.01)
            for keys in typed:
                await press(terminal, keys)
            async with asyncio.timeout(50):
                assert await asking == expected
