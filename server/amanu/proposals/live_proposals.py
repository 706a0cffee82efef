"""The proposals of one session, and who is told about them."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from amanu.proposals.model import LiveProposal
from amanu.workspace.shown_files import ShownFiles
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal


class LiveProposals:
    """Each of `listeners` is told about every new version of a proposal, in order. Whoever changes one holds the
    `lock`."""

    def __init__(self, shown_files: ShownFiles) -> None:
        self.shown_files: dict[str | None, ShownFiles] = {None: shown_files}
        """What each sub-agent has been shown, and (None) the session's own agent: an edit is known to the one that
        made it."""
        self.lock = asyncio.Lock()
        self.listeners: list[Callable[[Proposal], object]] = []
        self.stored: dict[str, Proposal] = {}
        """Proposals of a reopened session; they become live when somebody asks for them."""
        self._live: dict[str, LiveProposal] = {}
        """Oldest first."""
        self._numbers: dict[str, int] = {}
        """Proposal → its place among all, the oldest first."""
        self._by_path: dict[str, dict[str, None]] = {}
        """Path → the proposals that change something there."""
        self._published = asyncio.Event()
        """Set when a proposal is next published; then a new event takes its place."""

    def __iter__(self) -> Iterator[LiveProposal]:
        """Oldest first."""
        return iter(self._live.values())

    def __reversed__(self) -> Iterator[LiveProposal]:
        return reversed(self._live.values())

    def add(self, live: LiveProposal) -> None:
        """Add it if it is not among them yet."""
        self._numbers.setdefault(live.proposal_id, len(self._numbers))
        self._live[live.proposal_id] = live

    def restore(self, proposals: Iterable[Proposal]) -> None:
        """Take over the proposals of a reopened session."""
        self.stored = {proposal.proposal_id: proposal for proposal in proposals}
        for proposal in self.stored.values():
            self._numbers.setdefault(proposal.proposal_id, len(self._numbers))
            self._note_paths(proposal)

    def find(self, proposal_id: str) -> LiveProposal:
        """Raises `AmanuError` (proposalNotFound)."""
        live = self._live.get(proposal_id)
        if live is None and proposal_id in self.stored:
            live = self._live[proposal_id] = LiveProposal.load(self.stored.pop(proposal_id))
        if live is None:
            raise AmanuError("proposalNotFound", f"There is no proposal {proposal_id} in this session.")
        return live

    def of_call(self, call_id: str) -> LiveProposal | None:
        """The last one that call had a part in."""
        return next((live for live in reversed(self) if call_id in live.tool_call_ids), None)

    def at(self, path: Path) -> list[LiveProposal]:
        """The proposals that change something at that path, oldest first."""
        ids = sorted(self._by_path.get(str(path), ()), key=lambda each: self._numbers.get(each, 0))
        return list(map(self.find, ids))

    def later_at(self, path: Path, than: LiveProposal) -> list[LiveProposal]:
        """The later ones of these, and that one itself."""
        number = self._numbers.get(than.proposal_id, 0)
        return [live for live in self.at(path) if self._numbers.get(live.proposal_id, 0) >= number]

    def shown_to(self, live: LiveProposal) -> ShownFiles:
        """What its agent has been shown; nothing if that agent is gone."""
        return self.shown_files.get(live.agent_id) or ShownFiles()

    def removed_texts(self, path: Path, except_ids: Collection[str]) -> list[str]:
        """What applied hunks, except those named, removed from the file at that path."""
        stored_hunks = (
            file.hunks for proposal in self.stored.values() for file in proposal.files if Path(file.path) == path
        )
        live_hunks = (file.hunks for live in self for file in live.files_at(path))
        return [
            hunk.old_text
            for hunks in (*stored_hunks, *live_hunks)
            for hunk in hunks
            if hunk.state == "applied" and hunk.old_text and hunk.hunk_id not in except_ids
        ]

    def publish(self, live: LiveProposal) -> Proposal:
        """Tell the listeners about a new version of it."""
        self._published.set()
        self._published = asyncio.Event()
        live.version += 1
        live.update_runs()
        return self.tell(live)

    def tell(self, live: LiveProposal) -> Proposal:
        """Tell the listeners about it under the same version, when only what accompanies the hunks changed: whoever is
        deciding just now decides on what they saw."""
        proposal = live.wire()
        self._note_paths(proposal)
        for listener in self.listeners:
            listener(proposal)
        return proposal

    def _note_paths(self, proposal: Proposal) -> None:
        for change in (*proposal.files, *proposal.rows):
            for path in (change.path, change.new_path):
                if path is not None:
                    self._by_path.setdefault(path, {})[proposal.proposal_id] = None

    async def wait_for_next(self) -> None:
        """Wait until some proposal is published."""
        await self._published.wait()
