"""Sessions that an older Amanu wrote: `journals/protocol-N.json` has the records of one, of a workspace at `/w`."""

import json
from pathlib import Path
from typing import Any

from amanu.proposals.places import with_places
from amanu.storage.journal import Journal, Record
from amanu_protocol.items import Proposal
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
        assert list(map(without_base_texts, found)) == [without_base_texts(with_places(each)) for each in expected]
        assert [file.base_text for each in found for file in each.files] == ["a\n", TWELVE]
        hunks = [hunk for each in found for file in each.files for hunk in file.hunks]
        assert [(hunk.lines.start, hunk.lines.end) for hunk in hunks] == [(0, 1), (1, 2)], "journals had no places then"
        assert await d.decide_rows("reject", "accept") == "resolved"
        await decide_all(d, "accept")
        text = TWELVE.replace("line 2\n", "line two\n")
        assert look(d.root) == changed(before, {"notes.txt": text, "sub/a.txt": "A\n", "tool.sh": "755: echo\n"})
        assert all_states(d) == {"applied", "rejected"}


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
