"""What a command changed in its layer, as the user decides on it, and how it comes into the workspace."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import CallContext, Outcome, Preview, Subject
from amanu.text.amounts import plural
from amanu.text.display import one_line, visible
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.file_identity import fingerprint
from amanu.tools.shell.report import file_list
from amanu.tools.shell.session_layer import HeldFile, LayerChanges, is_unchanged
from amanu_protocol.items import Line

_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all


class LayerReview:
    """Of the commands of one session."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._workspace = environment.workspace
        self._proposals = environment.proposals
        self._layer = environment.layer

    async def preview(
        self, title: str, outcome: Outcome, changes: LayerChanges, commands: Sequence[Subject], call: CallContext
    ) -> Preview:
        """The question whether to take them over. Proposes what is text. Where git's own files changed, it is about the
        `commands`, too: a rule for them is what an answer can save. Raises `ToolError`."""
        proposal = await self._proposals.propose(call, changes.edits) if changes.edits else None
        diff = "" if proposal is None else await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        held = [f"{self._name(file.path)}: {file.what}" for file in changes.held]
        paths = [*(edit.base.path for edit in changes.edits), *(file.path for file in changes.held)]
        deleted = {edit.base.path for edit in changes.edits if edit.text is None}
        subject, *also = [
            *(
                Subject("delete_file" if path in deleted else "write_file", "write", self._workspace.relative(path))
                for path in paths
            ),
            *(commands if changes.git.is_open else ()),
        ]
        git = [f"git: {one_line(message)}" for message in changes.git.messages]
        ended = f"It ended: {one_line(outcome.line)}"
        notes = [
            Line(tone="bad" if outcome.is_error else "good", text=ended),
            *(Line(tone="warning", text=text) for text in (*git, *held)),
        ]
        apart = "" if proposal is not None else "It ran on a private copy: nothing has changed here yet."
        counted = [plural(len(paths), "file")] if paths else []
        counted += ["git's history"] if changes.git.is_open else []
        return Preview(
            title=f"Run {title}: {' and '.join(counted)} changed",
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible("\n".join(filter(None, [apart, ended, *git, *held, diff]))),
            reads=frozenset(map(str, paths)),
            writes=frozenset(map(str, paths)),
            proposal_id=None if proposal is None else proposal.proposal_id,
            digest=fingerprint([call.call_id, *held, *git]),
            notes=() if proposal is None else tuple(notes),
        )

    async def preview_again(self, call: CallContext) -> None:
        """The files may be others by now: what is proposed moves along with them."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.catch_up(proposal.proposal_id)

    async def apply(self, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        """Take them over as they were decided on. The outcome is the command's, with what became of its changes."""
        proposal = self._proposals.of_call(call.call_id) if changes.edits else None
        if proposal is not None and call.accept_all:
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_user=call.by_user)
            await self._proposals.wait_for_shared_hunks(call.call_id)
        notes: list[str] = []
        states: set[str] = set()
        if proposal is not None:
            notes.append(await self._proposals.settled_report(call.call_id))
            files = self._proposals.get(proposal.proposal_id).files
            states = {hunk.state for file in files for hunk in file.hunks}
        if states <= {"applied"}:
            notes += await self._take_over(changes)
        else:
            notes += await self._leave([*changes.held, *changes.git.files])
        return with_notes(replace(outcome, changes=None, refused=states == {"rejected"}), notes)

    async def reject(self, outcome: Outcome, changes: LayerChanges, call: CallContext, reason: str) -> str:
        """They are not wanted. Returns that for the model."""
        if changes.edits and (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason or None, call.call_id, by_user=call.by_user)
        await self._leave([*changes.held, *changes.git.files])
        names = [*(edit.base.path for edit in changes.edits), *(file.path for file in changes.held)]
        said = f": {reason}" if reason else ""
        left = [*([self._names(names)] if names else []), *(["git's history"] if changes.git.is_open else [])]
        return f"The command ran, but its changes were not accepted{said}. Unchanged: {' and '.join(left)}."

    async def settle(self, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        """Take over at once what is no decision of its own: new folders and executable bits; and what git ignores,
        where policy lets files be written. The outcome tells the model what became of that."""
        notes: list[str] = []
        if not changes.is_open:
            await asyncio.to_thread(_change_modes, changes.modes)
            notes.append(await self._layer.bring_git_home(changes.git))
        await asyncio.to_thread(_make_folders, changes.folders)
        if changes.ignored:
            subjects = [Subject("write_file", "write", self._workspace.relative(path)) for path in changes.ignored]
            allowed = {subject.text for subject in call.allowed(subjects)}
            home = [path for path in changes.ignored if self._workspace.relative(path) in allowed]
            notes += await self._layer.bring_home(home)
            if left := [path for path in changes.ignored if path not in home]:
                notes.append(
                    f"Ignored by git, and kept in this session's private copy, where later commands see it: "
                    f"{self._names(left)}."
                )
        if changes.moved:
            notes.append(
                f"Changed in the workspace while the command ran, so its version was not taken: "
                f"{self._names(changes.moved)}. Run it again."
            )
        return with_notes(outcome, notes)

    async def _take_over(self, changes: LayerChanges) -> list[str]:
        """What was decided on with the text: the files that no proposal shows, modes, and what git ignores."""
        await asyncio.to_thread(_change_modes, changes.modes)
        unchanged = [file.path for file in changes.held if await asyncio.to_thread(is_unchanged, file)]
        faults = await self._layer.bring_home([*unchanged, *changes.ignored])
        moved = [file for file in changes.held if file.path not in unchanged]
        notes = [f"Taken over: {self._names(unchanged)}."] if unchanged else []
        notes.append(await self._layer.bring_git_home(changes.git))
        if moved:
            names = self._names([file.path for file in moved])
            notes.append(f"Not taken over, because it has changed in the workspace: {names}.")
            await self._leave(moved)
        return [*notes, *faults]

    async def _leave(self, held: Sequence[HeldFile]) -> list[str]:
        await self._layer.drop([file.path for file in held])
        shown = list(dict.fromkeys(_shown_path(file.path) for file in held))
        return [f"Not taken over: {self._names(shown)}."] if held else []

    def _names(self, paths: Sequence[Path]) -> str:
        return file_list([self._name(path) for path in dict.fromkeys(paths)])

    def _name(self, path: Path) -> str:
        return one_line(self._workspace.display_path(path))


def with_notes(outcome: Outcome, notes: Sequence[str]) -> Outcome:
    """The outcome with these as well, for the model and the user."""
    added = "\n".join(filter(None, notes))
    if not added:
        return outcome
    fields = dict(outcome.fields)
    if fields:
        fields["notes"] = "\n".join(filter(None, [str(fields.get("notes", "")), added]))
    return replace(
        outcome, for_model=f"{outcome.for_model}\n{added}", for_user=f"{outcome.for_user}\n{added}", fields=fields
    )


def _shown_path(path: Path) -> Path:
    """Git's folder for what is in it."""
    return next((above for above in path.parents if above.name == ".git"), path)


def _change_modes(modes: dict[Path, int]) -> None:
    for path, mode in modes.items():
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # it is not there: its creation was not accepted
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)


def _make_folders(folders: Sequence[Path]) -> None:
    for folder in folders:
        if os.path.realpath(folder.parent) == str(folder.parent):
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
