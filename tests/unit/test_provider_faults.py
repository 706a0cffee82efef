"""The fault table of `docs/models` and its peers, at the level a user sees: how the turn ends, and that no word of
a dead attempt is left. Real SDKs against the strict services."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.agent import failover
from amanu.models.retry import RetryPolicy
from amanu.session.sessions import open_sessions
from amanu_protocol.events import ItemCompleted, ItemsWithdrawn, RetryChanged
from amanu_protocol.items import Answer, Notice, Thought
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Fault, Say, Script, Service, Step
from support.strict_services.responses import Responses

WHOLE = "This is the whole answer."
PIECES = ["This ", "is ", "the ", "whole ", "answer."]
DEAD = ["Dead ", "words ", "of ", "an ", "attempt."]

VENDORS: dict[str, tuple[Callable[[Script], Service], str, dict[str, str]]] = {
    "anthropic": (Anthropic, "anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "{url}"}),
    "gemini": (Gemini, "gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "{url}"}),
    "openai": (Responses, "openai:gpt-6.2-sol", {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "{url}/v1"}),
}

good = Say(text=PIECES)


def dead(kind: Any, after: int = 5) -> Say:
    return Say(text=DEAD, fault=Fault(kind, after=after))


CASES: dict[str, tuple[list[Step], str, int]] = {
    # name: (what the service does, how the turn ends, requests)
    "429 with Retry-After": ([Fault("status", status=429, headers={"Retry-After": "0.2"}), good], "completed", 2),
    "429 twice": ([Fault("status", status=429), Fault("status", status=429), good], "completed", 3),
    "500": ([Fault("status", status=500), good], "completed", 2),
    "503": ([Fault("status", status=503), good], "completed", 2),
    "reset before headers": ([Fault("reset", headers_first=False), good], "completed", 2),
    "disconnect after some chunks": ([dead("reset"), good], "completed", 2),
    "cut inside a string": ([dead("cut"), good], "completed", 2),
    "ends early without a finish": ([dead("unfinished"), good], "completed", 2),
    "malformed chunk": ([dead("malformed"), good], "completed", 2),
    "error event in mid-stream": ([dead("errorEvent"), good], "completed", 2),
    "empty stream": ([Fault("empty"), good], "completed", 2),
    "silence in mid-stream": ([dead("silence"), good], "completed", 2),
    "headers, then silence": ([Fault("silence"), good], "completed", 2),
    "output limit with text": ([Say(text=PIECES[:3], stop="outputLimit"), Say(text=PIECES[3:])], "completed", 2),
    "thought only": ([Say(thought="**Hm** let me see"), good], "completed", 2),
    "refusal": ([Say(text="", stop="refused")], "refused", 1),
    "401": ([Fault("status", status=401, message="invalid key")], "failed", 1),
    "400": ([Fault("status", status=400, message="no such field")], "failed", 1),
    "always overloaded": ([Fault("status", status=503)] * 9, "failed", 8),
    "broken every time": ([dead("unfinished")] * 9, "failed", 4),
    "asks Amanu to wait an hour": ([Fault("status", status=429, headers={"Retry-After": "3600"})], "failed", 1),
}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("case", CASES)
async def test_fault(case: str, vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, reason, requests = CASES[case]
    policy = RetryPolicy(first_delay=0.01, longest_delay=0.02, idle_text=0.5, idle_thinking=0.5)
    monkeypatch.setattr(failover, "PATIENT", policy)
    make, model_id, variables = VENDORS[vendor]
    service = make(list(steps))
    url = await service.start()
    client = Client({**os.environ, **{name: value.format(url=url) for name, value in variables.items()}})
    sessions = open_sessions()
    await sessions.services.registry.warm(model_id.partition(":")[0])  # an import is no silence of the model
    try:
        created = SessionCreateParams(session_id="s", roots=[str(tmp_path)], model_id=model_id)
        client.state = (await sessions.create(created, client)).state
        session = await sessions.get("s")
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p", text="hi"), client)
        state = await until(session, lambda state: state.last_turn, seconds=20)
        ended = state.last_turn
        assert ended is not None
        assert ended.reason == reason, ended.message
        assert len(service.requests) == requests
        answers = "".join(item.text for item in state.items if isinstance(item, Answer))
        if reason == "completed":
            assert answers == WHOLE  # nothing twice, nothing of a dead attempt
            assert not [item for item in state.items if isinstance(item, Thought)]
        else:
            assert ended.message
            assert ended.can_continue == (reason == "failed")
            assert [item for item in state.items if isinstance(item, Notice)]
        if requests > 1 and case != "output limit with text":
            retries = [message.event for message in client.messages if isinstance(message.event, RetryChanged)]
            assert retries and (retries[-1].retry is None or reason == "failed")
        withdrawn = [message.event for message in client.messages if isinstance(message.event, ItemsWithdrawn)]
        shown = [
            message.event.item.text
            for message in client.messages
            if isinstance(message.event, ItemCompleted) and isinstance(message.event.item, Answer)
        ]
        assert (
            bool(withdrawn) == any(isinstance(step, Say) and step.fault for step in steps)
            or reason == "failed"
            or (case == "thought only")
        ), shown
        session.core.conversation.check()
        assert not service.refused or case in ("401", "400")
        assert not service.lint
    finally:
        await sessions.shutdown()
        await service.stop()
