"""What the user has the daemon do without the model: a command line (`! …`), and a block of code into a file
(`/apply …`). Decided, shown and recorded like a call of the model's, which hears of it with the next prompt."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Assistant, User
from amanu.home import find_home
from amanu.tools.edits.placed_block import read_edits
from amanu_protocol.items import ToolCall
from amanu_protocol.requests import AuditQueryParams, PromptSteerParams
from support.agent_session import complete, session_with_agents
from support.scripted_session import TWELVE, ScriptedSession, call, conversation, scripted_session, step


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)


def only_call(d: ScriptedSession) -> ToolCall:
    (item,) = [item for item in d.session.state.items if isinstance(item, ToolCall)]
    return item


def apply(path: str, code: str, fence: str = "```") -> str:
    return f"/apply {path}\n\n{fence}python\n{code}\n{fence}"


def edit(old: str, new: str, middle: str = "=======") -> str:
    return f"<<<<<<< SEARCH\n{old}{middle}\n{new}>>>>>>> REPLACE"


def aside(text: str, **more: Any) -> dict[str, Any]:
    """What the model that places blocks says."""
    return step(text, aside=True, **more)


SECOND = edit("line 2\n", "line two\n")


def configured(settings: str) -> None:
    (find_home(os.environ).make().config / "config.toml").write_text(settings)


# A command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["! cat notes.txt", "!cat notes.txt\n", " ! cat notes.txt"])
async def test_a_command_runs_and_the_model_hears_of_it_with_the_next_prompt(prompt: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("I see.", expect="line 12")) as d:
        await d.prompt(prompt)
        await d.over("p1")
        ran = only_call(d)
        assert (ran.tool, ran.title, ran.state, ran.turn_id) == (
            "run_shell_command",
            "Run cat notes.txt",
            "succeeded",
            "turn-p1",
        )
        assert "line 12" in ran.output
        assert not any(isinstance(message, Assistant) for message in conversation(d.session))  # nobody was asked
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s"))).entries
        assert [entry.kind for entry in entries if entry.tool_call_id == ran.item_id] == ["decided", "started", "ended"]
        await d.reopen()
        await d.prompt("What do you see?", "p2")
        await d.over("p2")
        asked, result, *_ = conversation(d.session)
        assert isinstance(asked, User) and asked.text == "! cat notes.txt"
        assert (
            isinstance(result, User)
            and result.from_system
            and "not the result of one of your tool calls" in result.text
        )


RULES = '[[rule]]\ndecision = "deny"\ntool = "@run"\ncommand = "touch forbidden *"\n'


@pytest.mark.parametrize(
    ("command", "mode", "decision", "state"),
    [
        ("touch forbidden a", "auto", None, "rejected"),
        ("touch a", "ask", "allow", "succeeded"),
        ("touch a", "ask", "reject", "rejected"),
        ("touch a && touch forbidden b", "auto", None, "rejected"),
    ],
)
async def test_it_is_decided_on_like_a_call_of_the_models(
    command: str, mode: Any, decision: str | None, state: str, tmp_path: Path
) -> None:
    (find_home(os.environ).make().config / "config.toml").write_text(RULES)
    async with scripted_session(tmp_path, mode=mode) as d:
        await d.prompt(f"! {command}")
        if decision is not None:
            await d.answer(decision)
        await d.over("p1")
        assert only_call(d).state == state
        assert (d.root / "a").exists() == (state == "succeeded")


@pytest.mark.parametrize("prompt", ["!", "!!", "!!! now", "![a picture](x.png)", "Say ! ls", "/apply", "/apply a.py"])
async def test_other_prompts_are_the_models(prompt: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Well.")) as d:
        await d.prompt(prompt)
        await d.over("p1")
        assert any(isinstance(message, Assistant) for message in conversation(d.session))


async def test_in_a_script_it_is_a_prompt_like_others(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Well."), mode="auto", headless=True) as d:
        await d.prompt("! touch a")
        await d.over("p1")
        assert not (d.root / "a").exists()


async def test_a_command_that_is_stopped_was_begun_and_the_model_hears_so(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, mode="auto") as d:
        turn_id = await d.prompt("! echo begun; sleep 60")
        await d.until(lambda state: any(isinstance(i, ToolCall) and i.output for i in state.items))
        await d.session.prompts.cancel(turn_id or "")
        await d.over("p1", "cancelled")
        assert only_call(d).output == "begun\n", "the user still sees what it has printed"
        assert "its effect may be partial" in d.told()


async def test_what_is_said_while_it_runs_is_answered_afterwards(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Three."), mode="auto") as d:
        turn_id = await d.prompt("! until [ -e go ]; do sleep 0.05; done")
        await d.until(lambda state: any(isinstance(i, ToolCall) and i.state == "executing" for i in state.items))
        steer = PromptSteerParams(session_id="s", prompt_id="p2", turn_id=turn_id or "", text="And one and two?")
        await d.session.prompts.steer(steer, d.client)
        assert [queued.text for queued in d.session.state.queue] == ["And one and two?"]
        (d.root / "go").touch()
        await d.over("p2")
        assert conversation(d.session)[-1] == Assistant.model_validate({"parts": [{"kind": "text", "text": "Three."}]})


async def test_said_while_the_model_works_it_waits_its_turn(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch a"))
    async with scripted_session(tmp_path, asks, step("Done.")) as d:
        turn_id = await d.prompt("Make a.")
        await d.until(lambda state: state.approvals)
        steer = PromptSteerParams(session_id="s", prompt_id="p2", turn_id=turn_id or "", text="! cat notes.txt")
        await d.session.prompts.steer(steer, d.client)
        await d.answer("reject")
        await d.over("p2")
        titles = [item.title for item in d.session.state.items if isinstance(item, ToolCall)]
        assert titles == ["Run touch a", "Run cat notes.txt"]


async def test_project_memory_is_part_of_the_system_prompt_after_a_command_came_first(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Well.")) as d:
        (d.root / "AGENTS.md").write_text("Be kind.")
        await d.trust()
        await d.prompt("! cat notes.txt")
        await d.over("p1")
        await d.prompt("Hello.", "p2")
        await d.over("p2")
        assert "Be kind." in conversation(d.session).memory


async def test_it_is_taken_back_with_its_turn(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        await d.prompt("! cat notes.txt")
        await d.over("p1")
        await d.session.checkpoints.forget("turn-p1")
        assert list(conversation(d.session)) == [] and not d.session.state.items


# A block of code ---------------------------------------------------------------------------------


async def test_a_new_file_is_proposed_without_a_model(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        await d.prompt(apply("src/new.py", "def f():\n    return '```'", "````"))
        state = await d.until(lambda state: state.approvals)
        (file,) = state.proposals[0].files
        assert (file.change, file.hunks[0].new_text) == ("create", "def f():\n    return '```'\n")
        assert not (d.root / "src/new.py").exists()
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "src/new.py").read_text() == "def f():\n    return '```'\n"
        assert conversation(d.session)[0] == User(text="/apply src/new.py")


async def test_a_block_is_placed_by_a_model_and_reviewed_hunk_by_hunk(tmp_path: Path) -> None:
    reply = SECOND + "\n\n" + edit("line 11\n", "line eleven\n")
    async with scripted_session(tmp_path, aside(reply, expect="line two\nline eleven")) as d:
        await d.prompt(apply("notes.txt", "line two\nline eleven"))
        await d.until(lambda state: state.approvals)
        assert d.file.read_text() == TWELVE
        await d.decide("accept", "reject not that")
        await d.over("p1")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        assert only_call(d).title == "Edit notes.txt"
        assert d.session.state.usage is not None  # what it cost was counted


@pytest.mark.parametrize(
    ("reply", "becomes"),
    [
        ("WHOLE FILE", "line two\n"),
        (edit("line 12\n", ""), TWELVE.removesuffix("line 12\n")),
        (edit("line 2 \n", "line two\n"), TWELVE.replace("line 2\n", "line two\n")),
        (f"Here it is:\n\n{SECOND}", TWELVE.replace("line 2\n", "line two\n")),
    ],
    ids=["the whole file", "lines that go", "a space too many", "words around"],
)
async def test_what_a_reply_makes_of_the_file(reply: str, becomes: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, aside(reply)) as d:
        await d.prompt(apply("notes.txt", "line two"))
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == becomes


async def test_marks_in_the_file_are_not_taken_for_those_of_the_reply(tmp_path: Path) -> None:
    text = "Title\n=======\n\nSome text.\n"
    reply = edit("Title\n=======\n", "Another\n=======\n", "========")
    async with scripted_session(tmp_path, aside(reply)) as d:
        d.file.write_text(text)
        await d.prompt(apply("notes.txt", "Another\n======="))
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == text.replace("Title", "Another")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("NOTHING TO CHANGE", "already has"),
        ("I cannot tell.", "did not say where the block belongs: I cannot tell."),
        (SECOND + "\n<<<<<<< SEARCH\nline 3", "cut off"),
    ],
)
async def test_a_reply_that_changes_nothing_says_why(reply: str, why: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, aside(reply)) as d:
        await d.prompt(apply("notes.txt", "line two"))
        state = await d.over("p1", "failed")
        assert state.last_turn is not None and why in state.last_turn.message
        assert not state.proposals and d.file.read_text() == TWELVE


@pytest.mark.parametrize("reply", [edit("line 99\n", "line two\n"), edit("line 2\n", "# ... existing code ...\n")])
async def test_an_edit_that_does_not_fit_fails_as_a_call_does(reply: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path, aside(reply)) as d:
        await d.prompt(apply("notes.txt", "line two"))
        state = await d.over("p1")
        assert only_call(d).state == "failed" and only_call(d).error
        assert not state.proposals and d.file.read_text() == TWELVE


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hosts", "logo.bin", ".env", "large.txt", "folder"])
async def test_files_that_no_block_goes_to(path: str, tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        (d.root / "logo.bin").write_bytes(b"\0\1\2\3" * 100)
        (d.root / ".env").write_text("KEY=1\n")
        (d.root / "large.txt").write_text("a line of some length\n" * 10_000)
        (d.root / "folder").mkdir()
        await d.prompt(apply(path, "line two"))
        state = await d.over("p1", "failed")
        assert state.last_turn is not None and state.last_turn.message and not state.proposals
        assert not any(isinstance(message, Assistant) for message in conversation(d.session))


async def test_a_block_with_code_left_out_makes_no_new_file(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        await d.prompt(apply("new.py", "import os\n# ... existing code ...\nos.getcwd()"))
        await d.over("p1")
        assert only_call(d).state == "failed" and not (d.root / "new.py").exists()


async def test_the_file_was_changed_while_the_model_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_session(tmp_path, aside(SECOND)) as d:

        def changed_and_read(reply: str, middle: str) -> object:
            d.file.write_text(TWELVE.replace("line 2\n", "line zwei\n").replace("line 12\n", ""))
            return read_edits(reply, middle)

        monkeypatch.setattr("amanu.session.user_requests.read_edits", changed_and_read)
        await d.prompt(apply("notes.txt", "line two"))
        await d.over("p1")
        assert only_call(d).state == "failed"


async def test_the_utility_model_places_it_where_there_is_one(tmp_path: Path) -> None:
    script = tmp_path / "small.json"
    script.write_text('[{"text": "NOTHING TO CHANGE", "aside": true}]')
    configured(f'[routing]\nutility = "scripted:{script}"\n')
    async with scripted_session(tmp_path, step("I am too large for this.")) as d:
        await d.prompt(apply("notes.txt", "line two"))
        state = await d.over("p1", "failed")
        assert state.last_turn is not None and "already has" in state.last_turn.message


async def test_a_sub_agent_is_given_no_such_request(tmp_path: Path) -> None:
    """The words of its task are a model's, whose sub-agent may have fewer tools."""
    looker = [step("", complete("Nothing."))]
    asks = step("", call("run_agent", agent="looker", prompt="! touch a", description="x"))
    async with session_with_agents(tmp_path, {"looker": looker}, asks, step("Done."), mode="auto") as d:
        await d.prompt("Go.")
        await d.ended()
        assert not (d.root / "a").exists()
        assert [item.title for item in d.session.state.items if isinstance(item, ToolCall)] == ["looker: x"]
