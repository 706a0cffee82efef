"""`amanu sessions diff, accept, reject, undo`: a session's changes, seen and decided without a chat. `amanu run` does
the same when its prompt is a slash command like `/accept session`."""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from amanu.cli import exits
from amanu.cli.console import open_console
from amanu.cli.diff import relative, show_plain_diff
from amanu.cli.text import one_line, visible
from amanu.client.daemon_client import DaemonClient
from amanu.client.session_view import attach
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, HunkState, Proposal, ProposedFile, Row
from amanu_protocol.labels import IGNORED
from amanu_protocol.state import SessionState

Decision = Literal["accept", "reject", "undo", "redo", "keep"]
Verb = Literal["diff", "accept", "reject", "undo", "redo", "keep"]

_OPEN: Collection[HunkState] = ("pending", "conflicted")
_CHOOSES: dict[Decision, Callable[[Hunk | Row], bool]] = {
    "accept": lambda change: change.state in _OPEN,
    "reject": lambda change: change.state in _OPEN,
    "undo": lambda change: change.state == "applied",
    "redo": lambda change: change.state == "reverted",
    "keep": lambda change: change.state == "applied" and not change.reviewed,
}
_RESULT: dict[Decision, tuple[HunkState, str]] = {
    "accept": ("applied", "applied"),
    "reject": ("rejected", "rejected"),
    "undo": ("reverted", "undone"),
    "redo": ("applied", "applied"),
    "keep": ("applied", "kept"),
}
"""Decision → the state that it leads to, and the word for it."""
_TITLES = {"create": "new file", "delete": "deleted"}


@dataclass(frozen=True)
class Chosen:
    """The changes of a session that are meant: all, those of the latest turn that has any, or those at some paths."""

    paths: Sequence[str] = ()
    """Paths as the user typed them; a folder stands for all that is in it."""
    latest_turn: bool = False


@dataclass(frozen=True)
class ChangesPrompt:
    """A prompt that is nothing but a slash command about a session's changes, such as `/accept session`."""

    verb: Verb
    chosen: Chosen


def read_changes_prompt(prompt: str) -> ChangesPrompt | None:
    """The prompt as a slash command about changes, or None. Raises `AmanuError` if its arguments are wrong."""
    words = prompt.strip().split(maxsplit=2)
    verb = words[0].removeprefix("/") if words else ""
    if not words or not words[0].startswith("/") or verb not in get_args(Verb):
        return None
    match words[1:]:
        case [] | ["turn"]:
            chosen = Chosen(latest_turn=True)
        case ["session"]:
            chosen = Chosen()
        case ["file", path]:
            chosen = Chosen([path])
        case _:
            raise AmanuError("invalidParams", f"Usage: /{verb} [turn | session | file PATH]")
    return ChangesPrompt(cast("Verb", verb), chosen)


async def show_patch(client: DaemonClient, session_id: str, chosen: Chosen, *, applied: bool, form: str) -> int:
    """Print the open or the applied changes in that form: as a patch, as JSON, or (`stat`) a line for each file.
    Returns the exit code."""
    state = (await attach(client, session_id)).state

    def is_meant(change: Hunk | Row) -> bool:
        return change.state == "applied" if applied else change.state in _OPEN

    paths, turn_id = _limits(state, chosen, is_meant, "show")
    params = r.ProposalPatchParams(
        session_id=session_id, state="applied" if applied else "open", turn_id=turn_id, paths=paths
    )
    result = await client.request("amanu/proposal/patch", params, r.ProposalPatchResult)
    code = exits.DENIED if result.left else exits.OK
    if form == "json":
        _print_json({"sessionId": session_id, **result.model_dump(mode="json"), "exitCode": code})
        return code
    if form == "stat":
        _print_files(result.files, state)
    elif sys.stdout.isatty():
        show_plain_diff(open_console(sys.stdout), result.patch)
    else:
        sys.stdout.buffer.write(result.patch.encode())
    for left in result.left:
        print(visible(f"not in the patch: {_name(left.path, state)}: {one_line(left.reason)}"), file=sys.stderr)
    if not result.files and not result.left:
        hint = "" if applied else " --applied shows what was applied."
        print(f"Nothing {'is applied' if applied else 'waits for a decision'}.{hint}", file=sys.stderr)
    return code


async def decide(
    client: DaemonClient, session_id: str, decision: Decision, chosen: Chosen, *, as_json: bool = False
) -> int:
    """Decide the chosen changes and print what became of them. Returns the exit code."""
    state = (await attach(client, session_id)).state
    paths, turn_id = _limits(state, chosen, _CHOOSES[decision], decision)
    proposals = [each for each in state.proposals if turn_id in (None, each.turn_id)]
    outcomes: list[_Outcome] = []
    note = ""
    for proposal in reversed(proposals) if decision == "undo" else proposals:
        parts = [part for part in _parts(proposal) if _is_named(part, paths) and _is_meant(part, decision, state)]
        wanted = [change for part in parts for change in part.changes if _CHOOSES[decision](change)]
        if wanted:
            after, reasons = await _decided(client, session_id, decision, proposal, wanted)
            outcomes += _outcomes(decision, after, {_id(change) for change in wanted}, proposal, reasons)
    if decision == "undo" and not paths:
        note = await _not_undone(client, session_id, turn_id)
    code = exits.OK if all(each.is_done for each in outcomes) and not note else exits.DENIED
    if as_json:
        changes = [each.as_json(state) for each in outcomes]
        _print_json({"sessionId": session_id, "decision": decision, "changes": changes, "note": note, "exitCode": code})
        return code
    for outcome in outcomes:
        print(visible(outcome.line(decision, state)))
    for text in filter(None, (note, "" if outcomes else f"There is nothing to {decision}.")):
        print(visible(text), file=sys.stderr)
    return code


async def carry_out(client: DaemonClient, session_id: str, prompt: ChangesPrompt, *, as_json: bool) -> int:
    """Carry out what a prompt said. Returns the exit code."""
    if prompt.verb == "diff":
        return await show_patch(client, session_id, prompt.chosen, applied=True, form="json" if as_json else "patch")
    return await decide(client, session_id, prompt.verb, prompt.chosen, as_json=as_json)


@dataclass(frozen=True)
class _Part:
    """The hunks of a file, or a row."""

    of: ProposedFile | Row
    changes: Sequence[Hunk | Row]

    @property
    def title(self) -> str:
        """One line to go after the path."""
        return self.of.title if isinstance(self.of, Row) else _TITLES.get(self.of.change, "")

    @property
    def paths(self) -> list[str]:
        return [path for path in (self.of.path, self.of.new_path) if path is not None]


@dataclass(frozen=True)
class _Outcome:
    """The fate of the changes to one file, or of a row."""

    part: _Part
    is_done: bool
    asked: bool
    """False: it was decided along with what needs it, or what it needs."""
    reasons: Sequence[str]

    def line(self, decision: Decision, state: SessionState) -> str:
        word = _RESULT[decision][1] if self.is_done else f"not {_RESULT[decision][1]}"
        name = " → ".join(_name(path, state) for path in self.part.paths)
        title = f" ({one_line(self.part.title)})" if self.part.title else ""
        also = "" if self.asked else ", which is needed" if decision in ("accept", "redo") else ", which needs it"
        why = f": {one_line(' '.join(self.reasons))}" if self.reasons and not self.is_done else ""
        return f"{word:11} {name}{title}{also}{why}"

    def as_json(self, state: SessionState) -> dict[str, Any]:
        of = self.part.of
        return {
            "path": of.path,
            "relativePath": os.path.relpath(of.path, _root(of.path, state)),
            "newPath": of.new_path,
            "kind": of.kind if isinstance(of, Row) else of.change,
            "title": self.part.title,
            "states": list(dict.fromkeys(change.state for change in self.part.changes)),
            "done": self.is_done,
            "asked": self.asked,
            "reasons": list(self.reasons),
        }


async def _decided(
    client: DaemonClient, session_id: str, decision: Decision, proposal: Proposal, wanted: Sequence[Hunk | Row]
) -> tuple[Proposal, dict[str, str]]:
    """Decide these changes. Returns the proposal afterwards, and change id → why it was not undone. Raises
    `AmanuError`."""
    hunk_ids = [change.hunk_id for change in wanted if isinstance(change, Hunk)]
    row_ids = [change.row_id for change in wanted if isinstance(change, Row)]
    if decision == "undo":
        scope = r.EditScope(proposal_id=proposal.proposal_id, hunk_ids=hunk_ids, row_ids=row_ids)
        undone = await client.request(
            "amanu/proposal/undo", r.ProposalUndoParams(session_id=session_id, scope=scope), r.ProposalUndoResult
        )
        reasons = {skipped.hunk_id: skipped.reason for file in undone.files for skipped in file.skipped}
        state = (await attach(client, session_id)).state
        return next(each for each in state.proposals if each.proposal_id == proposal.proposal_id), reasons
    params = r.ProposalResolveParams(
        session_id=session_id,
        proposal_id=proposal.proposal_id,
        version=proposal.version,
        hunks=[r.HunkDecision(hunk_id=hunk_id, decision=decision) for hunk_id in hunk_ids],
        rows=[r.RowDecision(row_id=row_id, decision=decision) for row_id in row_ids],
    )
    result = await client.request("amanu/proposal/resolve", params, r.ProposalResolveResult)
    if result.status == "tooSoon":
        raise AmanuError("internalError", IGNORED["tooSoon"])
    return result.proposal, {}


async def _not_undone(client: DaemonClient, session_id: str, turn_id: str | None) -> str:
    """The sentence that names what cannot be undone; "" if all can."""
    params = r.ProposalUndoParams(session_id=session_id, scope=r.EditScope(turn_id=turn_id), dry_run=True)
    return (await client.request("amanu/proposal/undo", params, r.ProposalUndoResult)).note


def _outcomes(
    decision: Decision, after: Proposal, wanted: Collection[str], before: Proposal, reasons: dict[str, str]
) -> Iterator[_Outcome]:
    former = {_id(change): change.state for change in before.changes}
    for part in _parts(after):
        ids = [_id(change) for change in part.changes]
        asked = [change for change in part.changes if _id(change) in wanted]
        changed = [change for change in part.changes if change.state != former.get(_id(change))]
        if asked or changed:
            is_done = all(change.state == _RESULT[decision][0] for change in asked or changed)
            why = [reasons.get(change_id) or change.reason for change_id, change in zip(ids, part.changes, strict=True)]
            yield _Outcome(part, is_done, bool(asked), list(dict.fromkeys(filter(None, why))))


def _limits(
    state: SessionState, chosen: Chosen, is_meant: Callable[[Hunk | Row], bool], verb: str
) -> tuple[list[str], str | None]:
    """The absolute paths, and the turn (None: any). Raises `AmanuError` for a path at which nothing `is_meant`."""
    parts = [
        (proposal.turn_id, part)
        for proposal in state.proposals
        for part in _parts(proposal)
        if any(map(is_meant, part.changes))
    ]
    paths: list[str] = []
    for typed in chosen.paths:
        bases = [Path.cwd(), *map(Path, state.roots)]
        found = [os.path.normpath(base / typed) for base in bases]
        path = next((path for path in found if any(_is_named(part, [path]) for _, part in parts)), None)
        if path is None:
            names = ", ".join(dict.fromkeys(_name(part.of.path, state) for _, part in parts))
            raise AmanuError(
                "invalidParams",
                f"There is nothing to {verb} at {visible(typed)}.",
                hint=f"Changes are at: {names}." if names else "",
            )
        paths.append(path)
    latest = parts[-1][0] if parts and chosen.latest_turn else None
    return paths, latest


def _parts(proposal: Proposal) -> list[_Part]:
    return [*(_Part(file, file.hunks) for file in proposal.files), *(_Part(row, [row]) for row in proposal.rows)]


def _is_named(part: _Part, paths: Sequence[str]) -> bool:
    return not paths or any(Path(path).is_relative_to(named) for path in part.paths for named in paths)


def _is_meant(part: _Part, decision: Decision, state: SessionState) -> bool:
    """Whether the part is meant where nothing is named: a plan, which is outside the workspace, is never undone."""
    return decision in ("accept", "reject") or any(Path(part.of.path).is_relative_to(root) for root in state.roots)


def _id(change: Hunk | Row) -> str:
    return change.hunk_id if isinstance(change, Hunk) else change.row_id


def _root(path: str, state: SessionState) -> str:
    return next((root for root in state.roots if Path(path).is_relative_to(root)), state.roots[0])


def _name(path: str, state: SessionState) -> str:
    return relative(path, state.roots)


def _print_files(files: Sequence[r.FileChange], state: SessionState) -> None:
    titles = {row.path: row.title for proposal in state.proposals for row in proposal.rows}
    for file in files:
        to = "" if file.new_path is None else f" → {_name(file.new_path, state)}"
        counts = f"+{file.added} −{file.removed}" if file.added or file.removed else ""
        title = f"({one_line(titles[file.path])})" if file.path in titles else ""
        name = f"{file.change:7} {_name(file.path, state)}{to}"
        print(visible("  ".join(filter(None, (name, counts, title)))))
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    print(f"{plural(len(files), 'file')}, +{added} −{removed}")


def _print_json(value: dict[str, Any]) -> None:
    """On one line of pure ASCII."""
    print(json.dumps(value))
