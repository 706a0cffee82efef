"""An edit while it is written, in a whole session: seen, undecidable, replaced, and nowhere on record."""

from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState
from support.scripted_session import TWELVE, call, scripted_session, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


SLOW = {"chunk": 12, "delay_ms": 12}
EDIT = call("edit_file", path="notes.txt", old_text="line 2\nline 3\n", new_text="line two\n" * 150)
WRITE = call("write_file", path="new/note.txt", content="a\nb\n" * 150)
MISSES = call("edit_file", path="notes.txt", old_text="line 99\n", new_text="x\n" * 200)


def edit(state: SessionState) -> ToolCall | None:
    return next((item for item in state.items if isinstance(item, ToolCall)), None)


async def records(session: Session) -> list[str]:
    return [each.event for each in await session.core.journal.records()]


@pytest.mark.parametrize(
    ("asked", "title", "live", "final"),
    [
        (EDIT, "Edit notes.txt", "-line 2\n-line 3\n+line two\n+line two\n", "Edit notes.txt"),
        (WRITE, "Write new/note.txt", "+a\n+b\n+a\n", "Create new/note.txt"),
    ],
)
async def test_a_live_edit_comes_before_the_question_and_goes_with_it(
    tmp_path: Path, asked: dict[str, Any], title: str, live: str, final: str
) -> None:
    async with scripted_session(tmp_path, step("Now.", asked, **SLOW), step("Done.")) as d:
        await d.prompt("go")
        state = await d.until(lambda state: (item := edit(state)) and item.output.startswith(live))
        item = edit(state)
        assert item is not None
        assert (item.state, item.title, item.proposal_id) == ("validating", title, None)
        assert not state.approvals and not state.proposals
        with pytest.raises(AmanuError):
            await d.session.resolve_approval(answer(item.item_id), d.client)
        state = await d.until(lambda state: state.approvals)
        item = edit(state)
        assert item is not None
        assert (item.state, item.title, item.output) == ("awaitingApproval", final, "")
        assert d.file.read_text() == TWELVE
        await d.answer("allow")
        await d.ended()
        kept = "".join(await records(d.session))
        assert "itemDelta" not in kept
        assert f'"title":"{title}","effect":"write","arguments":{{}}' not in kept
        before = d.session.view().items
        await d.reopen()
        assert d.session.view().items == before


async def test_an_edit_that_does_not_fit_keeps_its_title_and_no_live_edit(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", MISSES, **SLOW), step("Oh.")) as d:
        await d.prompt("go")
        await d.until(lambda state: (item := edit(state)) and "+x" in item.output)
        item = edit(await d.ended())
        assert item is not None
        assert (item.state, item.title, item.output) == ("failed", "Edit notes.txt", "")


async def test_a_cancelled_reply_leaves_no_live_edit(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", WRITE, **SLOW)) as d:
        turn_id = await d.prompt("go")
        assert turn_id is not None
        await d.until(lambda state: (item := edit(state)) and item.output)
        await d.session.prompts.cancel(turn_id)
        state = await d.ended("cancelled")
        assert edit(state) is None


def answer(call_id: str) -> Any:
    return ApprovalResolveParams(session_id="s", tool_call_id=call_id, decision="allow")
