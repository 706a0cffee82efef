"""The background of the terminal: asked for, and never confused with what is typed."""

import asyncio
import os
import pty
from pathlib import Path

import pytest

from amanu.cli.console import RichConsole
from amanu.cli.keyboard_mode import unechoed
from amanu.cli.ui import keyboard as keyboard_input
from amanu.cli.ui.background import Background, answered, by_environment
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.terminal import Terminal
from amanu.cli.ui.themes import Themes
from amanu.config import ThemeChoice

WHITE, BLACK = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "\x1b]11;rgb:0000/0000/0000\x07"
DONE = "\x1b[?64;1;22c"


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        ("rgb:ffff/ffff/ffff", "light"),
        ("rgb:00/00/00", "dark"),
        ("rgb:1e1e/1e1e/1e1e", "dark"),
        ("rgb:fdfd/f6f6/e3e3", "light"),
        ("rgba:0/0/f/f", "dark"),
        ("rgb:0000/ffff/0000", "light"),
        ("?", None),
        ("rgb:fffff/0/0", None),
        ("#ffffff", None),
        ("", None),
    ],
)
def test_what_the_terminal_says(colour: str, expected: Background | None) -> None:
    assert answered(colour) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("15;0", "dark"),
        ("7;8", "dark"),
        ("0;15", "light"),
        ("0;default;15", "light"),
        ("0;7", "light"),
        ("15;default", None),
        ("1;99", None),
        ("", None),
    ],
)
def test_what_the_environment_says(value: str, expected: Background | None) -> None:
    assert by_environment({"COLORFGBG": value}) == expected


@pytest.mark.parametrize(
    ("before", "later", "background", "written"),
    [
        ([WHITE + DONE], [], "light", ""),
        ([BLACK, DONE], [], "dark", ""),
        ([DONE], [], None, ""),
        (["ab" + BLACK + "c", "d" + DONE + "e"], ["f"], "dark", "abcdef"),
        (["ab\x1b]11;rgb:ffff/ff", "ff/ffff\x1b", "\\\x1b[?6", "4c", "c"], [], "light", "abc"),
        (["ä€".encode()[:2].decode("latin-1"), DONE], [], None, "ä"),
        # Too late to be waited for, and no keys all the same.
        (["ab"], [WHITE + DONE + "c"], None, "abc"),
        (["ab"], ["c\x1b]11;rgb:ffff", "/ffff/ffff\x07d", DONE], None, "abcd"),
        # Pasted, it is text.
        ([DONE], [f"\x1b[200~{WHITE}x\x1b[201~"], None, WHITE + "x"),
        (["\x1b[D"], ["a"], None, "a"),
    ],
)
async def test_answers_are_no_keys_and_no_key_is_lost(
    monkeypatch: pytest.MonkeyPatch, before: list[str], later: list[str], background: Background | None, written: str
) -> None:
    """`before`: while it is waited for, read by read."""
    monkeypatch.setattr(keyboard_input, "WAIT_SECONDS", 50 if background or DONE in before[-1] else 0)
    monkeypatch.setattr("amanu.cli.ui.terminal.WAIT_SECONDS", 0)
    screen, side = pty.openpty()
    with os.fdopen(side) as stdin, os.fdopen(screen, "wb", buffering=0):
        monkeypatch.setattr("sys.stdin", stdin)
        with unechoed():
            terminal = Terminal(PromptContext())
            typing = asyncio.create_task(asyncio.to_thread(types, screen, before))
            assert await terminal.background() == background
            await typing
            reading = asyncio.create_task(terminal.read(lambda: False))
            while not terminal.app.is_running:
                await asyncio.sleep(0.01)
            for text in later:
                os.write(screen, text.encode())
            async with asyncio.timeout(50):
                while terminal.typed != written:
                    await asyncio.sleep(0.01)
            reading.cancel()
            await terminal.close()


def types(screen: int, texts: list[str]) -> None:
    for text in texts:
        os.write(screen, text.encode("latin-1"))


class AskedTerminal(Terminal):
    """One that says what its background is."""

    def __init__(self, says: Background | None) -> None:
        self.says: Background | None = says
        self.theme = ""

    async def background(self) -> Background | None:
        return self.says

    def draw_in(self, theme: str) -> None:
        self.theme = theme


@pytest.mark.parametrize(
    ("chosen", "says", "environ", "colour", "expected"),
    [
        ("auto", "light", {}, True, "light"),
        ("auto", "dark", {"COLORFGBG": "0;15"}, True, "dark"),
        ("auto", None, {"COLORFGBG": "0;15"}, True, "light"),
        ("auto", None, {}, True, "neutral"),
        ("dark", "light", {}, True, "dark"),
        ("plain", "light", {}, True, "plain"),
        ("dark", "light", {"NO_COLOR": "1"}, True, "plain"),
    ],
)
async def test_the_theme_of_a_chat(
    tmp_path: Path,
    chosen: ThemeChoice,
    says: Background | None,
    environ: dict[str, str],
    colour: bool,
    expected: str,
) -> None:
    with (tmp_path / "out").open("w") as out:
        console, terminal = RichConsole(out, colour=colour), AskedTerminal(says)
        await Themes(console, terminal, environ).use(chosen)
    assert (console.theme, terminal.theme) == (expected, expected)
