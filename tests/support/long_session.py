"""A session of many steps in a small window, with real tools and the real SDK, at a strict service that counts tokens
its own way: what a test plays in short and `python -m bench.context` in full."""

import json
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amanu.core.conversation import Results, User
from amanu.home import find_home
from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol.requests import PromptSendParams, PromptSteerParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Fault, Received, Say, Service, Step, ToolUse
from support.strict_services.responses import Responses

FILES = 8
LINES = 300
PER_TURN = 40
"""Steps until the model hands back to the user."""


@dataclass(frozen=True)
class Shape:
    """One vendor's shape of the same session."""

    name: str
    service: Callable[[Any], Service]
    model: str
    variables: dict[str, str]
    thinks: bool = True
    pauses: bool = True
    """Has a stop reason that means: ask again, I go on."""
    config: str = ""
    """More lines of `config.toml`; `{}` is the service's address, as in `variables`."""


SHAPES = (
    Shape("anthropic", Anthropic, "anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "{}"}),
    Shape("gemini", Gemini, "gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "{}"}),
    Shape("openai", Responses, "openai:gpt-6.2-sol", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{}/v1"}, pauses=False),
)


@dataclass
class Played:
    """What came of it."""

    steps: int = 0
    summaries: int = 0
    compactions: int = 0
    masks: int = 0
    overflows: int = 0
    """Requests that were longer than the window."""
    refused: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    """Words of the user, touched files and goals that a request should have held and did not."""
    largest: int = 0
    """Tokens of the largest request."""
    sent: int = 0
    cached: int = 0
    """Of the tokens sent, those that stood the same at the start of the request before."""
    errors: list[float] = field(default_factory=list[float])

    @property
    def error(self) -> float:
        """Mean size of the error of the foretold sizes."""
        return sum(map(abs, self.errors)) / max(1, len(self.errors))


def tokens(text: str) -> int:
    """The service's own count, on purpose not the product's: words in pieces of four letters, and every other sign."""
    return len(re.findall(r"\w{1,4}|[^\w\s]", text))


def _same(one: str, other: str) -> int:
    """Characters that are equal at the start of both."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class PlayedModel:
    """Plays the model's side for the service, and watches every request."""

    def __init__(self, shape: Shape, steps: int, limit: int, played: Played) -> None:
        self.shape = shape
        self.steps = steps
        self.limit = limit
        self.played = played
        self.said: list[str] = []
        """Markers the user's words hold."""
        self.edited: list[str] = []
        self._before = ""
        self._in_turn = 0

    def answer(self, received: Received) -> Step:
        body = received.json
        text = json.dumps(body, ensure_ascii=False)
        size = tokens(text)
        if not body.get("tools"):
            self.played.summaries += 1
            return Say(text=SUMMARY, usage={"input": size, "output": 150})
        if size > self.limit:
            self.played.overflows += 1
            return Fault("status", status=400, message=f"prompt is too long: {size} tokens > {self.limit} maximum")
        self._watch(text)
        text = re.sub(r', "cache_control": \{[^}]*\}', "", text)
        shared = tokens(text[: _same(text, self._before)])
        self._before = text
        self.played.largest = max(self.played.largest, size)
        self.played.sent += size
        self.played.cached += shared
        usage = {"input": size - shared, "cache_read": shared, "output": 60}
        return self._step(usage)

    def _watch(self, text: str) -> None:
        missing = [marker for marker in self.said if marker not in text]
        if "<conversation_summary>" in text:
            missing += [path for path in self.edited if path not in text]
            missing += [] if GOAL in text else ["the goal"]
        self.played.lost += missing

    def _step(self, usage: dict[str, int]) -> Say:
        at = self.played.steps
        self.played.steps += 1
        self._in_turn += 1
        thought = f"**Step {at}** now" if self.shape.thinks else ""
        if self._in_turn >= PER_TURN or at + 1 >= self.steps:
            self._in_turn = 0
            return Say(thought=thought, text=f"Part {at} is done.", usage=usage)
        if at % 37 == 36:
            return Say(text=f"This goes on and on at {at}" + " and on" * 80, stop="outputLimit", usage=usage)
        if at % 53 == 52 and self.shape.pauses:
            return Say(text=f"I pause at {at}.", stop="paused", usage=usage)
        name = f"part{at % FILES}.py"
        match at % 4:
            case 0:
                calls = [
                    ToolUse("read_file", {"path": name, "start_line": 1 + at % 50, "end_line": 160 + at % 50}),
                    ToolUse("grep", {"pattern": f"value_{at % LINES} ="}),
                ]
            case 1:
                old = f"value_{at % LINES} = 0  # of {name}\n"
                calls = [ToolUse("edit_file", {"path": name, "old_text": old, "new_text": old.replace("0", str(at))})]
                if name not in self.edited:
                    self.edited.append(name)
            case 2:
                calls = [ToolUse("read_file", {"path": name}), ToolUse("list_directory", {"path": "."})]
            case _:
                calls = [ToolUse("grep", {"pattern": f"# of part{at % FILES}"})]
        return Say(thought=thought, text=f"Going on with {at}.", calls=calls, usage=usage)


GOAL = "All values of all parts are mended."
SUMMARY = f"""## Goal
{GOAL} The user's last wish is among their words.

## Constraints
Tabs stay tabs; nothing outside the parts is touched.

## Decisions
Each value is set to the number of its step, so that it can be told which step set it.

## Files
The parts hold one value a line; those named as edited were changed a line at a time.

## Open work
The values that are still 0.

## Next step
Go on with the next part.
"""


@asynccontextmanager
async def opened(
    shape: Shape, folder: Path, answer: Callable[[Received], Step], window: int
) -> AsyncGenerator[tuple[Session, Client, Service]]:
    """A session "s" of that shape over files to work on, whose service says what `answer` says. The daemon's own state
    goes to `AMANU_HOME`."""
    service = shape.service(answer)
    url = await service.start()
    config = find_home(os.environ).config
    config.mkdir(parents=True, exist_ok=True)
    lines = f'[context.windows]\n"{shape.model}" = {window}\n{shape.config.format(url)}'
    (config / "config.toml").write_text(lines)
    root = folder / f"work-{shape.name}"
    root.mkdir()
    for at in range(FILES):
        name = f"part{at}.py"
        (root / name).write_text("".join(f"value_{line} = 0  # of {name}\n" for line in range(LINES)))
    sessions = open_sessions()
    try:
        client = Client({**os.environ, **{name: value.format(url) for name, value in shape.variables.items()}})
        made = SessionCreateParams(session_id="s", roots=[str(root)], mode="acceptEdits", model_id=shape.model)
        await sessions.create(made, client)
        yield await sessions.get("s"), client, service
    finally:
        await sessions.shutdown()
        await service.stop()


async def play(shape: Shape, folder: Path, steps: int, window: int = 32_000) -> Played:
    """Play it."""
    played = Played()
    played_model = PlayedModel(shape, steps, window - window // 4, played)
    async with opened(shape, folder, played_model.answer, window) as (session, client, service):
        turn = 0
        while played.steps < steps:
            turn += 1
            await _say(session, client, played_model, turn)
            await ended(session, turn)
        codes = [item.code for item in session.state.items if item.kind == "notice"]
        played.compactions = codes.count("compacted")
        played.masks = codes.count("masked")
        played.errors = list(session.composer.turn_factory.window.errors)
        conversation = session.core.conversation
        conversation.check()
        assert all(isinstance(message, User | Results) or message.parts for message in conversation)
    played.refused = [*service.refused, *service.lint]
    return played


async def prompt(session: Session, client: Client, turn: int, text: str) -> None:
    await session.prompts.send(PromptSendParams(session_id="s", prompt_id=f"p{turn}", text=text), client)


async def ended(session: Session, turn: int) -> None:
    """Wait for that turn's end. Raises `AssertionError` when it is a bad one."""
    state = await until(session, lambda state: _over(state, turn), seconds=600)
    assert state.last_turn is not None
    assert state.last_turn.reason == "completed", state.last_turn.message


async def _say(session: Session, client: Client, played_model: PlayedModel, turn: int) -> None:
    marker = f"wish number {turn}: colour {turn * 7919}"
    played_model.said.append(marker)
    await prompt(session, client, turn, f"Please go on with the values. Keep in mind {marker}.")
    state = await until(session, lambda state: state.turn or _over(state, turn))
    if turn % 2 == 0 and state.turn is not None:
        steer = f"steered {turn * 104729}"
        params = PromptSteerParams(
            session_id="s", prompt_id=f"s{turn}", turn_id=state.turn.turn_id, text=f"And also: {steer}."
        )
        await session.prompts.steer(params, client)
        await until(session, lambda state: _heard(session, steer) or _over(state, turn))
        played_model.said.append(steer)


def _heard(session: Session, steer: str) -> bool:
    last = session.core.conversation.last
    return isinstance(last, Results) and any(isinstance(note, str) and steer in note for note in last.notes)


def _over(state: Any, turn: int) -> bool:
    return state.last_turn is not None and state.last_turn.turn_id == f"turn-p{turn}"
