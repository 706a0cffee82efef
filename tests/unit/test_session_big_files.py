"""Base texts of big files are in blobs: no event, no record and no client has them unasked."""

from pathlib import Path

import pytest

from amanu.client.base_texts import lacks_base_texts
from amanu.permissions import approvals as approval
from amanu.proposals.model import INLINE_CHARACTERS
from amanu.storage.journal import Journal
from amanu_protocol.events import EventMessage, ProposalChanged
from amanu_protocol.items import Proposal
from amanu_protocol.requests import BlobGetParams, EditScope, ProposalUndoParams
from amanu_protocol.state import SessionState, fold
from support.scripted_session import ScriptedSession, call, scripted_session, step

BIG = "".join(f"line {n} of a file that is big – and not only ASCII\n" for n in range(1, 2500))
CHANGE = {"old_text": "line 1200 ", "new_text": "row 1200 "}
AGAIN = {"old_text": "line 1300 ", "new_text": "row 1300 "}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    assert len(BIG) > INLINE_CHARACTERS


def sent(d: ScriptedSession) -> list[str]:
    """The events about proposals as a client gets them."""
    return [each.model_dump_json() for each in d.client.messages if isinstance(each.event, ProposalChanged)]


async def blob(d: ScriptedSession, blob_id: str) -> str:
    """As a client asks for it, page by page."""
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        params = BlobGetParams(session_id="s", blob_id=blob_id, offset=offset, limit=10_000)
        page = await d.session.pages.blob(params)
        pages.append(page.text)
        offset = page.next_offset
    return "".join(pages)


def folded(d: ScriptedSession) -> Proposal:
    """The last proposal as a client has it."""
    state = SessionState(session_id="s", title="", roots=[], mode="ask", model_id="", trusted=True, read_only=False)
    for message in sent(d):
        fold(state, EventMessage.model_validate_json(message).event)
    return state.proposals[-1]


@pytest.mark.parametrize("reopened", [False, True])
async def test_a_client_asks_for_the_base_text(tmp_path: Path, reopened: bool) -> None:
    steps = step("", call("edit_file", path="notes.txt", **CHANGE)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        d.file.write_text(BIG)
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        file = folded(d).files[0]
        assert all(len(message) < 5_000 for message in sent(d))
        assert file.base_text is None
        assert file.base_blob is not None
        assert await blob(d, file.base_blob) == BIG, "at once, whatever is on the disk yet"
        assert lacks_base_texts(folded(d), SessionState.model_validate(d.session.state.last(0).model_dump(mode="json")))
        await d.decide("accept")
        await d.ended()
        changed = BIG.replace("line 1200 ", "row 1200 ")
        assert d.file.read_text() == changed
        assert folded(d).files[0].base_text is None
        if reopened:
            await d.reopen()
        assert d.session.state.proposals[0].files[0].base_text == BIG
        assert await blob(d, file.base_blob) == BIG
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=False))
        assert d.file.read_text() == BIG


async def test_the_journal_does_not_grow_by_the_file(tmp_path: Path) -> None:
    steps = (
        step("", call("edit_file", path="notes.txt", **CHANGE)),
        step("", call("edit_file", path="notes.txt", **AGAIN)),
        step("Fine."),
    )
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        d.file.write_text(BIG)
        await d.prompt("change it")
        await d.ended()
        folder = d.session.core.journal.folder
        assert [len(proposal.files[0].base_text or "") for proposal in d.session.state.proposals] == [
            len(BIG),
            len(BIG) - 1,
        ]
        stored = {each.read_text() for each in (folder / "blobs").iterdir()}
        assert stored == {BIG, BIG.replace("line 1200 ", "row 1200 ")}, "each is its file's pre-image, too"
    journal = await Journal.read(folder)
    try:
        records = await journal.records()
    finally:
        await journal.close()
    assert sum(len(record.event) for record in records) < len(BIG)


async def test_without_the_blob_nothing_is_written_over(tmp_path: Path) -> None:
    steps = step("", call("edit_file", path="notes.txt", **CHANGE)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        d.file.write_text(BIG)
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.session.emit.durable()
        for each in (d.session.core.journal.folder / "blobs").iterdir():
            each.unlink()
        await d.reopen()
        assert d.session.state.proposals[0].files[0].base_text is None
        scope = EditScope(proposal_id=d.session.state.proposals[0].proposal_id)
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=scope, dry_run=False))
        await d.session.core.proposals.accept_all(scope.proposal_id or "")
        assert d.file.read_text() == BIG
        assert d.session.state.proposals[0].files[0].hunks[0].state == "conflicted"
