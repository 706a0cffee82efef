"""What Amanu's own checkers find in edits that were applied, file by file. What an editor finds is in
`editor_feedback.py`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amanu.workspace.diagnostics import FindingsChange

Check = Callable[[Path, str | None, str], Coroutine[Any, Any, FindingsChange]]
"""Path, text before (None: it was created), text after → what that did to its findings. Never fails."""

log = logging.getLogger(__name__)


async def no_check(path: Path, old_text: str | None, new_text: str) -> FindingsChange:
    """Nobody checks."""
    return FindingsChange()


@dataclass
class _Edit:
    text: str
    check: asyncio.Task[FindingsChange]


class AppliedChecks:
    """Of one session."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._edits: dict[Path, _Edit] = {}

    def see(self, path: Path, old_text: str | None, new_text: str) -> None:
        """That file became another by an edit."""
        self.forget(path)
        self._edits[path] = _Edit(new_text, asyncio.create_task(self._check(path, old_text, new_text)))

    def forget(self, path: Path) -> None:
        """What was or is being found there is no news any more."""
        if (edit := self._edits.pop(path, None)) is not None:
            edit.check.cancel()

    def pending(self, path: Path) -> asyncio.Task[FindingsChange] | None:
        """The check of that file, while it runs."""
        edit = self._edits.get(path)
        return None if edit is None or edit.check.done() else edit.check

    def take(self, path: Path) -> tuple[str, FindingsChange] | None:
        """The text that was checked, and what was found; each once. None while nothing is known."""
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
        """The files of which there is something to `take`."""
        return [path for path, edit in self._edits.items() if edit.check.done()]

    async def close(self) -> None:
        """Check nothing any more."""
        checks = [edit.check for edit in self._edits.values()]
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
