"""What a command changed in its layer, as the user decides on it, and how it comes into the workspace."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import CallContext, Outcome, Preview, Subject
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import set_executable
from amanu.text.amounts import plural
from amanu.text.display import one_line, unbroken, visible
from amanu.tools.draft_share import share_notes
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.file_identity import fingerprint
from amanu.tools.shell.git_changes import MOVED, apply_git, git_batches, git_fault
from amanu.tools.shell.held_files import Applied, HeldFile, apply_held
from amanu.tools.shell.layer_changes import OUTSIDE, LayerChanges
from amanu.tools.shell.layer_draft import make_folders, not_undone_name, remove_folders
from amanu.tools.shell.report import all_files, file_list
from amanu_protocol.items import Line

_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all
_LEADS_OUT = "this link leads out of the workspace"
_NO_UNDO = "Amanu cannot undo this change"
_NOTHING = "Nothing else that it changed was applied, either."
_ASKED_AGAIN = "The repository has changed since you said yes, so the command was run again. It now changes this:"
_LEADING_COMMIT_ID = re.compile(r"([0-9a-f]{7,}) (.+)")


class LayerReview:
    """Of the commands of one session."""

    def __init__(self, environment: ToolEnvironment) -> None:
        self._workspace = environment.workspace
        self._proposals = environment.proposals
        self._layer = environment.layer
        self._sandbox = environment.sandbox

    async def preview(
        self, title: str, outcome: Outcome, changes: LayerChanges, commands: Sequence[Subject], call: CallContext
    ) -> Preview:
        """The question whether to take them over. Proposes what is text. Where git's own files changed, it is about the
        `commands`, too: a rule for them is what an answer can save. Raises `ToolError`."""
        proposal = await self._proposals.propose(call, changes.edits) if changes.edits else None
        if proposal is not None:  # edits that the command saw may have been rejected
            await self._proposals.catch_up(proposal.proposal_id)
        diff = "" if proposal is None else await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        # Whoever may run on the workspace itself may destroy what no undo brings back.
        may_destroy = len(call.allowed(commands)) == len(commands)
        subject, *also = [
            *(self._edit_subject(edit.base.path, deletes=edit.text is None) for edit in changes.edits),
            *(self._held_subject(file, may_destroy=may_destroy) for file in changes.held),
            *(self._edit_subject(path, deletes=False) for path in (*changes.modes, *changes.folders)),
            *(self._edit_subject(path, deletes=True) for path in changes.emptied),
            *(commands if changes.git.needs_decision else ()),
        ]
        ended = f"It ended: {one_line(outcome.line)}"
        lines = [_ASKED_AGAIN] if changes.asked_again else []
        lines += [] if proposal is None else share_notes(proposal, call.call_id)
        lines += [f"git: {line}" for line in changes.git.commits]
        lines += [f"Files committed: {all_files(names)}"] if (names := changes.git.committed) else []
        lines += [f"git: {line}" for line in changes.git.moves]
        lines += [f"{self._name(file.path)}: {file.what}" for file in changes.held]
        bits = changes.executable.items()
        lines += [f"{self._name(path)}: becomes {'' if is_set else 'not '}executable" for path, is_set in bits]
        lines += [f"{self._name(path)}: new folder" for path in changes.folders]
        lines += [f"{self._name(path)}: the folder is removed" for path in changes.emptied]
        built = await asyncio.to_thread(_missing, changes.ignored)
        lines += (
            [f"Ignored by git, and moved into the workspace with these changes: {all_files([*map(self._name, built)])}"]
            if built
            else []
        )
        lines = [unbroken(line) for line in lines]
        notes = [
            Line(tone="bad" if outcome.is_error else "good", text=ended),
            *(Line(tone="warning", text=text) for text in lines),
        ]
        apart = (
            ""
            if proposal is not None
            else "It ran on a private copy of the workspace; nothing in the workspace has changed yet."
        )
        files, folders = {*changes.paths} - {*changes.folders, *changes.emptied}, [*changes.folders, *changes.emptied]
        counted = [plural(len(each), noun) for each, noun in ((files, "file"), (folders, "folder")) if each]
        counted += self._repository(changes)
        return Preview(
            title=f"Run {title}: {' and '.join(counted)} changed",
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible("\n".join(filter(None, [apart, ended, *lines, diff]))),
            reads=frozenset(map(str, changes.paths)),
            writes=frozenset(map(str, changes.paths)),
            proposal_id=None if proposal is None else proposal.proposal_id,
            digest=fingerprint([str(changes.folder.folder), *lines]),
            notes=() if proposal is None else tuple(notes),
        )

    async def preview_again(self, call: CallContext) -> None:
        """The files may be others by now: what is proposed moves along with them."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.catch_up(proposal.proposal_id)

    async def apply(self, command: str, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome | None:
        """Take them over as they were decided on. The outcome is the command's, with what became of its changes. None:
        the repository has changed since, and nothing was taken over."""
        async with self._repositories(changes):
            if call.accept_all and not self._is_begun(changes, call):
                fault = await asyncio.to_thread(lambda: git_fault(git_batches(changes.git, changes.folder)))
                if fault == MOVED:
                    return None
                if fault:
                    await self.withdraw(changes, call)
                    title = f"Run {command}: nothing changed"
                    return replace(with_notes(outcome, [fault, _NOTHING]), changes=None, is_error=True, title=title)
            return await self._apply(command, outcome, changes, call)

    async def _apply(self, command: str, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        proposal = self._proposals.of_call(call.call_id) if changes.edits else None
        if proposal is not None and call.accept_all:
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_user=call.by_user)
            await self._proposals.wait_for_shared_hunks(call.call_id)
        notes: list[str] = []
        states: set[str] = set()
        if proposal is not None and proposal.draft and not call.accept_all:
            notes.append(await self._proposals.settled_report(call.call_id))
            if changes.held:
                notes.append(f"Not kept in the draft: {self._names([file.path for file in changes.held])}.")
            await asyncio.to_thread(changes.folder.remove)
            await self._layer.note_drafted()
            return with_notes(replace(outcome, changes=None), notes)
        if proposal is not None:
            notes.append(await self._proposals.settled_report(call.call_id))
            states |= self._proposals.states_of_call(call.call_id)  # a draft has those of other calls, too
        ended = replace(outcome, changes=None, refused=states == {"rejected"})
        if states <= {"applied"}:
            applied, faults = await self._take_over(changes, call)
            notes += faults
            not_undone = await asyncio.to_thread(self._not_undone, changes, applied)
            ended = replace(ended, not_undone=not_undone)
            if missing := [*map(self._name, applied.missing), *([] if applied.git else self._repository(changes))]:
                ended = replace(ended, is_error=True, title=f"Run {command}: not applied: {file_list(missing)}")
        else:
            if names := [*map(self._name, changes.besides), *self._repository(changes)]:
                why = "could be applied" if "conflicted" in states else "were accepted"
                notes.append(f"Not applied, because not all text changes {why}: {file_list(names)}.")
            count, files = self._proposals.applied_files(call.call_id), len(changes.edits)
            whole = plural(files, "file")
            changed = whole if count == files else f"{count} of {whole}" if count else "nothing"
            title = f"Run {command}: {changed} changed"
            ended = replace(ended, is_error=ended.is_error or "conflicted" in states, title=title)
        await asyncio.to_thread(changes.folder.remove)
        return with_notes(ended, notes)

    def _is_begun(self, changes: LayerChanges, call: CallContext) -> bool:
        """Whether the user has decided on some of it already, hunk by hunk."""
        return bool(changes.edits) and not self._proposals.states_of_call(call.call_id) <= {"pending", "conflicted"}

    async def withdraw(self, changes: LayerChanges, call: CallContext) -> str:
        """Withdraw changes that cannot be taken over any more. Returns the sentence for the model."""
        if changes.edits and (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.reject_all(proposal.proposal_id, MOVED, call.call_id, by_user=False)
        await asyncio.to_thread(changes.folder.remove)
        return f"{MOVED} {_NOTHING}"

    @asynccontextmanager
    async def _repositories(self, changes: LayerChanges) -> AsyncGenerator[None]:
        """While the context is open, no other session changes the repositories that they change."""
        async with AsyncExitStack() as stack:
            for root in sorted({file.root.path for file in changes.git.files}):
                if self._sandbox is not None:
                    await stack.enter_async_context(self._sandbox.repository_lock(root))
            yield

    async def reject(self, changes: LayerChanges, call: CallContext, reason: str) -> str:
        """They are not wanted. Returns that for the model."""
        if changes.edits and (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason or None, call.call_id, by_user=call.by_user)
        await asyncio.to_thread(changes.folder.remove)
        left = [*([self._names(changes.paths)] if changes.paths else []), *self._repository(changes)]
        said = f": {reason}" if reason else ""
        said = said if said.endswith((".", "!", "?")) else f"{said}."
        return f"The command ran, but its changes were not accepted{said} Unchanged: {' and '.join(left)}."

    async def settle_draft(self, outcome: Outcome, changes: LayerChanges) -> Outcome:
        """Of a command whose changes are drafted: nothing of them reaches the workspace. The outcome tells the model
        what is drafted besides text, and what a draft does not hold."""
        notes: list[str] = []
        if changes.fresh:
            names = self._names(changes.fresh)
            notes.append(f"Drafted, and applied only if the user accepts the whole draft: {names}.")
        besides = [*changes.executable, *changes.folders, *changes.ignored]
        if besides and not (changes.edits or self._proposals.drafts.is_open):
            notes.append(f"Kept, but not applied until the user accepts a whole draft: {self._names(besides)}.")
        notes += self._not_applied_notes(changes)
        return with_notes(outcome, notes)

    async def settle(self, outcome: Outcome, changes: LayerChanges, call: CallContext) -> Outcome:
        """Take over at once what is no decision of its own: files that `git add` staged; and what git ignores, where
        policy lets files be written. The outcome tells the model what became of that."""
        notes: list[str] = []
        if not changes.needs_decision:
            async with self._repositories(changes):
                notes += (await asyncio.to_thread(_apply, changes))[1]
            await asyncio.to_thread(changes.folder.remove)
        if changes.ignored:
            subjects = [Subject("write_file", "write", self._workspace.relative(path)) for path in changes.ignored]
            allowed = {subject.text for subject in call.allowed(subjects)}
            home = [path for path in changes.ignored if self._workspace.relative(path) in allowed]
            notes += await self._layer.bring_home(home, call, changes.begun)
            left = [path for path in changes.ignored if path not in home]
            if left and not changes.needs_decision:  # else they come with the yes to that
                notes.append(
                    "Ignored by git, and kept in this session's private copy, where later commands see it: "
                    f"{self._names(left)}."
                )
        notes += self._not_applied_notes(changes)
        return with_notes(outcome, notes)

    def _not_applied_notes(self, changes: LayerChanges) -> list[str]:
        """What of a command's changes is not applied, whoever decides."""
        notes = [_conflicts_note(self._names(changes.conflicts))] if changes.conflicts else []
        if changes.denied:
            notes.append(
                f"Executable bits not changed, because a rule denies the change: {self._names(changes.denied)}."
            )
        return notes

    async def _take_over(self, changes: LayerChanges, call: CallContext) -> tuple[Applied, list[str]]:
        """What was decided on with the text: the files that no proposal shows, modes, git's, and what git ignores. With
        what there is to say of it."""
        not_made = await asyncio.to_thread(make_folders, changes.folders)
        applied, git = await asyncio.to_thread(_apply, changes)
        not_removed = await asyncio.to_thread(remove_folders, changes.emptied)
        applied.folders |= not_made
        notes = applied.notes(self._names)
        notes += [f"Folder not made: {self._name(folder)}. {why}" for folder, why in not_made.items()]
        notes += [f"Folder not removed: {self._name(folder)}. {why}" for folder, why in not_removed.items()]
        notes += git
        notes += await self._layer.bring_home(changes.ignored, call, None)
        return applied, notes

    def _not_undone(self, changes: LayerChanges, applied: Applied) -> list[str]:
        """What undoing the text does not undo: files and folders by name, commits as git noted them. Blocking."""
        gone = [folder for folder in changes.emptied if not folder.exists()]
        texts = [edit.base.path for edit in changes.edits]
        # With a file of text its folder comes back, too.
        gone = [folder for folder in gone if not any(folder in path.parents for path in texts)]
        topmost = [folder for folder in gone if not any(parent in gone for parent in folder.parents)]
        held = [file.path for file in applied.files if not any(folder in file.path.parents for folder in topmost)]
        names = [self._name(path) for path in held] + [f"the folder {self._name(path)}" for path in topmost]
        made = {edit.base.path for edit in changes.edits if not edit.base.exists}
        names += [not_undone_name("bit", self._name(path)) for path in applied.bits if path not in made]
        new = [folder for folder in changes.folders if folder not in applied.folders]
        names += [not_undone_name("folder", self._name(folder)) for folder in new]
        return names + (
            [one_line(_LEADING_COMMIT_ID.sub(r"\2 (\1)", act)) for act in changes.git.acts] if applied.git else []
        )

    def _repository(self, changes: LayerChanges) -> list[str]:
        return ["the git repository"] if changes.git.needs_decision else []

    def _edit_subject(self, path: Path, *, deletes: bool) -> Subject:
        return Subject("delete_file" if deletes else "write_file", "write", self._workspace.relative(path))

    def _held_subject(self, file: HeldFile, *, may_destroy: bool) -> Subject:
        """What was there is lost: so it is asked about, unless the command `may_destroy`."""
        subject = self._edit_subject(file.path, deletes=file.stored is None)
        if file.what.endswith(OUTSIDE):
            return replace(subject, must_ask=_LEADS_OUT)
        return subject if may_destroy or file.below is None else replace(subject, must_ask=_NO_UNDO)

    def _names(self, paths: Sequence[Path]) -> str:
        return file_list([self._name(path) for path in dict.fromkeys(paths)])

    def _name(self, path: Path) -> str:
        return one_line(self._workspace.display_path(path))


def _conflicts_note(names: str) -> str:
    return (
        f"Changed in the workspace while the command ran, so the command's version was not applied: {names}. "
        "Run the command again."
    )


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


def _apply(changes: LayerChanges) -> tuple[Applied, list[str]]:
    """Bring what no proposal shows into the workspace. With why other changes than files were not applied."""
    files = [(file, changes.folder.batch([file])) for file in changes.held]
    git = git_batches(changes.git, changes.folder)
    try:
        with noted(changes.folder.layer, [*(batch for _, batch in files), *git], executable=changes.executable):
            bits = set_executable(Layer.open(changes.folder.layer), changes.executable) if changes.executable else {}
            applied, faults = apply_held(files), [*filter(None, map(apply_git, git))]
            applied.note_bits(changes.executable, bits)
            applied.git = bool(git) and not faults
            return applied, faults
    except (OSError, LayerError) as error:
        why = explained(error)
        faults = [f"Changes to the repository were not applied. {why}"] if git else []
        unset = dict.fromkeys(changes.executable, why)
        return Applied(failed=[file for file, _ in files], fault=why, unset=unset), faults


def _missing(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if not os.path.lexists(path)]
