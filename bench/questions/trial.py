"""A command of the corpus in one mode and one tier: what was asked about it, how it ended, what it left."""

import asyncio
import contextlib
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.session.sessions import Sessions
from amanu_protocol.items import Mode
from bench.questions.agent import SECONDS, Call, Question, call
from bench.questions.corpus import Line
from bench.questions.project import Project

TRIES = 3
"""As often an agent calls again when it is told to."""
_TOLD = re.compile(r"call again with (network|outside|secrets)=true")
"""What the result of a call tells the model to do when the sandbox was in the way."""
_ELSEWHERE = re.compile(r"/tmp/amanu-q[\w.-]*")
"""What a line leaves outside of the temporary folder."""
_PLAIN = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_EDITOR": "true"}
"""As Amanu sets them for every command."""


@dataclass(frozen=True)
class Ending:
    exit: str
    left: str
    """See `Project.left`."""


@dataclass(frozen=True)
class Outcome:
    line: Line
    questions: Sequence[Question]
    tries: int
    ending: Ending
    seconds: float
    problem: str
    """Why it did not come to its end; "" when it did."""

    free: Ending
    """How it ends where nothing holds it."""

    @property
    def when(self) -> str:
        """When the user was asked first, but for what it changed; "" for never."""
        return next((question.when for question in self.questions if question.when != "decide"), "")

    @property
    def difference(self) -> str:
        """What came out otherwise than where nothing holds it; "" for nothing."""
        exits = f"exit {self.ending.exit or 'unknown'}, not {self.free.exit}" * (self.ending.exit != self.free.exit)
        left = "it left something else" * (self.ending.left != self.free.left)
        return ", ".join(filter(None, (self.problem, exits, left)))


async def freely(line: Line, project: Project) -> Ending:
    """How it ends where nothing holds it, and nobody is asked."""
    await asyncio.to_thread(_prepare, line, project)
    process = await asyncio.create_subprocess_exec(
        *("/bin/bash", "-c", line.text),
        cwd=project.root,
        env={**project.environment, **_PLAIN},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = str(await asyncio.wait_for(process.wait(), SECONDS))
    except TimeoutError:
        process.kill()
        code = f"no end after {SECONDS:g} s"
    return Ending(code, await asyncio.to_thread(_settle, line, project))


async def attempt(line: Line, project: Project, sessions: Sessions, mode: Mode, free: Ending) -> Outcome:
    """The agent does as the results tell it: where the sandbox was in the way, it calls again, saying what it needs."""
    await asyncio.to_thread(_prepare, line, project)
    begun = time.perf_counter()
    questions: list[Question] = []
    arguments: dict[str, str | bool] = {"command": line.text}
    tries, wish, done = 0, "", Call()
    while tries < TRIES:
        tries += 1
        done = await call(sessions, mode, project.root, project.environment, **arguments)
        questions += [_again(each, wish) if wish else each for each in done.questions]
        told = _TOLD.search(done.output)
        if done.problem or told is None or told[1] in arguments:
            break
        wish = told[1]
        arguments |= {wish: True, "reason": "The sandbox was in the way."}
    seconds = time.perf_counter() - begun
    left = await asyncio.to_thread(_settle, line, project)
    return Outcome(line, questions, tries, Ending(done.exit, left), seconds, done.problem, free)


def _again(question: Question, wish: str) -> Question:
    """A question about a later call, with which the agent wished for that."""
    return Question("after", f"called again with {wish}=true. {question.reason}", question.grants)


def _prepare(line: Line, project: Project) -> None:
    project.reset()
    _remove_elsewhere(line)


def _settle(line: Line, project: Project) -> str:
    _remove_elsewhere(line)
    return project.left()


def _remove_elsewhere(line: Line) -> None:
    for name in _ELSEWHERE.findall(line.text):
        shutil.rmtree(name, ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(name).unlink()
