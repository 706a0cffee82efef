"""A service whose window is smaller than believed says so in its own words: there is room after one refusal, and none
follows. (Public bugs of the kind: openai/codex#11071 and #10380, earendil-works/pi#8061, anomalyco/opencode#50574.)"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.agent.fallback import Fallbacks
from amanu.agent.loop import run_turn
from amanu.core.model_families import model_info
from amanu.models.availability import Availability
from amanu.models.retry import RetryPolicy
from amanu.session.sessions import open_sessions
from amanu_protocol.items import Notice
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.long_session import SUMMARY, tokens
from support.loop_harness import LoopHarness
from support.session_client import Client, until
from support.strict_services.http import Fault, Received, Say, Step, ToolUse
from support.strict_services.responses import Responses
from support.vendor_sweeps import over_cases
from support.vendors import Vendor, running

BELIEVED = 200_000
WINDOW = 30_000
STEPS = 6
RESULT = 30_000
"""Characters, some 6,000 tokens."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


NAMED: dict[str, tuple[int, str]] = {
    # the service's words: (status, words with the window and the size of the request)
    "OpenAI": (
        400,
        "This model's maximum context length is {window} tokens. However, your messages resulted in {size} tokens. "
        "Please reduce the length of the messages.",
    ),
    "Anthropic": (400, "prompt is too long: {size} tokens > {window} maximum"),
    "Gemini": (400, "The input token count ({size}) exceeds the maximum number of tokens allowed ({window})."),
    "xAI": (400, "This model's maximum prompt length is {window} but the request contains {size} tokens."),
    "Kimi": (400, "Invalid request: Your request exceeded model token limit: {window}"),
    "Qwen": (400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {window}]"),
    "llama.cpp": (
        400, "request ({size} tokens) exceeds the available context size ({window} tokens), try increasing it",
    ),
    "OpenAI, a minute": (
        429,
        "Request too large for gpt-4o in organization org-X on tokens per min (TPM): Limit {window}, Requested {size}. "
        "The input or output tokens must be reduced in order to run successfully.",
    ),
    "Groq, a minute": (
        413,
        "Request too large for model `x` in organization `y` service tier `on_demand` on tokens per minute (TPM): "
        "Limit {window}, Requested {size}, please reduce your message size and try again.",
    ),
}  # fmt: skip
UNNAMED: dict[str, tuple[int, str]] = {
    "GLM": (400, "Prompt exceeds max length"),
    "Groq": (400, "Please reduce the length of the messages or completion."),
    "Bedrock": (400, "Input is too long for requested model."),
    "OpenAI Responses": (400, "Your input exceeds the context window of this model."),
}


class Narrow:
    """A model of the service that reads files, with a window of its own. What a reply may take `counts_too`, or not."""

    def __init__(self, status: int, words: str, *, counts_too: bool = False, tool: str = "read") -> None:
        self._tool = tool
        self._status = status
        self._words = words
        self._counts_too = counts_too
        self.asked = 0
        self.refused = 0

    def __call__(self, received: Received) -> Step:
        body = received.json
        size = tokens(json.dumps(body, ensure_ascii=False))
        usage = {"input": size, "output": 60}
        if not body.get("tools"):
            return Say(text=SUMMARY, usage=usage)
        if self._counts_too:
            size += limit_of_reply(body)
        if size > WINDOW:
            self.refused += 1
            return Fault("status", status=self._status, message=self._words.format(window=WINDOW, size=size))
        self.asked += 1
        if self.asked > STEPS:
            return Say(text="Done.", usage=usage)
        return Say(
            text=f"Reading {self.asked}.", calls=[ToolUse(self._tool, {"path": f"{self.asked}.py"})], usage=usage
        )


def limit_of_reply(body: dict[str, Any]) -> int:
    """Tokens that the reply may take, as each wire says it."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
    limits = [body[name] for name in names if name in body]
    return limits[0] if limits else limit_of_reply(body["generationConfig"])


async def play(vendor: Vendor, narrow: Narrow, max_output: int = 8_000) -> tuple[LoopHarness, Availability]:
    availability = Availability()
    async with running(vendor, narrow, lint_ok=True) as (_, model):
        harness = LoopHarness([], prompt="Read all of it.")
        info = model_info(vendor.model_id).model_copy(update={"context_window": BELIEVED, "max_output": max_output})
        harness.turn.candidate = replace(harness.turn.candidate, model=model, info=info)
        harness.turn.fallbacks = Fallbacks(availability, [harness.turn.candidate])
        harness.recorder.size = RESULT
        ending = await run_turn(harness.turn)
        assert (ending.reason, ending.message) == ("completed", "")
        assert narrow.asked == STEPS + 1
        assert availability.fitted(model, info).context_window == harness.turn.info.context_window
    harness.conversation.check()
    return harness, availability


@over_cases("status, words", NAMED, "http", "counts")
async def test_the_window_that_a_refusal_names_is_believed(vendor: Vendor, status: int, words: str) -> None:
    narrow = Narrow(status, words)
    harness, _ = await play(vendor, narrow)
    assert narrow.refused == 1
    assert harness.turn.info.context_window == WINDOW
    codes = [item.code for item in harness.emitted.state.items if isinstance(item, Notice)]
    assert codes.count("windowLearnt") == 1
    assert harness.emitted.state.retry is None


@over_cases("status, words", {name: NAMED[name] for name in ("Groq, a minute", "OpenAI")}, "http", "counts", "limit")
async def test_a_shorter_reply_is_asked_for_where_that_is_what_is_too_long(
    vendor: Vendor, status: int, words: str
) -> None:
    """zeeyado/koassistant.koplugin#106 could not ask even one word."""
    narrow = Narrow(status, words, counts_too=True)
    harness, _ = await play(vendor, narrow, max_output=64_000)
    assert narrow.refused == 1
    assert harness.turn.info.context_window == WINDOW


@over_cases("status, words", {name: NAMED[name] for name in ("Groq, a minute", "Kimi")}, "http", "counts")
async def test_what_cannot_fit_is_said_at_once(vendor: Vendor, status: int, words: str) -> None:
    """ITSpecialist111/ai_automation_suggester#61 has a prompt that is larger than a minute allows."""
    narrow = Narrow(status, words)
    async with running(vendor, narrow, lint_ok=True) as (_, model):
        harness = LoopHarness([], prompt="word " * 60_000)
        info = model_info(vendor.model_id).model_copy(update={"context_window": BELIEVED, "max_output": 8_000})
        harness.turn.candidate = replace(harness.turn.candidate, model=model, info=info)
        ending = await run_turn(harness.turn)
    assert (ending.reason, ending.kind, narrow.refused) == ("failed", "contextTooLong", 1)
    assert f"{WINDOW}" in ending.message and "Nothing more can be removed" in ending.message


@over_cases("status, words", UNNAMED, "http", "counts")
async def test_a_refusal_that_names_none_makes_room_all_the_same(vendor: Vendor, status: int, words: str) -> None:
    narrow = Narrow(status, words)
    harness, _ = await play(vendor, narrow)
    assert 1 <= narrow.refused <= 3
    assert harness.turn.info.context_window == BELIEVED


async def test_another_session_has_learnt_it_too(tmp_path: Path) -> None:
    for at in range(1, STEPS + 1):
        (tmp_path / f"{at}.py").write_text("".join(f"line {at} {row} of it\n" for row in range(1_500)))
    narrow = Narrow(*NAMED["OpenAI"], tool="read_file")
    service = Responses(narrow)
    sessions = open_sessions()
    client = Client({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{await service.start()}/v1"})
    try:
        for name in ("one", "two"):
            narrow.asked = 0
            created = SessionCreateParams(session_id=name, roots=[str(tmp_path)], model_id="openai:gpt-6.2-sol")
            client.state = (await sessions.create(created, client)).state
            session = await sessions.get(name)
            await session.prompts.send(PromptSendParams(session_id=name, prompt_id=f"p{name}", text="Read."), client)
            state = await until(session, lambda state: state.last_turn, seconds=20)
            assert state.last_turn is not None and state.last_turn.reason == "completed", state.last_turn
            assert narrow.refused == 1
            assert state.usage is not None and state.usage.context_window == WINDOW
    finally:
        await sessions.shutdown()
        await service.stop()
