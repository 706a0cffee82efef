"""A session when things come at the wrong moment: cancels, prompts, decisions, closes, full disks, odd text."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.session.sessions import open_sessions
from amanu.storage import journal_sqlite as journal_file
from amanu.storage.journal import Record
from amanu.system import process_tree as processes
from amanu_protocol.base import LineRange
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, ProposalChanged, SessionChanged
from amanu_protocol.items import SelectionAttachment
from amanu_protocol.requests import (
    BlobGetParams,
    PromptSendParams,
    PromptSteerParams,
    ProposalResolveParams,
    SessionAttachParams,
    SessionCreateParams,
)
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until

WRITE = step("", call("write_file", path="notes.txt", content=TWO_HUNKS))
HALF = TWELVE.replace("line 2\n", "line two\n")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


class Disk:
    """A disk that can be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._insert = journal_file.insert
        monkeypatch.setattr(journal_file, "insert", self._try)

    def _try(self, db: sqlite3.Connection, batch: list[journal_file.Entry]) -> None:
        if self.full:
            raise sqlite3.OperationalError("database or disk is full")
        self._insert(db, batch)


async def slow_to_die(d: ScriptedSession) -> str:
    """Start a turn whose command takes its time to end when it is asked to. Returns the turn's id."""
    turn_id = await d.prompt("run it")
    await d.answer("allow")
    async with asyncio.timeout(50):
        while not (d.root / "running").exists():
            await asyncio.sleep(0.01)
    return turn_id or ""


STUBBORN = step(
    "", call("run_shell_command", command="trap '' TERM; touch running; while :; do sleep 0.05; done", network=True)
)


async def test_a_turn_cancelled_before_its_first_step_ends(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        prompting = asyncio.create_task(d.prompt("hi"))
        while d.session.state.turn is None:
            await asyncio.sleep(0)
        async with asyncio.timeout(50):
            assert (await d.session.prompts.cancel("turn-p1")).status == "cancelled"
            assert await prompting == "turn-p1"
            await d.over("p1", "cancelled")
            await d.prompt("again", "p2")
            await d.over("p2")


async def test_cancelling_twice_still_waits_for_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE", 0.7)
    async with scripted_session(tmp_path, STUBBORN) as d:
        turn_id = await slow_to_die(d)
        first = asyncio.create_task(d.session.prompts.cancel(turn_id))
        await asyncio.sleep(0.1)
        await d.session.prompts.cancel(turn_id)
        await first
        state = await d.over("p1", "cancelled")
        (item,) = (item for item in state.items if item.kind == "toolCall")
        assert item.state == "cancelled"
        assert "its effect may be partial" in d.told()
        kinds = [message.event.kind for message in d.client.messages]
        assert kinds[-1] == "turnEnded"


async def test_a_prompt_said_after_a_cancel_starts_what_was_queued_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GRACE", 0.7)
    async with scripted_session(tmp_path, STUBBORN, step("Old."), step("New.")) as d:
        turn_id = await slow_to_die(d)
        await d.prompt("said before", "p2")
        cancelling = asyncio.create_task(d.session.prompts.cancel(turn_id))
        await asyncio.sleep(0.1)
        await d.prompt("said after", "p3")
        await cancelling
        state = await d.over("p3")
        assert [item.text for item in state.items if item.kind == "userMessage"] == [
            "run it",
            "said before",
            "said after",
        ]
        assert state.queue == []


async def test_after_a_cancel_the_user_is_told_what_the_turn_never_heard(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("2")
    ) as d:
        turn_id = await d.prompt("run") or ""
        await d.until(lambda state: state.approvals)
        said = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="faster")
        await d.session.prompts.steer(said, d.client)
        await d.session.prompts.cancel(turn_id)
        await d.over("p1", "cancelled")
        (told,) = [item for item in d.session.state.items if item.kind == "notice"]
        assert told.text == "Not heard yet, and goes with the next prompt: “faster”."


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("next_prompt", ["third", "second"])
async def test_after_a_cancel_the_next_prompt_goes_behind_the_queue_and_starts_it(
    tmp_path: Path, next_prompt: str, reopened: bool
) -> None:
    """A prompt that waits already starts the queue, too, when it is sent again."""
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("2"), step("3")
    ) as d:
        turn_id = await d.prompt("run")
        await d.until(lambda state: state.approvals)
        await d.prompt("second", "p2")
        await d.session.prompts.cancel(turn_id or "")
        await d.over("p1", "cancelled")
        if reopened:  # tells it no second time
            await d.reopen()
        assert [each.prompt_id for each in d.session.state.queue] == ["p2"]
        (told,) = [item for item in d.session.state.items if item.kind == "notice"]
        assert (
            told.text == "1 prompt waits in the queue: “second”. When you send your next prompt, this one runs first."
        )
        assert await d.prompt(next_prompt, "p3" if next_prompt == "third" else "p2") == (
            None if next_prompt == "third" else "turn-p2"
        )
        state = await d.over("p3" if next_prompt == "third" else "p2")
        asked = [item.item_id for item in state.items if item.kind == "userMessage"]
        assert asked == (["p1", "p2", "p3"] if next_prompt == "third" else ["p1", "p2"])
        assert state.queue == []


async def test_a_queued_prompt_that_cannot_start_stays_in_the_queue(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path,
        step("", call("run_shell_command", command="touch -c it", network=True)),
        step("1"),
        step("2"),
        step("3"),
    ) as d:
        script = tmp_path / "script.json"
        text = script.read_text()
        await d.prompt("first")
        await d.until(lambda state: state.approvals)
        await d.prompt("second", "p2")
        script.unlink()
        await d.answer("allow")
        await d.over("p1")
        state = await d.until(lambda state: [item for item in state.items if item.kind == "notice"])
        assert [each.prompt_id for each in state.queue] == ["p2"]
        script.write_text(text)
        await d.prompt("third", "p3")
        state = await d.over("p3")
        assert [item.item_id for item in state.items if item.kind == "userMessage"] == ["p1", "p2", "p3"]


async def test_half_a_character_stops_nothing(tmp_path: Path) -> None:
    """JSON can hold half a surrogate pair, and file names bytes that are no UTF-8."""
    listing = call("list_directory", path=".")
    async with scripted_session(tmp_path, step("Odd.", listing), step("Well.")) as d:
        (d.root / os.fsdecode(b"odd-\xff.txt")).write_text("x")
        odd = SelectionAttachment(path="a.py", lines=LineRange.numbered(1, 1), text="half: \ud83d")
        params = PromptSendParams(session_id="s", prompt_id="p1", text="what is this?", attachments=[odd])
        await d.session.prompts.send(params, d.client)
        state = await d.over("p1")
        assert [item.text for item in state.items if item.kind == "answer"] == ["Odd.", "Well."]
        d.session.view().model_dump_json()
        before = d.session.view().model_dump()
        await d.reopen()
        assert d.session.view().model_dump() == before


async def test_who_creates_a_running_session_gets_each_event_once(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("Done.")
    ) as d:
        await d.prompt("run")
        await d.until(lambda state: state.approvals)
        other = Client(os.environ, "two")
        durable = d.session.emit.durable

        async def busy() -> None:
            d.session.emit(SessionChanged(title="meanwhile"))
            await durable()

        d.session.emit.durable = busy  # type: ignore[method-assign]
        made = await d.sessions.create(
            SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo"), other
        )
        d.session.emit.durable = durable  # type: ignore[method-assign]
        assert other.messages == []
        assert made.state.title == "meanwhile"
        assert made.from_seq == d.session.emit.seq + 1
        await d.answer("allow")
        await d.over("p1")


async def test_what_happens_to_one_session_delays_no_other(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        opening = d.sessions.lock  # held while another is opened or closed
        async with opening, asyncio.timeout(50):
            assert await d.sessions.get("s") is d.session


@pytest.mark.parametrize(
    "when", ["after the turn", "after a restart", "before a cancel", "before a reject", "before a deny"]
)
async def test_the_model_hears_of_every_decision(tmp_path: Path, when: str) -> None:
    async with scripted_session(tmp_path, WRITE, step("I see."), step("I know.")) as d:
        turn_id = await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        match when:
            case "before a cancel":
                await d.decide("accept")
                await d.session.prompts.cancel(turn_id or "")
                await d.over("p1", "cancelled")
            case "before a reject":
                await d.decide("accept")
                await d.answer("reject", reason="enough")
                await d.over("p1")
            case "before a deny":
                await d.decide("accept")
                await d.session.set_mode("plan")
                await d.over("p1")
            case _:
                await d.answer("finish")
                await d.over("p1")
                if when == "after a restart":
                    await d.reopen()
                await d.decide("accept")
        assert d.file.read_text() == HALF
        await d.reopen()
        await d.reopen()
        await d.prompt("go on", "p2")
        await d.over("p2")
        told = d.told()
        assert told.count("Later decisions about your earlier edits") == 1
        assert "notes.txt: 1 of 2 changes applied" in told
        assert ("rejected by the user" in told) == (when == "before a reject")
        assert ("line 11: not applied: Denied by a rule: in plan mode only the plan can be edited" in told) == (
            when == "before a deny"
        )
        await d.reopen()
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert d.told().count("Later decisions about your earlier edits") == 1


async def test_a_report_waits_for_what_is_being_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_session(tmp_path, WRITE, step("I see.")) as d:
        journal = d.session.core.journal
        writer, go = d.session.core.proposals._writer, asyncio.Event()  # pyright: ignore[reportPrivateUsage]
        transactions = writer._transactions  # pyright: ignore[reportPrivateUsage]

        async def slowly(turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
            await go.wait()
            await transactions.save_preimage(turn_id, path, data, mode)

        monkeypatch.setattr(writer, "_transactions", replace(transactions, save_preimage=slowly))
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        deciding = asyncio.create_task(d.decide("accept"))
        await d.until(lambda state: state.proposals[0].version > 1)
        await d.answer("finish")
        await asyncio.sleep(0.02)
        go.set()
        await deciding
        await d.over("p1")
        assert "1 of 2 changes applied" in d.told()
        assert len(await journal.preimages("turn-p1")) == 1


async def test_a_close_waits_for_what_is_being_applied(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITE, step("I see.")) as d:
        await d.prompt("change it")
        await d.answer("finish")
        await d.over("p1")
        applying = asyncio.Event()

        def see(message: EventMessage) -> None:
            Client.send(d.client, message)
            if isinstance(message.event, ProposalChanged):
                applying.set()

        d.client.send = see  # type: ignore[method-assign]
        deciding = asyncio.create_task(d.decide("accept", "accept"))
        await applying.wait()  # accepted, not yet in the file
        await d.reopen()
        assert await deciding == "resolved"
        assert d.file.read_text() == TWO_HUNKS
        assert [hunk.state for hunk in d.session.state.proposals[0].files[0].hunks] == ["applied", "applied"]


async def test_nobody_decides_what_they_were_not_asked(tmp_path: Path) -> None:
    """A proposal is seen a moment before its question is; an answer in between was meant for something else."""
    async with scripted_session(tmp_path, WRITE, step("I see.")) as d:
        answers: list[asyncio.Task[str]] = []

        def hasty(message: EventMessage) -> None:
            Client.send(d.client, message)
            if isinstance(message.event, ProposalChanged) and not answers:
                answers.append(asyncio.create_task(d.decide("accept", "accept")))

        d.client.send = hasty  # type: ignore[method-assign]
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        assert await answers[0] == "tooSoon"
        assert d.file.read_text() == TWELVE
        await d.answer("allow")
        await d.over("p1")


async def test_the_model_may_be_changed_before_the_first_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with scripted_session(tmp_path) as d:
        client = Client({"ANTHROPIC_API_KEY": "sk-ant-test"})
        await d.session.set_model("anthropic:claude-sonnet-5-5", client)
        assert d.session.state.model_id == "anthropic:claude-sonnet-5-5"


async def test_a_page_of_a_blob_ends_between_characters(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        journal = d.session.core.journal
        ref = await journal.put_blob("aé€😀z".encode())
        pages: list[str] = []
        at: int | None = 0
        while at is not None:
            page = await d.session.pages.blob(BlobGetParams(session_id="s", blob_id=ref.blob_id, offset=at, limit=2))
            pages.append(page.text)
            at = page.next_offset
        assert "".join(pages) == "aé€😀z"


async def test_a_full_disk_changes_no_file_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    first = step("", call("read_file", path="notes.txt"), call("run_shell_command", command="touch before"))
    again = step("", call("run_shell_command", command="echo ok", background=True))
    steps = (
        first,
        WRITE,
        step("", call("run_shell_command", command="touch ran")),
        step("Pity."),
        again,
        step("Better."),
    )
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        d.session.allow("run_shell_command(touch ran)")
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        disk.full = True
        with pytest.raises(AmanuError) as caught:
            await d.answer("allow")
        assert caught.value.kind == "storageError"
        await d.over("p1")
        assert d.file.read_text() == TWELVE
        assert not (d.root / "ran").exists()
        with pytest.raises(AmanuError):
            await d.sessions.close("s")
        assert d.client.state is not None and not d.client.state.closed
        disk.full = False
        await d.prompt("and now?", "p2")
        state = await d.over("p2")
        assert [job.title for job in state.jobs] == ["echo ok"], "what runs in the background can be started again, too"


async def test_a_prompt_that_was_refused_for_want_of_disk_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    async with scripted_session(tmp_path, step("Only this."), step("Or this.")) as d:
        disk.full = True
        for text, prompt_id in (("change it", "p1"), ("change it again", "p2"), ("change it", "p1")):
            with pytest.raises(AmanuError) as caught:
                await d.prompt(text, prompt_id)
            assert caught.value.kind == "storageError"
            state = d.session.state
            assert (state.turn, state.queue, state.items, state.title, d.session.running) == (None, [], [], "", False)
        disk.full = False
        await d.prompt("say something", "p3")
        await d.over("p3")
        assert "change it" not in d.told() and "say something" in d.told()
        await d.reopen()
        assert [each.text for each in d.session.state.items if each.kind == "userMessage"] == ["say something"]


async def test_what_was_refused_for_want_of_disk_is_not_queued_and_not_said_into_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    steps = step("", call("run_shell_command", command="touch it")), step("Done."), step("And more.")
    async with scripted_session(tmp_path, *steps) as d:
        turn_id = await d.prompt("go")
        await d.until(lambda state: state.approvals)
        disk.full = True
        steer = PromptSteerParams(session_id="s", turn_id=turn_id or "", prompt_id="s1", text="steered", attachments=[])
        with pytest.raises(AmanuError):
            await d.session.prompts.steer(steer, d.client)
        with pytest.raises(AmanuError):
            await d.prompt("queued", "p2")
        disk.full = False
        await d.answer("allow")
        await d.over("p1")
        assert (d.session.state.queue, d.session.running) == ([], False)
        await d.reopen()
        await d.prompt("what now?", "p3")
        await d.over("p3")
        assert "steered" not in d.told() and "queued" not in d.told()


async def test_what_was_refused_for_want_of_disk_answers_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    asks = call("ask_user", questions=[{"header": "Where", "question": "Where to?"}])
    async with scripted_session(tmp_path, step("", asks), step("Heard.")) as d:
        turn_id = await d.prompt("go")
        await d.until(lambda state: state.questions)
        steer = PromptSteerParams(session_id="s", turn_id=turn_id or "", prompt_id="s1", text="to the left")
        disk.full = True
        with pytest.raises(AmanuError) as caught:
            await d.session.prompts.steer(steer, d.client)
        assert caught.value.kind == "storageError"
        assert [question.state for question in d.session.state.questions] == ["open"]
        disk.full = False
        await d.session.prompts.steer(steer, d.client)  # the user says it again
        await d.over("p1")
        assert d.told().count("to the left") == 1


async def test_a_session_can_be_deleted_from_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    async with scripted_session(tmp_path, step("Hello.")) as d:
        await d.prompt("hi")
        await d.over("p1")
        disk.full = True
        d.session.emit(SessionChanged(title="Big"))
        await d.sessions.delete("s")
        with pytest.raises(AmanuError) as caught:
            await d.sessions.get("s")
        assert caught.value.kind == "sessionNotFound"
        disk.full = False
        new = SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo")
        d.client.state = (await d.sessions.create(new, d.client)).state
        d.session = await d.sessions.get("s")


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_everybody_hears_that_a_session_is_closed(tmp_path: Path, end: str) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        old = d.session
        await getattr(d.sessions, end)("s")
        assert d.client.state is not None and d.client.state.closed
        for late in late_requests(d):
            with pytest.raises(AmanuError) as caught:
                await late()
            assert caught.value.kind == "sessionNotFound"
        new = SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo")
        d.client.state = (await d.sessions.create(new, d.client)).state
        assert not d.client.state.closed
        d.session = await d.sessions.get("s")
        assert d.session.emit.epoch > old.emit.epoch


def late_requests(d: ScriptedSession) -> list[Callable[[], Awaitable[object]]]:
    """Requests that had found the session before it was closed."""
    session = d.session

    async def attach() -> None:
        session.attach(d.client, None, None)

    return [lambda: d.prompt("hi"), lambda: session.prompts.unqueue("p1"), lambda: session.prompts.cancel("t"), attach]


async def test_a_prompt_that_meets_a_close(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        prompting = asyncio.create_task(d.prompt("see @notes.txt"))
        await asyncio.sleep(0)
        await d.sessions.close("s")
        try:
            await prompting
        except AmanuError as error:
            assert error.kind == "sessionNotFound"
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        assert d.session.state.turn is None


async def test_a_session_that_fails_to_open_can_be_opened_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amanu.session import loader as module

    async with scripted_session(tmp_path, step("Hello.")) as d:
        await d.prompt("hi")
        await d.over("p1")
        journal = d.session.core.journal
        journal.append(Record(9, 1, 1, '{"kind":"fromTheFuture"}', '{"role":"fromTheFuture"}'))
        await d.sessions.close("s")
        restore = module.restore
        monkeypatch.setattr(module, "restore", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await d.sessions.get("s")
        monkeypatch.setattr(module, "restore", restore)
        d.session = await d.sessions.get("s")
        assert not d.session.state.read_only
        assert len(conversation(d.session)) == 2
        await d.sessions.delete("s")
        new = SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo")
        d.client.state = (await d.sessions.create(new, d.client)).state
        d.session = await d.sessions.get("s")


async def test_what_can_only_be_looked_at(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITE, step("Hello.")) as d:
        turn_id = await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.session.emit.durable()
        other = open_sessions()
        session = await other.get("s")
        proposal = d.session.state.proposals[0]
        assert session.edits.proposal(proposal.proposal_id) == proposal
        decided = ProposalResolveParams.model_validate(
            {
                "session_id": "s",
                "proposal_id": proposal.proposal_id,
                "version": 1,
                "hunks": [{"hunk_id": "h", "decision": "accept"}],
            }
        )
        for request in (session.prompts.cancel(turn_id or ""), session.edits.resolve(decided)):
            with pytest.raises(AmanuError) as caught:
                await request
            assert caught.value.kind == "sessionReadOnly"
        await other.shutdown()
        await d.answer("reject")
        await d.over("p1")


async def test_who_only_looks_sees_what_has_happened_when_they_attach_again(tmp_path: Path) -> None:
    """Others who look, too; and once the session is free it can be used."""
    async with scripted_session(tmp_path, WRITE, step("Hello.")) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.session.emit.durable()
        other = open_sessions()
        params = SessionAttachParams(session_id="s")
        clients = [Client(os.environ, "one"), Client(os.environ, "two")]
        seen = [await other.attach(params, client) for client in clients]
        assert [attached.state and len(attached.state.approvals) for attached in seen] == [1, 1]
        await d.answer("allow")
        await d.over("p1")
        await d.session.emit.durable()
        for client, before in zip(clients, seen, strict=True):
            again = params.model_copy(update={"epoch": before.epoch, "since_seq": before.from_seq - 1})
            state = (await other.attach(again, client)).state
            assert state is not None and state.read_only
            state.read_only = False
            assert state.model_dump() == d.session.view().model_dump()
        await d.sessions.close("s")
        state = (await other.attach(params, clients[0])).state
        assert state is not None and not state.read_only
        await other.shutdown()
        await d.reopen()


async def test_who_only_looks_still_hears_of_the_session_when_another_looks_again(tmp_path: Path) -> None:
    """Once it is free and another works in it, the first one's client has an event of another epoch, and attaches."""
    async with scripted_session(tmp_path, step("Hello."), step("Hello again.")) as d:
        await d.session.emit.durable()
        other = open_sessions()
        params = SessionAttachParams(session_id="s")
        first, second = Client(os.environ, "first"), Client(os.environ, "second")
        seen = [await other.attach(params, client) for client in (first, second)]
        assert all(attached.state and attached.state.read_only for attached in seen)
        assert not first.messages  # else they would make each other attach for ever
        await d.sessions.close("s")
        state = (await other.attach(params, second)).state
        assert state is not None and not state.read_only
        assert first.messages and first.messages[0].epoch > seen[0].epoch
        again = params.model_copy(update={"epoch": seen[0].epoch, "since_seq": seen[0].from_seq - 1})
        first.state = (await other.attach(again, first)).state
        assert first.state is not None and not first.state.read_only
        session = await other.get("s")
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p1", text="hi"), second)
        await until(session, lambda state: state.last_turn)
        assert first.state.last_turn is not None
        await other.shutdown()
        await d.reopen()


async def test_two_notices_of_two_lives_are_two(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        for _ in range(2):
            d.session.core.journal.damage = "Something is broken."
            await d.session.open()
            await d.reopen()
        assert len([item for item in d.session.state.items if item.kind == "notice"]) == 2
