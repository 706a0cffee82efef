"""Writes a session's audit log from its events: questions, decisions, calls, changes of files, mode, trust, sandbox."""

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from amanu.core.rules import MCP
from amanu.core.tool import ToolError
from amanu.storage.audit_log import AuditLog
from amanu.workspace.diff import compose
from amanu.workspace.encodings import encode
from amanu.workspace.hunks import replacements
from amanu.workspace.text_file import split_lines
from amanu_protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ItemChanged,
    ItemCompleted,
    JobChanged,
    ProposalChanged,
    SessionChanged,
)
from amanu_protocol.items import Approval, Decision, HunkState, Job, Proposal, ProposedFile, Row, ToolCall
from amanu_protocol.requests import AuditKind
from amanu_protocol.state import SessionState

_NOTES = 8000  # characters at the end of a command's output that are searched
_PROTECTED_FILES = {
    "new": re.compile(r"^Created in a new folder, .*?: (.+)\. Look at it before", re.M),
    "aside": re.compile(r"^Put aside, because .*?: (.+)\. It is now in", re.M),
    "back": re.compile(r"^Restored, because .*?: (.+)\. The command's version", re.M),
    "failed": re.compile(r"^Could not be put aside or restored, .*?: (.+)\. Tell the user", re.M),
}
_FATES = {"new": "created", "aside": "put aside", "back": "restored", "failed": "that could not be handled"}
"""What became of protected files, by the field of the entry."""
_EXIT = re.compile(r"^(?:Exit code: (-?\d+)|Ended by signal (\w+)\.|(The command was ended[ :].*))$", re.M)


@dataclass
class _Call:
    """What has been recorded of a call that has not ended."""

    decided: bool = False
    tried: bool = False
    digest: str = ""
    started: float | None = None


@dataclass
class AuditRecorder:
    """The audit log of one session. It gets each event once it has been folded."""

    audit: AuditLog
    state: SessionState
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _applied: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict[tuple[str, str], frozenset[str]])
    """(Proposal, path) → hunks that are in the file."""
    _changing: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict[tuple[str, str], frozenset[str]])
    """(Proposal, path) → hunks on their way into the file or out of it, including those a crash interrupted."""

    _rows: dict[str, HunkState] = field(default_factory=dict[str, HunkState])
    """Row id → its state, as it was last seen."""
    _last_hash: tuple[object, str | None] | None = None
    """What identifies the file text that was hashed last, and its hash."""
    _ended_jobs: set[str] = field(default_factory=set[str])
    """Background commands whose end is on record."""

    def __post_init__(self) -> None:
        self._ended_jobs |= {job.job_id for job in self.state.jobs if job.state != "running"}
        for proposal in self.state.proposals:
            for file in proposal.files:
                self._applied[proposal.proposal_id, file.path] = _hunks(file, "applied", "undoing")
                self._changing[proposal.proposal_id, file.path] = _hunks(file, "accepted", "undoing")
            self._rows |= {row.row_id: row.state for row in proposal.rows}

    def on_event(self, event: Event, position: int) -> None:
        """Record the event, which has that position in the session's journal."""
        match event:
            case ApprovalRequested(approval=approval):
                self._on_asked(approval, position)
            case ApprovalResolved(tool_call_id=call_id, decision=decision):
                self._on_decided(call_id, decision, position)
            case ItemChanged(item=ToolCall() as item):
                self._on_call_changed(item, position)
            case ItemCompleted(item=ToolCall() as item):
                self._on_call_ended(item, position)
            case ProposalChanged(proposal=proposal):
                self._on_proposal_changed(proposal.proposal_id, position)
            case JobChanged(job=job):
                self._on_job_changed(job, position)
            case SessionChanged():
                self._on_session_changed(event, position)
            case _:
                pass

    def record_start(self) -> None:
        """Record the mode and trust that a new session starts with."""
        state = self.state
        self.record(
            "mode",
            f"The session starts in mode {state.mode}.",
            mode=state.mode,
            model=state.model_id,
            roots=state.roots,
        )
        self.record("trust", f"The folder is {_trusted(state.trusted)}.", trusted=state.trusted, roots=state.roots)

    def record_server(self, text: str, **data: str) -> None:
        """Record what the user decided on an MCP server."""
        self.record("server", text, **data)

    def _on_asked(self, approval: Approval, position: int) -> None:
        call_id = approval.tool_call_id
        call = self._calls.setdefault(call_id, _Call())
        call.digest, call.decided, call.started = approval.digest, False, None
        fields = approval.model_dump(mode="json", exclude={"tool_call_id", "asked_at"}, exclude_defaults=True)
        self.record("asked", f"Asked: {approval.title}", call_id, record=position, **fields)

    def _on_decided(self, call_id: str, decision: Decision, position: int) -> None:
        call = self._calls.setdefault(call_id, _Call())
        if call.decided or (decision.trial and call.tried):
            return
        call.tried = call.tried or decision.trial
        call.decided = decision.outcome != "edited"  # what becomes of the user's own line is decided next
        who = decision.client or "a client" if decision.by == "user" else f"rule: {decision.rule}"
        fields = decision.model_dump(mode="json", exclude_defaults=True)
        where = "" if decision.place is None else f", to run {decision.place.words}"
        text = f"{decision.outcome.capitalize()} by {who}{where}."
        self.record("decided", text, call_id, record=position, digest=call.digest or None, **fields)
        if decision.by == "user" and decision.rule and decision.scope not in (None, "once"):
            text = f"Remembered for the {decision.scope}: {decision.rule}"
            self.record("rule", text, call_id, record=position, rule=decision.rule, scope=decision.scope)

    def _on_call_changed(self, item: ToolCall, position: int) -> None:
        if item.decision is not None:
            self._on_decided(item.item_id, item.decision, position)
        call = self._calls.setdefault(item.item_id, _Call())
        if item.state != "executing" or call.started is not None:
            return
        call.started = time.monotonic()
        is_command = item.effect == "run" and not item.tool.startswith(MCP)
        sandbox = item.sandbox or (self.state.sandbox if is_command else None)
        self.record(
            "started",
            f"Started: {item.title}",
            item.item_id,
            record=position,
            agent=item.agent_id,
            tool=item.tool,
            effect=item.effect,
            arguments=item.arguments,
            digest=call.digest or None,
            sandbox=sandbox and sandbox.model_dump(mode="json"),
            mode=self.state.mode,
        )

    def _on_call_ended(self, item: ToolCall, position: int) -> None:
        if item.decision is not None:
            self._on_decided(item.item_id, item.decision, position)
        call = self._calls.pop(item.item_id, _Call())
        output = item.output.encode("utf-8", "surrogatepass")
        sandbox = item.sandbox and item.sandbox.model_dump(mode="json")
        exit, obeyed = command_end(item)
        summary = "; ".join(f"protected files {_FATES[how]}: {names}" for how, names in obeyed.items())
        self.record(
            "ended",
            f"{item.state.capitalize()}: {item.title}{f' ({summary})' if summary else ''}",
            item.item_id,
            record=position,
            agent=item.agent_id,
            tool=item.tool,
            state=item.state,
            exit=exit,
            **obeyed,
            ms=None if call.started is None else round((time.monotonic() - call.started) * 1000),
            bytes=item.blob.size if item.blob else len(output),
            sha256=item.blob.blob_id if item.blob else hashlib.sha256(output).hexdigest(),
            sandbox=sandbox,
        )

    def _on_job_changed(self, job: Job, position: int) -> None:
        """Record the end of a background command, long after that of its call."""
        if job.state == "running" or job.job_id in self._ended_jobs:
            return
        self._ended_jobs.add(job.job_id)
        self.record(
            "ended",
            f"Background command {job.job_id} ended: {job.title} ({job.summary})",
            job.tool_call_id,
            record=position,
            state=job.state,
            exit=None if job.exit_code is None else str(job.exit_code),
            bytes=job.output_size,
            sandbox=job.sandbox and job.sandbox.model_dump(mode="json"),
        )

    def _on_proposal_changed(self, proposal_id: str, position: int) -> None:
        """Record changes of files from the folded state: the event may leave out whole texts."""
        proposal = next((proposal for proposal in self.state.proposals if proposal.proposal_id == proposal_id), None)
        if proposal is None:
            return
        for file in proposal.files:
            key = (proposal_id, file.path)
            applied_before, going = self._applied.get(key, frozenset()), self._changing.get(key, frozenset())
            applied, goes = _hunks(file, "applied", "undoing"), _hunks(file, "accepted", "undoing")
            self._applied[key], self._changing[key] = applied, goes
            if begins := goes - going:
                self._record_change("changing", proposal, file, begins - applied, begins & applied, position)
            if applied != applied_before:
                self._record_change(
                    "changed", proposal, file, applied - applied_before, applied_before - applied, position
                )
            if failed := going - goes - (applied ^ applied_before):
                self._record_change("changed", proposal, file, frozenset(), frozenset(), position, failed)

        for row in proposal.rows:
            former, self._rows[row.row_id] = self._rows.get(row.row_id), row.state
            if (change := _ROW_CHANGES.get((former, row.state))) is not None:
                self._record_row(*change, proposal, row, position)

    def _record_row(
        self, kind: Literal["changing", "changed"], label: str, proposal: Proposal, row: Row, position: int
    ) -> None:
        """Record a step of one row."""
        self.record(
            kind,
            f"{label} {' → '.join(filter(None, (row.path, row.new_path)))}: {row.title}",
            proposal.tool_call_ids[-1] if len(proposal.tool_call_ids) == 1 else None,
            record=position,
            path=row.path,
            change=row.kind,
            new_path=row.new_path,
            proposal=proposal.proposal_id,
            calls=proposal.tool_call_ids,
            row=row.row_id,
            decided_by=["user" if row.reviewed else "rule"],
            before=None if row.before is None else row.before.model_dump(mode="json", exclude_defaults=True),
            after=None if row.after is None else row.after.model_dump(mode="json", exclude_defaults=True),
            lines=[line.text for line in row.lines] or None,
            reason=row.reason,
        )

    def _record_change(
        self,
        kind: Literal["changing", "changed"],
        proposal: Proposal,
        file: ProposedFile,
        applied: frozenset[str],
        undone: frozenset[str],
        position: int,
        failed: frozenset[str] = frozenset(),
    ) -> None:
        """Record one change of a file. `failed` are hunks that could not be applied or undone."""
        deciders = {
            "user" if hunk.reviewed else "rule" for hunk in file.hunks if hunk.hunk_id in applied | undone | failed
        }
        self.record(
            kind,
            f"{_CHANGE_LABELS[kind, bool(applied), bool(failed)]} {file.path}",
            proposal.tool_call_ids[-1] if len(proposal.tool_call_ids) == 1 else None,
            record=position,
            path=file.path,
            change=file.change,
            new_path=file.new_path,
            proposal=proposal.proposal_id,
            calls=proposal.tool_call_ids,
            hunks=sorted(applied),
            undone=sorted(undone),
            failed=sorted(failed) or None,
            decided_by=sorted(deciders),
            base_sha256=file.base_sha256,
            result_sha256=partial(self._hash_with, file, "accepted" if kind == "changing" else "undoing"),
            encoding=file.encoding,
        )

    def _hash_with(self, file: ProposedFile, also: HunkState) -> str | None:
        """SHA-256 of the file with the hunks that are applied or in that state; None if the proposal does not determine
        it. Called in the thread that writes the log."""
        edits = replacements(file, lambda hunk: hunk.state in ("applied", also))
        made_of = (file.path, file.change, file.base_sha256, file.encoding, edits)
        if self._last_hash is None or self._last_hash[0] != made_of:  # a change is recorded before and after it is made
            data = _bytes_with(file, edits)
            self._last_hash = made_of, None if data is None else hashlib.sha256(data).hexdigest()
        return self._last_hash[1]

    def _on_session_changed(self, event: SessionChanged, position: int) -> None:
        if event.mode is not None:
            self.record("mode", f"The mode is now {event.mode}.", record=position, mode=event.mode)
        if event.trusted is not None:
            roots = self.state.roots
            self.record(
                "trust",
                f"The folder is {_trusted(event.trusted)}.",
                record=position,
                trusted=event.trusted,
                roots=roots,
            )
        if event.sandbox is not None:
            sandbox = event.sandbox.model_dump(mode="json")
            self.record("sandbox", f"Sandbox for commands: {event.sandbox.summary}", record=position, sandbox=sandbox)

    def record(self, kind: AuditKind, text: str, call_id: str | None = None, **data: object) -> None:
        self.audit.add(kind, text, session_id=self.state.session_id, tool_call_id=call_id, **data)


def _trusted(trusted: bool) -> str:
    return "trusted" if trusted else "not trusted"


_ROW_CHANGES: dict[tuple[HunkState | None, HunkState], tuple[Literal["changing", "changed"], str]] = {
    ("pending", "accepted"): ("changing", "Will change"),
    ("conflicted", "accepted"): ("changing", "Will change"),
    ("rejected", "accepted"): ("changing", "Will change"),
    ("reverted", "accepted"): ("changing", "Will change"),
    ("applied", "undoing"): ("changing", "Will undo changes in"),
    ("accepted", "applied"): ("changed", "Changed"),
    ("undoing", "reverted"): ("changed", "Undid changes in"),
    ("accepted", "conflicted"): ("changed", "Not changed:"),
    ("accepted", "pending"): ("changed", "Not changed:"),
    ("undoing", "applied"): ("changed", "Not changed:"),
}
"""State before and after → how it is recorded."""
_CHANGE_LABELS = {
    ("changing", True, False): "Will change",
    ("changing", False, False): "Will undo changes in",
    ("changed", True, False): "Changed",
    ("changed", False, False): "Undid changes in",
    ("changed", False, True): "Not changed:",
}
"""(Kind, whether hunks are applied, whether hunks failed) → how the entry begins."""


def _hunks(file: ProposedFile, *states: HunkState) -> frozenset[str]:
    return frozenset(hunk.hunk_id for hunk in file.hunks if hunk.state in states)


def _bytes_with(file: ProposedFile, edits: Sequence[tuple[int, int, str]]) -> bytes | None:
    if file.change == "delete" and edits:
        return b""
    if file.base_text is None:
        return None
    try:
        return encode(compose(split_lines(file.base_text), edits), file.encoding)
    except ToolError:
        return None


def command_end(item: ToolCall) -> tuple[str | None, dict[str, str]]:
    """How a command ended, and what became of protected files it made or changed, read from the end of its output."""
    tail = item.output[-_NOTES:]
    is_command = item.effect == "run" and not item.tool.startswith(MCP)  # a server may write what it likes
    matches = list(_EXIT.finditer(tail)) if is_command else []
    if not matches:
        return None, {}
    start = matches[-1].end()  # what stands before is the command's, which may write anything
    obeyed = {how: match[1] for how, pattern in _PROTECTED_FILES.items() if (match := pattern.search(tail, start))}
    return next((group for group in matches[-1].groups() if group), None), obeyed
