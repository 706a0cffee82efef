"""What a plain client's user is told unasked: that changes wait for them, and how the answer begins."""

import asyncio
from collections.abc import Sequence

from amanu.frontends.lsp.plain.change_marks import HunkMark, Mark
from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.text.amounts import plural
from amanu_protocol.items import Answer
from amanu_protocol.state import SessionState

SETTLED = 0.5
"""Seconds without another change: the edits of a step join one proposal, one after the other."""
_PLACES = 5
"""Lines that are named."""
_FILES = 3


class Announcements:
    """Of one client. Each proposal is announced once, and each turn's answer."""

    def __init__(self, editor: PlainEditor) -> None:
        self._editor = editor
        self._proposals: set[str] = set()
        self._fresh: list[Mark] = []
        self._due: asyncio.TimerHandle | None = None

    def update(self, marks: Sequence[Mark]) -> None:
        """Take note of all changes that wait for the user."""
        self._fresh = [mark for mark in marks if mark.open and mark.proposal.proposal_id not in self._proposals]
        self.close()
        if self._fresh:
            self._due = asyncio.get_running_loop().call_later(SETTLED, self._announce_proposals)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _announce_proposals(self) -> None:
        self._due = None
        self._proposals |= {mark.proposal.proposal_id for mark in self._fresh}
        self._editor.say(f"Amanu proposes {summary(self._fresh)}")

    def announce_answer(self, state: SessionState, turn_id: str) -> None:
        """That turn has ended as it should."""
        answers = [
            item
            for item in state.items
            if isinstance(item, Answer) and item.turn_id == turn_id and item.agent_id is None
        ]
        lines = (line.strip(" #*_>`") for line in answers[-1].text.splitlines()) if answers else iter(())
        if first := next(filter(None, lines), ""):
            self._editor.say(f"Amanu: {first}")


def summary(marks: Sequence[Mark]) -> str:
    """The number of changes in each file, with the lines of the first hunks."""
    files: dict[str, list[Mark]] = {}
    for mark in marks:
        files.setdefault(mark.name, []).append(mark)
    parts: list[str] = []
    for name, changes in list(files.items())[:_FILES]:
        hunks = [mark for mark in changes if isinstance(mark, HunkMark)]
        places = ", ".join(str(mark.range.start.line + 1) for mark in hunks[:_PLACES])
        ellipsis = ", …" if len(hunks) > _PLACES else ""
        parts.append(f"{plural(len(changes), 'change')} in {name}{f' (line {places}{ellipsis})' if places else ''}")
    return "; ".join(parts) + ("; …" if len(files) > _FILES else "")
