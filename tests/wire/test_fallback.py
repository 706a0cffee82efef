"""A service fails in the middle of a tool loop with parallel calls; the turn goes on at another vendor's, and the next
one goes back. Real SDKs, strict services, whole sessions."""

import time
from pathlib import Path

import pytest

from amanu.agent import failover
from amanu.home import find_home
from amanu.models.retry import RetryPolicy
from amanu.session.sessions import open_sessions
from amanu_protocol.events import TurnRouted, TurnStarted
from amanu_protocol.items import Answer, Notice, ToolCall
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.http import Fault, Say, Step, ToolUse
from support.three_vendors import MODELS, three_vendors

PAIRS = [(one, other) for one in MODELS for other in MODELS if one != other]
READS = [ToolUse("read_file", {"path": "a.txt"}), ToolUse("list_directory", {"path": "."})]

FAILURES: dict[str, tuple[list[Step], str]] = {
    "overloaded": ([Fault("status", status=503, message="Try later.")] * 3, "is overloaded"),
    "rate limited": (
        [Fault("status", status=429, headers={"retry-after": "45"})],
        "is taking no more requests for now",
    ),
    "asks Amanu to wait an hour": (
        [Fault("status", status=429, headers={"retry-after": "3600"})],
        "has no quota or credit left",
    ),
}
NOT_HAD: dict[str, tuple[list[Step], str]] = {
    # claude-code#8413, openclaw#51209, hermes-agent#17485, mastra#12756, openfang#845, picoclaw#2334
    "no such model": (
        [Fault("status", status=404, message="model: x", code="model_not_found")],
        "is not offered to you by its service",
    ),
    "bad key": ([Fault("status", status=401, message="Incorrect API key.")], "cannot be used with your key"),
    "forbidden": ([Fault("status", status=403, message="No access.")], "cannot be used with your key"),
}
USED_UP: dict[str, Fault] = {
    "anthropic": Fault("status", status=400, message="Your credit balance is too low to access the Anthropic API."),
    "gemini": Fault("status", status=429, message="Quota exceeded for metric: requests, limit: 0, model: x"),
    "openai": Fault("status", status=429, code="insufficient_quota", message="You exceeded your current quota."),
}


def cases() -> list[tuple[str, str, list[Step], str]]:
    found = [(one, other, *FAILURES["overloaded"]) for one, other in PAIRS]
    for one, other in PAIRS[::2]:  # each vendor once
        found += [(one, other, *FAILURES[name]) for name in ("rate limited", "asks Amanu to wait an hour")]
        found += [(one, other, *NOT_HAD[name]) for name in NOT_HAD]
        found.append((one, other, [USED_UP[one]], "has no quota or credit left"))
    return found


@pytest.mark.parametrize(("one", "other", "failure", "why"), cases())
async def test_in_mid_loop_to_another_vendor_and_back(
    one: str, other: str, failure: list[Step], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)  # pyright: ignore[reportUnknownLambdaType]
    assert failover.BRIEF.busy_retries == 2
    settings = (
        f'[routing]\nfallback = ["ollama:not-there", "{MODELS[other]}"]\n[base_urls]\nollama = "http://127.0.0.1:9/v1"'
    )
    (find_home().make().config / "config.toml").write_text(settings)
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    async with three_vendors() as (services, environment):
        services[one].script(
            [Say(thought="**Looking** first", text="Let me look.", calls=READS), *failure, Say(text="Mine again.")]
        )
        services[other].script([Say(text="I take over.", calls=READS), Say(text="Done.")])
        client = Client(environment)
        sessions = open_sessions()
        try:
            created = SessionCreateParams(session_id="s", roots=[str(work)], model_id=MODELS[one])
            client.state = (await sessions.create(created, client)).state
            session = await sessions.get("s")
            await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p1", text="Look around."), client)
            state = await until(session, lambda state: state.last_turn, seconds=20)
            assert state.last_turn is not None and state.last_turn.reason == "completed", state.last_turn
            answers = [item.text for item in state.items if isinstance(item, Answer)]
            assert answers == ["Let me look.", "I take over.", "Done."]
            routed = [message.event for message in client.messages if isinstance(message.event, TurnRouted)]
            assert [event.model_id for event in routed] == [MODELS[other]]
            assert why in routed[0].reason
            assert [item.code for item in state.items if isinstance(item, Notice)] == ["fallback"]
            assert all(item.state == "succeeded" for item in state.items if isinstance(item, ToolCall))
            now = time.monotonic() + 4000  # its time is over
            monkeypatch.setattr(sessions.services.availability, "_clock", lambda: now)  # pyright: ignore[reportPrivateUsage]
            await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p2", text="And now?"), client)
            state = await until(session, lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
            assert state.last_turn is not None and state.last_turn.reason == "completed", state.last_turn
            assert [item.text for item in state.items if isinstance(item, Answer)][-1] == "Mine again."
            began = [message.event.model_id for message in client.messages if isinstance(message.event, TurnStarted)]
            assert began == [MODELS[one]] * 2
            notices = [item for item in state.items if isinstance(item, Notice)]
            assert [item.code for item in notices] == ["fallback", "routed"] and "Back to" in notices[-1].text
            assert len(services[one].requests) == 2 + len(failure)
            assert len(services[other].requests) == 2
        finally:
            await sessions.shutdown()
