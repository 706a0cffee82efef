"""What the model is told of the session it works in, prompt by prompt and between two steps."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from amanu.core.conversation import Conversation, Results, User
from amanu.permissions import approvals as approval
from amanu.permissions.policy import mode_text
from amanu.session.status_note import SessionStatus
from amanu_protocol.items import CommandSandbox, Mode
from amanu_protocol.state import SessionState
from support.scripted_session import call, conversation, scripted_session, step


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


PLAN = "Mode: plan. You are planning."
ASK = f"Mode: ask. {mode_text('ask')}"
SANDBOXED = CommandSandbox(tier="landlock", writes="workspace", network=False, summary="")
UNSANDBOXED = CommandSandbox(tier="none", writes="everything", network=True, summary="")


def heard(message: Any) -> str:
    """All text of a message of the user, or of a note after results."""
    match message:
        case User():
            return "\n".join(str(part) for part in message.parts)
        case Results():
            return "\n".join(getattr(note, "text", str(note)) for note in message.notes)
        case _:
            return ""


@pytest.mark.parametrize("mode", get_args(Mode))
def test_every_mode_has_its_sentence(mode: Mode) -> None:
    text = mode_text(mode)
    assert text.endswith(".")
    assert "\n" not in text or mode == "plan"


@pytest.mark.parametrize(
    ("mode", "sandbox", "headless", "lines"),
    [
        ("ask", None, False, []),
        ("plan", None, False, ["Mode: plan."]),
        ("ask", SANDBOXED, False, ["Mode: ask.", "Sandbox: commands run in one (landlock)."]),
        ("auto", UNSANDBOXED, False, ["Mode: auto.", "Sandbox: none works on this machine."]),
        ("ask", None, True, ["Mode: ask.", "Nobody is watching:"]),
        ("plan", SANDBOXED, True, ["Mode: plan.", "Sandbox: commands", "Nobody is watching:"]),
    ],
)
def test_what_is_said_first(mode: Mode, sandbox: CommandSandbox | None, headless: bool, lines: list[str]) -> None:
    state = SessionState(
        session_id="s", title="", roots=[], mode=mode, model_id="m", trusted=True, read_only=False, sandbox=sandbox
    )
    status = SessionStatus(Conversation(), state, Path("/plan.md"), headless=headless)
    said = [line for line in status.note_with_prompt().splitlines() if not re.match(r"\d\.|Nothing said", line)]
    assert len(said) == (len(lines) + 2 if lines else 0)
    assert all(line.startswith(start) for line, start in zip(said[1:-1], lines, strict=False))
    assert status.note_with_prompt() == status.note() == "", "all of it is known"


async def test_plan_mode_is_told_once_and_again_after_a_compaction(tmp_path: Path) -> None:
    reads = [step(f"{at}", call("read_file", path="notes.txt", start_line=1 + at)) for at in range(9)]
    async with scripted_session(tmp_path, *reads, step("Read."), step("Planned."), step("Planned."), mode="plan") as d:
        await d.prompt("plan it", "p1")
        await d.over("p1")
        prompt = conversation(d.session)[0]
        assert isinstance(prompt, User)
        assert prompt.text.startswith("plan it") and prompt.status.startswith("<session_status>\n" + PLAN)
        assert d.told().count("Mode: plan.") == 1
        await d.prompt("/compact", "p2")
        await d.over("p2")
        assert d.told().count("Mode: plan.") == 0, "the summary says nothing of it"
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert d.told().count("Mode: plan.") == 1


async def test_a_compaction_between_two_steps_is_followed_by_it(tmp_path: Path) -> None:
    reads = [step(f"{at}", call("read_file", path="notes.txt", start_line=1 + at)) for at in range(9)]
    more = step("", call("read_file", path="notes.txt", start_line=1))
    async with scripted_session(
        tmp_path, *reads, step("", call("read_file", path=".env")), more, step("Done."), mode="plan"
    ) as d:
        await d.prompt("plan it")
        await d.until(lambda state: state.approvals)
        await d.session.prompts.compact("", d.client)
        await d.answer("reject")
        await d.ended()
        assert d.told().count("Mode: plan.") == 1
        first, *rest = conversation(d.session)
        assert PLAN not in heard(first) and any(PLAN in heard(message) for message in rest)


async def test_another_mode_is_told_in_the_middle_of_a_turn_and_after_a_restart(tmp_path: Path) -> None:
    asks = step("", call("read_file", path=".env"))
    async with scripted_session(tmp_path, asks, step("Planned."), step("Done."), step("Done."), mode="plan") as d:
        await d.prompt("plan it", "p1")
        await d.until(lambda state: state.approvals)
        await d.session.set_mode("ask")
        await d.answer("reject")
        state = await d.over("p1")
        assert any(item.kind == "notice" and "the mode is ask" in item.text for item in state.items)
        assert ASK in heard(conversation(d.session)[-2])
        await d.prompt("go on", "p2")
        await d.over("p2")
        assert d.told().count(ASK) == 1
        await d.reopen()
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert d.told().count(ASK) == 2, "what a resumed session tells of may be an older mode"


async def test_a_denial_says_which_mode_it_is_and_what_is_allowed(tmp_path: Path) -> None:
    tries = step(
        "",
        call("write_file", path="notes.txt", content="x"),
        call("run_shell_command", command="touch x"),
        call("run_shell_command", command="curl example.org", network=True),
    )
    async with scripted_session(tmp_path, tries, step("Done."), mode="plan") as d:
        await d.prompt("do it")
        await d.ended()
        (results,) = [message for message in conversation(d.session) if isinstance(message, Results)]
        written, ran, fetched = [result.text for result in results.results]
        assert "in plan mode only the plan can be edited until it is approved" in written
        assert "This is plan mode" in fetched and "call exit_plan_mode" in fetched
        assert not (d.root / "x").exists(), ran
