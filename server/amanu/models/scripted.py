"""A model that plays back a script: for the demo and for tests, on the true path and without a key.

A script is a JSON list of steps (see `ScriptedStep`), one per reply. It says that it is scripted wherever it is named.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from amanu.core import model as base
from amanu.core.conversation import Assistant, Call, Conversation, Results, Text, Thinking, User
from amanu.core.model import CallDelta, CallStarted, Delta, ReplyCompleted, Request, TextDelta, ThoughtDelta, TokenUsage
from amanu.models.image_layout import laid_out, result_layout, texts
from amanu_protocol.items import ModelInfo

OVER = "(scripted model: the script ends here)"
DECIDED_OTHERWISE = (
    "You decided otherwise than this script expects, or this is not its sample project, so it ends here. "
    "Nothing else changed."
)
"""The end of a script that comes with Amanu, when it hears something else."""
SCRIPTS = files("amanu.models") / "scripts"
PLAN = "{plan}"
_TOLD_PLAN = re.compile(r"the plan, (/.+?plan\.md)")
"""The sentence that names the plan's path, in the words of `permissions/modes/plan.toml`."""
ASIDE = "## Goal\n(scripted model: it makes no summary of its own)\n\n## Next step\nGo on."
"""The answer to questions beside the conversation when the script has none: passes for a summary, for no judgement."""


class ScriptedCall(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, JsonValue] | str
    """`PLAN` for a value becomes the path of the session's plan, which no script can know."""


class ScriptedStep(BaseModel):
    """One reply: thought, then text, then calls."""

    model_config = ConfigDict(extra="forbid")

    thought: str = ""
    text: str = ""
    calls: list[ScriptedCall] = []
    expect: str = ""
    """Must stand in what the model was told last (results and notes, or the prompt); else it complains."""
    chunk: int = 0
    """Characters per delta; 0: all at once."""
    delay_ms: int = 0
    """Before each delta."""
    aside: bool = False
    """The answer to every question beside the conversation, instead of `ASIDE`; no reply of the conversation."""
    error: (
        Literal[
            "authFailed",
            "rateLimited",
            "overloaded",
            "quotaExhausted",
            "unreachable",
            "streamBroken",
            "contextTooLong",
            "requestRefused",
        ]
        | None
    ) = None
    """The first attempt at this step fails with it, after its thought and text; the second succeeds."""
    failures: int = 1
    """Attempts that fail with `error`."""
    usage: dict[Literal["input", "cache_read", "cache_write", "output", "thoughts"], int] = {}


_STEPS: TypeAdapter[list[ScriptedStep]] = TypeAdapter(list[ScriptedStep])


def shipped() -> list[str]:
    """The names of the scripts that come with Amanu."""
    return sorted(script.name.removesuffix(".json") for script in SCRIPTS.iterdir())


def load(name_or_path: str) -> "ScriptedModel":
    """The shipped script of that name (`demo`), or a file. `ValueError`, saying what is wrong, if there is none
    or it is no script."""
    path = Path(name_or_path)
    named = path.suffix != ".json" and path.name == name_or_path
    source = SCRIPTS / f"{name_or_path}.json" if named else path
    try:
        return ScriptedModel(_STEPS.validate_json(source.read_bytes()), name=path.stem, shipped=named)
    except OSError as error:
        raise ValueError(f"The script {name_or_path} cannot be read: {error.strerror or error}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise ValueError(
            f"The script {name_or_path} is not valid at {location or 'its top'}: {first['msg']}."
        ) from None


class ScriptedModel:
    """`Model` that plays `steps`: which one, the number of its replies in the conversation says. If one hears
    something unexpected, a `shipped` script ends with a sentence for its user, any other says what it heard."""

    def __init__(
        self, steps: Sequence[ScriptedStep | dict[str, Any]], name: str = "script", *, shipped: bool = False
    ) -> None:
        self._shipped = shipped
        every = [ScriptedStep.model_validate(step) for step in steps]
        self._steps = [step for step in every if not step.aside]
        self._asides = [step for step in every if step.aside] or [ScriptedStep(text=ASIDE)]
        self._failed: WeakKeyDictionary[Conversation, Counter[int]] = WeakKeyDictionary()
        """How often the error of a step was raised."""
        self.info = ModelInfo(
            model_id=f"scripted:{name}",
            name=f"Scripted: {name} (plays a script, no real model)",
            context_window=1_000_000,
            max_output=8_192,
            input_price=0,
            output_price=0,
            thinking=True,
            images=False,
            available=True,
        )

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        index = _replies(request.conversation)
        steps = self._asides if request.side_query else self._steps
        step = steps[index] if index < len(steps) else ScriptedStep(text=OVER)
        heard = _heard(request)
        if step.expect not in heard:
            step = ScriptedStep(text=DECIDED_OTHERWISE if self._shipped else _unexpected(index, step.expect, heard))
        calls = [
            Call(call_id=f"call_{uuid4().hex[:16]}", tool=call.tool, arguments=_filled(call.arguments, request))
            for call in step.calls
        ]
        for delta in _deltas(step, calls):
            await asyncio.sleep(step.delay_ms / 1000)
            yield delta
        failed = self._failed.setdefault(request.conversation, Counter())
        if step.error is not None and failed[index] < step.failures:
            failed[index] += 1
            error = getattr(base, step.error[0].upper() + step.error[1:])
            raise error("The script asked for this failure.", "scripted")
        parts = [
            *([Thinking(text=step.thought)] if step.thought else []),
            *([Text(text=step.text)] if step.text else []),
        ]
        message = Assistant(parts=(*parts, *calls))
        yield ReplyCompleted(message, TokenUsage(**step.usage), "calls" if calls else "end")

    async def connect(self) -> None:
        pass

    async def close(self) -> None:
        pass


def _replies(conversation: Conversation) -> int:
    """How many replies the script has given: those no real model has left its mark on."""
    earlier = conversation.compacted.replies if conversation.compacted is not None else 0
    return earlier + sum(isinstance(message, Assistant) and message.native is None for message in conversation)


def _unexpected(index: int, expected: str, heard: str) -> str:
    """In code, in which no Markdown takes `__pycache__` for emphasis."""
    told = f"(scripted model: step {index + 1} expected to hear {expected!r}, but heard {heard!r})"
    return f"````text\n{told}\n````"


def _heard(request: Request) -> str:
    match request.conversation.last:
        case User() as said:
            return texts(laid_out(said.parts, request.conversation, request.model))
        case Results() as answers:
            notes = laid_out(answers.notes, request.conversation, request.model)
            results = [result_layout(result, request.conversation, request.model) for result in answers.results]
            return "\n".join([*(texts([result.text, *result.shown]) for result in results), texts(notes)])
        case _:
            return ""


def _filled(arguments: dict[str, JsonValue] | str, request: Request) -> dict[str, JsonValue] | str:
    if isinstance(arguments, str) or PLAN not in arguments.values():
        return arguments
    said = (message.parts for message in request.conversation if isinstance(message, User))
    told = "\n".join(texts(laid_out(parts, request.conversation, request.model)) for parts in said)
    found = _TOLD_PLAN.findall(told)
    return {name: found[-1] if value == PLAN and found else value for name, value in arguments.items()}


def _deltas(step: ScriptedStep, calls: Sequence[Call]) -> Iterator[Delta]:
    for kind, text in ((ThoughtDelta, step.thought), (TextDelta, step.text)):
        size = step.chunk or max(1, len(text))
        for start in range(0, len(text), size):
            yield kind(text[start : start + size])
    for call in calls:
        yield CallStarted(call.call_id, call.tool)
        text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        size = step.chunk or len(text)
        for start in range(0, len(text), size):
            yield CallDelta(call.call_id, text[start : start + size])
