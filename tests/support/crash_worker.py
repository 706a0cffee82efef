"""The process that is killed: accepts one proposal over three files, and with "undo" takes it back again.

`python crash_worker.py FOLDER WORD`: the workspace is FOLDER/work, the journal FOLDER/session. It prints its process
id, and goes on at a line on its standard input: traced by then. Touches nothing of the workspace before it asks for
`BEGIN`, which a tracer sees.
"""

import asyncio
import ctypes
import importlib
import os
import sys
import time
from pathlib import Path

from amanu.core.conversation import Entry
from amanu.core.tool import CallContext
from amanu.proposals.model import FileEdit
from amanu.proposals.proposals import Proposals
from amanu.storage.journal import Journal, Record
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import Event, ProposalChanged
from amanu_protocol.items import Proposal

BEGIN = "/amanu-crash-begins"
BASE = "".join(f"line {n}\n" for n in range(1, 41))
CHANGED = BASE.replace("line 3\n", "three\n").replace("line 30\n", "thirty\nand more\n")
BEFORE = {"a.txt": BASE.encode(), "linked.txt": BASE.encode(), "other name": BASE.encode(), "moved.txt": b"moved\n"}
AFTER = {"a.txt": CHANGED.encode(), "linked.txt": CHANGED.encode(), "other name": CHANGED.encode()} | {
    "folder/moved.txt": b"moved\n",
    "new.txt": b"new\n",
}


class Kept:
    """Proposals whose versions go to a real journal, as a session has them."""

    def __init__(self, folder: Path, journal: Journal, epoch: int) -> None:
        self.journal = journal
        self._epoch = epoch
        self._seq = 0
        self.proposals = Proposals(Workspace([folder], Overlay()), self._changed, journal.save_preimage)

    def _changed(self, proposal: Proposal) -> None:
        self._seq += 1
        event: Event = ProposalChanged(proposal=proposal)
        entry: Entry | None = None
        at = int(time.time() * 1000)
        self.journal.append(Record(self._epoch, self._seq, at, event.model_dump_json(), entry))


async def propose(proposals: Proposals, folder: Path) -> Proposal:
    """One step's edit of a file, of one with two names, a creation and a move."""
    call = CallContext("c1", "t1", 1)

    async def edit(name: str, text: str, new_path: str | None = None) -> FileEdit:
        base = await proposals.text(call, folder / name)
        return FileEdit(base, text, None if new_path is None else folder / new_path)

    edits = [await edit("a.txt", CHANGED), await edit("linked.txt", CHANGED), await edit("new.txt", "new\n")]
    edits.append(await edit("moved.txt", "moved\n", "folder/moved.txt"))
    return await proposals.propose(call, edits)


async def main(folder: Path, word: str) -> None:
    work = folder / "work"
    journal = await Journal.open(folder / "session")
    kept = Kept(work, journal, 1)
    proposal = await propose(kept.proposals, work)
    await journal.durable()
    if word == "undo":
        await kept.proposals.accept_all(proposal.proposal_id)
        await journal.durable()
    os.access(BEGIN, os.F_OK)
    try:
        if word == "undo":
            ids = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
            await kept.proposals.undo(proposal.proposal_id, ids)
        else:
            await kept.proposals.accept_all(proposal.proposal_id)
        await journal.durable()
    except AmanuError:
        pass  # a typed error, and the files are whole: that is what is tested
    os._exit(0)


def be_traced() -> None:
    """Let anybody trace this process, also where only parents may (Yama: PR_SET_PTRACER, PR_SET_PTRACER_ANY), and wait
    until somebody does."""
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1))
    print(os.getpid(), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    importlib.import_module("rapidfuzz.distance")  # else the first of several runs compiles it, with calls of its own
    be_traced()
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
