"""What is remembered, in a session: proposed and asked about, told to the model, listed and struck by the user."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, Notice, ToolCall
from amanu_protocol.requests import EditScope, PromptSendParams, PromptSteerParams, ProposalUndoParams
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.tool_harness import FakeEditor

FACT = "Use tabs."
SECTION = f"## Remembered\n\n- {FACT}\n"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def own() -> Path:
    return Path(os.environ["AMANU_HOME"]) / "config" / "AGENTS.md"


def saves(scope: str = "user", fact: str = FACT) -> dict[str, Any]:
    return step("", call("save_memory", fact=fact, scope=scope))


def file_of(d: ScriptedSession, scope: str) -> Path:
    return own() if scope == "user" else d.root / "AGENTS.md"


def answers(d: ScriptedSession) -> list[str]:
    return [item.text for item in d.session.state.items if isinstance(item, Notice) and item.code == "memory"]


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
async def test_the_user_is_asked_in_every_mode_and_can_undo_it(tmp_path: Path, mode: Mode, scope: str) -> None:
    async with scripted_session(tmp_path, saves(scope), step("Noted."), step("Yes."), mode=mode) as d:
        await d.trust()
        await d.prompt("remember it")
        state = await d.until(lambda state: state.approvals)
        assert "every later session" in str(state.approvals[0].lines) and FACT in state.approvals[0].detail
        assert [offer.scope for offer in state.approvals[0].scopes] == ["once"]
        assert not file_of(d, scope).exists()
        await d.answer("allow")
        await d.ended()
        assert file_of(d, scope).read_text() == SECTION
        await d.prompt("what did I say?", "p2")
        state = await d.over("p2")
        assert state.trusted, "what the user agreed to does not end trust"
        assert d.told().count(SECTION.strip().replace("\n", "\\n")) == 1, "the model is told as of any change"
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        assert file_of(d, scope).exists() is False


async def test_a_workspace_around_the_users_own_file_keeps_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    monkeypatch.setenv("AMANU_HOME", str(root / "home"))
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "AGENTS.md").write_text("SUBRULE\n")
    (root / "sub" / "a.txt").write_text("x")
    both = step("", call("save_memory", fact=FACT, scope="user"), call("read_file", path="sub/a.txt"))
    async with scripted_session(tmp_path, both, step("Noted."), mode="auto") as d:
        await d.trust()
        await d.prompt("remember it")
        await d.answer("allow")
        state = await d.ended()
        assert "SUBRULE" in d.told() and not [item for item in state.items if "left out" in getattr(item, "text", "")]


@pytest.mark.parametrize("scope", ["user", "project"])
async def test_plan_mode_denies_it(tmp_path: Path, scope: str) -> None:
    async with scripted_session(tmp_path, saves(scope), step("Later."), mode="plan") as d:
        await d.prompt("remember it")
        state = await d.ended()
        (item,) = [item for item in state.items if isinstance(item, ToolCall)]
        assert item.state == "rejected" or item.state == "denied"
        assert "plan mode" in d.told()
        assert not file_of(d, scope).exists()


@pytest.mark.parametrize(("first", "second", "left"), [("allow", "reject", [FACT]), ("reject", "allow", ["Two."])])
async def test_each_fact_of_a_step_is_decided_by_itself(
    tmp_path: Path, first: str, second: str, left: list[str]
) -> None:
    edits = call("write_file", path="notes.txt", content="x")
    both = step("", edits, *(call("save_memory", fact=fact, scope="user") for fact in (FACT, "Two.")), edits)
    async with scripted_session(tmp_path, both, step("Noted."), mode="acceptEdits") as d:
        await d.prompt("remember both")
        for fact, decision in ((FACT, first), ("Two.", second)):
            state = await d.until(lambda state, fact=fact: [each for each in state.approvals if fact in each.title])
            assert len(state.approvals) == 1
            await d.answer(decision)
        await d.ended()
        assert own().read_text() == "## Remembered\n\n" + "".join(f"- {fact}\n" for fact in left)


async def test_a_refusal_leaves_nothing(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, saves(), step("All right.")) as d:
        await d.prompt("remember it")
        await d.answer("deny")
        await d.ended()
        assert not own().exists()


async def test_nobody_there_nothing_to_call(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, headless=True, mode="auto") as d:
        assert "save_memory" not in d.session.composer.turn_factory.tools


async def test_it_is_listed_and_struck(tmp_path: Path) -> None:
    own().parent.mkdir(parents=True, exist_ok=True)
    own().write_text("# Mine\n\n## Remembered\n- a\n- b\n")
    async with scripted_session(tmp_path, step("Hm.")) as d:
        (d.root / "AGENTS.md").write_text("## Remembered\n- c\n  - d\n")
        await d.trust()
        listed = await d.session.own_parts.memory.list()
        assert [(fact.number, fact.scope, fact.path, fact.text) for fact in listed.facts] == [
            (1, "user", str(own()), "a"),
            (2, "user", str(own()), "b"),
            (3, "project", str(d.root / "AGENTS.md"), "c - d"),
        ]
        assert listed.files == [str(own()), "AGENTS.md"]
        await d.prompt("/memory", "p0")
        assert await d.prompt("/memory strike 3") is None
        assert (d.root / "AGENTS.md").read_text() == "## Remembered\n"
        assert answers(d)[-1].startswith("Struck from AGENTS.md: c - d\nRemembered for all projects")
        assert d.session.state.turn is None and not d.session.core.conversation.memory
        await d.prompt("/memory strike 3", "p1")
        assert len(answers(d)) == 2, "the same prompt again changes nothing"
        await d.prompt("/memory strike 1", "p2")
        assert own().read_text() == "# Mine\n\n## Remembered\n- b\n"
        await d.prompt("hello", "p3")
        state = await d.over("p3")
        assert state.trusted
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        assert own().read_text() == "# Mine\n\n## Remembered\n- a\n- b\n"
        await d.reopen()


async def test_striking_is_no_edit_of_the_models(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text("## Remembered\n- a\n- b\n")
        await d.prompt("hi")
        await d.over("p1")
        await d.session.own_parts.memory.strike(1, "a")
        await d.prompt("next", "p2")
        await d.over("p2")
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        await d.reopen()
        assert "your earlier edits" not in d.told() and d.session.composer.queue.late_decisions.proposals() == []


async def test_the_model_is_not_sent_to_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, saves(), step("Noted."), step("Yes.")) as d:
        await d.prompt("remember it")
        await d.answer("allow")
        await d.over("p1")
        own().write_text(f"{SECTION}- Theirs.\n")
        await d.prompt("and now?", "p2")
        await d.over("p2")
        assert "- Theirs." in d.told() and "Changed since you read them" not in d.told()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("/memory", "Nothing is remembered yet"),
        ("/memory strike 1", "Nothing was struck: look at the numbers first"),
    ],
)
async def test_nothing_yet(tmp_path: Path, said: str, answer: str) -> None:
    async with scripted_session(tmp_path) as d:
        sent = await d.session.prompts.send(PromptSendParams(session_id="s", prompt_id="p", text=said), d.client)
        assert sent.status == "answered" and sent.turn_id is None
        assert answers(d)[0].startswith(answer) and "Memory files in use: none." in answers(d)[0]


@pytest.mark.parametrize(
    "said", ["/memory strike", "/memory strike 0", "/memory strike 2", "/memory strike x", "/memory a b c"]
)
async def test_what_cannot_be_struck(tmp_path: Path, said: str) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text(SECTION)
        await d.prompt("/memory", "p0")
        with pytest.raises(AmanuError):
            await d.prompt(said)
        assert own().read_text() == SECTION and len(answers(d)) == 1
        with pytest.raises(AmanuError):  # sent again, it is no news
            await d.prompt(said)


async def test_a_number_is_that_of_the_list_in_the_chat(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text("## Remembered\n- a\n- b\n- c\n")
        await d.prompt("/memory", "p1")
        own().write_text("## Remembered\n- b\n- c\n")
        await d.session.own_parts.memory.list()  # another client's picker, which nobody sees here
        with pytest.raises(AmanuError, match="belongs to another fact"):
            await d.prompt("/memory strike 2", "p2")
        assert own().read_text() == "## Remembered\n- b\n- c\n"


async def test_a_link_is_named(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        (own().parent / "real.md").write_text(SECTION)
        own().symlink_to("real.md")
        said = (await d.session.own_parts.memory.list()).summary
        assert f"{own()} is a link; its facts are not listed." in said and "Nothing is remembered" not in said


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_list_has_bounds(tmp_path: Path, trusted: bool) -> None:
    async with scripted_session(tmp_path) as d:
        (d.root / "AGENTS.md").write_text(f"## Remembered\n- {'x' * 5_000}\n" + "- a fact of a repository\n" * 36_000)
        if trusted:
            await d.trust()
        await d.prompt("/memory", "p1")
        (said,) = answers(d)
        assert len(said) < 10_000 and ("and " in said and " more; see the files." in said) == trusted
        assert ("neither listed nor used: the folder is not trusted" in said) != trusted
        if trusted:
            await d.prompt("/memory strike 1", "p2")
            assert (d.root / "AGENTS.md").read_text().startswith("## Remembered\n- a fact")
        else:
            assert (await d.session.own_parts.memory.list()).facts == []


async def test_a_number_that_means_something_else_by_now(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text("## Remembered\n- a\n- b\n")
        await d.prompt("/memory")
        own().write_text("## Remembered\n- b\n")
        for said in ("/memory strike 1", "/memory strike 2"):
            with pytest.raises(AmanuError, match="belongs to another fact"):
                await d.prompt(said, said[-1])
        assert own().read_text() == "## Remembered\n- b\n"


async def test_an_open_editor_strikes_it_in_what_was_typed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text(SECTION)
        editor = FakeEditor()
        editor.put(own(), f"typed\n{SECTION}")
        d.sessions.overlay.add(editor)
        listed = await d.session.own_parts.memory.list()
        struck = await d.session.own_parts.memory.strike(1, listed.facts[0].text)
        assert editor.open[own()].text == "typed\n## Remembered\n\n" and "not saved" in struck.summary
        assert own().read_text() == SECTION


async def test_a_file_that_cannot_be_written_stays(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        own().parent.mkdir(parents=True, exist_ok=True)
        own().write_text(SECTION)
        own().chmod(0o444)
        with pytest.raises(AmanuError, match=r"Nothing was struck.*read-only"):
            await d.session.own_parts.memory.strike(1, FACT)
        assert own().read_text() == SECTION


async def test_it_is_answered_in_a_running_turn(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, saves(), step("Noted.")) as d:
        await d.prompt("remember it")
        state = await d.until(lambda state: state.approvals)
        assert state.turn is not None
        await d.session.prompts.steer(
            PromptSteerParams(session_id="s", prompt_id="p2", turn_id=state.turn.turn_id, text="/memory"), d.client
        )
        assert answers(d)[0].startswith("Nothing is remembered yet")
        await d.answer("allow")
        await d.ended()
        assert "/memory" not in d.told()
        await d.prompt("/memory", "p3")
        assert f"1. {FACT}" in answers(d)[1]
