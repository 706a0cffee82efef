"""One run: its subjects take turns at each case, so that a machine's moods strike all alike."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.plan import Plan
from bench.results import Results
from bench.rpc import RpcError
from bench.service import Seen
from bench.stage import Stage
from bench.subject import Agent, Subject, Turn

PATIENCE = 240.0
"""Seconds for one measurement; after that the subject is reported as stuck."""


@dataclass
class Session:
    """A session of a running agent."""

    subject: Subject
    agent: Agent
    id: str
    folder: Path

    def prompt(self, plan: Plan) -> Turn:
        turn = self.agent.prompt(self.id, plan)
        turn.stamps = [] if plan.stamped else None
        return turn

    async def say(self, plan: Plan) -> Turn:
        """A prompt to its end, which must be a good one."""
        turn = self.prompt(plan)
        await turn.over.wait()
        if turn.reason not in ("end_turn", "completed"):
            raise Failed(turn.reason)
        return turn


class Failed(Exception):
    """A subject did not do what was asked; the text says what it said."""


@dataclass
class Run:
    stage: Stage
    subjects: Sequence[Subject]
    results: Results
    repeat: int = 5
    steps: int = 200
    files: int = 20_000
    many: int = 200_000
    chunks: int = 20_000

    @property
    def workspace(self) -> Path:
        """A small one: 300 files of forty lines."""
        folder = self.stage.folder / "workspace"
        if not folder.exists():
            folder.mkdir()
            for n in range(300):
                text = "".join(f"line {line} of file {n}\n" for line in range(40))
                (folder / f"file{n}.txt").write_text(text)
            _commit(folder)
        return folder

    @property
    def tree(self) -> Path:
        """One of many files, under git."""
        folder = self.stage.folder / "tree"
        if not folder.exists():
            for n in range(self.files):
                path = folder / f"part{n % 20}" / f"group{n // 20 % 50}" / f"module_{n}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_module(n, 20, needle=n % 1000 == 7))
            _commit(folder)
        return folder

    @property
    def big_tree(self) -> Path:
        """A folder of very many small files, under git."""
        folder = self.stage.folder / "big-tree"
        if not folder.exists():
            for n in range(self.many):
                path = folder / f"part{n % 200}" / f"group{n // 200 % 50}" / f"module_{n}.py"
                if n < 200 * 50:
                    path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_module(n, 4, needle=n % 4000 == 7))
            _commit(folder)
        return folder

    def turns(self, repeat: int | None = None) -> Iterator[Subject]:
        """Each subject so many times, a different one first each time."""
        count = len(self.subjects)
        for n in range(repeat or self.repeat):
            for at in range(count):
                yield self.subjects[(n + at) % count]

    async def attempt(self, subject: Subject, what: str, deed: Callable[[], Awaitable[None]]) -> None:
        """Measure; a subject that fails or hangs is noted and left out of the row."""
        try:
            async with asyncio.timeout(PATIENCE):
                await deed()
        except (Failed, RpcError, TimeoutError, AssertionError, IndexError) as error:
            said = f"{type(error).__name__} {error}"[:300]
            if not any(problem.startswith(f"{subject.name}: {what}:") for problem in self.results.problems):
                self.results.problems.append(f"{subject.name}: {what}: {said}")

    async def start(
        self,
        subject: Subject,
        folder: Path,
        patience: float = PATIENCE,
        url: str | None = None,
        *,
        asks: bool = True,
    ) -> Session:
        """A new agent with a session (`asks`: see `Agent.open`), warmed up by one short prompt. `url`: the service's
        address, if not the stage's own."""
        place = self.stage.place(subject, folder)
        agent: Agent = await subject.start(replace(place, url=url or place.url))
        session = Session(subject, agent, "", folder)
        try:
            async with asyncio.timeout(patience):
                await agent.initialize()
                session.id = await agent.open(folder, asks=asks)
                await session.say(Plan())
        except BaseException:
            await agent.stop()
            raise
        return session

    @asynccontextmanager
    async def sessions(self, folder: Path, what: str, *, asks: bool = True) -> AsyncGenerator[dict[str, Session]]:
        """A running, warm session of each subject, by name; those that do not start are noted and missing."""
        running: dict[str, Session] = {}

        async def begin(subject: Subject) -> None:
            running[subject.name] = await self.start(subject, folder, asks=asks)

        try:
            for subject in self.subjects:
                await self.attempt(subject, what, lambda subject=subject: begin(subject))
            yield running
        finally:
            for session in running.values():
                await session.agent.stop()

    async def seen(self) -> list[Seen]:
        return await self.stage.seen()


def _module(n: int, lines: int, *, needle: bool) -> str:
    """`needle`: one line has it. Only some files do, for Gemini CLI stops its search at a hundred matching lines."""
    functions = [f"def function_{n}_{line}(): return 'hay'\n" for line in range(lines)]
    return "".join([f"def function_{n}(): return 'needle'\n", *functions[1:]] if needle else functions)


def _commit(folder: Path) -> None:
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
        subprocess.run(["git", *who, *command], cwd=folder, check=True)
