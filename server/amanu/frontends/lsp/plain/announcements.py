"""What a plain client's user is told unasked: that changes wait for them, and how the answer begins."""

import asyncio
from collections.abc import Sequence

from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.frontends.lsp.plain.hunk_marks import Mark
from amanu.text.display import one_line
from amanu_protocol.items import Answer
from amanu_protocol.state import SessionState

SETTLED = 0.5
"""Seconds without another hunk: the edits of a step join one proposal, one after the other."""
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
        """These hunks are open now."""
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
        self._editor.say(f"Amanu proposes {_summary(self._fresh)}")

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


def _summary(marks: Sequence[Mark]) -> str:
    files: dict[str, list[Mark]] = {}
    for mark in marks:
        files.setdefault(mark.path.name, []).append(mark)
    parts: list[str] = []
    for name, lines in list(files.items())[:_FILES]:
        places = ", ".join(str(mark.range.start.line + 1) for mark in lines[:_PLACES])
        ellipsis = ", …" if len(lines) > _PLACES else ""
        count = f"{len(lines)} change{'s' * (len(lines) != 1)}"
        parts.append(f"{count} in {one_line(name)} (line {places}{ellipsis})")
    return "; ".join(parts) + ("; …" if len(files) > _FILES else "")
