"""What a person types: mentions, completion, their editor; and the line that moves meanwhile."""

import asyncio
import io
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput

from amanu.cli.console import PlainConsole
from amanu.cli.keyboard_mode import unechoed
from amanu.cli.live import TICK_SECONDS, LiveConsole
from amanu.cli.mentions import line_mentions
from amanu.cli.status_line import Activity
from amanu.cli.ui import completer, screen
from amanu.cli.ui import keyboard as keyboard_input
from amanu.cli.ui.completer import PromptCompleter
from amanu.cli.ui.completions import Row
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.dialog import Dialog
from amanu.cli.ui.programs import edit_text
from amanu.cli.ui.terminal import AttentionNeeded, Interrupted, LivePreview, Terminal
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Line
from amanu_protocol.requests import MentionCompleteResult, MentionItem


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("look at @src/app.py:2-3, please", [("src/app.py", 2, 3)]),
        ("@src/app.py:7", [("src/app.py", 7, 7)]),
        ("@src/app.py:7-2", [("src/app.py", 7, 7)]),
        ("@src/app.py:1 and @src/app.py:1 and @src/app.py:2", [("src/app.py", 1, 1), ("src/app.py", 2, 2)]),
        ("@src/app.py", []),
        ("@nope.py:1", []),
        ("me@src/app.py:1", []),
        ("@src/app.py:0", []),
    ],
)
def test_lines_of_files(root: Path, text: str, expected: list[tuple[str, int, int]]) -> None:
    found = line_mentions(text, [str(root)])
    assert [(each.path, each.lines.first, each.lines.last) for each in found if each.lines] == expected


class Mentioning(PromptContext):
    """What the daemon says of `@s`, and the chat of `/mo`."""

    def rows(self, typed: str) -> Sequence[Row]:
        return [Row("/mode ", 0, "/mode", "the mode", True)] if typed == "/mo" else []

    async def mentions(self, text: str) -> MentionCompleteResult:
        items = [MentionItem(text="@src/app\x1b.py", detail="a file")] if text.endswith("@s") else []
        return MentionCompleteResult(typed="@s", items=items)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/mo", [("/mode ", -3, "/mode")]),
        ("say /mo", []),
        ("see @s", [("@src/app\x1b.py", -2, "@src/appy")]),
        ("/plan see @s", [("@src/app\x1b.py", -2, "@src/appy")]),
        ("see s", []),
        ("", []),
    ],
)
async def test_completion(typed: str, expected: list[tuple[str, int, str]]) -> None:
    completing = PromptCompleter(Mentioning())
    found = [each async for each in completing.get_completions_async(Document(typed), CompleteEvent())]
    assert [(each.text, each.start_position, each.display_text) for each in found] == expected


class Reading(PromptContext):
    """The daemon's answers while it reads the files, one after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def mentions(self, text: str) -> MentionCompleteResult:
        items = [MentionItem(text=text) for text in self.answers.pop(0)]
        return MentionCompleteResult(typed="@s", items=items, incomplete=bool(self.answers))


@pytest.mark.parametrize(
    ("answers", "now", "expected"),
    [
        ([["@s"], ["@s", "@src/"], ["@src/", "@s", "@src/s"]], "@s", ["@s", "@src/", "@src/s"]),
        ([[], ["@src/"]], "@s", ["@src/"]),
        ([["@s"], ["@src/"]], "@sh", ["@s"]),
    ],
)
async def test_completion_goes_on_while_the_files_are_read(
    monkeypatch: pytest.MonkeyPatch, answers: list[list[str]], now: str, expected: list[str]
) -> None:
    """`now`: what stands in the prompt meanwhile."""
    monkeypatch.setattr(completer, "STILL_READING", 0)
    completing = PromptCompleter(Reading(*answers))
    buffer = Buffer(document=Document(now))
    with set_app(Application(Layout(Window(BufferControl(buffer))), output=DummyOutput())):
        found = [each async for each in completing.get_completions_async(Document("@s"), CompleteEvent())]
    assert [each.text for each in found] == expected


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("sed -i s/two/zwei/", "one\r\nzwei\udc80\n"),
        ("true", "one\r\ntwo\udc80\n"),
        ("false", None),
        ("/no/such", None),
    ],
)
def test_the_persons_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, editor: str, expected: str | None) -> None:
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert edit_text("one\r\ntwo\udc80\n", ".txt") == expected
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


async def test_the_live_line_gives_way_to_what_stays() -> None:
    out = io.StringIO()
    live = LiveConsole(PlainConsole(out), out, lambda: Activity("…", "working"))
    live.start()
    await asyncio.sleep(TICK_SECONDS * 1.5)
    live.line(("", "done"))
    await live.stop()
    shown = out.getvalue()
    assert shown.index("… working") < shown.index("\r\x1b[K", 1) < shown.index("done\n")
    assert shown.endswith("done\n") or shown.endswith("\x1b[K")


@asynccontextmanager
async def terminal_of(
    keyboard: PipeInput | None = None, context: PromptContext | None = None
) -> AsyncGenerator[Terminal]:
    terminal = Terminal(context or PromptContext(), keyboard=keyboard, screen=DummyOutput())
    try:
        yield terminal
    finally:
        await terminal.close()


async def test_the_screen_is_drawn_again_only_when_something_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    class Working(PromptContext):
        status = "idle"

        def toolbar(self, taken: int = 0) -> str:
            return self.status

    monkeypatch.setattr(screen, "DRAW_SECONDS", 0)
    context, drawn = Working(), 0

    def count(_: Application[None]) -> None:
        nonlocal drawn
        drawn += 1

    async def settled() -> int:
        before = -1
        while before != drawn:
            before = drawn
            for _ in range(50):
                await asyncio.sleep(0)
        return drawn

    with create_pipe_input() as keyboard:
        terminal = Terminal(context, keyboard=keyboard, screen=DummyOutput())
        terminal.app.after_render += count
        reading = asyncio.create_task(terminal.read(lambda: False))
        while not drawn:
            await asyncio.sleep(0)
        at_rest = await settled()
        assert await settled() == at_rest
        for status in ("working", "done"):
            context.status = status
            while drawn == at_rest:
                await asyncio.sleep(0)
            at_rest = await settled()
        keyboard.send_text("go\r")
        assert await reading == "go"
        await terminal.close()


async def test_what_is_said_below_a_question_goes_with_it() -> None:
    async def preview(text: str) -> list[Line]:
        return [Line(tone="bad", text="The rule is empty.")]

    with create_pipe_input() as keyboard:
        async with terminal_of(keyboard) as terminal:
            for given in (preview, None):
                asking = asyncio.create_task(terminal.ask(Dialog("rule › ", valid=lambda: True, preview=given)))
                await asked(terminal)
                assert (terminal.below is not None) == (given is not None)
                keyboard.send_text("x\r")
                assert await asking == "x"
            assert terminal.below is None


async def test_each_row_has_a_preview_of_its_own() -> None:
    """Never that of another, each looked at once, and nothing waits for it."""
    looks: list[str] = []
    may_answer = asyncio.Event()
    marked = ["one"]

    async def preview(value: str) -> list[Line]:
        looks.append(value)
        await may_answer.wait()
        if value == "bad":
            raise AmanuError("storageError", "The disk is full.")
        return [Line(tone="plain", text=value)]

    live = LivePreview(preview, lambda: marked[-1], each=True)

    async def shown() -> list[str]:
        lines = live.lines()
        for _ in range(5):
            await asyncio.sleep(0)
        return [line.text for line in lines]

    assert await shown() == await shown() == [], "while it is looked at"
    may_answer.set()
    assert [await shown(), await shown()] == [[], ["one"]]
    for value, then in (("two", "two"), ("bad", "The disk is full."), ("one", "one")):
        marked.append(value)
        assert await shown() in ([], [then])
        assert await shown() == [then]
    assert looks == ["one", "two", "bad"]
    live.end()


async def asked(terminal: Terminal) -> None:
    async with asyncio.timeout(50):
        while terminal.dialog is None:
            await asyncio.sleep(0.01)


def test_what_is_typed_between_two_prompts_waits_as_it_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, side = pty.openpty()
    with os.fdopen(side) as keyboard, os.fdopen(screen, "rb", buffering=0):
        monkeypatch.setattr("sys.stdin", keyboard)
        before = termios.tcgetattr(side)
        with unechoed():
            os.write(screen, b"go\r")
            assert os.read(side, 100) == b"go\r"
            assert not select.select([screen], [], [], 0)[0], "nothing is echoed"
        assert termios.tcgetattr(side) == before


@contextmanager
def typist(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[[bytes], object]]:
    """A terminal as standard input, and what types on it."""
    screen, side = pty.openpty()
    with os.fdopen(side) as keyboard, os.fdopen(screen, "wb", buffering=0):
        monkeypatch.setattr("sys.stdin", keyboard)
        with unechoed():
            yield partial(os.write, screen)


async def written(terminal: Terminal, text: str) -> None:
    async with asyncio.timeout(50):
        while not terminal.app.is_running or terminal.app.current_buffer.text != text:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("typed", "written_text", "then", "expected"),
    [
        (b"caf\xe9 \xff!", "caf\ufffd \ufffd!", b"\r", "caf\ufffd \ufffd!"),
        (b"\x1b[200~caf\xe9\x1b[201~", "caf\ufffd", b"\r", "caf\ufffd"),
        (b"a\x1b[M\xb7\xd47b\x1b[<99;1;1Mc", "abc", b"\r", "abc"),  # a mouse
        (b"\x1b[200~half a paste", "half a paste", b"\r", "half a paste"),
        (b"\x1b[200~half a paste", "half a paste", b"\x03\x03", Interrupted),
        (b"\x1b[200~half a paste", "half a paste", b"\x1b[201~ more\r", "half a paste more"),
        (b"\x1b[200~half a paste", "half a paste", b"\x1b[200~, one more\x1b[201~\r", "half a paste, one more"),
    ],
)
async def test_every_byte_is_a_key_and_no_paste_lasts_for_ever(
    monkeypatch: pytest.MonkeyPatch, typed: bytes, written_text: str, then: bytes, expected: str | type[Exception]
) -> None:
    monkeypatch.setattr(keyboard_input, "PASTE_SECONDS", 0)
    with typist(monkeypatch) as types:
        async with terminal_of() as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            types(typed)
            await written(terminal, written_text)
            types(then)
            (read,) = await asyncio.gather(reading, return_exceptions=True)
    assert read == expected or (isinstance(expected, type) and isinstance(read, expected))


async def test_ctrl_c_ends_a_paste_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyboard_input, "PASTE_SECONDS", 1000)
    with typist(monkeypatch) as types:
        async with terminal_of() as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            types(b"before")
            await written(terminal, "before")
            types(b"\x1b[200~half")
            while select.select([sys.stdin], [], [], 0)[0]:  # else both are one read
                await asyncio.sleep(0.01)
            types(b"\x03")
            await written(terminal, "")
            types(b"\x03")
            with pytest.raises(Interrupted):
                await reading


async def test_a_search_that_a_question_ends_leaves_the_keys_to_the_next_prompt() -> None:
    with create_pipe_input() as keyboard:
        async with terminal_of(keyboard) as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            keyboard.send_text("\x12go")
            await written(terminal, "go")
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            asking = asyncio.create_task(terminal.ask(Dialog("? ", valid=lambda: True)))
            await asked(terminal)
            keyboard.send_text("x\r")
            assert await asking == "x"
            reading = asyncio.create_task(terminal.read(lambda: False))
            keyboard.send_text("y\r")
            assert await reading == "y"


async def test_what_is_sent_while_something_else_needs_the_user_waits() -> None:
    with create_pipe_input() as keyboard:
        async with terminal_of(keyboard) as terminal:
            with pytest.raises(AttentionNeeded):
                needed = iter([False])
                await terminal.read(lambda: next(needed, True))
            keyboard.send_text("first\rsecond\r")
            await asyncio.sleep(0)
            assert [await terminal.read(lambda: False) for _ in range(2)] == ["first", "second"]


async def test_what_is_given_back_comes_before_what_is_typed() -> None:
    with create_pipe_input() as keyboard:
        async with terminal_of(keyboard) as terminal:
            terminal.draft("first")
            reading = asyncio.create_task(terminal.read(lambda: False))
            keyboard.send_text(" and\x1b[D\x1b[D")
            await written(terminal, "first and")
            terminal.draft("given back")
            keyboard.send_text("X\r")
            assert await reading == "given back\nfirst aXnd"


@pytest.mark.parametrize(("runs", "expected"), [(True, ("ab", 1)), (False, ("ba", 0))])
async def test_ctrl_b_is_for_the_command_that_runs_else_it_moves_the_cursor(
    runs: bool, expected: tuple[str, int]
) -> None:
    moved: list[str] = []

    class Running(PromptContext):
        def has_command(self) -> bool:
            return runs

        def background(self) -> None:
            moved.append("moved")

    with create_pipe_input() as keyboard:
        async with terminal_of(keyboard, context=Running()) as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            keyboard.send_text("a\x02b\r")
            assert (await reading, len(moved)) == expected


async def test_what_is_typed_while_an_editor_is_open_is_not_for_the_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    with typist(monkeypatch) as types:
        async with terminal_of() as terminal:

            def edited(text: str, suffix: str) -> str:
                types(b"\x04")
                assert terminal.interrupt()  # Ctrl-C is the editor's
                return text + suffix

            monkeypatch.setattr("amanu.cli.ui.terminal.edit_text", edited)
            assert await terminal.edit("a", ".txt") == "a.txt"
            reading = asyncio.create_task(terminal.read(lambda: False))
            types(b"go\r")
            assert await reading == "go"


@pytest.mark.parametrize(("typed", "expected"), [(b"go\r", "go"), (b"\x04", EOFError), (b"\x03", Interrupted)])
async def test_what_is_typed_while_something_is_printed_stays_as_it_was_typed(
    monkeypatch: pytest.MonkeyPatch, typed: bytes, expected: str | type[Exception]
) -> None:
    with typist(monkeypatch) as types:
        async with terminal_of() as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            while not terminal.app.is_running:
                await asyncio.sleep(0.01)
            await run_in_terminal(lambda: types(typed))
            (read,) = await asyncio.gather(reading, return_exceptions=True)
    assert read == expected or (isinstance(expected, type) and isinstance(read, expected))


async def test_the_users_editor_reads_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nstty -a > "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    screen, side = pty.openpty()
    with os.fdopen(side) as keyboard, os.fdopen(screen, "wb", buffering=0):
        monkeypatch.setattr("sys.stdin", keyboard)
        async with terminal_of() as terminal:
            reading = asyncio.create_task(terminal.read(lambda: False))
            while not terminal.app.is_running:
                await asyncio.sleep(0.01)
            monkeypatch.setattr("subprocess.run", partial(subprocess.run, stdin=side))
            modes = await terminal.edit("", ".txt")
            os.write(screen, b"\x04")
            await asyncio.gather(reading, return_exceptions=True)
    assert modes is not None and " icanon" in modes and " icrnl" in modes
