"""Room made in a session: by hand, on record, after a restart. The model is scripted; everything else is real."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Results, User
from amanu.core.model import Request
from amanu.models.scripted import ScriptedModel
from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import PromptSendParams, PromptSteerParams
from support.scripted_session import call, conversation, scripted_session, step
from support.session_client import Client


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def small_window(tmp_path: Path, tokens: int = 8_200) -> None:
    """Of the scripted model the session will use."""
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    script = tmp_path / "script.json"
    (config / "config.toml").write_text(f'[context.windows]\n"scripted:{script}" = {tokens}\n')


def reads(count: int) -> list[dict[str, object]]:
    return [step(f"Reading {at}.", call("read_file", path="notes.txt", start_line=1 + at % 10)) for at in range(count)]


async def test_by_hand_and_after_a_restart(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *reads(12), step("Read."), step("As you say.")) as d:
        await d.prompt("read it all", "p1")
        await d.over("p1")
        before = len(conversation(d.session))
        await d.prompt("/compact the colour is blue", "p2")
        state = await d.over("p2")
        (notice,) = [item for item in state.items if item.kind == "notice" and item.code == "compacted"]
        assert "read it all" in notice.detail and "## Next step" in notice.detail
        assert notice.detail.startswith("## Goal") and "conversation_summary" not in notice.detail  # for people
        assert len(conversation(d.session)) < before
        assert not any("/compact" in message.text for message in conversation(d.session) if isinstance(message, User))
        assert [item.text for item in state.items if item.kind == "userMessage"][-1] == "/compact the colour is blue"
        sent = list(conversation(d.session))
        await d.reopen()
        assert list(conversation(d.session)) == sent
        assert d.session.state.usage is not None
        await d.prompt("go on", "p3")
        state = await d.over("p3")
        assert state.items[-1].kind == "answer"
        assert state.usage is not None and state.usage.context is not None
        assert state.usage.context.tier == "roomy"


@pytest.mark.parametrize("headless", [False, True])
async def test_only_requests_of_a_session_that_is_watched_may_be_paused_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headless: bool
) -> None:
    asked: list[Request] = []
    stream = ScriptedModel.stream

    def watched(model: ScriptedModel, request: Request) -> Any:
        asked.append(request)
        return stream(model, request)

    monkeypatch.setattr(ScriptedModel, "stream", watched)
    async with scripted_session(tmp_path, *reads(8), step("Read."), headless=headless) as d:
        await d.prompt("read it", "p1")
        await d.over("p1")
        await d.prompt("/compact", "p2")
        await d.over("p2")
    assert {(each.side_query, each.user_may_pause) for each in asked} == {(False, not headless), (True, False)}


async def test_asked_for_by_the_method(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *reads(8), step("Read.")) as d:
        await d.prompt("read it", "p1")
        await d.over("p1")
        assert (await d.session.prompts.compact("", d.client)).status == "started"
        state = await d.until(lambda state: state.last_turn and state.last_turn.turn_id != "turn-p1")
        assert any(item.kind == "notice" and item.code == "compacted" for item in state.items)


async def test_asked_for_while_a_turn_runs_it_comes_at_the_next_step(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, *reads(8), asks, step("Done.")) as d:
        await d.prompt("read it", "p1")
        await d.until(lambda state: state.approvals)
        assert (await d.session.prompts.compact("", d.client)).status == "queued"
        await d.answer("reject")
        state = await d.over("p1")
        assert any(item.kind == "notice" and item.code == "compacted" for item in state.items)
        assert conversation(d.session)[0].role == "user"
        answers = [message for message in conversation(d.session) if isinstance(message, Results)]
        assert answers  # the last exchange stayed


async def test_nothing_to_compact(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        await d.prompt("/compact", "p1")
        state = await d.over("p1")
        assert [item.code for item in state.items if item.kind == "notice"] == ["nothingToCompact"]
        assert state.title == ""


async def test_what_was_masked_and_cut_can_be_read_again_after_a_restart(tmp_path: Path) -> None:
    small_window(tmp_path, 11_000)
    big = "".join(f"a line of some length, number {at}\n" for at in range(1_500))
    steps = [step("", call("read_file", path="big.txt")), step("Seen.")]
    async with scripted_session(tmp_path, *steps) as d:
        (d.root / "big.txt").write_text(big)
        await d.prompt("read it", "p1")
        await d.over("p1")
        (answers,) = [message for message in conversation(d.session) if isinstance(message, Results)]
        text = answers.results[0].text
        assert len(text) < 8_000 and text.endswith("number 1499\n")
        kept = text.partition('read_output(id="')[2].partition('"')[0]
        await d.reopen()
        data = await d.session.core.journal.find_blob(kept)
        assert data.decode() == big


async def test_commands_list_the_daemons_own(tmp_path: Path) -> None:
    from amanu_protocol.requests import CommandListParams

    theirs = Path(os.environ["AMANU_HOME"]) / "config" / "commands"
    theirs.mkdir(parents=True)
    (theirs / "compact.md").write_text("Not this.")
    (theirs / "mine.md").write_text("This.")
    async with scripted_session(tmp_path, step("x")) as d:
        listed = (await d.sessions.completion.slash_commands(CommandListParams(session_id="s"))).commands
        assert [(each.name, each.source) for each in listed] == [
            ("compact", "daemon"),
            ("memory", "daemon"),
            ("mcp", "daemon"),
            ("skills", "daemon"),
            ("fast", "daemon"),
            ("hooks", "daemon"),
            ("mine", "user"),
        ]


async def test_commands_of_a_part_that_the_session_has_not_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amanu.parts import daemon_parts
    from amanu_protocol.requests import CommandListParams

    for part in daemon_parts():
        monkeypatch.setattr(part, "part_of", lambda self, core: None)  # pyright: ignore[reportUnknownLambdaType]
    async with scripted_session(tmp_path, step("x")) as d:
        listed = (await d.sessions.completion.slash_commands(CommandListParams(session_id="s"))).commands
        assert [each.name for each in listed] == ["compact", "memory", "mcp", "skills", "fast"]


@pytest.mark.parametrize("text", ["/compact", "/compact\n", " /compact keep it"])
async def test_a_steer_is_seen_and_no_message_to_the_model(text: str, tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, *reads(8), asks, step("Done.")) as d:
        turn_id = await d.prompt("go", "p1") or ""
        await d.until(lambda state: state.approvals)
        steer = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text=text)
        for _ in range(2):  # a repeat is harmless
            await d.session.prompts.steer(steer, Client(os.environ))
        await d.answer("reject")
        state = await d.over("p1")
        assert any(item.kind == "notice" and item.code == "compacted" for item in state.items)
        assert [item.text for item in state.items if item.kind == "userMessage"] == ["go", text]
        assert "/compact" not in str(list(conversation(d.session)))
        await d.reopen()
        assert [item.text for item in d.session.state.items if item.kind == "userMessage"] == ["go", text]
        assert "/compact" not in str(list(conversation(d.session)))


async def test_a_steer_into_a_turn_that_is_over(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *reads(8), step("Done.")) as d:
        turn_id = await d.prompt("go", "p1") or ""
        await d.over("p1")
        with pytest.raises(AmanuError, match="over") as caught:
            steer = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="/compact")
            await d.session.prompts.steer(steer, d.client)
        assert caught.value.kind == "staleTurn"


async def test_queued_behind_a_turn(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, *reads(8), asks, step("Done.")) as d:
        await d.prompt("go", "p1")
        await d.until(lambda state: state.approvals)
        queued = PromptSendParams(session_id="s", prompt_id="p2", text="/compact")
        assert (await d.session.prompts.send(queued, d.client)).status == "queued"
        await d.answer("reject")
        state = await d.over("p2")
        assert any(item.kind == "notice" and item.code == "compacted" for item in state.items)


@pytest.mark.parametrize("reopened", [False, True])
async def test_what_is_said_while_a_summary_ends_the_turn_is_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reopened: bool
) -> None:
    begun, goes_on, asked = asyncio.Event(), asyncio.Event(), list[Request]()
    stream = ScriptedModel.stream
    async with scripted_session(tmp_path, *reads(8), step("Read."), step("And that.", expect="STEERED")) as d:

        async def watched(model: ScriptedModel, request: Request) -> Any:
            asked.append(request)
            if len(asked) == 9:  # the last reply is being written
                await d.session.prompts.compact("", d.client)
            elif request.side_query:
                begun.set()
                await goes_on.wait()
            async for delta in stream(model, request):
                yield delta

        monkeypatch.setattr(ScriptedModel, "stream", watched)
        turn_id = await d.prompt("read it") or ""
        await begun.wait()
        await d.session.prompts.steer(
            PromptSteerParams(session_id="s", prompt_id="p2", turn_id=turn_id, text="STEERED"), d.client
        )
        goes_on.set()
        await d.over("p2")
        said = [item for item in d.session.state.items if item.kind == "userMessage"]
        assert [(item.text, item.steer) for item in said] == [("read it", False), ("STEERED", False)]
        if reopened:
            await d.reopen()
        assert sum("STEERED" in message.model_dump_json() for message in conversation(d.session)) == 1
