"""Rows in the plain frontend: their texts, the patch that decides them, and the requests that are sent."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.announcements import summary
from amanu.frontends.lsp.plain.change_marks import Mark, marks
from amanu.frontends.lsp.plain.code_actions import ActionContext, ActionSubjects, actions
from amanu.frontends.lsp.plain.command_arguments import ChangesArguments
from amanu.frontends.lsp.plain.decisions import Decisions
from amanu.frontends.lsp.plain.patch_file import PatchError
from amanu.proposals.places import LiveHunk
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal, Row, RowVersion
from support.fake_daemon import state
from support.sample_events import hunk, proposed, row

ROOT = Path("/w")
LOGO = "logo.png: binary file, 4,096 bytes"
GIT = row(9, "3f2a Tidy", kind="git", path="/w", title="1 commit")
FOLDER = row(8, kind="folder", path="/w/new", title="new folder")
RUN = row(7, kind="mode", path="/w/a.txt", title="becomes executable")
LOST = row(6, undecidable="It is lost.")


def change(*rows: Row, alone: bool = False, hunks: tuple[LiveHunk, ...] = ()) -> Proposal:
    """These rows beside a hunk, or alone."""
    one = proposed(*hunks)
    return one.model_copy(update={"rows": list(rows), **({"files": []} if alone else {})})


def marks_of(of: Proposal) -> list[Mark]:
    return marks(state(items=[], proposals=[of], roots=["/w"]), "utf-16", "x")


# The patch ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "head", "body"),
    [
        (change(row(), alone=True), "1 change in 1 file", [f"# row r1:… {LOGO}"]),
        (
            change(row(), FOLDER, alone=True),
            "2 changes in 2 files",
            [f"# row r1:… {LOGO}", "# row r8:… new: new folder"],
        ),
        (change(RUN), "2 changes in 1 file", [" three", "# row r7:… a.txt: becomes executable"]),
        (change(GIT, alone=True), "1 change", ["# row r9:… the git repository: 1 commit", "#   3f2a Tidy"]),
        (change(row(needs=["h1", "r8"]), alone=True), "1", [f"# row r1:… {LOGO} (accepted with 2 changes it needs)"]),
        (change(row(), LOST), "2 changes in 2", [f"# row r1:… {LOGO}", f"# not decided here: {LOGO} — It is lost."]),
        (change(row(state="conflicted", reason="It changed.")), "1", [f"# not decided here: {LOGO} — It changed."]),
        (change(row(state="applied"), row(2, state="rejected")), "1 change in 1 file", [" three"]),
        (change(row(title="\u202ex\n# row r2:0")), "2", ["# row r1:… logo.png: <U+202E>x<U+000A># row r2:0"]),
    ],
)
def test_a_patch_shows_open_rows(of: Proposal, head: str, body: list[str]) -> None:
    text = re.sub(r":[0-9a-f]{12}\b", ":…", patch.of_proposal(of, ROOT))
    assert text.startswith(f"# Amanu proposes {head}")
    assert text.splitlines()[-len(body) :] == body
    assert ("starts with" in text) == ("# row r" in text)


def _without(start: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(start))

    return edit


def _without_hunk(text: str) -> str:
    head, _, body = text.partition("@@ ")
    return head + body[body.index("# row") :]


NEEDING = change(row(needs=["h1"]), FOLDER)


@pytest.mark.parametrize(
    ("of", "edit", "hunks", "rows"),
    [
        (NEEDING, lambda t: t, ["accept"], ["accept", "accept"]),
        (NEEDING, lambda t: t.replace("\n", "\r\n"), ["accept"], ["accept", "accept"]),
        (NEEDING, _without("# row r8"), ["accept"], ["accept", "reject"]),
        (NEEDING, _without("# row"), ["accept"], ["reject", "reject"]),
        (NEEDING, lambda t: _without("# row r1")(_without_hunk(t)), ["reject"], ["reject", "accept"]),
        (NEEDING, lambda t: t.replace(LOGO, "mine"), ["accept"], ["accept", "accept"]),
        (change(GIT, alone=True), lambda t: t, [], ["accept"]),
        (change(GIT, alone=True), _without("#   "), [], ["accept"]),
        (change(GIT, alone=True), _without("# row"), [], ["reject"]),
        (change(row(), LOST, alone=True), _without("# not decided"), [], ["accept"]),
    ],
)
def test_a_row_is_accepted_while_its_line_stands(of: Proposal, edit: Any, hunks: list[str], rows: list[str]) -> None:
    decided = patch.decisions(edit(patch.of_proposal(of, ROOT)), of)
    assert [each.decision for each in decided.hunks] == hunks
    assert [each.decision for each in decided.rows] == rows
    assert all(bool(each.reason) == (each.decision == "reject") for each in decided.rows)


@pytest.mark.parametrize(
    ("edit", "at", "why"),
    [
        (_without_hunk, "# row r1", "needs one that you reject"),
        (lambda t: t.replace("# row r1:", "# row r8:"), "# row r8", "Unknown change"),
        (lambda t: re.sub(r"# row r1:\w+", "# row", t), "# row", "Unknown change"),
        (lambda t: t + t.splitlines(keepends=True)[-1], "# row r8", "only once"),
    ],
)
def test_a_line_of_a_row_that_does_not_fit_is_told(edit: Any, at: str, why: str) -> None:
    text = edit(patch.of_proposal(NEEDING, ROOT))
    with pytest.raises(PatchError, match=why) as error:
        patch.decisions(text, NEEDING)
    assert text.splitlines()[error.value.line].startswith(at)


@pytest.mark.parametrize(
    "other",
    [
        row(digest="other"),
        row(state="applied"),
        row(undecidable="It is lost."),
        row(1, "and more"),
        row(2),
    ],
    ids=["other bytes", "applied", "lost", "other lines", "gone"],
)
def test_a_row_that_is_another_now_is_not_decided(other: Row) -> None:
    text = patch.of_proposal(change(row(), alone=True), ROOT)
    with pytest.raises(PatchError, match="was updated"):
        patch.decisions(text, change(other, alone=True))


HOSTILE = st.text(alphabet="ab: \n\r\t\x1b\u202e\u2028#@-+/", max_size=30)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_a_row_is_called_changes_what_a_patch_decides(path: str, title: str, line: str) -> None:
    of = change(row(1, line, path=f"/w/{path}", title=title), row(2, f"row r1:{line}"))
    text = patch.of_proposal(of, ROOT)
    assert not re.search("[\r\x1b\u202e]", text)
    decided = patch.decisions(text, of)
    assert [each.decision for each in (*decided.hunks, *decided.rows)] == ["accept"] * 3
    assert [each.decision for each in patch.decisions(_without("# row r1")(text), of).rows] == ["reject", "accept"]


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (change(row(), alone=True), True),
        (change(row(state="conflicted"), alone=True), True),
        (change(LOST, alone=True), False),
        (change(row(state="applied"), alone=True), False),
        (change(LOST), True),
    ],
)
def test_a_proposal_of_rows_only_can_be_reviewed(of: Proposal, expected: bool) -> None:
    assert patch.has_open(of) is expected


# Diagnostics, hovers, lenses, messages --------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "message", "lenses", "in_document"),
    [
        (row(), "Amanu proposes: binary file, 4,096 bytes", ["Accept (binary file, 4,096 bytes)", "Reject"], True),
        (
            row(needs=["h1"]),
            "Amanu proposes: binary file, 4,096 bytes",
            ["Accept (binary file, 4,096 bytes) with 1 change it needs", "Reject"],
            True,
        ),
        (
            row(state="conflicted", reason="It changed."),
            "Amanu's change (binary file, 4,096 bytes) does not fit: It changed.",
            ["Accept (binary file, 4,096 bytes)", "Reject"],
            True,
        ),
        (
            row(state="applied"),
            "Amanu changed this (binary file, 4,096 bytes), keep or undo",
            ["Keep (binary file, 4,096 bytes)", "Undo"],
            True,
        ),
        (LOST, "Amanu's change (binary file, 4,096 bytes): It is lost.", [], True),
        (FOLDER, "Amanu proposes: new folder", ["Accept (new folder)", "Reject"], False),
        (GIT, "Amanu proposes: 1 commit", ["Accept (1 commit)", "Reject"], False),
        (
            row(kind="deletion", title="deleted", before=RowVersion(kind="folder")),
            "Amanu proposes: deleted",
            ["Accept (deleted)", "Reject"],
            False,
        ),
        (row(title="\u202ex"), "Amanu proposes: <U+202E>x", ["Accept (<U+202E>x)", "Reject"], True),
    ],
)
def test_how_a_row_is_told(shown: Row, message: str, lenses: list[str], in_document: bool) -> None:
    (mark,) = marks_of(change(shown, alone=True))
    assert (mark.waits, mark.in_document) == (True, in_document)
    diagnostic = review.diagnostic(mark)
    assert (diagnostic.message, diagnostic.range.start.line, diagnostic.data) == (message, 0, shown.row_id)
    assert [each.command.title for each in review.lenses([mark]) if each.command] == lenses


def test_a_hover_has_all_lines_of_a_row() -> None:
    found = review.hover(
        marks_of(change(row(1, "leads <out>", kind="rename", new_path="/w/b"), alone=True)), "markdown"
    )
    assert found is not None
    text = found.contents.value  # pyright: ignore
    assert text.split("\n\n")[1:] == ["/w/logo.png → /w/b", r"leads \<out\>"]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (change(row(), alone=True), "1 change in logo.png"),
        (change(RUN), "2 changes in a.txt (line 2)"),
        (change(GIT, row()), "1 change in a.txt (line 2); 1 change in the git repository; 1 change in logo.png"),
    ],
)
def test_rows_are_announced(of: Proposal, said: str) -> None:
    assert summary(marks_of(of)) == said


@pytest.mark.parametrize(
    ("of", "titles"),
    [
        (
            change(RUN, alone=True),
            ["accept this change (becomes executable)", "reject this change (becomes executable)", "review"],
        ),
        (
            change(row(), alone=True),
            [
                "accept the change in logo.png (binary file, 4,096 bytes)",
                "reject the change in logo.png (binary file, 4,096 bytes)",
                "review",
            ],
        ),
        (
            change(row(needs=["r8"]), alone=True),
            [
                "accept the change in logo.png (binary file, 4,096 bytes) with 1 change it needs",
                "reject the change in logo.png (binary file, 4,096 bytes)",
                "review",
            ],
        ),
        (
            change(RUN, row()),
            [
                "accept the change at line 2 −1 +1",
                "reject the change at line 2 −1 +1",
                "accept the change (becomes executable)",
                "reject the change (becomes executable)",
                "accept these 2 changes −1 +1",
                "reject these 2 changes −1 +1",
                "accept all 2 changes in this file",
                "reject all 2 changes in this file",
                "accept all 3 changes in 2 files",
                "reject all 3 changes in 2 files",
                "review",
            ],
        ),
        (change(LOST, alone=True), []),
        (
            change(row(state="conflicted"), alone=True),
            [
                "accept the change in logo.png (binary file, 4,096 bytes)",
                "reject the change in logo.png (binary file, 4,096 bytes)",
            ],
        ),
        (
            change(row(state="applied"), row(9, kind="git", path="/w", title="1 commit", state="applied"), alone=True),
            [
                "keep all 2 changes in 2 files",
                "undo all 2 changes in 2 files",
                "keep the change in logo.png (binary file, 4,096 bytes)",
                "undo the change in logo.png (binary file, 4,096 bytes)",
                "keep the change in the git repository (1 commit)",
                "undo the change in the git repository (1 commit)",
                "undo the last turn's changes",
            ],
        ),
        (
            change(row(path="/w/a.txt", state="applied", reviewed=True), alone=True),
            ["undo this change (binary file, 4,096 bytes)", "undo the last turn's changes"],
        ),
    ],
    ids=["here", "elsewhere", "with another", "beside a hunk", "lost", "conflict", "applied", "kept"],
)
def test_code_actions_count_rows(of: Proposal, titles: list[str]) -> None:
    lines = types.Range(types.Position(0, 0), types.Position(2, 0))
    context = ActionContext(Path("/w/a.txt"), lines, [], "", selected=False, chat=None, patch=False)
    found = actions(context, ActionSubjects(None, marks_of(of), []), lambda kind: kind != "refactor.rewrite")
    said = [each.title.removeprefix("Amanu: ").replace("review as an editable patch", "review") for each in found]
    assert [each for each in said if each != "open chat"] == titles


# What is sent ---------------------------------------------------------------------------------------


class Recorder:
    """A session that keeps the params of what it is asked; it holds one proposal."""

    def __init__(self, of: Proposal, after: Proposal | None = None) -> None:
        self.params: list[r.ProposalResolveParams | r.ProposalDecideParams | r.ProposalUndoParams] = []
        self.said: list[Any] = []
        self.state = state(items=[], proposals=[of], roots=["/w"])
        self._now, self._after = of, after or of
        shown = [mark for mark in marks_of(of) if mark.waits]
        sessions: Any = SimpleNamespace(get=self._get)
        editor: Any = SimpleNamespace(say=lambda text, *_: self.said.append(text))
        diagnostics: Any = SimpleNamespace(shown=shown)
        self.decisions = Decisions(sessions, editor, diagnostics)
        self.edits = self

    async def _get(self, session_id: str) -> "Recorder":
        return self

    def proposal(self, proposal_id: str) -> Proposal:
        return self._now

    async def resolve(self, params: r.ProposalResolveParams) -> r.ProposalResolveResult:
        self.params.append(params)
        return r.ProposalResolveResult(status="resolved", proposal=self._after)

    async def decide(self, params: r.ProposalDecideParams) -> None:
        self.params.append(params)

    async def undo(self, params: r.ProposalUndoParams) -> r.ProposalUndoResult:
        self.params.append(params)
        return r.ProposalUndoResult(files=[])


def arguments(of: Proposal) -> ChangesArguments:
    return ChangesArguments.model_validate(review.change_arguments(marks_of(of)))


@pytest.mark.parametrize("named", [True, False], ids=["named", "all that was told"])
@pytest.mark.parametrize("decision", ["accept", "reject"])
@pytest.mark.parametrize(
    ("of", "hunks", "rows"),
    [
        (change(row(), FOLDER), ["h1"], ["r1", "r8"]),
        (change(GIT, alone=True), [], ["r9"]),
        (change(), ["h1"], []),
    ],
)
async def test_open_rows_are_decided_beside_hunks(
    of: Proposal, hunks: list[str], rows: list[str], decision: str, named: bool
) -> None:
    recorder = Recorder(of)
    await recorder.decisions.decide(arguments(of) if named else ChangesArguments(), decision)
    (params,) = recorder.params
    assert isinstance(params, r.ProposalResolveParams)
    assert [(each.hunk_id, each.decision) for each in params.hunks] == [(each, decision) for each in hunks]
    assert [(each.row_id, each.decision) for each in params.rows] == [(each, decision) for each in rows]


@pytest.mark.parametrize("verb", ["keep", "undo"])
async def test_applied_rows_are_kept_or_undone_beside_hunks(verb: str) -> None:
    of = change(row(state="applied"), hunks=(hunk(state="applied"),))
    recorder = Recorder(of)
    decisions = recorder.decisions
    await (decisions.decide(arguments(of), "keep") if verb == "keep" else decisions.undo(arguments(of)))
    (params,) = recorder.params
    assert not isinstance(params, r.ProposalResolveParams)
    assert params.scope == r.EditScope(proposal_id="p", hunk_ids=["h1"], row_ids=["r1"])


async def test_what_is_lost_is_not_decided_with_the_rest() -> None:
    recorder = Recorder(change(row(), LOST, alone=True))
    await recorder.decisions.decide(ChangesArguments(), "accept")
    (params,) = recorder.params
    assert isinstance(params, r.ProposalResolveParams) and [each.row_id for each in params.rows] == ["r1"]
    with pytest.raises(AmanuError, match="no changes"):
        await Recorder(change(LOST, alone=True)).decisions.decide(ChangesArguments(), "accept")


async def test_a_row_is_decided_only_as_it_was_seen() -> None:
    recorder = Recorder(change(row(digest="other"), alone=True))
    with pytest.raises(AmanuError, match="was updated"):
        await recorder.decisions.decide(arguments(change(row(), alone=True)), "accept")
    assert recorder.params == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (row(state="conflicted", reason="It changed."), ["Amanu: logo.png: It changed."]),
        (row(reason="The disk is full."), ["Amanu: logo.png: The disk is full."]),
        (row(state="applied"), []),
    ],
    ids=["conflict", "still open", "applied"],
)
async def test_a_row_that_was_accepted_in_vain_says_why(after: Row, said: list[str]) -> None:
    of = change(row(), alone=True)
    recorder = Recorder(of, change(after, alone=True))
    await recorder.decisions.decide(arguments(of), "accept")
    assert recorder.said == said
