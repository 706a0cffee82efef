"""Runs Amanu's own checkers on applied edits, file by file. What an editor finds is in `editor_feedback.py`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amanu.workspace.diagnostics import FindingsChange

Check = Callable[[Path, str | None, str], Coroutine[Any, Any, FindingsChange]]
"""(path, old text or None for a new file, new text) → what that change did to the findings. Must not raise."""

log = logging.getLogger(__name__)


async def no_check(path: Path, old_text: str | None, new_text: str) -> FindingsChange:
    """A `Check` that finds nothing."""
    return FindingsChange()


@dataclass
class _Edit:
    text: str
    check: asyncio.Task[FindingsChange]


class AppliedChecks:
    """The checks of one session's applied edits: one for each file, of its last edit."""

    def __init__(self) -> None:
        self._edits: dict[Path, _Edit] = {}

    def start(self, path: Path, new_text: str, check: Coroutine[Any, Any, FindingsChange]) -> None:
        """Run the check of an edit of a file, instead of that of the edit before it."""
        self.forget(path)
        self._edits[path] = _Edit(new_text, asyncio.create_task(check))

    def forget(self, path: Path) -> None:
        """Drop the check of that file, running or done."""
        if (edit := self._edits.pop(path, None)) is not None:
            edit.check.cancel()

    def pending(self, path: Path) -> asyncio.Task[FindingsChange] | None:
        """The check of that file while it is running, else None."""
        edit = self._edits.get(path)
        return None if edit is None or edit.check.done() else edit.check

    def take(self, path: Path) -> tuple[str, FindingsChange] | None:
        """(The text that was checked, what was found), once. None while there is no result."""
        edit = self._edits.get(path)
        if edit is None or not edit.check.done():
            return None
        del self._edits[path]
        if edit.check.cancelled():
            return None
        if (error := edit.check.exception()) is not None:
            log.error("an applied edit could not be checked", exc_info=error)
            return None
        return edit.text, edit.check.result()

    @property
    def done(self) -> list[Path]:
        """The files whose result can be `take`n."""
        return [path for path, edit in self._edits.items() if edit.check.done()]

    async def close(self) -> None:
        """Cancel all checks."""
        checks = [edit.check for edit in self._edits.values()]
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
