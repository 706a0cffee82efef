"""A daemon that is killed or stopped in the middle of things, and what the next one tells of it."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.storage.journal import Journal
from amanu_protocol.items import Item, ToolCall
from amanu_protocol.state import SessionState
from e2e.test_prompt_to_edit import Editor, editor, start, stop_daemon
from support.running_daemon import signal_daemon
from support.scripted_session import call, step

ASKS = step("", call("run_shell_command", command="touch -c it", network=True))

RUNS = step("", call("run_shell_command", command="echo up; sleep 60"))


def script(folder: Path, *steps: dict[str, Any]) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps(steps))
    return f"scripted:{path}"


async def end(client: Editor, number: signal.Signals) -> None:
    """End the daemon, and wait until it is gone."""
    signal_daemon(number)
    await client.raw.exit_code()


def said(state: SessionState) -> list[str]:
    return [item.text for item in state.items if item.kind == "userMessage"]


async def test_the_queue_outlives_a_kill_and_goes_on_in_order(tmp_path: Path) -> None:
    (root := tmp_path / "work").mkdir()
    model_id = script(tmp_path, ASKS, step("Two."), step("Three."), step("Four."))
    async with editor({}) as client:
        await start(client, root, model_id, "one")
        await client.until(lambda state: state.approvals)
        for prompt in ("two", "three"):
            assert (await client.ask("prompt/send", sessionId="s1", promptId=prompt, text=prompt))["status"] == "queued"
        await end(client, signal.SIGKILL)
    async with editor({}) as client:
        await client.attach("s1")
        state = client.state
        assert state is not None and state.turn is None and [each.text for each in state.queue] == ["two", "three"]
        told = [item.text for item in state.items if item.kind == "notice"][-1]
        assert told == (
            "2 prompts wait in the queue: “two”, “three”. When you send your next prompt, these run "
            "first, in this order."
        )
        assert (await client.ask("prompt/send", sessionId="s1", promptId="four", text="four"))["status"] == "queued"
        state = await client.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-four")
        assert said(state) == ["one", "two", "three", "four"] and state.queue == []
    stop_daemon()


async def test_what_was_told_as_ended_outlives_a_kill(tmp_path: Path) -> None:
    (root := tmp_path / "work").mkdir()
    (root / "notes.txt").write_text("line 1\n")
    model_id = script(tmp_path, step("", call("read_file", path="notes.txt")), step("It says line 1."))
    async with editor({}) as client:
        await start(client, root, model_id, "read it")
        state = await client.until(lambda state: state.last_turn)
        await end(client, signal.SIGKILL)
    async with editor({}) as other:
        await other.attach("s1")
        assert other.state is not None
        assert (other.state.items, other.state.last_turn) == (state.items, state.last_turn)
    stop_daemon()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    ("reply", "call_state", "error", "told"),
    [
        (ASKS, "cancelled", "Interrupted before it ran.", "the turn ended before this call started"),
        (RUNS, "failed", "Interrupted: it may have taken effect.", "the daemon stopped while this call ran"),
    ],
    ids=["a question waits", "a command runs"],
)
async def test_a_turn_that_the_daemon_s_end_interrupts_says_so(
    tmp_path: Path, reply: dict[str, Any], call_state: str, error: str, told: str, number: signal.Signals
) -> None:
    """However the daemon ended."""
    (root := tmp_path / "work").mkdir()
    model_id = script(tmp_path, reply)
    async with editor({}) as client:
        await start(client, root, model_id, "go", mode="auto")
        await client.until(lambda state: state.approvals or any(has_begun(item) for item in state.items))
        await end(client, number)
    async with editor({}) as other:
        await other.attach("s1")
        state = other.state
        assert state is not None and state.last_turn is not None and not state.approvals
        (called,) = [item for item in state.items if isinstance(item, ToolCall)]
        assert (called.state, called.error) == (call_state, error)
        last = state.last_turn
        assert (last.reason, last.can_continue) == ("interrupted", True)
        assert last.message == "The daemon stopped in the middle of this turn."
        assert not [item for item in state.items if item.kind == "notice"]
        listed = await other.ask("session/list")
        assert [each["status"] for each in listed["sessions"]] == ["interrupted"]
        await end(other, signal.SIGTERM)
    journal = await Journal.read(find_home().sessions / "s1")
    assert sum(told in (record.private or "") for record in await journal.records()) == 1
    await journal.close()


def has_begun(item: Item) -> bool:
    return isinstance(item, ToolCall) and "up" in item.output
