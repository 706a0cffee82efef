"""What a command changed in its layer, as the user decides on it, and how it comes into the workspace."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from amanu.core.tool import CallContext, Outcome, Preview, Subject
from amanu.proposals.model import FileEdit
from amanu.proposals.rows import LiveRow, RowChange, row_title
from amanu.sandbox.layers.layer import explained
from amanu.storage.file_store import FileStore
from amanu.text.amounts import files_and_folders, plural
from amanu.text.display import all_files, file_list, one_line, unbroken, visible
from amanu.tools.draft_share import share_notes
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.layer_changes import DROPPED, LayerChanges
from amanu.tools.shell.row_changes import OUTSIDE, can_undo
from amanu.tools.shell.row_trees import has_links_out
from amanu.workspace.git.apply import MOVED, DoesNotFit, prepared
from amanu_protocol.items import Line

_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all
_LEADS_OUT = "this link leads out of the workspace"
_LINKS_OUT = "links in this new folder lead out of the workspace"
_ALL_OF_IT = "a rule allows this new folder, but not all that is in it"
_NO_UNDO = "Amanu cannot undo this change"
_MOVED = f"{MOVED}. The command's changes to it were not applied; run the command again."
_NOTHING = "Nothing else that it changed was applied, either."
_BUILT = "Not reviewed (caches, build output, what git ignores), and moved into the workspace with these changes"
_ASKED_AGAIN = "The repository has changed since you said yes, so the command was run again. It now changes this:"


class LayerReview:
    """The reviews of one session's commands."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._workspace = environment.workspace
        self._proposals = environment.proposals
        self._layer = environment.layer
        self._sandbox = environment.sandbox
        self._store = environment.layer.store

    async def preview(
        self, title: str, outcome: Outcome, changes: LayerChanges, commands: Sequence[Subject], call: CallContext
    ) -> Preview:
        """The question whether to take them over. Proposes what is text. Where git's own files changed, it is about the
        `commands`, too: a rule for them is what an answer can save. Raises `ToolError`."""
        git = changes.git.rows if changes.git.needs_decision else []
        drafts = changes.need.place.then == "drafted"
        proposal = await self._proposals.propose(call, changes.edits, [*changes.rows, *git], drafts=drafts)
        if changes.edits:  # edits that the command saw may have been rejected
            await self._proposals.catch_up(proposal.proposal_id)
        diff = await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        # Whoever may run on the workspace itself may destroy what no undo brings back.
        may_destroy = len(call.allowed(commands)) == len(commands)
        subject, *also = [
            *(subject for edit in changes.edits for subject in self._edit_subjects(edit)),
            *(self._row_subject(part, call, may_destroy=may_destroy) for row in changes.rows for part in row.parts),
            *(commands if git else ()),
            *self.guarded_in_git(changes, call),
        ]
        ended = one_line(outcome.line)
        ended = f"It ended: {ended}" if ended != "no output" else "No output"
        lines = [_ASKED_AGAIN] if changes.asked_again else []
        lines += share_notes(proposal, call.call_id)
        built = await asyncio.to_thread(_missing, changes.ignored)
        lines += [f"{_BUILT}: {all_files([*map(self._name, built)])}"] if built else []
        lines = [unbroken(line) for line in lines]
        notes = [
            Line(tone="bad" if outcome.is_error else "good", text=ended),
            *(Line(tone="warning", text=text) for text in lines),
        ]
        rows = [line for row in (*git, *changes.rows) for line in self._row_lines(row)]
        folders = {row.path for row in changes.rows if "folder" in _kinds(row)}
        files = {*(edit.base.path for edit in changes.edits), *(row.path for row in changes.rows)} - folders
        counted = [files_and_folders(len(files), len(folders))] if changes.paths else []
        counted += self._repository(changes)
        return Preview(
            title=f"Run {title}: {' and '.join(counted)} changed",
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible("\n".join(filter(None, [ended, *lines, *map(unbroken, rows), diff]))),
            reads=frozenset(map(str, changes.paths)),
            writes=frozenset(map(str, changes.paths)),
            proposal_id=proposal.proposal_id,
            notes=tuple(notes),
        )

    def guarded_in_git(self, changes: LayerChanges, call: CallContext) -> Sequence[Subject]:
        """The writes to git's own files that a rule denies or asks about."""
        paths = [path for value in changes.git.values for path in value.paths]
        return call.guarded(self._edit_subject(path, deletes=False) for path in paths)

    async def propose_again(self, changes: LayerChanges, call: CallContext) -> None:
        """Propose the repository changes of a second run, which changed the same, in place of the first run's."""
        if changes.git.needs_decision:
            await self._proposals.put_rows(call, changes.git.rows)

    async def preview_again(self, call: CallContext) -> None:
        """The files may be others by now: what is proposed moves along with them."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.catch_up(proposal.proposal_id)

    async def apply(self, command: str, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome | None:
        """Take them over as they were decided on. The outcome is the command's, with what became of its changes. None:
        the repository has changed since, and nothing was taken over."""
        if call.accept_all and not self._is_begun(call):
            await self._accept(call)
            applied = "applied" in self._proposals.states_of_call(call.call_id)
            if not applied and (fault := self._git_fault(call)):
                if fault.startswith(MOVED):
                    return None
                await self.withdraw(call, fault)
                title = f"Run {command}: nothing changed"
                return replace(with_notes(outcome, [fault, _NOTHING]), changes=None, is_error=True, title=title)
        elif call.accept_all:
            await self._accept(call)
        return await self._apply(command, outcome, changes, call)

    async def _accept(self, call: CallContext) -> None:
        """Apply the open changes of that call."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_user=call.by_user)
            await self._proposals.wait_for_shared_hunks(call.call_id)

    def _git_fault(self, call: CallContext) -> str:
        """The reason why the repository could not be changed; "" if it was changed, or need not be."""
        rows = self._proposals.rows_of_call(call.call_id)
        return next((row.reason or "" for row in rows if row.change.kind == "git" and row.state == "conflicted"), "")

    async def _apply(self, command: str, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        proposal = self._proposals.of_call(call.call_id)
        assert proposal is not None, "the question proposed it"
        await self._proposals.wait_until_settled()
        states = self._proposals.states_of_call(call.call_id)  # a draft has those of other calls, too
        rows = self._proposals.rows_of_call(call.call_id)
        missing = [self._row_name(row.change) for row in rows if row.state == "conflicted"]
        report, notes = await self._proposals.settled_report(call.call_id), list[str]()
        if proposal.draft and not call.accept_all:
            return with_notes(replace(outcome, changes=None), notes, report)
        ended = replace(outcome, changes=None, refused=states == {"rejected"})
        if "applied" in states:
            notes += await self._layer.bring_home(changes.ignored, call, None)
            ended = replace(ended, not_undone=self._not_undone(rows))
        if states <= {"applied"}:
            return with_notes(ended, notes, report)
        count = self._proposals.applied_files(call.call_id) + sum(row.state == "applied" for row in rows)
        total = len(changes.edits) + len(rows)
        whole = plural(total, "change" if rows else "file")
        applied = whole if count == total else f"{count} of {whole}" if count else "nothing"
        title = f"{applied} {'applied' if rows and count else 'changed'}"
        title = f"Run {command}: {f'not applied: {file_list(missing)}' if missing else title}"
        ended = replace(ended, is_error=ended.is_error or "conflicted" in states, title=title)
        return with_notes(ended, [report, *notes])

    def _is_begun(self, call: CallContext) -> bool:
        """Whether the user has decided on some of it already, hunk by hunk."""
        return not self._proposals.states_of_call(call.call_id) <= {"pending", "conflicted"}

    async def withdraw(self, call: CallContext, reason: str = _MOVED) -> str:
        """Withdraw changes that cannot be taken over any more. Returns the sentence for the model."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason, call.call_id, by_user=False)
        return f"{reason} {_NOTHING}"

    @asynccontextmanager
    async def _repositories(self, changes: LayerChanges) -> AsyncGenerator[None]:
        """While the context is open, no other session changes the repositories that they change."""
        async with AsyncExitStack() as stack:
            for root in sorted({value.root for value in changes.git.values}):
                if self._sandbox is not None:
                    await stack.enter_async_context(self._sandbox.repository_lock(root))
            yield

    async def reject(self, changes: LayerChanges, call: CallContext, reason: str) -> str:
        """They are not wanted. Returns that for the model."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason or None, call.call_id, by_user=call.by_user)
        left = [*([self._names(changes.paths)] if changes.paths else []), *self._repository(changes)]
        said = f": {reason}" if reason else ""
        said = said if said.endswith((".", "!", "?")) else f"{said}."
        return f"The command ran, but its changes were not accepted{said} Unchanged: {' and '.join(left)}."

    async def left_notes(self, changes: LayerChanges) -> list[str]:
        """Sentences for the model about the changes of a drafted command that the draft does not have."""
        is_open = changes.needs_decision or self._proposals.drafts.is_open
        built = await asyncio.to_thread(_missing, changes.ignored)
        return [*(self._kept_notes(built, changes) if not is_open else []), *self._not_applied_notes(changes)]

    async def settle(self, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        """Take over at once what is no decision of its own: files that `git add` staged; and what git ignores, where
        policy lets files be written. The outcome tells the model what became of that."""
        notes: list[str] = []
        if not changes.needs_decision:
            async with self._repositories(changes):
                notes += await asyncio.to_thread(_apply_git, changes, self._store)
        if changes.ignored:
            subjects = [Subject("write_file", "write", self._workspace.relative(path)) for path in changes.ignored]
            allowed = {subject.text for subject in call.allowed(subjects)}
            home = [path for path in changes.ignored if self._workspace.relative(path) in allowed]
            notes += await self._layer.bring_home(home, call, changes.begun)
            left = [path for path in changes.ignored if path not in home]
            if not changes.needs_decision:  # else they come with the yes to that
                notes += self._kept_notes(left, changes)
        notes += self._not_applied_notes(changes)
        return with_notes(outcome, notes)

    def _not_applied_notes(self, changes: LayerChanges) -> list[str]:
        """What of a command's changes is not applied, whoever decides."""
        notes = [_conflicts_note(self._names(changes.conflicts))] if changes.conflicts else []
        if changes.unstored:
            names = self._names(changes.unstored)
            notes.append(f"Not kept, because the disk is full: {names}. Free some space, then run the command again.")
        if changes.dropped:
            notes.append(DROPPED.format(names=self._names(changes.dropped)))
        if changes.denied:
            notes.append(
                f"Executable bits not changed, because a rule denies the change: {self._names(changes.denied)}."
            )
        return notes

    def _kept_notes(self, built: Sequence[Path], changes: LayerChanges) -> list[str]:
        """Leave out the files that an earlier command was told of."""
        built = [path for path in built if path not in changes.ignored_before]
        lead = "Ignored by git, and kept in this session's private copy, where later commands see it"
        return [f"{lead}: {self._names(built)}."] if built else []

    def _not_undone(self, rows: Sequence[LiveRow]) -> list[str]:
        """The names of applied changes that cannot be undone."""
        return [self._row_name(row.change) for row in rows if row.state == "applied" and not can_undo(row.change)]

    def _row_name(self, row: RowChange) -> str:
        return "the git repository" if row.kind == "git" else " → ".join(map(self._name, row.paths))

    def _row_lines(self, row: RowChange) -> list[str]:
        """The row as text: its path and title, then the rest."""
        rest = [line.text for line in row.lines]
        if row.kind == "git":
            return [f"git: {text}" for text in rest]
        return [f"{self._row_name(row)}: {row.title or row_title(row)}", *rest]

    def _repository(self, changes: LayerChanges) -> list[str]:
        return ["the git repository"] if changes.git.needs_decision else []

    def _edit_subjects(self, edit: FileEdit) -> list[Subject]:
        """The edit as a write or deletion; a rename is both."""
        if edit.new_path is None:
            return [self._edit_subject(edit.base.path, deletes=edit.text is None)]
        return [self._edit_subject(edit.base.path, deletes=True), self._edit_subject(edit.new_path, deletes=False)]

    def _edit_subject(self, path: Path, *, deletes: bool) -> Subject:
        return Subject("delete_file" if deletes else "write_file", "write", self._workspace.relative(path))

    def _row_subject(self, row: RowChange, call: CallContext, *, may_destroy: bool) -> Subject:
        """The row as a write or deletion. The user must be asked about links that lead out of the workspace; about a
        new folder, if a rule allows its path but not every path in it; and about what cannot be undone, unless a rule
        lets the command destroy (`may_destroy`)."""
        subject = self._edit_subject(row.path, deletes=row.after is None)
        if row.kind == "link" and row.title.endswith(OUTSIDE):
            return replace(subject, must_ask=_LEADS_OUT)
        if has_links_out(row):
            return replace(subject, must_ask=_LINKS_OUT)
        if row.is_tree:
            any_path = self._edit_subject(row.path / token_hex(8) / token_hex(8), deletes=False)
            is_name_allowed = call.allowed([subject]) and not call.allowed([any_path])
            return replace(subject, must_ask=_ALL_OF_IT) if is_name_allowed else subject
        return subject if may_destroy or can_undo(row) else replace(subject, must_ask=_NO_UNDO)

    def _names(self, paths: Sequence[Path]) -> str:
        return file_list([self._name(path) for path in dict.fromkeys(paths)])

    def _name(self, path: Path) -> str:
        return one_line(self._workspace.display_path(path))


def _conflicts_note(names: str) -> str:
    return (
        f"Changed in the workspace while the command ran, so the command's version was not applied: {names}. "
        "Run the command again."
    )


def with_notes(outcome: Outcome, notes: Sequence[str], report: str = "") -> Outcome:
    """The outcome with these as well, for the model and the user. `report`: what became of changes that were taken
    over, for the model: the user sees the changes themselves."""
    added = "\n".join(filter(None, [report, *notes]))
    if not added:
        return outcome
    fields = dict(outcome.fields)
    if fields:
        fields["notes"] = "\n".join(filter(None, [str(fields.get("notes", "")), added]))
    shown = "\n".join(filter(None, [outcome.for_user, *notes]))
    return replace(outcome, for_model=f"{outcome.for_model}\n{added}", for_user=shown, fields=fields)


def _apply_git(changes: LayerChanges, store: FileStore) -> list[str]:
    """Bring the changes to repositories into the workspace. Returns a sentence for each that failed. Blocking."""
    notes: list[str] = []
    for value in changes.git.values:
        try:
            with prepared(value, store) as ready:
                ready.commit()
        except DoesNotFit as error:
            notes.append(f"Changes to the repository were not applied. {error}")
        except OSError as error:
            notes.append(f"Changes to the repository were not applied. {explained(error)}")
    return notes


def _kinds(row: RowChange) -> set[str]:
    return {side.kind for side in (row.before, row.after) if side is not None}


def _missing(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if not os.path.lexists(path)]
