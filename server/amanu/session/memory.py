"""What is remembered for later sessions: shown to the user, and struck by them (`/memory`). The model proposes what is
to be remembered (`tools/edits/save_memory.py`).

Striking is the user's own act, so nobody is asked. It goes the way of an edit that was accepted all the same: through
the editor that has the file open, with a pre-image, to be undone, and a trusted workspace stays trusted.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.context.memory_files import NAMES, MemoryFiles
from amanu.context.remembered_facts import Fact, facts, without_fact
from amanu.core.tool import CallContext, ToolError
from amanu.proposals.proposals import FileEdit
from amanu.session.core import SessionCore
from amanu.workspace.text_file import FileText
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.requests import MemoryListResult, MemoryStrikeResult, RememberedFact

CODE = "memory"
"""Code of the notices."""
USAGE = "Usage: /memory, or /memory strike NUMBER"


@dataclass(frozen=True)
class _FoundFact:
    base: FileText
    fact: Fact
    scope: Literal["user", "project"]


class SessionMemory:
    """One session's view of it. Methods raise `AmanuError`."""

    def __init__(self, core: SessionCore, files: MemoryFiles) -> None:
        self._workspace = core.workspace
        self._proposals = core.proposals
        self._notices = core.notices
        self._emit = core.emit
        self._require_writable = core.access.require_writable
        self._trusted = core.trusted
        self._files = files
        self._listed: Sequence[RememberedFact] | None = None
        """What the numbers mean that the user was shown last."""

    async def list(self) -> MemoryListResult:
        found = await self._find()
        scan = await asyncio.to_thread(lambda: self._files.base(trusted=self._trusted()))
        numbered = self._numbered(found)
        files = [file.path for file in scan.files]
        self._listed = numbered
        return MemoryListResult(facts=[*numbered], files=files, summary=self._summary(numbered, files, scan.left_out))

    async def strike(self, number: int, text: str) -> MemoryStrikeResult:
        """Take the fact with that number and text out of its file."""
        self._require_writable()
        found = await self._find()
        if number > len(found) or found[number - 1].fact.text != text:
            raise AmanuError(
                "invalidParams",
                "Nothing was struck: that number stands for something else by now.",
                hint="Show the list again with /memory.",
            )
        struck = found[number - 1]
        try:
            proposal = await self._change(struck)
        except ToolError as error:
            raise AmanuError("invalidParams", f"Nothing was struck. {error}") from None
        await self._emit.durable()
        unsaved = any(file.unsaved for file in proposal.files)
        name = self._workspace.display_path(struck.base.path)
        return MemoryStrikeResult(
            summary=f"Struck from {name}: {text}" + (" (in your editor; not saved yet)" if unsaved else "")
        )

    async def carry_out(self, argument: str) -> None:
        """`/memory` with that argument: the answer is a notice."""
        match argument.split():
            case []:
                text = (await self.list()).summary
            case ["strike", number] if number.isdecimal():
                text = await self._strike_listed(int(number))
            case _:
                raise AmanuError("invalidParams", USAGE)
        self._notices.report_on_session(CODE, "info", text)
        await self._emit.durable()

    async def _strike_listed(self, number: int) -> str:
        """Strike what the user was shown under that number."""
        listed = self._listed
        if listed is None:
            return f"Nothing was struck: see first which number is which.\n{(await self.list()).summary}"
        if not 0 < number <= len(listed):
            raise AmanuError("invalidParams", f"There is no fact {number}.", hint="Show the list with /memory.")
        done = (await self.strike(number, listed[number - 1].text)).summary
        return f"{done}\n{(await self.list()).summary}"

    async def _change(self, struck: _FoundFact) -> Proposal:
        """Raises `ToolError` when the file could not be changed."""
        call_id = f"{CODE}-{secrets.token_hex(6)}"  # a turn of its own: going back to before another leaves it alone
        edit = FileEdit(struck.base, without_fact(struck.base.text, struck.fact))
        proposal = await self._proposals.propose(CallContext(call_id, call_id, 0), [edit])
        proposal = await self._proposals.accept_all(proposal.proposal_id)
        failed = [hunk for file in proposal.files for hunk in file.hunks if hunk.state != "applied"]
        if failed:
            await self._proposals.reject_all(proposal.proposal_id, failed[0].reason)
            raise ToolError(failed[0].reason or "The file could not be changed.")
        return proposal

    # What there is ----------------------------------------------------------------------------------

    async def _find(self) -> Sequence[_FoundFact]:
        """The facts of the user's own memory, then those of the project's, as the user sees the files."""
        found: list[_FoundFact] = []
        own = self._workspace.guard.memory
        paths = [*await asyncio.to_thread(self._of_project)]
        for path in dict.fromkeys(paths if own is None else [own, *paths]):
            with contextlib.suppress(ToolError):  # a folder, a link that leads out: the summary says so
                if (base := await self._workspace.read_if_exists(path)) is not None:
                    scope = "user" if path == own else "project"
                    found += [_FoundFact(base, fact, scope) for fact in await asyncio.to_thread(facts, base.text)]
        return found

    def _of_project(self) -> Sequence[Path]:
        """The files that facts may have been added to."""
        paths: list[Path] = []
        for root in self._workspace.roots:
            for name in NAMES:
                with contextlib.suppress(ToolError):
                    paths.append(self._workspace.resolve(str(root / name)))
        return paths

    def _numbered(self, found: Sequence[_FoundFact]) -> Sequence[RememberedFact]:
        return [
            RememberedFact(number=number, scope=each.scope, path=str(each.base.path), text=each.fact.text)
            for number, each in enumerate(found, 1)
        ]

    def _summary(self, remembered: Sequence[RememberedFact], files: Sequence[str], left_out: Sequence[str]) -> str:
        lines: list[str] = []
        for path in dict.fromkeys(fact.path for fact in remembered):
            own = [fact for fact in remembered if fact.path == path]
            where = "for all projects" if own[0].scope == "user" else "for this project"
            unused = "" if own[0].scope == "user" or self._trusted() else "; not used: the folder is not trusted"
            lines.append(f"Remembered {where} ({self._workspace.display_path(Path(path))}{unused}):")
            lines += [f"  {fact.number}. {fact.text}" for fact in own]
        if not remembered:
            lines.append("Nothing is remembered yet. Ask the agent to remember something.")
        lines.append(f"Memory files in use: {', '.join(files) or 'none'}.")
        lines += left_out
        if remembered:
            lines.append("/memory strike NUMBER forgets one.")
        return "\n".join(lines)
