"""A fork has the conversation up to a turn, and nothing that one session could break for the other."""

import json
import time
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.session.fork import forked
from amanu.session.session import Session
from amanu.storage.journal import Record
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Answer, Item, Notice, Question, ToolCall, UserMessage
from amanu_protocol.requests import (
    BlobGetParams,
    CheckpointRestoreParams,
    EditScope,
    PromptSendParams,
    ProposalUndoParams,
    SessionForkParams,
)
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, conversation, scripted_session, step


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def fork(d: ScriptedSession, turn_id: str | None = None, name: str = "f") -> Session:
    params = SessionForkParams(session_id="s", new_session_id=name, turn_id=turn_id)
    result = await d.sessions.fork(params, d.client)
    session = await d.sessions.get(name)
    assert result.state.session_id == name
    session.detach(d.client)
    return session


def said(items: "list[Item]") -> list[str]:
    return [item.text for item in items if isinstance(item, UserMessage | Answer)]


def told(session: Session) -> str:
    return "\n".join(message.model_dump_json() for message in conversation(session))


async def three_turns(d: ScriptedSession) -> None:
    for number in (1, 2, 3):
        await d.prompt(f"prompt {number}", f"p{number}")
        await d.over(f"p{number}")


ANSWERS = tuple(step(f"answer {number}") for number in range(1, 5))


@pytest.mark.parametrize(("turn_id", "last"), [("turn-p1", 1), ("turn-p2", 2), ("turn-p3", 3), (None, 3)])
async def test_it_has_the_conversation_up_to_the_turn(tmp_path: Path, turn_id: str | None, last: int) -> None:
    async with scripted_session(tmp_path, *ANSWERS) as d:
        await three_turns(d)
        before = (d.session.view().model_dump(), told(d.session))
        session = await fork(d, turn_id)
        assert said(session.state.items) == [f"{who} {n}" for n in range(1, last + 1) for who in ("prompt", "answer")]
        assert [item.code for item in session.state.items if isinstance(item, Notice)] == ["forked"]
        for number in range(1, 4):
            assert (f"answer {number}" in told(session)) == (number <= last)
        assert "The user forked this conversation" in told(session)
        assert session.state.title == "Fork of prompt 1"
        assert (session.state.roots, session.state.mode, session.state.model_id) == (
            d.session.state.roots,
            d.session.state.mode,
            d.session.state.model_id,
        )
        assert session.state.status == "idle"
        assert session.state.usage is None
        assert (d.session.view().model_dump(), told(d.session)) == before


async def test_both_go_on(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *ANSWERS) as d:
        await three_turns(d)
        session = await fork(d, "turn-p1")
        await session.send_prompt(PromptSendParams(session_id="f", prompt_id="p2", text="another way"), d.client)
        await session.wait_for_turn("turn-p2")
        assert said(session.state.items)[2] == "another way"
        await d.prompt("prompt 4", "p4")
        await d.over("p4")
        assert said(d.session.state.items)[-2:] == ["prompt 4", "answer 4"]
        await d.sessions.close("f")
        again = await d.sessions.get("f")
        assert said(again.state.items)[:3] == ["prompt 1", "answer 1", "another way"]
        again_told = told(again)
        assert again_told.count("prompt 1") == 1
        assert (await fork(d, "turn-p3")).state.items == again.state.items  # a known id returns that session
        await d.sessions.delete("f")
        assert said(d.session.state.items)[:2] == ["prompt 1", "answer 1"]


@pytest.mark.parametrize(
    ("turn_id", "kind"), [("turn-p9", "itemNotFound"), ("p1", "itemNotFound"), ("turn-p3", "itemNotFound")]
)
async def test_a_turn_that_is_not_there(tmp_path: Path, turn_id: str, kind: str) -> None:
    async with scripted_session(tmp_path, *ANSWERS) as d:
        await three_turns(d)
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=False, conversation=True)
        await d.session.checkpoints.restore(params)
        with pytest.raises(AmanuError) as raised:
            await fork(d, turn_id)
        assert raised.value.kind == kind
        assert d.sessions.opened("f") is None
        session = await fork(d)  # what was taken back is in no fork
        assert said(session.state.items) == ["prompt 1", "answer 1"]
        await d.prompt("prompt 2 again", "p4")
        await d.over("p4")
        session = await fork(d, "turn-p4", "g")
        assert said(session.state.items) == ["prompt 1", "answer 1", "prompt 2 again", "answer 2"]
        assert "answer 3" not in told(session)


async def test_a_turn_that_runs(tmp_path: Path) -> None:
    ask = call("run_shell_command", command="touch x", network=True)
    async with scripted_session(tmp_path, step("answer 1"), step("", ask), step("answer 2")) as d:
        with pytest.raises(AmanuError, match="Nothing was said"):
            await fork(d)
        await d.prompt("prompt 1", "p1")
        await d.over("p1")
        await d.prompt("prompt 2", "p2")
        await d.until(lambda state: state.approvals)
        with pytest.raises(AmanuError, match="has not ended") as raised:
            await fork(d, "turn-p2")
        assert raised.value.kind == "turnInProgress"
        session = await fork(d)
        assert said(session.state.items) == ["prompt 1", "answer 1"]
        assert session.state.approvals == []
        await d.answer("reject")
        await d.over("p2")


async def test_changes_stay_with_the_old_session(tmp_path: Path) -> None:
    edit = call("write_file", path="notes.txt", content=TWO_HUNKS)
    async with scripted_session(tmp_path, step("", edit), step("Done."), mode="acceptEdits") as d:
        await d.prompt("edit", "p1")
        await d.over("p1")
        session = await fork(d)
        (edited,) = [item for item in session.state.items if isinstance(item, ToolCall)]
        assert edited.proposal_id is None
        assert session.state.proposals == []
        assert TWO_HUNKS.splitlines()[1] in told(session)
        undo = ProposalUndoParams(session_id="f", scope=EditScope())
        assert (await session.edits.undo(undo)).files == []
        assert d.file.read_text() == TWO_HUNKS
        await d.session.edits.undo(undo.model_copy(update={"session_id": "s"}))
        assert d.file.read_text() != TWO_HUNKS


async def test_questions_stay_with_the_old_session(tmp_path: Path) -> None:
    steps = (step("", call("ask_user", questions=[{"question": "Which?", "header": "Which"}])), step("Done."))
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("ask", "p1")
        state = await d.until(lambda state: state.questions)
        (asked,) = state.questions
        records = await d.session.core.journal.records()
        ended = Record(0, 0, 0, '{"kind":"turnEnded","turnId":"turn-p1"}', None)
        taken = forked([*records, ended], [], "turn-p1")
        last = json.loads(taken[-1].event)["item"]
        assert (last["itemId"], last["state"]) == (asked.item_id, "cancelled")
        turn = d.session.state.turn
        assert turn is not None
        await d.session.prompts.cancel(turn.turn_id)
        session = await fork(d)
        assert session.state.questions == []
        assert all(item.state != "open" for item in session.state.items if isinstance(item, Question))


async def test_outputs_are_in_both(tmp_path: Path) -> None:
    command = call("run_shell_command", command="seq 1 100000 && true")
    async with scripted_session(tmp_path, step("", command), step("Done."), mode="acceptEdits") as d:
        await d.prompt("count", "p1")
        await d.over("p1")
        (ran,) = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        assert ran.blob is not None
        session = await fork(d)
        params = BlobGetParams(session_id="f", blob_id=ran.blob.blob_id)
        assert (await session.pages.blob(params)).text.startswith("1\n2\n3\n")
        blobs = session.core.journal.folder / "blobs"
        assert [path.name for path in blobs.iterdir()] == [ran.blob.blob_id]
        (d.session.core.journal.folder / "blobs" / ran.blob.blob_id).unlink()
        assert (await session.pages.blob(params)).text.startswith("1\n2\n3\n")


async def test_a_fork_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *ANSWERS) as d:
        await three_turns(d)
        folder = (await d.sessions.summaries.index()).folder("f")
        (folder / "blobs").mkdir(parents=True)
        (folder / "building.sqlite").write_bytes(b"half")
        session = await fork(d, "turn-p2")
        assert len(said(session.state.items)) == 4


def test_two_thousand_messages_take_little() -> None:
    """Of the processor's time; a sample of what `bench.past` writes."""
    records: list[Record] = []
    for turn in range(1000):
        ids = f'"turnId":"turn-{turn}"'
        message = (
            f'{{"kind":"itemCompleted","item":{{"kind":"answer","itemId":"a{turn}",{ids},"text":"{"word " * 200}"}}}}'
        )
        private = json.dumps({"role": "user", "text": "word " * 200})
        for event in (f'{{"kind":"turnStarted",{ids}}}', message, message, f'{{"kind":"turnEnded",{ids}}}'):
            records.append(Record(1, len(records), 1, event, private, len(records) + 1))
    begun = time.process_time()
    assert len(forked(records, [], None)) == len(records)
    assert time.process_time() - begun < 0.1
