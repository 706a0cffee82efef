"""A session as its clients see it: queue, steering, cancelling, deciding, two clients, coming back. The model is
scripted; everything else is real."""

import asyncio
import contextlib
import itertools
import os
import re
import time
from pathlib import Path

import pytest

from amanu.context.editor import EditorContext
from amanu.core.conversation import User
from amanu.permissions import approvals as approval
from amanu.proposals.proposals import Proposals
from amanu.session.sessions import open_sessions
from amanu_protocol.base import LineRange
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Attachment, FileAttachment, Mode, Proposal, SelectionAttachment
from amanu_protocol.requests import (
    ActiveEditor,
    ApprovalResolveParams,
    BlobGetParams,
    HistoryPageParams,
    PromptSendParams,
    PromptSteerParams,
    SessionAttachParams,
    SessionCreateParams,
    SessionListParams,
    TrustSetParams,
)
from support.scripted_session import TWELVE, TWO_HUNKS, call, conversation, scripted_session, step
from support.session_client import Client


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def test_a_prompt_sent_twice_is_one_prompt(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        assert await d.prompt("hi") == await d.prompt("hi") == "turn-p1"
        state = await d.ended()
        assert [item.kind for item in state.items] == ["userMessage", "answer"]
        assert state.title == "hi"
        assert await d.prompt("hi") == "turn-p1"


async def test_a_prompt_on_a_busy_session_waits_its_turn(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("One."), step("Two.")
    ) as d:
        await d.prompt("first")
        await d.until(lambda state: state.approvals)
        for prompt_id, text in (("p2", "second"), ("p3", "taken back")):
            params = PromptSendParams(session_id="s", prompt_id=prompt_id, text=text)
            assert (await d.session.prompts.send(params, d.client)).status == "queued"
        await d.session.prompts.unqueue("p3")
        await d.session.prompts.unqueue("never heard of")
        assert [queued.prompt_id for queued in d.session.state.queue] == ["p2"]
        assert len(d.session.state.approvals) == 1  # the question about a command keeps waiting
        await d.answer("allow")
        state = await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        assert [item.text for item in state.items if item.kind == "userMessage"] == ["first", "second"]
        assert state.queue == []


async def test_who_waits_for_a_turn_gets_its_end_and_may_come_late(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Done.")) as d:
        turn_id = await d.prompt("first") or ""
        async with asyncio.timeout(50):
            ended = await d.session.wait_for_turn(turn_id)
            assert (ended.turn_id, ended.reason, d.session.state.turn) == (turn_id, "completed", None)
            assert await d.session.wait_for_turn(turn_id) == ended
        with pytest.raises(AmanuError):
            await d.session.wait_for_turn("turn-nobody")


async def test_steering_ends_a_review_and_reaches_the_model_after_the_results(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("As you say.")
    async with scripted_session(tmp_path, *steps) as d:
        turn_id = await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.decide("accept")
        steer = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id or "", text="leave the rest")
        await d.session.prompts.steer(steer, d.client)
        await d.session.prompts.steer(steer, d.client)  # a repeat is harmless
        state = await d.ended()
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        results = conversation(d.session)[2]
        assert results.role == "results"
        assert results.notes == ("leave the rest",)
        assert "open" in results.results[0].text
        assert state.proposals[0].state == "pending"
        # what is decided later reaches the model at the next boundary, and is shown to be told
        await d.decide("", "accept")
        assert d.file.read_text() == TWO_HUNKS
        await d.prompt("go on", "p2")
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        notes = [message.text for message in conversation(d.session) if isinstance(message, User)]
        assert notes[1].startswith("Later decisions about your earlier edits")
        assert any(item.kind == "notice" and item.code == "lateDecision" for item in d.session.state.items)


async def test_of_a_change_that_two_calls_made_both_tell_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = call("move_file", path="notes.txt", new_path="moved.txt")
    edit = call("edit_file", path="moved.txt", old_text="line 2\n", new_text="line two\n")
    accept = Proposals.accept_all

    async def late(self: Proposals, proposal_id: str, call_id: str | None = None, *, by_user: bool = True) -> Proposal:
        if call_id == self.get(proposal_id).tool_call_ids[0]:
            await asyncio.sleep(0.2)  # the other one is done by then
        return await accept(self, proposal_id, call_id, by_user=by_user)

    monkeypatch.setattr(Proposals, "accept_all", late)
    async with scripted_session(tmp_path, step("", move, edit), step("Yes."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.over("p1")
        assert d.told().count("Renamed notes.txt to moved.txt and changed it.") == 2
        assert all(item.kind != "notice" or item.code != "lateDecision" for item in d.session.state.items)


async def test_steering_from_before_a_crash_is_heard_as_it_was_said(tmp_path: Path) -> None:
    theirs = Path(os.environ["AMANU_HOME"]) / "config" / "commands"
    theirs.mkdir(parents=True)
    (theirs / "careful.md").write_text("Mind $ARGUMENTS.")
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("I will.")
    ) as d:
        (d.root / "rules.txt").write_text("no tabs\n")
        turn_id = await d.prompt("do it") or ""
        await d.until(lambda state: state.approvals)
        attachments: list[Attachment] = [
            FileAttachment(path="notes.txt"),
            SelectionAttachment(path="a.py", lines=LineRange.numbered(3, 4), text="selected words"),
        ]
        steer = PromptSteerParams(
            session_id="s", prompt_id="s1", turn_id=turn_id, text="/careful @rules.txt", attachments=attachments
        )
        await d.session.prompts.steer(steer, d.client)
        await d.reopen()
        (d.root / "rules.txt").unlink()  # what was said stays what was said
        (theirs / "careful.md").unlink()
        await d.prompt("go on", "p2")
        await d.over("p2")
        for _ in range(2):  # and is heard once
            for words in ("Mind @rules.txt.", "no tabs", "line 12", "selected words"):
                assert d.told().count(words) == 1
            await d.reopen()


async def test_steering_a_turn_that_is_over(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        turn_id = await d.prompt("hi")
        await d.ended()
        with pytest.raises(AmanuError) as caught:
            params = PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id or "", text="wait")
            await d.session.prompts.steer(params, d.client)
        assert caught.value.kind == "staleTurn"


async def test_own_text_for_a_hunk_is_what_is_written_and_what_the_model_hears(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.decide("accept=line 2, but better\n", "reject no")
        await d.ended()
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line 2, but better\n")
        assert "line 2, but better" in d.told()


@pytest.mark.parametrize(
    ("answer", "text", "state"),
    [("allow", TWO_HUNKS, "succeeded"), ("reject", TWELVE, "rejected"), ("finish", TWELVE, "succeeded")],
)
async def test_a_proposal_decided_whole(tmp_path: Path, answer: str, text: str, state: str) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("change it")
        assert await d.answer(answer, reason="not now") == "resolved"
        ended = await d.ended()
        assert d.file.read_text() == text
        assert [item.state for item in ended.items if item.kind == "toolCall"] == [state]


async def test_two_edits_of_one_step_to_one_file_are_one_proposal(tmp_path: Path) -> None:
    calls = (
        call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n"),
        call("edit_file", path="notes.txt", old_text="line 11\n", new_text="line eleven\n"),
    )
    async with scripted_session(tmp_path, step("", *calls), step("Fine.")) as d:
        await d.prompt("change it")
        state = await d.until(lambda state: len(state.approvals) == 2)
        assert len(state.proposals) == 1
        await d.decide("accept", "reject keep eleven")
        state = await d.ended()
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        results = conversation(d.session)[2]
        assert results.role == "results"
        assert len(results.results) == 2
        assert "keep eleven" in results.results[1].text
        told = [message.event for message in d.client.messages]
        before = itertools.takewhile(lambda event: event.kind != "approvalRequested", told)
        shown = [event.proposal for event in before if event.kind == "proposalChanged"]
        assert len(shown[-1].files[0].hunks) == 2, "the user was asked about only a part"


async def test_questions_come_in_the_order_of_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one is slow to get on record."""
    calls = [call("write_file", path=name, content="x\n") for name in ("a.txt", "b.txt", "c.txt")]
    async with scripted_session(tmp_path, step("", *calls), step("Fine.")) as d:
        emit, durable = d.session.core.emit, d.session.core.emit.durable

        async def slowly() -> None:
            items = [item for item in d.session.state.items if item.kind == "toolCall"]
            if [item.state for item in items].count("awaitingApproval") == 1:
                await asyncio.sleep(0.05)
            await durable()

        monkeypatch.setattr(emit, "durable", slowly)
        await d.prompt("make them")
        state = await d.until(lambda state: len(state.approvals) == 3)
        assert [asked.title for asked in state.approvals] == ["Create a.txt", "Create b.txt", "Create c.txt"]
        for _ in calls:
            await d.answer("reject")
        await d.ended()


async def test_the_file_moved_under_a_proposal(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("I see.")
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        d.file.write_text("somebody else was here\n")
        await d.decide("accept", "accept")
        state = await d.ended()
        assert d.file.read_text() == "somebody else was here\n"  # never overwritten
        assert [hunk.state for hunk in state.proposals[0].files[0].hunks] == ["conflicted", "conflicted"]
        assert "The file changed after this was proposed" in d.told()


async def test_cancel_kills_the_command_and_keeps_the_queue(tmp_path: Path) -> None:
    length = f"60.{time.monotonic_ns()}"
    command = f"sleep {length}; echo late > late"
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command=command, network=True)), step("Next.")
    ) as d:
        turn_id = await d.prompt("run it")
        await d.answer("allow")
        async with asyncio.timeout(50):
            while not sleeping(length):
                await asyncio.sleep(0.01)
        await d.prompt("later", "p2")
        began = time.monotonic()
        assert (await d.session.prompts.cancel(turn_id or "")).status == "cancelled"
        assert time.monotonic() - began < 20
        state = await d.ended("cancelled")
        assert (await d.session.prompts.cancel(turn_id or "")).status == "alreadyEnded"
        assert [queued.prompt_id for queued in state.queue] == ["p2"]
        async with asyncio.timeout(50):
            while sleeping(length):
                await asyncio.sleep(0.01)
        assert not (d.root / "late").exists()
        conversation(d.session).check()


def sleeping(length: str) -> bool:
    """By its command line: the number it has in the sandbox is not the one it has here."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if line.read_bytes() == f"sleep\0{length}\0".encode():
                return True
    return False


async def test_cancel_while_a_question_stands(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        turn_id = await d.prompt("change it")
        state = await d.until(lambda state: state.approvals)
        call_id = state.approvals[0].tool_call_id
        await d.session.prompts.cancel(turn_id or "")
        assert d.session.state.approvals == []
        late = ApprovalResolveParams(session_id="s", tool_call_id=call_id, decision="allow")
        answer = await d.session.resolve_approval(late, d.client)
        assert (answer.status, answer.outcome) == ("alreadyResolved", "cancelled")
        assert d.file.read_text() == TWELVE


async def test_the_first_of_two_clients_decides_and_the_other_is_told_who(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("Done.")
    ) as d:
        other = Client(os.environ, "two")
        d.session.attach(other, None, None)
        await d.prompt("run it")
        state = await d.until(lambda state: state.approvals)
        call_id = state.approvals[0].tool_call_id
        assert await d.answer("reject", other, reason="no need") == "resolved"
        late = ApprovalResolveParams(session_id="s", tool_call_id=call_id, decision="allow")
        answer = await d.session.resolve_approval(late, d.client)
        assert (answer.status, answer.outcome, answer.client) == ("alreadyResolved", "rejected", "two")
        assert answer.summary == "Your answer came too late. Rejected by you: “no need” (two)."
        await d.ended()
        kinds = [message.event.kind for message in other.messages]
        assert "approvalResolved" in kinds


async def test_answers_within_half_a_second_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.2)
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="echo ran > ran")), step("Done.")
    ) as d:
        await d.prompt("run it")
        assert await d.answer("allow") == "tooSoon"
        assert not (d.root / "ran").exists()
        await asyncio.sleep(0.25)
        assert await d.answer("allow") == "resolved"
        await d.ended()
        assert (d.root / "ran").exists()


@pytest.mark.parametrize(
    ("scope", "asked"), [("once", [1, 2, 3]), ("turn", [1, 3]), ("session", [1]), ("workspace", [1]), ("user", [1])]
)
async def test_scopes(tmp_path: Path, scope: str, asked: list[int]) -> None:
    """The same command in three steps: two of one turn, one of the next."""
    run = call("run_shell_command", command="touch -c it", network=True)
    async with scripted_session(
        tmp_path, step("1", run), step("2", run), step("done"), step("3", run), step("done")
    ) as d:
        questions: list[int] = []

        async def answer_all() -> None:
            while True:
                state = await d.until(lambda state: state.approvals)
                answers = [item.text for item in state.items if item.kind == "answer" and item.text.isdigit()]
                questions.append(int(answers[-1]))
                await d.answer("allow", scope=scope, grants=["network"])

        answering = asyncio.create_task(answer_all())
        await d.prompt("go")
        await d.ended()
        await d.prompt("again", "p2")
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        answering.cancel()
        assert questions == asked
    if scope in ("workspace", "user"):
        sessions = open_sessions()
        root = str((tmp_path / "work").resolve())
        elsewhere = str(tmp_path.resolve())
        texts = [rule.text for rule in sessions.services.rules.rules([root], trusted=False)]
        assert texts == ["run_shell_command+network(touch *)"]
        assert len(sessions.services.rules.rules([elsewhere], trusted=False)) == (1 if scope == "user" else 0)
        await sessions.shutdown()


async def test_a_rule_saved_for_one_question_answers_the_others_it_covers(tmp_path: Path) -> None:
    writes = [call("write_file", path=f"{n}.txt", content=f"{n}\n") for n in range(3)]
    async with scripted_session(tmp_path, step("", *writes), step("Done.")) as d:
        await d.prompt("write")
        await d.until(lambda state: len(state.approvals) == 3)
        await d.answer("allow", scope="session", rule="@write(*.txt)")
        await d.ended()
        assert [(d.root / f"{n}.txt").read_text() for n in range(3)] == ["0\n", "1\n", "2\n"]


@pytest.mark.parametrize("rule", ["@write(other.txt)", "nonsense (", "run_shell_command(true)"])
async def test_an_edited_rule_that_does_not_fit_leaves_the_question_standing(tmp_path: Path, rule: str) -> None:
    async with scripted_session(
        tmp_path, step("", call("write_file", path="a.txt", content="a\n")), step("Done.")
    ) as d:
        await d.prompt("write")
        with pytest.raises(AmanuError) as caught:
            await d.answer("allow", scope="session", rule=rule)
        assert caught.value.kind == "invalidRule"
        assert len(d.session.state.approvals) == 1
        await d.answer("allow")
        await d.ended()


async def test_a_changed_mode_counts_for_the_next_decision(tmp_path: Path) -> None:
    write = call("write_file", path="a.txt", content="a\n")
    async with scripted_session(tmp_path, step("", write), step("Done."), mode="plan") as d:
        await d.prompt("write")
        await d.ended()
        assert not (d.root / "a.txt").exists()
        assert "in plan mode only the plan can be edited" in d.told()
    async with scripted_session(tmp_path, step("", write), step("Done.")) as d:
        await d.session.set_mode("acceptEdits")


@pytest.mark.parametrize(
    ("mode", "state", "hunks", "text"),
    [
        ("acceptEdits", "succeeded", ["rejected", "applied"], TWELVE.replace("line 11\n", "line eleven\n")),
        ("auto", "succeeded", ["rejected", "applied"], TWELVE.replace("line 11\n", "line eleven\n")),
        ("plan", "rejected", ["rejected", "rejected"], TWELVE),
    ],
)
async def test_a_changed_mode_counts_for_the_edit_on_the_screen(
    tmp_path: Path, mode: Mode, state: str, hunks: list[str], text: str
) -> None:
    """What the user has decided of it stays decided; of the rest the mode decides."""
    write = call("write_file", path="notes.txt", content=TWO_HUNKS)
    async with scripted_session(tmp_path, step("", write), step("Done.")) as d:
        await d.prompt("write")
        await d.until(lambda state: state.approvals)
        await d.decide("reject not that", "")
        await d.session.set_mode(mode)
        assert d.session.state.approvals == []
        ended = await d.ended()
        (item,) = (item for item in ended.items if item.kind == "toolCall")
        found = ended.proposals[0].files[0].hunks
        assert (item.state, [each.state for each in found]) == (state, hunks)
        assert [each.reviewed for each in found] == [True, False], "no user has decided on the second"
        assert d.file.read_text() == text
        assert item.decision is not None and f"mode {mode}" in (item.decision.rule or "")
        assert mode == "plan" or "not that" in d.told()
        assert mode != "plan" or "Denied by a rule: in plan mode only the plan can be edited" in d.told()


async def test_what_a_mode_still_asks_about_stays_and_a_yes_to_it_counts(tmp_path: Path) -> None:
    write = call("write_file", path=".env", content="A=1\n")
    async with scripted_session(tmp_path, step("", write), step("Done.")) as d:
        await d.prompt("write")
        await d.until(lambda state: state.approvals)
        await d.session.set_mode("acceptEdits")
        assert await d.answer("allow") == "resolved"
        await d.ended()
        assert (d.root / ".env").read_text() == "A=1\n"


async def test_trust_counts_for_the_questions_that_stand(tmp_path: Path) -> None:
    """A trusted folder's own rules forbid."""
    (tmp_path / "work" / ".amanu").mkdir(parents=True)
    (tmp_path / "work" / ".amanu" / "config.toml").write_text('[rules]\ndeny = ["@write(a.txt)"]\n')
    writes = [call("write_file", path=f"{name}.txt", content="x\n") for name in "ab"]
    async with scripted_session(tmp_path, step("", *writes), step("Done.")) as d:
        await d.prompt("write")
        await d.until(lambda state: len(state.approvals) == 2)
        await d.trust()
        (left,) = d.session.state.approvals
        assert left.title.endswith("b.txt")
        await d.answer("allow")
        await d.ended()
        assert not (d.root / "a.txt").exists() and (d.root / "b.txt").exists()


@pytest.mark.parametrize(("scope", "left"), [("session", 1), ("workspace", 0), ("user", 0)])
async def test_a_rule_kept_in_one_session_answers_what_others_ask(tmp_path: Path, scope: str, left: int) -> None:
    write = step("", call("write_file", path="a.txt", content="a\n"))
    async with scripted_session(tmp_path, write, write, step("Done."), step("Done.")) as d:
        params = SessionCreateParams(session_id="other", roots=[str(d.root)], model_id=d.session.state.model_id)
        await d.sessions.create(params, Client(os.environ))
        other = await d.sessions.get("other")
        await other.prompts.send(PromptSendParams(session_id="other", prompt_id="o", text="write"), d.client)
        await d.prompt("write")
        while not other.state.approvals:
            await asyncio.sleep(0.01)
        assert await d.answer("allow", scope=scope, rule="@write(*.txt)") == "resolved"
        assert len(other.state.approvals) == left
        await d.sessions.close("other")
        await d.ended()


async def test_headless_names_what_would_have_allowed_it(tmp_path: Path) -> None:
    run = call("run_shell_command", command="touch 'an it'")
    async with scripted_session(tmp_path, step("", run), step("Pity."), headless=True) as d:
        await d.prompt("run")
        await d.ended()
        assert "--allow 'run_shell_command(touch *)'" in d.told()


async def test_a_rule_given_for_the_session_allows(tmp_path: Path) -> None:
    run = call("run_shell_command", command="touch -c 'an it'")
    async with scripted_session(tmp_path, step("", run), step("Good."), headless=True) as d:
        d.session.allow("run_shell_command(touch -c 'an it')")
        await d.prompt("run")
        await d.ended()
        (item,) = (item for item in d.session.state.items if item.kind == "toolCall")
        assert item.decision is not None
        assert (item.state, item.decision.by) == ("succeeded", "rule")
        assert item.decision.rule == "--allow: allow run_shell_command(touch -c 'an it')"


async def test_mentioned_files_and_selections_go_with_the_prompt(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("I see.", expect="line 12")) as d:
        selection = SelectionAttachment(path="a.py", lines=LineRange.numbered(3, 4), text="selected words")
        text = "look at @notes.txt and @nothing, mail me@example.org"
        params = PromptSendParams(session_id="s", prompt_id="p1", text=text, attachments=[selection])
        await d.session.prompts.send(params, d.client)
        state = await d.ended()
        said = conversation(d.session)[0]
        assert isinstance(said, User)
        assert said.text.startswith(text)
        assert '<file path="notes.txt">' in said.text
        assert "selected words" in said.text
        assert 'nothing">' not in said.text
        assert [item.text for item in state.items if item.kind == "answer"] == ["I see."]


@pytest.mark.parametrize(
    ("command", "said", "mentioned"),
    [
        ("see @.env and @notes.txt", "/review", ["notes.txt"]),
        ("see @link", "/review", []),
        ("see", "/review @.env", [".env"]),  # the user's own word
        ("see @.e$ARGUMENTS", "/review nv", []),
        ("see @.env", "/mine", [".env"]),  # and so is their own command
    ],
)
async def test_what_a_workspaces_command_mentions_is_not_what_the_user_says(
    tmp_path: Path, command: str, said: str, mentioned: list[str]
) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        theirs = Path(os.environ["AMANU_HOME"]) / "config" / "commands"
        for folder, name in ((d.root / ".amanu" / "commands", "review"), (theirs, "mine")):
            folder.mkdir(parents=True)
            (folder / f"{name}.md").write_text(command)
        (d.root / ".env").write_text("KEY=s3cr3t\n")
        (d.root / "link").symlink_to(".env")
        await d.trust()
        await d.prompt(said)
        await d.ended()
        heard = conversation(d.session)[0]
        assert isinstance(heard, User)
        assert heard.text.startswith("see")
        assert re.findall('<file path="(.*)">', heard.text) == mentioned
        assert ("s3cr3t" in heard.text) == (".env" in mentioned)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("../out.txt", "Sent without ../out.txt: ../out.txt is outside the workspace"),
        ("tool.bin", "Sent without tool.bin: tool.bin is a binary file"),
        ("paper.pdf", "Sent without paper.pdf: paper.pdf is a binary file"),
        ("huge.txt", "Sent without huge.txt: huge.txt has 21 MB"),
        ("gone.txt", "Sent without gone.txt: There is no file gone.txt"),
        ("half \ud800.txt", "Sent without half ?.txt: "),
    ],
)
@pytest.mark.parametrize("steer", [False, True])
async def test_an_attachment_that_cannot_go_is_said_to_be_so(tmp_path: Path, path: str, says: str, steer: bool) -> None:
    asks = [step("", call("run_shell_command", command="touch -c it", network=True))] if steer else []
    async with scripted_session(tmp_path, *asks, step("I see.")) as d:
        (d.root / "../out.txt").write_text("secret\n")
        (d.root / "tool.bin").write_bytes(bytes(9))
        (d.root / "paper.pdf").write_bytes(b"%PDF-1.7\n\0")
        (d.root / "folder").mkdir()
        with (d.root / "huge.txt").open("wb") as file:
            file.truncate(21_000_000)
        files: list[Attachment] = [FileAttachment(path=path), FileAttachment(path="notes.txt")]
        if steer:
            turn_id = await d.prompt("do it") or ""
            await d.until(lambda state: state.approvals)
            said = PromptSteerParams(
                session_id="s", prompt_id="s1", turn_id=turn_id, text="see @none", attachments=files
            )
            await d.session.prompts.steer(said, d.client)
            await d.answer("allow")
        else:
            await d.session.prompts.send(
                PromptSendParams(session_id="s", prompt_id="p1", text="see @none", attachments=files), d.client
            )
        state = await d.ended()
        (notice,) = [item for item in state.items if item.kind == "notice"]
        assert (notice.code, notice.level, notice.turn_id) == ("attachmentNotSent", "warning", "turn-p1")
        assert notice.text.startswith(says)
        assert "line 12" in d.told() and "(not attached: " in d.told()


@pytest.mark.parametrize(
    ("mention", "says"),
    [
        ("@notse.txt", "Sent without notse.txt: There is no file notse.txt. Did you mean notes.txt?"),
        ("@src/missing", "Sent without src/missing: There is no file src/missing."),
        ("@src/../gone.py", "Sent without src/../gone.py: There is no file gone.py.$"),  # no advice for the model
        ("@/etc/passwd", "Sent without /etc/passwd: /etc/passwd is outside the workspace"),
        ("@/etc", "Sent without /etc: /etc is outside the workspace"),
        ("@../secret.txt", "Sent without ../secret.txt: ../secret.txt is outside the workspace"),
        ("@~/.bashrc", "/.bashrc is outside the workspace"),
        ("@/components/Cart", None),
        ('@"no such.md"', "Sent without no such.md: There is no file no such.md."),
        ("@symbol:nowhere", "Sent without @symbol:nowhere: nothing that looks like a definition of nowhere was found."),
        ("@problems", "Sent without @problems: no editor reports problems, and this session has changed no file"),
        ("@diff", "Sent without @diff: "),
        ("@terminal", "Sent without @terminal: no terminal output came with the prompt"),
        ("@src", None),
        ("@https://example.org/x.html", None),
        ("@app.get", None),
        ("@types/node", None),
        ("@somebody", None),
        ("mail me@example.md", None),
    ],
)
async def test_a_mention_of_what_is_no_file_is_told(tmp_path: Path, mention: str, says: str | None) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / "src").mkdir()
        await d.prompt(f"look at {mention} please")
        state = await d.ended()
        notices = [item.text for item in state.items if item.kind == "notice"]
        assert len(notices) == (says is not None)
        assert says is None or says in f"{notices[0]}$"
        assert ("(not attached: " in d.told()) == (says is not None)


async def test_what_the_editor_shows_goes_with_the_prompt_and_is_not_the_users_words(tmp_path: Path) -> None:
    seen = EditorContext(active=ActiveEditor(path=str(tmp_path / "work" / "notes.txt"), lines=LineRange.numbered(3, 3)))
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three.")) as d:
        d.client.context = seen
        await d.prompt("first", "p1")
        await d.over("p1")
        await d.prompt("second", "p2")
        state = await d.over("p2")
        assert [item.text for item in state.items if item.kind == "userMessage"] == ["first", "second"]
        said = [each.text for each in conversation(d.session) if isinstance(each, User)]
        block = "Active file: notes.txt, line 3.\n</editor_context>"
        assert said[0].startswith("first\n\n<editor_context>\n") and block in said[0]
        assert said[1] == "second"  # nothing new
        await d.reopen()
        assert [each.text for each in conversation(d.session) if isinstance(each, User)] == said
        d.client.context = None  # a client that says nothing of it
        await d.prompt("third", "p3")
        await d.over("p3")
        assert d.told().count("<editor_context>") == 1


async def test_what_was_seen_when_it_was_said_goes_with_a_queued_prompt(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("run_shell_command", command="touch -c it", network=True)), step("One."), step("Two.")
    ) as d:
        await d.prompt("first", "p1")
        await d.until(lambda state: state.approvals)
        d.client.context = EditorContext(active=ActiveEditor(path=str(d.file)))
        await d.prompt("second", "p2")
        d.client.context = EditorContext()
        await d.answer("allow")
        await d.over("p2")
        assert "Active file: notes.txt." in d.told()


@pytest.mark.parametrize("headless", [True, False])
async def test_nobody_is_asked_where_nobody_is(tmp_path: Path, headless: bool) -> None:
    async with scripted_session(
        tmp_path, step("", call("list_symbols", query="x")), step("Done."), headless=headless
    ) as d:
        await d.prompt("look")
        await d.ended()
        assert ("No attached editor can answer about symbols; use grep." in d.told()) is not headless


async def test_a_session_comes_back_as_it_was(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", call("read_file", path="notes.txt")), step("Read.")) as d:
        await d.prompt("read it")
        await d.ended()
        before = d.session.view().model_dump()
        messages = list(conversation(d.session))
        await d.sessions.close("s")
        listed = (await d.sessions.summaries.list(SessionListParams())).sessions
        assert [(each.session_id, each.status, each.title) for each in listed] == [("s", "closed", "read it")]
        again = await d.sessions.get("s")
        assert again.view().model_dump() == before
        assert list(conversation(again)) == messages
        attached = await d.sessions.attach(SessionAttachParams(session_id="s", epoch=1, since_seq=3), d.client)
        assert attached.state is not None  # another epoch: events of the old one cannot be mistaken
        await d.sessions.delete("s")
        assert (await d.sessions.summaries.list(SessionListParams())).sessions == []
        with pytest.raises(AmanuError) as caught:
            await d.sessions.get("s")
        assert caught.value.kind == "sessionNotFound"
        new = SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo")
        d.client.state = (await d.sessions.create(new, d.client)).state
        d.session = await d.sessions.get("s")
        assert d.session.state.items == []


async def test_a_session_of_another_daemon_can_be_looked_at(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        await d.prompt("hi")
        await d.ended()
        await d.session.emit.durable()
        other = open_sessions()
        session = await other.get("s")
        assert session.state.read_only
        assert [item.kind for item in session.view().items] == ["userMessage", "answer"]
        with pytest.raises(AmanuError) as caught:
            await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p9", text="me too"), d.client)
        assert caught.value.kind == "sessionReadOnly"
        await other.shutdown()


async def test_history_is_paged(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *(step(f"Answer {n}.") for n in range(4))) as d:
        for n in range(4):
            await d.prompt(f"prompt {n}", f"p{n}")
            await d.until(lambda state, n=n: state.last_turn and state.last_turn.turn_id == f"turn-p{n}")
        page = await d.session.pages.items(HistoryPageParams(session_id="s", before_item_id="p2", limit=3))
        assert [item.item_id for item in page.items] == ["turn-p0.1.1", "p1", "turn-p1.1.1"]
        assert page.has_earlier
        with pytest.raises(AmanuError):
            await d.session.pages.items(HistoryPageParams(session_id="s", before_item_id="nope"))


async def test_long_output_is_kept_whole_as_a_blob(tmp_path: Path) -> None:
    run = call("run_shell_command", command="seq 1 50000")
    async with scripted_session(tmp_path, step("", run), step("Long.")) as d:
        await d.prompt("run")
        state = await d.ended()
        item = next(item for item in state.items if item.kind == "toolCall")
        assert item.blob is not None
        first = await d.session.pages.blob(BlobGetParams(session_id="s", blob_id=item.blob.blob_id, limit=4))
        assert (first.text, first.next_offset) == ("1\n2\n", 4)
        assert len(d.told()) < 100_000


@pytest.mark.parametrize(
    ("how", "trusted"),
    [
        ("nothing", False),
        ("editor", True),
        ("kept", True),
        ("another folder", False),
        ("kept, not by the editor", False),
    ],
)
async def test_trust(tmp_path: Path, how: str, trusted: bool) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / ".amanu").mkdir()
    (root / ".amanu" / "config.toml").write_text('[rules]\ndeny = ["read_file"]\n')
    sessions = open_sessions()
    declared = {"editor": (str(root),), "another folder": (str(tmp_path),), "kept, not by the editor": ()}
    client = Client(os.environ, trusted_roots=declared.get(how))
    if how.startswith("kept"):
        await sessions.trust.set(TrustSetParams(root=str(root), trusted=True))
    made = await sessions.create(
        SessionCreateParams(session_id="s", roots=[str(root)], model_id="scripted:demo"), client
    )
    assert made.state.trusted == trusted
    rules = sessions.services.rules.rules([str(root.resolve())], trusted=made.state.trusted)
    assert [rule.text for rule in rules] == (["read_file"] if trusted else [])  # it can only narrow
    await sessions.shutdown()


async def test_without_a_key_the_user_is_told_what_to_do(tmp_path: Path) -> None:
    sessions = open_sessions()
    with pytest.raises(AmanuError) as caught:
        await sessions.create(SessionCreateParams(session_id="s", roots=[str(tmp_path)]), Client(os.environ))
    assert caught.value.kind == "authRequired"
    assert "amanu auth set" in (caught.value.data.hint or "")
    for roots in (["relative"], [str(tmp_path / "missing")]):
        with pytest.raises(AmanuError) as caught:
            await sessions.create(
                SessionCreateParams(session_id="s", roots=roots, model_id="scripted:demo"), Client(os.environ)
            )
        assert caught.value.kind == "invalidParams"
    await sessions.shutdown()


async def test_a_session_knows_what_holds_commands(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        state = await d.until(lambda state: state.sandbox)
        assert state.sandbox is not None and state.sandbox == d.sessions.services.sandbox.describe(None)
        assert "can change" not in state.sandbox.summary  # that is a matter of the mode
        assert d.sessions.services.sandbox.proof is not None
        await d.reopen()
        assert d.session.state.sandbox == state.sandbox


async def test_other_agents_names_of_arguments_are_what_rules_and_people_see(tmp_path: Path) -> None:
    edit = call("edit_file", file_path=".env", old_string="A", new_string="B", expected_replacements=1)
    read = call("read_file", file_path="notes.txt", encoding="utf-8")
    async with scripted_session(tmp_path, step("", read), step("", edit), step("Done."), mode="auto") as d:
        (d.root / ".env").write_text("A\n")
        await d.prompt("read")
        state = await d.until(lambda state: state.approvals)
        assert state.approvals[0].title == "Edit .env"
        await d.answer("allow")
        state = await d.ended()
        assert (d.root / ".env").read_text() == "B\n"
        assert "Ignored unknown arguments: encoding. Available: path, start_line, end_line, pages." in d.told()
        assert "Ignored unknown arguments: expected_replacements." in d.told()
        used = [item.arguments for item in state.items if item.kind == "toolCall"]
        assert used[0] == {"path": "notes.txt"}
