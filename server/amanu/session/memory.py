"""Project memory, as the model is told it (`context/memory.py`), and as the user sees it and strikes from it
(`/memory`). The model proposes what is to be remembered (`tools/edits/save_memory.py`).

Striking is the user's own act, so nobody is asked. It goes the way of an edit that was accepted all the same: through
the editor that has the file open, with a pre-image, to be undone, and a trusted workspace stays trusted.
"""

import asyncio
import contextlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from amanu.context.memory import ProjectMemory, RecalledMemory
from amanu.context.memory_files import MAX_FILE, NAMES, MemoryFiles, first_lines
from amanu.context.plugins import memory_files
from amanu.context.remembered_facts import MAX_FACT, Fact, facts, without_fact
from amanu.core.agent import AgentRun
from amanu.core.conversation import Memory
from amanu.core.listeners import TurnListener
from amanu.core.session_part import Request, SessionPart, SlashCommand, Slot
from amanu.core.tool import CallContext, ToolError
from amanu.proposals.model import FileEdit
from amanu.session.core import SessionCore
from amanu.workspace.text_file import FileText, split_lines
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Proposal, UserMessage
from amanu_protocol.requests import (
    MemoryListResult,
    MemoryStrikeParams,
    MemoryStrikeResult,
    RememberedFact,
    SessionParams,
)

CODE = "memory"
"""Code of the notices."""
MAX_SHOWN = 100
"""Facts in a list."""
USAGE = "Usage: /memory, or /memory strike NUMBER"


@dataclass(frozen=True)
class _FoundFact:
    base: FileText
    fact: Fact
    scope: Literal["user", "project"]

    @property
    def text(self) -> str:
        """As it is shown. The user may have written more than a fact that is proposed can have."""
        text = self.fact.text
        return text if len(text) <= MAX_FACT else f"{text[: MAX_FACT - 1]}…"


@dataclass(frozen=True)
class _Found:
    facts: Sequence[_FoundFact]
    not_listed: Sequence[str]
    """What is there and is not listed: a sentence each, for the user."""


class SessionMemory(SessionPart):
    """The memory of one session. Requests raise `AmanuError`."""

    def __init__(self, core: SessionCore) -> None:
        home = core.services.home
        self._files = MemoryFiles(
            core.workspace,
            home.memory,
            core.approvals.allowed,
            covers=core.covers,
            of_plugins=lambda: memory_files(home.plugins),
        )
        self._core = core
        self._told = ProjectMemory(self._files, core.conversation, core.trusted)
        self._recalled = RecalledMemory(None, None)
        self._workspace = core.workspace
        self._proposals = core.proposals
        self._notices = core.notices
        self._emit = core.emit
        self._require_writable = core.access.require_writable
        self._trusted = core.trusted
        self._listed: Sequence[RememberedFact] | None = None
        """What the numbers mean in the notice that was shown last."""

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        return {
            "amanu/memory/list": Request(SessionParams, lambda part, p, c: part.list(), reads=True),
            "amanu/memory/strike": Request(MemoryStrikeParams, lambda part, p, c: part.strike(p.number, p.text)),
        }

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [
            SlashCommand(
                "memory",
                "Show what is remembered for later sessions, or strike one fact",
                lambda part, arguments: part.answer(arguments),
                "[strike NUMBER]",
            )
        ]

    # For the model ----------------------------------------------------------------------------------

    async def prepare_note(self, window: int) -> None:
        self._recalled = await self._told.recall(window)

    @property
    def system(self) -> Memory | None:
        """The memory part of the system prompt, if the next prompt changes it."""
        return self._recalled.system

    def note(self) -> str:
        return "" if self._recalled.notice is None else self._recalled.notice.text

    def on_prompt(self, message: UserMessage) -> None:
        if (notice := self._recalled.notice) is not None:
            self._emit(ItemCompleted(item=notice.notice(f"{message.item_id}.memory", message.turn_id)))
        self._recalled = RecalledMemory(None, None)

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"context": [self._told]} if self._core.is_chat(run) else {}

    # For the user -----------------------------------------------------------------------------------

    async def list(self) -> MemoryListResult:
        found = await self._find()
        scan = await asyncio.to_thread(lambda: self._files.base(trusted=self._trusted()))
        numbered = self._numbered(found.facts[:MAX_SHOWN])
        files = [file.path for file in scan.files]
        remarks = [*found.not_listed, f"Memory files in use: {', '.join(files) or 'none'}.", *scan.left_out]
        if not found.facts and not found.not_listed:
            remarks.insert(0, "Nothing is remembered yet. Ask the agent to remember something.")
        if (more := len(found.facts) - len(numbered)) > 0:
            remarks.insert(0, f"… and {more} more; see the files.")
        return MemoryListResult(facts=[*numbered], files=files, summary=self._summary(numbered, remarks))

    async def strike(self, number: int, text: str) -> MemoryStrikeResult:
        """Take the fact with that number and text out of its file."""
        self._require_writable()
        found = (await self._find()).facts
        if number > len(found) or found[number - 1].text != text:
            raise AmanuError(
                "invalidParams",
                "Nothing was struck: that number now belongs to another fact.",
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

    async def answer(self, arguments: str) -> None:
        """Answer `/memory` with those arguments, in a notice."""
        match arguments.split():
            case []:
                text = await self._list_in_notice()
            case ["strike", number] if number.isdecimal():
                text = await self._strike_listed(int(number))
            case _:
                raise AmanuError("invalidParams", USAGE)
        self._notices.report_on_session(CODE, "info", text)
        await self._emit.durable()

    async def _list_in_notice(self) -> str:
        listed = await self.list()
        self._listed = listed.facts
        return listed.summary

    async def _strike_listed(self, number: int) -> str:
        """Strike what the user was shown under that number."""
        listed = self._listed
        if listed is None:
            return f"Nothing was struck: look at the numbers first.\n{await self._list_in_notice()}"
        if not 0 < number <= len(listed):
            raise AmanuError("invalidParams", f"There is no fact {number}.", hint="Show the list with /memory.")
        done = (await self.strike(number, listed[number - 1].text)).summary
        return f"{done}\n{await self._list_in_notice()}"

    async def _change(self, struck: _FoundFact) -> Proposal:
        """Raises `ToolError` when the file could not be changed."""
        call_id = f"{CODE}-{secrets.token_hex(6)}"  # a turn of its own: going back to before another leaves it alone
        edit = FileEdit(struck.base, await asyncio.to_thread(without_fact, struck.base.text, struck.fact))
        proposal = await self._proposals.propose(CallContext(call_id, call_id, 0), [edit])
        proposal = await self._proposals.accept_all(proposal.proposal_id)
        failed = [hunk for file in proposal.files for hunk in file.hunks if hunk.state != "applied"]
        if failed:
            await self._proposals.reject_all(proposal.proposal_id, failed[0].reason)
            raise ToolError(failed[0].reason or "The file could not be changed.")
        return proposal

    # What there is ----------------------------------------------------------------------------------

    async def _find(self) -> _Found:
        """The facts of the user's own memory, then those of a trusted project's, as the user sees the files."""
        found: list[_FoundFact] = []
        not_listed: list[str] = []
        own = self._workspace.guard.memory
        paths = [*await asyncio.to_thread(self._of_project)]
        if paths and not self._trusted():
            not_listed.append(
                "What is remembered for this project is neither listed nor used: the folder is not trusted."
            )
            paths = []
        if own is not None and await asyncio.to_thread(own.is_symlink):
            not_listed.append(f"{own} is a link; its facts are not listed.")
            own = None
        for path in dict.fromkeys(paths if own is None else [own, *paths]):
            with contextlib.suppress(ToolError):  # a folder, a link that leads out: the summary says so
                if (base := await self._workspace.read_if_exists(path)) is not None:
                    scope = "user" if path == own else "project"
                    found += [_FoundFact(base, fact, scope) for fact in await asyncio.to_thread(_facts, base.text)]
        return _Found(found, not_listed)

    def _of_project(self) -> Sequence[Path]:
        """The files that facts may have been added to."""
        paths: list[Path] = []
        for path in (root / name for root in self._workspace.roots for name in NAMES):
            if os.path.lexists(path):
                with contextlib.suppress(ToolError):
                    paths.append(self._workspace.resolve(str(path)))
        return paths

    def _numbered(self, found: Sequence[_FoundFact]) -> Sequence[RememberedFact]:
        return [
            RememberedFact(number=number, scope=each.scope, path=str(each.base.path), text=each.text)
            for number, each in enumerate(found, 1)
        ]

    def _summary(self, remembered: Sequence[RememberedFact], remarks: Sequence[str]) -> str:
        lines: list[str] = []
        for path in dict.fromkeys(fact.path for fact in remembered):
            own = [fact for fact in remembered if fact.path == path]
            where = "for all projects" if own[0].scope == "user" else "for this project"
            lines.append(f"Remembered {where} ({self._workspace.display_path(Path(path))}):")
            lines += [f"  {fact.number}. {fact.text}" for fact in own]
        lines += remarks
        if remembered:
            lines.append("/memory strike NUMBER forgets one.")
        return "\n".join(lines)


def _facts(text: str) -> Sequence[Fact]:
    """The facts of as much of a file as models read; one that may go on behind that is left out."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_FILE:
        return facts(text)
    read = first_lines(data).decode("utf-8", "surrogatepass")
    return [fact for fact in facts(read) if fact.end < len(split_lines(read))]
