"""A session whose service keeps the prompts it has seen and counts what it need not read again: turns of so many steps
with real tools and the real SDKs, on every wire. `python -m bench.cache` plays it in full, a test in part."""

from dataclasses import dataclass, field
from pathlib import Path

from support.long_session import FILES, LINES, SHAPES, SUMMARY, Shape, ended, opened, prompt
from support.prefix_cache import Kind, PrefixCache
from support.strict_services.http import Received, Say, ToolUse
from support.strict_services.openai import OpenAI

GOAL = 0.9
"""Of the input of a turn of 50 steps, so much comes from the cache."""


@dataclass(frozen=True)
class Wire:
    shape: Shape
    cache: Kind = "blocks"
    least: int = 1_024


def _routed(name: str, model: str) -> Shape:
    address = '[base_urls]\nopenrouter = "{}/v1"\n'
    return Shape(name, OpenAI, f"openrouter:{model}", {"OPENROUTER_API_KEY": "k"}, thinks=False, config=address)


_ANTHROPIC, _GEMINI, _RESPONSES = SHAPES
WIRES = (
    Wire(_ANTHROPIC, "marks"),
    Wire(_GEMINI, least=4_096),
    Wire(_RESPONSES),
    Wire(_routed("chat", "qwen/qwen3-coder")),
    Wire(_routed("OpenRouter, Claude", "anthropic/claude-sonnet-5"), "one mark"),
)


@dataclass
class Counted:
    """What the service counted."""

    requests: int = 0
    input: int = 0
    """Tokens of all prompts."""
    cached: int = 0
    """Of these, tokens that it had seen before."""
    masked: int = 0
    compacted: int = 0
    refused: list[str] = field(default_factory=list[str])

    @property
    def share(self) -> float:
        return self.cached / self.input


class CountingModel:
    """Plays the model: calls tools for `steps` steps, then hands back to the user."""

    def __init__(self, wire: Wire, steps: int, counted: Counted) -> None:
        self._thinks = wire.shape.thinks
        self._cache = PrefixCache(wire.cache, wire.least)
        self._steps = steps
        self._counted = counted
        self._at = 0

    def answer(self, received: Received) -> Say:
        size, cached = self._cache.read(received.json)
        self._counted.requests += 1
        self._counted.input += size
        self._counted.cached += cached
        usage = {"input": size - cached, "cache_read": cached, "output": 60}
        if not received.json.get("tools"):
            return Say(text=SUMMARY, usage=usage)
        at = self._at
        self._at += 1
        thought = f"**Step {at}** now" if self._thinks else ""
        if at % self._steps == self._steps - 1:
            return Say(thought=thought, text=f"Part {at} is done.", usage=usage)
        return Say(thought=thought, text=f"Going on with {at}.", calls=_calls(at), usage=usage)


def _calls(at: int) -> list[ToolUse]:
    name = f"part{at % FILES}.py"
    match at % 4:
        case 0:
            return [
                ToolUse("read_file", {"path": name, "start_line": 1 + at, "end_line": 100 + at}),
                ToolUse("grep", {"pattern": f"value_{at % LINES} ="}),
            ]
        case 1:
            old = f"value_{at % LINES} = 0  # of {name}\n"
            return [ToolUse("edit_file", {"path": name, "old_text": old, "new_text": old.replace("0", str(at))})]
        case 2:
            return [ToolUse("list_directory", {"path": "."}), ToolUse("grep", {"pattern": f"value_1{at} ="})]
        case _:
            return [ToolUse("read_file", {"path": name, "start_line": 200, "end_line": 220 + at})]


async def count(wire: Wire, folder: Path, turns: int, steps: int, window: int) -> Counted:
    """Play it: so many turns of so many steps in a window of so many tokens."""
    counted = Counted()
    model = CountingModel(wire, steps, counted)
    async with opened(wire.shape, folder, model.answer, window) as (session, client, service):
        for turn in range(1, turns + 1):
            await prompt(session, client, turn, f"Please go on with the values, for the {turn * 7919}th time.")
            await ended(session, turn)
        codes = [item.code for item in session.state.items if item.kind == "notice"]
        counted.masked, counted.compacted = codes.count("masked"), codes.count("compacted")
    counted.refused = [*service.refused, *service.lint]
    return counted
