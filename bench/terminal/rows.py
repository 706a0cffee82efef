"""The speed at which each program draws, at a pseudo terminal; all take turns within one run."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

from bench.plan import Plan, prompt
from bench.process import Tree
from bench.stage import Stage
from bench.subject import Place
from bench.terminal.programs import MODELS, PLACE, Program
from bench.terminal.pseudo_terminal import NotDrawn, PseudoTerminal
from bench.terminal.transcripts import lengthen

ASKED, SAID = "Are you there?", "Here I am, ready to work."
KEYS = 60
KEY_SECONDS = 60.0
"""The patience with one."""
RATE = 200
"""Tokens a second."""
STREAM_SECONDS = 10
LINES = 10_000
IDLE_SECONDS = 5
REST_SECONDS = 1.0
"""The time without a drawing after which a program counts as settled."""

Figures = dict[tuple[str, str], list[float]]
"""(row, program) → figures, one a round."""


class Runner:
    """One program, its home and its folder; a daemon of its own stays between the starts."""

    def __init__(self, program: Program, stage: Stage, figures: Figures, problems: list[str]) -> None:
        self.program = program
        folder = stage.folder / program.name.replace(" ", "-")
        self.place = Place(folder / "home", folder / "work", f"http://127.0.0.1:{stage.port}")
        self.place.home.mkdir(parents=True)
        self.place.workspace.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.place.workspace, check=True)
        self._figures = figures
        self._problems = problems
        self._tree = Tree()
        self._environment = self._tree.marked(program.environment(self.place))
        program.trust(self.place)
        self._long = ""

    def warm_up(self) -> None:
        """A first start, and one turn: whatever is unpacked or begun once is there afterwards."""
        with self._open() as terminal:
            self._settle(terminal)
            self._ask(terminal, ASKED.encode(), SAID)

    def start(self) -> None:
        with self._measured("start"), self._open() as terminal:
            before = self._tree.cpu()
            drawn = terminal.drawn_since(0, "")
            terminal.drawn_since(0, self.program.ready)
            terminal.write(b"Q")
            shown = terminal.drawn_since(len(terminal.drawn) - 1, "Q", 20)
            self._note("first", 1000 * (drawn - terminal.began))
            self._note("ready", 1000 * (shown - terminal.began))
            self._note("ready.cpu", 1000 * (self._tree.cpu() - before))

    def keys(self) -> None:
        """Keys in a session of many items."""
        self._long = self._long or lengthen(self.program.name, self.place, MODELS[self.program.name])
        if any(each.startswith(f"{self.program.name}: keys:") for each in self._problems):
            return  # it takes minutes to fail
        with self._measured("keys"), self._open(*self.program.resume(self._long)) as terminal:
            self._settle(terminal)
            spent: list[float] = []
            before = self._tree.cpu()
            for number in range(KEYS):
                at, pressed = len(terminal.drawn), time.monotonic()
                key = "QZXJV"[number % 5]
                terminal.write(key.encode())
                spent.append(1000 * (terminal.drawn_since(at, key, KEY_SECONDS) - pressed))
                terminal.look_for(0.05)
            self._note("key", statistics.median(spent))
            self._note("key.worst", sorted(spent)[round(0.95 * KEYS) - 1])
            self._note("key.cpu", 1000 * (self._tree.cpu() - before) / KEYS)

    def stream(self) -> None:
        plan = Plan(chunks=RATE * (STREAM_SECONDS + 4), pace=1 / RATE, paragraph=80)
        with self._measured("stream"), self._open() as terminal:
            self._settle(terminal)
            self._ask(terminal, _pasted(prompt(plan)), "w200 ")
            at = len(terminal.drawn)
            all_before, own_before, began = self._tree.cpu(), terminal.cpu(), time.monotonic()
            terminal.look_for(STREAM_SECONDS)
            took = (time.monotonic() - began) / 100
            self._note("stream.cpu", (self._tree.cpu() - all_before) / took)
            own = terminal.cpu() - own_before if self.program.has_daemon else self._tree.cpu() - all_before
            self._note("stream.own", own / took)
            assert len(terminal.drawn) - at > RATE * STREAM_SECONDS, "hardly anything was drawn"

    def paste(self) -> None:
        text = "".join(f"line {number} of what was pasted\n" for number in range(LINES))
        with self._measured("paste"), self._open() as terminal:
            self._settle(terminal)
            at, began, before = len(terminal.drawn), time.monotonic(), self._tree.cpu()
            terminal.write(_pasted(text))
            self._note("paste", 1000 * (terminal.drawn_since(at, self.program.pasted, 60) - began))
            self._note("paste.cpu", 1000 * (self._tree.cpu() - before))

    def idle(self) -> None:
        with self._measured("idle"), self._open() as terminal:
            self._settle(terminal)
            before, drawn = self._tree.cpu(), terminal.bytes
            terminal.look_for(IDLE_SECONDS)
            self._note("idle", 100 * (self._tree.cpu() - before) / IDLE_SECONDS)
            self._note("idle.bytes", (terminal.bytes - drawn) / IDLE_SECONDS)

    async def end(self) -> None:
        await self._tree.end()

    @contextmanager
    def _open(self, *options: str) -> Generator[PseudoTerminal]:
        terminal = PseudoTerminal([*self.program.command, *options], self._environment, self.place.workspace)
        try:
            yield terminal
        finally:
            terminal.leave()

    @contextmanager
    def _measured(self, what: str) -> Generator[None]:
        try:
            yield
        except (NotDrawn, OSError, StopIteration, AssertionError) as error:
            self._problems.append(f"{self.program.name}: {what}: {_short(error)}")

    def _settle(self, terminal: PseudoTerminal) -> None:
        terminal.drawn_since(0, self.program.settled)
        terminal.rest(REST_SECONDS)

    def _ask(self, terminal: PseudoTerminal, typed: bytes, answer: str) -> None:
        terminal.write(typed)
        terminal.look_for(0.4)  # Enter right behind characters is a part of a paste, to some
        at = len(terminal.drawn)
        terminal.write(b"\r")
        terminal.drawn_since(at, answer)

    def _note(self, row: str, value: float) -> None:
        self._figures[row, self.program.name].append(value)


def _short(error: Exception) -> str:
    return str(error).partition(", but: …")[0][:200]


def _pasted(text: str) -> bytes:
    return b"\x1b[200~" + text.encode() + b"\x1b[201~"


async def measure(programs: list[Program], repeat: int) -> tuple[Figures, list[str]]:
    figures: Figures = defaultdict(list)
    problems: list[str] = []
    async with Stage(PLACE) as stage:
        await stage.understand({ASKED.rstrip("?"): Plan(said=SAID)})
        runners = [Runner(program, stage, figures, problems) for program in programs]
        try:
            await asyncio.to_thread(_turns, runners, repeat)
        finally:
            for runner in runners:
                await runner.end()
    return figures, problems


def _turns(runners: list[Runner], repeat: int) -> None:
    for runner in runners:
        runner.warm_up()
    for number in range(repeat):
        for deed in (Runner.start, Runner.paste, Runner.idle, Runner.stream, Runner.keys):
            for at in range(len(runners)):
                runner, began = runners[(number + at) % len(runners)], time.monotonic()
                deed(runner)
                name, spent = runner.program.name, time.monotonic() - began
                print(
                    f"{name}: {deed.__name__}: {spent:.0f} s, load {os.getloadavg()[0]:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
