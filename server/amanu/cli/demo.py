"""`amanu demo`: a small project with red tests, mended on the true road by a model that plays a script."""

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from importlib import resources
from pathlib import Path
from typing import TextIO

from amanu.cli import exits
from amanu.cli.console import Console, PlainConsole, open_console
from amanu.cli.header import show_header
from amanu.cli.live import LiveConsole
from amanu.cli.render import Renderer, indent
from amanu.cli.review_prompt import ReviewPrompt, UserInput
from amanu.cli.text import stripped, visible
from amanu.cli.ui.context import PromptContext
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.cli.ui.terminal import Interrupted, Terminal
from amanu.client.connect import connect
from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import GUARD_SECONDS, SessionView, create, mint
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionCreateParams
from amanu_protocol.state import SessionState

MODEL = "scripted:demo"
PROMPT = "The tests of this little shop fail. Find out why and mend it."
TESTS = ("-m", "unittest")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu demo",
        description="Watch Amanu fix a small sample project, from failing tests to passing. Needs no key: the model "
        "plays a script; everything else is real. Without a terminal, questions are answered with yes.",
        epilog="exit codes: 0 it was shown to the end · 1 it failed · 130 cancelled",
    )
    parser.add_argument("--keep", action="store_true", help="keep the fixed project and print its path")
    parser.add_argument(
        "--sample",
        type=Path,
        metavar="DIR",
        help="only copy the project, with failing tests, into a new folder, for the tutorials",
    )
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    if arguments.sample is not None:
        return _sample(arguments.sample)
    folder = Path(tempfile.mkdtemp(prefix="amanu-demo-")).resolve()
    try:
        return asyncio.run(demo(folder, sys.stdout, interactive=sys.stdin.isatty() and sys.stdout.isatty()))
    except (KeyboardInterrupt, EOFError):
        return exits.CANCELLED
    finally:
        if arguments.keep:
            shutil.rmtree(folder / "home", ignore_errors=True)
            print(f"kept: {folder / 'shop'}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def copy_sample(target: Path) -> None:
    """Copy the project, with failing tests, into that new folder."""
    target.mkdir()
    for entry in (resources.files("amanu.cli") / "sample").iterdir():
        if entry.is_file():
            (target / entry.name).write_bytes(entry.read_bytes())


async def demo(folder: Path, out: TextIO, *, interactive: bool) -> int:
    """The whole show in that empty folder. 0 if the tests were red before and are green after, or the user did not
    want everything."""
    console = open_console(out)
    shop = folder / "shop"
    await asyncio.to_thread(copy_sample, shop)
    console.line(("heading", "Amanu demo"), ("dim", "  the model is scripted, everything else is real"))
    console.line(("", ""))
    if await _tests(shop, console):
        console.line(("red", "The sample's tests already pass, so there is nothing to show. This is a bug."))
        return exits.FAILED
    console.line(("", ""))
    try:
        code = await _turn(folder, shop, console, out, interactive)
    except (AmanuError, Disconnected) as error:
        console.line(("red", visible(f"✗ {error}")))
        return exits.FAILED
    if code != exits.OK:
        return code
    console.line(("", ""))
    if not await _tests(shop, console):
        console.line(("yellow", "The tests still fail because not everything was accepted. Nothing else was changed."))
        return exits.OK if interactive else exits.FAILED  # the user may decide so
    command = sys.argv[0] if os.sep in sys.argv[0] else "amanu"  # as it was called: it may not be on PATH
    console.line(
        (
            "green",
            f"All tests pass, and nothing was written that was not shown first. Next: {command} doctor, {command} chat",
        )
    )
    return exits.OK


async def _turn(folder: Path, shop: Path, console: Console, out: TextIO, interactive: bool) -> int:
    from amanu.home import find_home
    from amanu.system import logs

    home = folder / "home"  # the user's own sessions and rules stay out of it
    logs.start(find_home({"AMANU_HOME": str(home)}).make(), "info")  # not between the lines of the show
    client = await connect(roots=[str(shop)], alone=True, home=home)
    try:
        params = SessionCreateParams(session_id=mint(), roots=[str(shop)], mode="ask", model_id=MODEL)
        view = await create(client, params)
        show_header(view.state, console)
        async with _stage(view, console, out, interactive) as (renderer, user_input):
            view.listeners.append(renderer.show)
            review_prompt = ReviewPrompt(view, renderer, user_input)
            await view.prompt(PROMPT)
            while True:
                await view.wait(_needs_somebody)
                if view.state.last_turn is not None:
                    return exits.of_turn(view.state.last_turn.reason, denied=False)
                try:
                    await review_prompt.decide(view.state.approvals[0])
                except Interrupted:
                    await view.cancel()
    finally:
        await client.close()


def _needs_somebody(state: SessionState) -> bool:
    return state.last_turn is not None or bool(state.approvals)


@contextlib.asynccontextmanager
async def _stage(
    view: SessionView, console: Console, out: TextIO, interactive: bool
) -> AsyncGenerator[tuple[Renderer, UserInput]]:
    """Who draws and who answers: on a terminal with a live line, and the user; else plainly, and ourselves."""
    if isinstance(console, PlainConsole) or not interactive:
        yield Renderer(console), AutomaticInput(console)
        return
    live = LiveConsole(console, out, lambda: renderer.status(view.state))
    renderer = Renderer(live)
    live.start()
    try:
        yield renderer, LiveTerminalInput(Terminal(PromptContext()), live)
    finally:
        await live.stop()


class LiveTerminalInput:
    """The user; the live line gives way while they type."""

    def __init__(self, terminal: Terminal, live: LiveConsole) -> None:
        self._terminal = terminal
        self._live = live

    async def ask(self, dialog: Dialog) -> str | None:
        await self._live.stop()
        try:
            return await self._terminal.ask(dialog)
        finally:
            await self._terminal.close()
            self._live.start()

    async def edit(self, text: str, suffix: str) -> str | None:
        await self._live.stop()
        try:
            return await self._terminal.edit(text, suffix)
        finally:
            self._live.start()

    async def view(self, text: str) -> None:
        await self._live.stop()
        try:
            await self._terminal.view(text)
        finally:
            self._live.start()


class AutomaticInput:
    """Says yes in the place of the user, and says so."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def ask(self, dialog: Dialog) -> str | None:
        await asyncio.sleep(GUARD_SECONDS)  # sooner would not count
        answer = dialog.choices[0] if dialog.choices else Choice("y", "yes")
        self._console.line(("bold", f"› {answer.label}"), ("dim", "   (answered automatically: no terminal)"))
        return answer.value

    async def edit(self, text: str, suffix: str) -> str | None:
        return None

    async def view(self, text: str) -> None:
        pass


async def _tests(shop: Path, console: Console) -> bool:
    """Run the sample's tests and show what they say. True when they are green."""
    process = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, *TESTS],
        cwd=shop,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    green = process.returncode == 0
    lines = [line for line in stripped(process.stderr).splitlines() if line.startswith(("FAIL", "ERROR", "Ran", "OK"))]
    console.line(("bold", "$ python -m unittest"))
    console.verbatim(("green" if green else "red", indent("\n".join(lines))))
    return green


def _sample(target: Path) -> int:
    try:
        copy_sample(target)
    except OSError as error:
        print(f"{visible(str(target))} cannot be made: {error.strerror}", file=sys.stderr)
        return exits.FAILED
    print(f"{visible(str(target))}: {', '.join(sorted(path.name for path in target.iterdir()))}")
    return exits.OK
