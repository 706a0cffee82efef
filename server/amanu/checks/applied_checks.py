"""Runs Amanu's own checkers on applied edits, file by file. What an editor finds is in `editor_feedback.py`."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from amanu.workspace.diagnostics import FindingsChange, combine

Check = Callable[[Path, str | None, str], AsyncGenerator[FindingsChange]]
"""(path, old text or None for a new file, new text) → what that change did to the findings, as soon as each checker
knows. Must not raise."""

log = logging.getLogger(__name__)


async def no_check(path: Path, old_text: str | None, new_text: str) -> AsyncGenerator[FindingsChange]:
    """A `Check` that finds nothing."""
    for nothing in ():
        yield nothing


@dataclass
class _Edit:
    text: Callable[[], str]
    check: asyncio.Task[None]
    found: list[FindingsChange] = field(default_factory=list[FindingsChange])
    """What was found and not taken yet."""


class AppliedChecks:
    """The checks of one session's applied edits: one for each file, of its last edit."""

    def __init__(self) -> None:
        self._edits: dict[Path, _Edit] = {}

    def start(self, path: Path, new_text: Callable[[], str], check: AsyncGenerator[FindingsChange]) -> None:
        """Run the check of an edit of a file, instead of that of the edit before it. What it made of the file is not
        asked for before the check has found something, or is done."""
        self.forget(path)
        found: list[FindingsChange] = []
        self._edits[path] = _Edit(new_text, asyncio.create_task(_collect(check, found)), found)

    def forget(self, path: Path) -> None:
        """Drop the check of that file, running or done."""
        if (edit := self._edits.pop(path, None)) is not None:
            edit.check.cancel()

    def pending(self, path: Path) -> asyncio.Task[None] | None:
        """The check of that file while it is running, else None."""
        edit = self._edits.get(path)
        return None if edit is None or edit.check.done() else edit.check

    def take(self, path: Path) -> tuple[str, FindingsChange] | None:
        """(The text that was checked, what was found so far), each finding once. None while there is nothing."""
        edit = self._edits.get(path)
        if edit is None or not (edit.found or edit.check.done()):
            return None
        found = combine(edit.found)
        edit.found.clear()
        if edit.check.done():
            del self._edits[path]
            if edit.check.cancelled():
                return None
            if (error := edit.check.exception()) is not None:
                log.error("an applied edit could not be checked", exc_info=error)
        return edit.text(), found

    @property
    def known(self) -> list[Path]:
        """The files of which something can be `take`n."""
        return [path for path, edit in self._edits.items() if edit.found or edit.check.done()]

    async def close(self) -> None:
        """Cancel all checks."""
        checks = [edit.check for edit in self._edits.values()]
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)


async def _collect(check: AsyncGenerator[FindingsChange], found: list[FindingsChange]) -> None:
    async with aclosing(check):
        async for change in check:
            found.append(change)
