"""Sessions that an older Amanu wrote: `journals/protocol-N.json` has the records of one, of a workspace at `/w`."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.proposals.places import live_hunks
from amanu.storage.journal import Journal, Record
from amanu_protocol.items import Proposal, ProposedFile
from support.draft_session import decide_all
from support.row_session import all_states, changed, files, look
from support.scripted_session import TWELVE, scripted_session

JOURNALS = Path(__file__).parent / "journals"


async def test_a_session_of_protocol_2_has_its_proposals_whole_and_goes_on(tmp_path: Path) -> None:
    """Its proposals have `besides`; one is from before there were rows."""
    async with scripted_session(tmp_path, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        await d.sessions.close("s")
        written = await write(d.session.core.journal.folder, "protocol-2.json", d.root)
        await d.reopen()
        first, _, second = (each["event"]["proposal"] for each in written if "proposal" in each["event"])
        found = d.session.state.proposals
        expected = [Proposal.model_validate(each) for each in (first, second)]
        assert list(map(without_base_texts, found)) == [without_base_texts(each) for each in expected]
        assert [file.base_text for each in found for file in each.files] == ["a\n", TWELVE]
        hunks = [hunk for each in found for file in each.files for hunk in file.hunks]
        assert [(hunk.lines.start, hunk.lines.end) for hunk in hunks] == [(0, 1), (1, 2)], "journals had no places then"
        assert await d.decide_rows("reject", "accept") == "resolved"
        await decide_all(d, "accept")
        text = TWELVE.replace("line 2\n", "line two\n")
        assert look(d.root) == changed(before, {"notes.txt": text, "sub/a.txt": "A\n", "tool.sh": "755: echo\n"})
        assert all_states(d) == {"applied", "rejected"}


@pytest.mark.parametrize(
    ("hunks", "places"),
    [
        ([("applied", 1, 1, 3), ("pending", 4, 2, 1)], [((0, 3), (0, 3)), ((5, 7), (5, 6))]),
        ([("pending", 0, 0, 2), ("rejected", 1, 1, 0)], [((0, 0), (0, 2)), ((0, 1), (2, 3))]),
        (
            [("reverted", 2, 0, 2), ("conflicted", 3, 1, 0), ("undoing", 9, 2, 1)],
            [((2, 2), (2, 2)), ((2, 3), (2, 2)), ((8, 9), (7, 8))],
        ),
    ],
)
def test_hunks_have_places_that_journals_did_not_hold_before_protocol_4(
    hunks: list[tuple[str, int, int, int]], places: list[tuple[tuple[int, int], tuple[int, int]]]
) -> None:
    """State, `oldStart`, `oldLines` and `newLines` of each, to lines in the file and in the proposed text."""
    old = [
        {
            **{
                "hunkId": str(start),
                "oldStart": start,
                "oldLines": old,
                "newStart": 1,
                "newLines": new,
                "state": state,
            },
            **{"oldText": "old\n" * old, "newText": "new\n" * new, "editedByUser": False},
        }
        for state, start, old, new in hunks
    ]
    fields = {"path": "/w/a", "change": "edit", "baseSha256": "", "baseText": "old\n" * 12, "added": 0, "removed": 0}
    fields |= {"encoding": "utf-8", "finalNewline": True, "unsaved": False, "hunks": old}
    file = ProposedFile.model_validate(fields)
    told = [(hunk.lines, hunk.proposed_lines) for hunk in file.hunks]
    assert [((now.start, now.end), (then.start, then.end)) for now, then in told] == places
    assert [hunk.base_lines.start + (hunk.base_lines.count > 0) for hunk in live_hunks(file.hunks)] == [
        start for _, start, _, _ in hunks
    ]


async def write(folder: Path, name: str, root: Path) -> list[dict[str, Any]]:
    """Make these records the journal in that folder, of the workspace at `root`; returns them."""
    for file in folder.glob("journal.sqlite*"):
        file.unlink()
    records = json.loads((JOURNALS / name).read_text().replace('"/w', f'"{root}'))
    journal = await Journal.open(folder)
    for each in records:
        private = None if each["private"] is None else json.dumps(each["private"])
        event = json.dumps(each["event"], separators=(",", ":"))
        journal.append(Record(each["epoch"], each["seq"], each["at"], event, private))
    await journal.durable()
    await journal.close()
    return records


def without_base_texts(proposal: Proposal) -> Proposal:
    """Later versions of a proposal do not repeat base texts."""
    files = [file.model_copy(update={"base_text": None}) for file in proposal.files]
    return proposal.model_copy(update={"files": files})
