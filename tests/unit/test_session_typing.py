"""A user types in an open file while hunks for it wait, through the documents of a connection."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.buffers import Buffers, EditorClient, sha256
from amanu.frontends.lsp.document_text import DocumentText, Position
from amanu.permissions import approvals as approval
from amanu.proposals import tracking as following
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ProposalChanged
from amanu_protocol.items import HunkState, Proposal
from amanu_protocol.requests import EditorApplyParams, HunkDecision, ProposalResolveParams
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(following, "QUIET", 0.01)


class Editor:
    """One open document, of an editor that applies what it is asked to."""

    def __init__(self, d: ScriptedSession) -> None:
        self.uri = d.file.as_uri()
        self.path = d.file
        self.version = 1
        self.buffers = Buffers(
            EditorClient("Test", self.ask, "utf-16", own_apply=True), d.sessions.overlay.notify_changed
        )
        d.sessions.overlay.add(self.buffers)
        self.buffers.opened(self.uri, 1, d.file.read_text())

    @property
    def text(self) -> str:
        buffer = self.buffers.buffer(self.path)
        assert buffer is not None
        return buffer.text

    def type(self, line: int, text: str, end: int | None = None) -> None:
        """At the beginning of that line, 0-based, instead of those up to `end`."""
        self.version += 1
        change = (Position(line, 0), Position(line if end is None else end, 0), text)
        self.buffers.changed(self.uri, self.version, [change])

    async def ask(self, method: str, params: Any) -> Any:
        assert isinstance(params, EditorApplyParams)
        assert sha256(self.text) == params.expected_sha256
        document = DocumentText(self.text)
        for edit in reversed(params.edits):
            start, end = edit.range.start, edit.range.end
            document.change(Position(start.line, start.character), Position(end.line, end.character), edit.new_text)
        text = document.text
        self.version += 1
        self.buffers.changed(self.uri, self.version, [text])
        return {"status": "success", "sha256": sha256(text), "version": self.version, "saved": False}


def states(proposal: Proposal) -> list[HunkState]:
    return [hunk.state for hunk in proposal.files[0].hunks]


def sent(d: ScriptedSession) -> list[Proposal]:
    """The versions of the proposal as the client was sent them."""
    return [each.event.proposal for each in d.client.messages if isinstance(each.event, ProposalChanged)]


async def test_typing_moves_the_hunks_and_accepting_applies_them(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        editor = Editor(d)
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        seen = d.session.state.proposals[0]
        editor.type(5, "typed\n")
        editor.type(5, "more\n")
        moved = (await d.until(lambda state: state.proposals[0].version > seen.version)).proposals[0]
        typed = TWELVE.replace("line 6\n", "more\ntyped\nline 6\n")
        assert (moved.files[0].base_text, moved.files[0].base_version) == (typed, 3)
        assert [(hunk.lines.first, hunk.state) for hunk in moved.files[0].hunks] == [(2, "pending"), (13, "pending")]
        assert [each.files[0].base_text for each in sent(d)] == [TWELVE, typed], "one version, with its base"
        wanted = [HunkDecision(hunk_id=seen.files[0].hunks[0].hunk_id, decision="accept")]
        stale = ProposalResolveParams(session_id="s", proposal_id=seen.proposal_id, version=seen.version, hunks=wanted)
        with pytest.raises(AmanuError) as caught:
            await d.session.edits.resolve(stale)
        assert caught.value.kind == "proposalConflict"

        editor.type(0, "")  # nothing new
        await d.decide("", "accept")
        expected = typed.replace("line 11\n", "line eleven\n")
        assert editor.text == expected
        assert sent(d)[-1].files[0].base_text is None, "as in the version before"
        editor.type(0, "top\n")
        await d.decide("accept")  # at once: the same, before anybody was told
        assert editor.text == "top\n" + expected.replace("line 2\n", "line two\n")
        await d.ended()
        assert states(d.session.state.proposals[0]) == ["applied", "applied"]
        assert "line 3" in d.told() and "line 14" in d.told()
        assert d.file.read_text() == TWELVE, "not saved: the user had not saved either"


@pytest.mark.parametrize("several", [False, True])
async def test_editors_that_disagree_about_a_file_are_named_as_the_cause(tmp_path: Path, several: bool) -> None:
    class Refusing(Editor):
        async def ask(self, method: str, params: Any) -> Any:
            return {"status": "conflict"}

    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        editors = [Refusing(d) for _ in range(2 if several else 1)]
        for number, editor in enumerate(editors):
            editor.type(0, f"mine {number}\n")
        await d.prompt("change it")
        await d.answer("allow")
        await d.ended()
        assert ("is open in several editors with different text. Save it in one of them" in d.told()) == several
        assert ("The file changed after this was proposed" in d.told()) != several


async def test_a_touched_hunk_waits_for_the_user(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        editor = Editor(d)
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        editor.type(1, "mine\n", 2)
        state = await d.until(lambda state: "conflicted" in states(state.proposals[0]))
        assert state.approvals and state.proposals[0].state == "pending", "typing ends no review"
        await d.decide("accept", "accept")
        state = await d.ended()
        assert states(state.proposals[0]) == ["conflicted", "applied"]
        assert "in these lines or next to them" in d.told()
        assert editor.text == TWO_HUNKS.replace("line two", "mine")
        for text in ("elsewhere\n", "and again\n"):  # no decision, so nothing for the model to hear
            version = state.proposals[0].version
            editor.type(6, text)
            state = await d.until(lambda state, version=version: state.proposals[0].version > version)
        await d.prompt("go on", "p2")
        await d.over("p2")
        assert "Later decisions about your earlier edits" not in d.told()
        editor.type(1, "line 2\n", 2)  # undone
        await d.until(lambda state: states(state.proposals[0]) == ["pending", "applied"])
        await d.decide("accept")
        assert editor.text == TWO_HUNKS.replace("line 7\n", "and again\nelsewhere\nline 7\n")
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert "Later decisions about your earlier edits" in d.told()


async def test_opened_again(tmp_path: Path) -> None:
    steps = step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.reopen()
        editor = Editor(d)
        before = d.session.state.proposals[0].version
        editor.type(0, "top\n")
        moved = (await d.until(lambda state: state.proposals[0].version > before)).proposals[0]
        assert moved.files[0].base_text == "top\n" + TWELVE
        await d.sessions.close("s")
        watchers = d.sessions.overlay._watchers  # pyright: ignore[reportPrivateUsage]
        assert watchers == {}
        editor.type(0, "nobody hears\n")
        await asyncio.sleep(0.03)
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
