"""Plan mode: the plan is written, edited by the user, approved or rejected, and stays before the model."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from amanu.core.conversation import Results, SystemText, User
from amanu.permissions import approvals as approval
from amanu.session import plan as session_plan
from amanu.session import restore
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, Notice, ToolCall
from amanu_protocol.requests import (
    CheckpointRestoreParams,
    EditScope,
    PromptSteerParams,
    ProposalDiffParams,
    ProposalUndoParams,
)
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step

PLAN = "# Goal\n\n## Steps\n\n1. Edit notes.txt\n2. Test it\n"
EDITED = PLAN.replace("2. Test it", "2. Test it twice")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(session_plan, "QUIET", 0.0)


def plan_path() -> Path:
    return Path(os.environ["AMANU_HOME"]) / "state" / "sessions" / "s" / "plan.md"


def writes(text: str = PLAN) -> dict[str, Any]:
    return call("write_file", path=str(plan_path()), content=text)


EXIT = call("exit_plan_mode")


def results(d: ScriptedSession) -> list[str]:
    return [
        result.text for message in conversation(d.session) if isinstance(message, Results) for result in message.results
    ]


def told(d: ScriptedSession) -> str:
    """What the daemon and the user told the model beside results."""
    texts: list[str] = []
    for message in conversation(d.session):
        match message:
            case Results(notes=notes):
                texts += [note.text for note in notes if isinstance(note, SystemText)]
            case User():
                texts.append(message.text)
            case _:
                pass
    return "\n".join(texts)


def outcomes(d: ScriptedSession) -> list[tuple[str, str]]:
    return [(item.tool, item.state) for item in d.session.state.items if isinstance(item, ToolCall)]


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
async def test_an_approved_plan_is_carried_out_in_the_mode_the_user_chose(
    tmp_path: Path, mode: Mode, fresh: bool
) -> None:
    async with scripted_session(tmp_path, step("", writes(), EXIT), step("Done."), mode="plan") as d:
        await d.prompt("plan it")
        state = await d.until(lambda state: state.approvals)
        (asked,) = state.approvals
        assert asked.document == str(plan_path())
        assert asked.detail == PLAN
        assert {(answer.mode, answer.fresh_context) for answer in asked.answers if answer.mode} == {
            (each, also) for each in ("ask", "acceptEdits", "auto") for also in (False, True)
        }
        assert await d.answer("allow", mode=mode, fresh_context=fresh) == "resolved"
        state = await d.ended()
        assert state.mode == mode
        assert state.plan is not None
        assert state.plan.state == "approved"
        assert [(todo.text, todo.status) for todo in state.todos] == [
            ("Edit notes.txt", "pending"),
            ("Test it", "pending"),
        ]
        assert told(d).count(PLAN.strip()) == 1, "by the daemon, once"
        assert "plan it" in told(d)
        assert ("exit_plan_mode" in d.told()) != fresh
        assert not any(proposal.waiting for proposal in state.proposals)


async def test_what_the_user_made_of_the_plan_is_what_is_approved(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes()), step("", EXIT), step("Done."), mode="plan") as d:
        await d.prompt("plan it")
        state = await d.until(lambda state: state.approvals)
        digest = state.approvals[0].digest
        plan_path().write_text(EDITED)
        assert await d.answer("allow", digest=digest) == "stale", "the yes was to another text"
        state = await d.until(lambda state: state.approvals and state.approvals[0].digest != digest)
        assert state.approvals[0].detail == EDITED
        assert await d.answer("allow", mode="auto") == "resolved"
        await d.ended()
        assert EDITED.strip() in told(d)
        assert d.session.state.plan is not None
        stored = await d.session.core.journal.get_blob(d.session.state.plan.digest)
        assert stored.decode() == EDITED


async def test_a_question_follows_the_file_that_an_editor_has_open(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes()), step("", EXIT), step("Done."), mode="plan") as d:
        await d.prompt("plan it")
        await d.until(lambda state: state.approvals)
        plan_path().write_text(EDITED)
        d.session.core.services.overlay.notify_changed(d.session.core.plan.path)
        await d.until(lambda state: state.approvals[0].detail == EDITED)
        assert await d.answer("allow", mode="auto") == "resolved"
        await d.ended()


@pytest.mark.parametrize(
    ("reason", "says"), [("too vague", "They said: too vague"), (None, "has not approved the plan. You are still")]
)
async def test_a_rejected_plan_is_revised(tmp_path: Path, reason: str | None, says: str) -> None:
    again = step("", writes(EDITED), EXIT)
    async with scripted_session(tmp_path, step("", writes(), EXIT), again, step("Done."), mode="plan") as d:
        await d.prompt("plan it")
        await d.answer("reject", reason=reason)
        state = await d.until(lambda state: state.approvals and state.approvals[0].detail == EDITED)
        assert state.mode == "plan"
        await d.answer("allow", mode="ask")
        await d.ended()
        assert says in results(d)[1]


@pytest.mark.parametrize(
    ("decision", "mode", "says"),
    [
        ("allow", "acceptEdits", "The user approved the plan, and the mode is now acceptEdits."),
        ("reject", "ask", "The user has not approved the plan."),
    ],
)
@pytest.mark.parametrize("edited", [False, True])
async def test_a_plan_that_waits_can_be_decided_in_any_mode(
    tmp_path: Path, decision: str, mode: Mode, says: str, edited: bool
) -> None:
    async with scripted_session(tmp_path, step("", writes(), EXIT), step("Fine."), mode="plan") as d:
        await d.prompt("plan it")
        first = (await d.until(lambda state: state.approvals)).approvals[0]
        await d.session.set_mode("ask")
        if edited:
            plan_path().write_text(EDITED)
            d.session.core.services.overlay.notify_changed(d.session.core.plan.path)
            await d.until(lambda state: state.approvals and state.approvals[0].digest != first.digest)
        await d.answer(decision, None, **({"mode": mode} if decision == "allow" else {}))
        state = await d.ended()
        assert results(d)[-1].startswith(says)
        assert "You are still in plan mode" not in results(d)[-1]
        assert state.mode == mode
        assert (state.plan is not None and state.plan.state == "approved") == (decision == "allow")
        assert (EDITED if edited else PLAN).strip() in told(d) or decision == "reject"


async def test_a_message_while_the_plan_waits_means_that_planning_goes_on(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes(), EXIT), step("I revise it."), mode="plan") as d:
        turn_id = await d.prompt("plan it")
        await d.until(lambda state: state.approvals)
        params = PromptSteerParams(session_id="s", turn_id=str(turn_id), prompt_id="p2", text="use sqlite")
        await d.session.prompts.steer(params, d.client)
        state = await d.ended()
        assert state.mode == "plan"
        assert "see the message" in results(d)[1]
        assert conversation(d.session)[-2].model_dump_json().count("use sqlite") == 1


@pytest.mark.parametrize(("decision", "mode"), [("allow", "plan"), ("reject", "auto")])
async def test_the_user_agrees_to_planning_or_does_not(tmp_path: Path, decision: str, mode: Mode) -> None:
    enter = step("", call("enter_plan_mode", reason="Two designs."))
    async with scripted_session(tmp_path, enter, step("Well."), mode="auto") as d:
        await d.prompt("build it")
        state = await d.until(lambda state: state.approvals)
        assert state.approvals[0].detail == "Two designs."
        await d.answer(decision)
        state = await d.ended()
        assert state.mode == mode
        assert (str(plan_path()) in told(d)) == (mode == "plan")


async def test_the_plan_survives_compactions_and_restarts(tmp_path: Path) -> None:
    reads = [step(f"{at}", call("read_file", path="notes.txt", start_line=1 + at)) for at in range(9)]
    steps = [step("", writes(), EXIT), *reads, *(step("Done.") for _ in range(4))]
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        await d.prompt("plan it", "p1")
        await d.answer("allow", mode="acceptEdits")
        await d.over("p1")
        plan_path().unlink()
        await d.prompt("/compact", "p2")
        await d.over("p2")
        assert PLAN.strip() not in told(d), "a summary is no place for it"
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert told(d).count(PLAN.strip()) == 1
        assert "Mode: acceptEdits" in d.told()
        await d.reopen()
        await d.prompt("go on", "p4")
        await d.over("p4")
        assert told(d).count(PLAN.strip()) == 1, "it is known to have been told"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (step("", EXIT), "The plan is empty. Write it to"),
        (step("", call("write_file", path="PLAN", content=" \n"), EXIT), "The plan is empty. Write it to"),
        (step("", call("write_file", path="PLAN", content="x" * 70_000), EXIT), "at most 65,536 can be approved"),
        (step("", call("exit_plan_mode", path="notes.txt")), "notes.txt is not the plan. Write the plan to"),
        (step("", call("enter_plan_mode", reason="why")), "You are in plan mode already."),
        (step("", call("write_file", path="plan.md", content="x")), "in plan mode only the plan can be edited"),
        (step("", call("write_file", path="../s/plan.md", content="x")), "is outside the workspace"),
        (step("", call("grep", pattern="x", path="PLAN")), "Read it with read_file"),
    ],
)
async def test_what_is_no_plan(tmp_path: Path, made: dict[str, Any], says: str) -> None:
    calls = [{**each, "arguments": {**each["arguments"]}} for each in made["calls"]]
    for each in calls:
        if each["arguments"].get("path") == "PLAN":
            each["arguments"]["path"] = str(plan_path())
    async with scripted_session(tmp_path, {**made, "calls": calls}, step("Well."), mode="plan") as d:
        await d.prompt("plan it")
        await d.ended()
        assert says in "\n".join(results(d))


async def test_a_plan_that_is_deleted_while_it_waits_cannot_be_approved(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes()), step("", EXIT), step("Well."), mode="plan") as d:
        await d.prompt("plan it")
        await d.until(lambda state: state.approvals)
        plan_path().unlink()
        await d.answer("allow", mode="auto")
        state = await d.ended()
        assert state.mode == "plan"
        assert "The plan is empty" in results(d)[-1]


async def test_only_modes_that_were_offered_can_be_chosen(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes(), EXIT), step("Well."), mode="plan") as d:
        await d.prompt("plan it")
        with pytest.raises(AmanuError, match="cannot be carried out in plan mode"):
            await d.answer("allow", mode="plan")
        await d.answer("reject")
        await d.ended()


async def test_without_anybody_to_approve_it_the_plan_is_the_answer(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", writes(), EXIT), step("The plan."), mode="plan", headless=True) as d:
        await d.prompt("plan it")
        state = await d.ended()
        assert "nobody is there to approve the plan" in results(d)[1]
        assert "Nobody is watching: nobody can answer questions or approve the plan" in d.told()
        assert state.mode == "plan"
        assert outcomes(d) == [("write_file", "succeeded"), ("exit_plan_mode", "rejected")]


async def test_commands_can_change_nothing_while_planning(tmp_path: Path) -> None:
    tries = step("", call("run_shell_command", command="touch made; cat notes.txt"))
    async with scripted_session(tmp_path, tries, step("Well."), mode="plan") as d:
        await d.prompt("plan it")
        await d.ended()
        assert "line 12" in results(d)[0]
        assert not (d.root / "made").exists()


async def test_a_plan_is_over_when_all_its_steps_are_done(tmp_path: Path) -> None:
    done = [{"text": text, "status": "done"} for text in ("Edit notes.txt", "Test it")]
    steps = [step("", writes(), EXIT), step("", call("write_todos", todos=done)), step("Done."), step("Done.")]
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        await d.prompt("plan it", "p1")
        await d.answer("allow", mode="acceptEdits")
        await d.over("p1")
        state = await d.until(lambda state: state.plan and state.plan.state == "done")
        assert state.todos == []
        await d.prompt("/compact", "p2")
        await d.over("p2")
        assert PLAN.strip() not in told(d), "nobody needs it any more"


async def test_an_earlier_list_says_nothing_of_a_plan_without_steps(tmp_path: Path) -> None:
    todos = [{"text": "Old work", "status": "done"}]
    steps = [
        *(step("", call("write_todos", todos=todos)), step("Done.")),
        *(step("", writes("# Goal\n\nRename it everywhere, then test it.\n"), EXIT), step("Shall I begin?")),
        *(step("", call("write_todos", todos=[{"text": "Rename it", "status": "done"}])), step("Done.")),
    ]
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        states: list[str] = []
        for prompt_id in ("p1", "p2", "p3"):
            await d.prompt("go on", prompt_id)
            if prompt_id == "p2":
                await d.answer("allow", mode="acceptEdits")
            state = await d.over(prompt_id)
            states.append(state.plan.state if state.plan is not None else "")
        assert states == ["", "approved", "done"]


def approved(text: str = PLAN) -> list[dict[str, Any]]:
    return [step("", writes(text), EXIT), step("Later.")]


def finished() -> list[dict[str, Any]]:
    todos = [{"text": text, "status": "done"} for text in ("Edit notes.txt", "Test it")]
    return [step("", call("write_todos", todos=todos)), step("Done.")]


def entered() -> list[dict[str, Any]]:
    return [step("", call("enter_plan_mode", reason="anew"))]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "state", "todos"),
    [
        (lambda: [step("Hello.")], approved, "draft", 0),
        (approved, finished, "approved", 2),
        (approved, lambda: [*entered(), step("I think.")], "approved", 2),
        (approved, lambda: [*entered(), *approved(EDITED)], "approved", 2),
        (lambda: [*approved()[:1], *finished()], lambda: [*entered(), *approved(EDITED)], "done", 0),
    ],
    ids=["approved", "finished", "planned anew", "approved anew", "another plan"],
)
async def test_a_rewind_brings_the_plan_back_as_it_was(
    tmp_path: Path,
    first: Callable[[], list[dict[str, Any]]],
    second: Callable[[], list[dict[str, Any]]],
    state: str,
    todos: int,
    killed: bool,
) -> None:
    reads = [step("", call("read_file", path="notes.txt", start_line=1 + at)) for at in range(9)]
    async with scripted_session(tmp_path, *reads, *first(), *second(), mode="plan") as d:
        for prompt_id in ("p1", "p2"):
            await d.prompt("go on", prompt_id)
            while (now := await d.until(lambda now: now.approvals or now.turn is None)).approvals:
                mode = {} if now.approvals[0].document is None else {"mode": "acceptEdits"}
                await d.answer("allow", None, **mode)
            await d.over(prompt_id)
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=False, conversation=True)
        await d.session.checkpoints.restore(params)
        if killed:  # just after the rewind was on record
            records = await d.session.core.journal.records()
            at = max(at for at, record in enumerate(records) if restore.REWINDS in record.event)
            assert restore.restore("s", records[: at + 1], read_only=True).state.plan == d.session.state.plan
            await d.reopen()
        plan = d.session.state.plan
        assert plan is not None
        assert (plan.state, len(d.session.state.todos)) == (state, todos)
        await d.session.set_mode("acceptEdits")
        await d.prompt("/compact", "p3")
        await d.over("p3")
        assert PLAN.strip() not in told(d)
        assert d.session.state.plan == plan
        turn_id = await d.prompt("go on", "p4")
        assert (told(d).count(PLAN.strip()), EDITED in told(d)) == (state == "approved", False)
        await d.session.prompts.cancel(turn_id or "")


UNO = PLAN.replace("1. Edit notes.txt", "1. uno")
REVISES = step("", call("edit_file", path="PLAN", old_text="1. Edit notes.txt", new_text="1. uno"), EXIT)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("then", "back_to", "mode", "plan"),
    [
        ("", "p2", "plan", PLAN),
        ("", "p1", "plan", None),
        ("", "p3", "acceptEdits", UNO),
        ("ask", "p2", "ask", PLAN),  # the user's own choice since then stays
    ],
)
async def test_a_rewind_to_before_a_plan_was_approved_brings_back_the_mode_and_the_text(
    tmp_path: Path, then: Mode | Literal[""], back_to: str, mode: Mode, plan: str | None, killed: bool
) -> None:
    revises = json.loads(json.dumps(REVISES).replace("PLAN", str(plan_path())))
    edits = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    steps = [step("", writes()), step("Look."), revises, step("", edits), step("Done."), step("Well.")]
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        for prompt_id in ("p1", "p2", "p3"):
            await d.prompt("go on", prompt_id)
            if prompt_id == "p2":
                await d.answer("allow", mode="acceptEdits")
            await d.over(prompt_id)
        if then:
            await d.session.set_mode(then)
        assert plan_path().read_text() == UNO
        params = CheckpointRestoreParams(session_id="s", turn_id=f"turn-{back_to}", files=True, conversation=True)
        restored = await d.session.checkpoints.restore(params)
        assert [Path(file.path).name for file in restored.files] == ([] if back_to == "p3" else ["notes.txt"])
        if killed:
            await d.reopen()
        assert d.session.state.mode == mode
        assert d.session.state.plan is None or d.session.state.plan.state == ("draft" if plan != UNO else "approved")
        assert (plan_path().read_text() if plan_path().exists() else None) == plan


async def test_a_rule_does_not_let_a_command_out_of_plan_modes_sandbox(tmp_path: Path) -> None:
    tries = step("", call("run_shell_command", command="touch made"))
    async with scripted_session(tmp_path, tries, step("Well."), mode="plan") as d:
        d.session.allow("run_shell_command+unsandboxed(touch *)")
        await d.prompt("plan it")
        await d.ended()
        assert not (d.root / "made").exists()
        (made,) = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        assert made.sandbox is None or made.sandbox.writes == "nothing"


async def test_the_plan_is_none_of_the_users_files(tmp_path: Path) -> None:
    edit = call("write_file", path="new.py", content="import os\n")
    steps = (
        step("", writes()),
        step("Written."),
        step("", edit, expect=f"not by your edits: {plan_path()}"),
        step("Done."),
    )
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        await d.prompt("plan it")
        await d.ended()
        await d.session.set_mode("auto")
        plan_path().write_text(EDITED)
        await d.prompt("go on @problems", "p2")
        state = await d.over("p2")
        assert [item.text for item in state.items if isinstance(item, Notice) and item.code == "modelTold"] == [
            "The model was told that the plan changed."
        ]
        assert "Checked: " not in d.told()
        shown = await d.session.edits.diff(ProposalDiffParams(session_id="s", scope=EditScope()))
        assert [Path(file.path).name for file in shown.files] == ["new.py"] and "plan.md" not in shown.diff
        checkpoints = (await d.session.checkpoints.list()).checkpoints
        assert [[Path(file.path).name for file in each.files] for each in checkpoints] == [[], ["new.py"]]
        undone = await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        assert [Path(file.path).name for file in undone.files] == ["new.py"]
        assert plan_path().read_text() == EDITED
