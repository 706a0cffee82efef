"""What the tools that change files share: a proposal in `preview`, its application and an exact report in `run`."""

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from amanu.core.tool import CallContext, LiveCall, Outcome, Params, Preview, Subject, ToolError
from amanu.proposals.model import FileEdit, LiveFile
from amanu.text.display import one_line, visible
from amanu.text.notebook import is_notebook
from amanu.text.redaction import MASK, mask_added
from amanu.tools.draft_share import share_notes
from amanu.tools.edits.fences import unfenced
from amanu.tools.edits.live_edit import LiveEdit
from amanu.tools.edits.match import MatchedText
from amanu.tools.edits.notebook import changed_cells
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.workspace.encodings import GUESSED, BinaryFile
from amanu.workspace.file_names import fold_name, ignores_case, is_symlink, spelling_on_disk
from amanu.workspace.text_file import FileText
from amanu_protocol.items import Effect, Line, Proposal, ProposedFile


class EditParams(Params):
    explanation: str | None = None  # the system prompt says what it is, once for all tools

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The path stays first and the reason last: clients draw an edit while the model is still writing it."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema)["properties"]
        properties["explanation"] = properties.pop("explanation")
        return schema


P = TypeVar("P", bound=EditParams)
_SMALL = 64 * 1024  # characters that are worked on in the event loop
_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all
_NAMED = 5  # files named in a title
_MASKED_SECRET = (
    f"{MASK} stands where a secret is that you are not shown; it is not in the file, and no edit can write it there. "
    "Edit around it: leave the lines that hold it out of what you search for and of what you write."
)
_FENCE = "fence"  # among what was forgiven: it was around the whole text of a file
_MAX_FILES = 500  # files of one call


Change = Callable[[FileText], str | MatchedText | None]
"""The new text of a file, None to delete it. CPU-bound, without effect; may run in a thread. Raises `ToolError`, which
may quote the file; the path to name it by is in `FileChange`."""
ChangeAction = Literal["edit", "write", "delete", "move"]
"""What a call does to a file: change some of its text (and move it, perhaps), say the whole of it, remove it, or move
it as it is."""


@dataclass(frozen=True)
class FileChange:
    """What a call wants of one file, before that is looked at. Without `change` its text stays."""

    path: str
    change: Change | None = None
    new_path: str | None = None
    """The file goes there."""
    must_exist: bool | None = None
    """True: the file must exist. False: it must not. None: the change decides."""
    blind: bool = False
    """Whether it fits does not depend on what the file says, so it cannot be used to find that out."""
    part: str = ""
    """Which part of the call it is, for errors: "File 2 of 3". "" when it is all of it."""
    action: ChangeAction = "edit"


@dataclass
class _CallChanges:
    """The changes of a call so far. Several parts may be about one file: each starts from what the last left."""

    bases: dict[Path, FileText] = field(default_factory=dict[Path, FileText])
    results: dict[Path, FileText | None] = field(default_factory=dict[Path, FileText | None])
    """None: deleted."""
    moves: dict[Path, Path] = field(default_factory=dict[Path, Path])
    forgiven_differences: dict[Path, dict[str, None]] = field(default_factory=dict[Path, dict[str, None]])
    """In what the model's text differed from the file's."""


class EditTool(SessionTool[P]):
    """A tool that computes what becomes of one or several files. All of it is proposed, or nothing."""

    effect: Effect = "write"
    verb: ClassVar[str] = "Edit"
    """What it does to a file, for the title of a call that has no preview yet."""
    argument_signs: ClassVar[Mapping[str, str]] = {}
    """Arguments that hold text of the file → "-" or "+", see `LiveEdit`."""

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._proposals = environment.proposals
        self._feedback = environment.feedback

    def changes(self, params: P) -> Sequence[FileChange]:
        """What the call wants, in order. No file is looked at yet. Raises `ToolError`."""
        return ()

    async def find_changes(self, params: P, call: CallContext) -> Sequence[FileChange]:
        """The same, for tools that must ask somebody first."""
        return await asyncio.to_thread(self.changes, params)  # a patch may be long

    def display_path(self, base: FileText) -> str:
        """The path of that file, for the model."""
        return self._workspace.display_path(base.path)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return self.path_title(self.verb, arguments)

    def resolve(self, path: str) -> Path:
        """The absolute path meant by the path of a `FileChange`. Raises `ToolError`."""
        return self._workspace.resolve(path)

    def live_call(self) -> LiveCall | None:
        return LiveEdit(self.title_of, self.argument_signs)

    async def preview(self, params: P, call: CallContext) -> Preview:
        file_changes = await self.find_changes(params, call)
        if len(file_changes) > _MAX_FILES:
            raise ToolError(
                f"These are {len(file_changes)} files; one call changes at most {_MAX_FILES}. Nothing was changed."
            )
        try:
            edits, forgiven = await self._edits(file_changes, call, one_line_explanation(params.explanation))
        except ToolError as error:
            if MASK in str(params) and _MASKED_SECRET not in str(error):
                raise ToolError(f"{error} {_MASKED_SECRET}") from None
            raise
        proposal = await self._proposals.propose(call, edits)
        diff = await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        stat = "\n".join(self._stat(file) for file in proposal.files)
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        why = f"The model says: {edits[0].explanation}\n\n" if edits[0].explanation else ""
        paths = [path for edit in edits for path in (edit.base.path, edit.new_path) if path is not None]
        is_plan, relative = self._workspace.guard.is_plan, self._workspace.relative
        subject, *also = [Subject(self.name, self.effect, relative(path), plan=is_plan(path)) for path in paths]
        # Under another name it would be read where no rule about this one applies.
        also += [self._read_subject(edit.base.path) for edit in edits if edit.new_path is not None]
        touched = frozenset(map(str, paths))
        guessed = [self._guess_note(file) for file in proposal.files if file.encoding.endswith(GUESSED)]
        share = [*share_notes(proposal, call.call_id), *guessed]
        return Preview(
            title=await asyncio.to_thread(self._title, edits),
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible("\n\n".join(filter(None, [f"{why}{stat}", *share, forgiven, diff]))),
            reads=touched,
            writes=touched,
            proposal_id=proposal.proposal_id,
            note=forgiven,
            notes=tuple(Line(tone="warning", text=text) for text in share),
        )

    async def preview_again(self, params: P, call: CallContext) -> Preview | None:
        """The files may be others by now: what is proposed moves along with them."""
        if (proposal := self._proposals.of_call(call.call_id)) is not None:
            await self._proposals.catch_up(proposal.proposal_id)
        return None

    async def run(self, params: P, call: CallContext) -> Outcome:
        proposal = self._proposals.of_call(call.call_id)
        assert proposal is not None, "run without preview"
        if call.accept_all:
            if self._feedback is not None:
                await self._feedback.ready([Path(file.path) for file in proposal.files])
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_user=call.by_user)
            await self._proposals.wait_for_shared_hunks(call.call_id)
        report = await self._proposals.settled_report(call.call_id)
        proposal = self._proposals.get(proposal.proposal_id)
        states = {hunk.state for file in proposal.files for hunk in file.hunks}
        own_states = self._proposals.states_of_call(call.call_id)
        failed = states.isdisjoint({"applied", "pending", "accepted"}) or (
            "conflicted" in own_states and "applied" not in own_states
        )
        if not report and proposal.draft:
            report, failed = "This call undoes earlier changes of the draft, so nothing of them is left in it.", False
        elif not report:
            report = "Nothing is left to change: the edits of this step cancel each other out."
        paths = [Path(file.new_path or file.path) for file in proposal.files]
        news = await self._findings_report(paths, call) if "applied" in states or proposal.draft else ""
        return Outcome(
            "\n\n".join(filter(None, [report, call.preview and call.preview.note, news])),
            self._summary(proposal, call),
            refused=states == {"rejected"},
            is_error=failed,
        )

    async def _findings_report(self, paths: Sequence[Path], call: CallContext) -> str:
        """What the edit did to the files' findings. Nothing of a file the model would have to ask for: they quote."""
        if self._feedback is None:
            return ""
        readable = [path for path in paths if call.allowed([self._read_subject(path)])]
        try:
            return await self._feedback.collect(readable)
        except asyncio.CancelledError:  # the edit is made: that is what the model must hear, not that it was cut short
            return ""

    def _guess_note(self, file: ProposedFile) -> str:
        return (
            f"{self._workspace.display_path(Path(file.path))} does not say its encoding. Judging by its bytes, this "
            f"change is written in {file.encoding.removesuffix(GUESSED)}."
        )

    def _read_subject(self, path: Path) -> Subject:
        return Subject("read_file", "read", self._workspace.relative(path))

    async def reject(self, params: P, call: CallContext, reason: str) -> str | None:
        proposal = self._proposals.of_call(call.call_id)
        if proposal is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason or None, call.call_id, by_user=call.by_user)
        return None

    # What the call wants, on what is there ------------------------------------------------------------

    async def _edits(
        self, file_changes: Sequence[FileChange], call: CallContext, explanation: str
    ) -> tuple[list[FileEdit], str]:
        """With what the matcher forgave. Every part is tried, so that the model hears of all that do not fit at
        once."""
        changes = _CallChanges()
        faults: list[str] = []
        for change in file_changes:
            try:
                await self._add_change(change, call, changes)
            except ToolError as error:
                faults.append(f"{change.part}: {error}" if change.part else str(error))
        if len(faults) == 1:
            raise ToolError(faults[0] if "othing was changed" in faults[0] else f"{faults[0]} Nothing was changed.")
        if faults:
            raise ToolError("\n\n".join([f"{len(faults)} parts do not fit. Nothing was changed.", *faults]))
        edits = [
            FileEdit(base, None if result is None else result.text, changes.moves.get(path), explanation)
            for path, base in changes.bases.items()
            for result in [changes.results[path]]
        ]
        return edits, self._forgiven_note(changes)

    async def _add_change(self, file_change: FileChange, call: CallContext, changes: _CallChanges) -> None:
        path = self.resolve(file_change.path)
        if path in self._workspace.roots:
            raise ToolError(f"{file_change.path} is a folder, the workspace root. Name a file.")
        pending = self._proposals.pending(call, path)
        if pending is not None:
            self._check_pending(file_change, path, pending)
        if path in changes.moves.values():
            raise ToolError(
                f"An earlier part moves a file to {self._workspace.display_path(path)}; {_ONE_PART_PER_FILE}"
            )
        if path not in changes.bases:
            base = await self._base(file_change, call, path)
            await self._check_spelling(path, changes)
        elif path in changes.moves or (last := changes.results[path]) is None:
            raise ToolError(f"An earlier part removes {self._workspace.display_path(path)}; {_ONE_PART_PER_FILE}")
        else:
            base = last
        if not file_change.blind and (base.exists or base.from_buffer) and call.denied([self._read_subject(path)]):
            raise ToolError(
                f"A rule denies reading {self._workspace.display_path(path)}, so it cannot be edited or moved either: "
                "that could reveal its content."
            )
        try:
            new_text, forgiven = await self._result(file_change, base)
        except ToolError:
            read = {path, path if pending is None else pending.base.path}
            if len(call.allowed(map(self._read_subject, read))) == len(read):
                raise
            raise ToolError(  # the reason would quote what the user has not let the model read
                f"The edit does not fit {self._workspace.display_path(path)}. Nothing was changed. Read the file "
                "first: that needs the user's approval."
            ) from None
        if new_text is None or file_change.new_path is not None:
            await self._check_removal(file_change, base)
            if path in changes.bases:
                raise ToolError(f"An earlier part edits {self.display_path(base)}; {_ONE_PART_PER_FILE}")
        if file_change.new_path is not None:
            changes.moves[path] = await self._destination(path, file_change.new_path, changes, call)
        changes.forgiven_differences.setdefault(path, {}).update(dict.fromkeys(forgiven))
        changes.bases.setdefault(path, base)
        changes.results[path] = None if new_text is None else replace(base, text=new_text, exists=True)

    async def _base(self, file_change: FileChange, call: CallContext, path: Path) -> FileText:
        try:
            return await self._proposals.text(call, path)
        except BinaryFile:
            if file_change.action == "edit" and file_change.new_path is None:
                raise
            raise _binary_file_error(file_change) from None

    def _check_pending(self, file_change: FileChange, path: Path, pending: LiveFile) -> None:
        """What an earlier call of the step wants of the file, and this one of what comes of it: some of it cannot be
        told as one change."""
        name, old_name = self._workspace.display_path(path), self._workspace.display_path(pending.base.path)
        removes = file_change.action == "delete" or file_change.new_path is not None
        drafted = self._proposals.drafts.has(path)  # what a draft makes, it can take back
        if pending.change == "create" and removes and not drafted:
            verb = "delete" if file_change.action == "delete" else "move"
            raise ToolError(f"{name} does not exist yet: this step creates it. To {verb} it, call in the next step.")
        if pending.delete and file_change.must_exist:
            raise ToolError(f"{name} no longer exists: an earlier call {'' if drafted else 'in this step '}deletes it.")
        if pending.new_path is None or pending.delete:
            return
        new_name = self._workspace.display_path(pending.new_path)
        if path == pending.base.path and drafted:
            raise ToolError(f"{name} moves to {new_name} in the draft. Use {new_name}, or another name for a new file.")
        if path == pending.base.path and (removes or file_change.action == "write" or file_change.must_exist is False):
            raise ToolError(
                f"{name} moves to {new_name} in this same step. Use {new_name} if you mean that file; for another "
                f"file at {name}, call again in the next step."
            )
        if file_change.action == "delete" and not drafted:
            raise ToolError(f"This same step moves {old_name} to {name}. To delete it, call again in the next step.")

    async def _result(self, file_change: FileChange, base: FileText) -> tuple[str | None, Sequence[str]]:
        """The text, and what was forgiven."""
        exists = base.exists or base.from_buffer
        if file_change.must_exist and not exists:
            await self._workspace.read(base.path)  # says what is there instead
            raise ToolError(f"{self.display_path(base)} no longer exists.")
        if file_change.must_exist is False and exists:
            raise ToolError(
                f"{self.display_path(base)} already exists. Change it with an edit, or replace it with write_file."
            )
        if file_change.change is None:
            return base.text, ()
        small = len(base.text) < _SMALL
        return (
            _changed(file_change.change, base) if small else await asyncio.to_thread(_changed, file_change.change, base)
        )

    async def _check_spelling(self, path: Path, changes: _CallChanges) -> None:
        """Two names of one file would be written one over the other."""
        on_disk = await asyncio.to_thread(spelling_on_disk, self._workspace.guard, path)
        if on_disk not in (None, path):
            raise ToolError(
                f"The file is called {on_disk.name}, and this system treats {path.name} as the same name. "
                f"Use {on_disk.name}."
            )
        for known_path in (*changes.bases, *changes.moves.values()):
            if fold_name(str(known_path)) == fold_name(str(path)) and await asyncio.to_thread(
                ignores_case, path.parent
            ):
                raise ToolError(f"{path.name} and {known_path.name} are the same file on this system.")

    async def _check_removal(self, file_change: FileChange, base: FileText) -> None:
        name = self.display_path(base)
        if base.unsaved:
            raise ToolError(
                f"{name} has unsaved changes in the editor, so it is not removed. Ask the user to save or close it."
            )
        if await asyncio.to_thread(is_symlink, self._workspace.roots, file_change.path):
            raise ToolError(
                f"{file_change.path} is a symbolic link to {name}. Name that file, or use a command for the link."
            )

    async def _destination(self, path: Path, target: str, changes: _CallChanges, call: CallContext) -> Path:
        """Where a file goes: a place that is free, or the same name in another case."""
        destination = self._workspace.resolve(self._absolute_target(path, target))
        name = self._workspace.display_path(destination)
        if destination == path:
            raise ToolError(f"The file is already at {name}.")
        guard, roots = self._workspace.guard, self._workspace.roots
        if await asyncio.to_thread(guard.real(destination).is_dir):
            whole = self._workspace.display_path(destination / path.name)
            raise ToolError(f"{name} is a folder. Give the whole new path, for example {whole}.")
        pending = self._proposals.pending(call, destination)
        if destination in changes.results or (pending is not None and pending.base.path != path):
            if self._proposals.drafts.has(destination):
                raise ToolError(f"The draft changes {name}, and a move does not overwrite it. Move to another path.")
            raise ToolError(f"{name} is changed in this same step. To move a file there, call again in the next step.")
        on_disk = await asyncio.to_thread(spelling_on_disk, guard, destination)
        await self._workspace.overlay.refresh(destination)
        taken = on_disk not in (None, path) or self._workspace.find_open(destination) is not None
        if taken or destination in changes.moves.values():
            raise ToolError(f"{name} already exists; a move does not overwrite it.")
        if on_disk is None and await asyncio.to_thread(is_symlink, roots, target):
            raise ToolError(f"{target} is a symbolic link; a move does not overwrite it.")
        if on_disk is None:
            await self._proposals.text(call, destination)  # raises if no file can be made there
        return destination

    def _absolute_target(self, path: Path, target: str) -> str:
        """Of several roots, a relative path that names none means the one the file is in."""
        roots = self._workspace.roots
        parts = Path(target).parts
        if len(roots) == 1 or not parts or Path(target).is_absolute() or parts[0] in {root.name for root in roots}:
            return target
        return str(self._workspace.root_of(path) / target)

    def _forgiven_note(self, changes: _CallChanges) -> str:
        """Names, to model and user, texts that were found although they are not in the file as they were written, and
        texts that lost a fence."""
        lines = [
            f"{self._workspace.display_path(path)}: the text to replace was not found exactly; it was matched with "
            f"different {', '.join(_DIFFERENCE_LABELS.get(how, how) for how in forgiven)}."
            for path, differences in changes.forgiven_differences.items()
            if (forgiven := [how for how in differences if how != _FENCE])
        ]
        lines += [
            f"{self._workspace.display_path(path)}: the fence around the whole text was left out: no file has one."
            for path, differences in changes.forgiven_differences.items()
            if _FENCE in differences
        ]
        return "\n".join(lines)

    # For the user -----------------------------------------------------------------------------------

    def _title(self, edits: Sequence[FileEdit]) -> str:
        relative = self._workspace.relative
        verbs: set[str] = set()
        names: list[str] = []
        for edit in edits:
            name = relative(edit.base.path)
            if edit.new_path is not None:
                verbs.add("Rename")
                name = f"{name} to {relative(edit.new_path)}"
            elif edit.text is None:
                verbs.add("Delete")
            else:
                verbs.add("Edit" if edit.base.exists or edit.base.from_buffer else "Create")
                cells = changed_cells(edit.base.text, edit.text) if is_notebook(edit.base.path) else ""
                name = f"{name}, {cells}" if cells else name
            names.append(name)
        verb = verbs.pop() if len(verbs) == 1 else "Change"
        if len(names) == 1:
            return f"{verb} {names[0]}"
        rest_note = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{verb} {len(names)} files: {', '.join(names[:_NAMED])}{rest_note}"

    def _stat(self, file: ProposedFile) -> str:
        if file.change == "rename":  # its one hunk is the whole file, changed or not
            same = all(hunk.old_text == hunk.new_text for hunk in file.hunks)
            return f"{self._name(file)}  renamed{'' if same else ' and changed'}"
        label = {"create": "  new", "delete": "  deleted"}.get(file.change, "")
        return f"{self._name(file)}  +{file.added} −{file.removed}{label}"

    def _name(self, file: ProposedFile) -> str:
        name = self._workspace.display_path(Path(file.path))
        return name if file.new_path is None else f"{name} → {self._workspace.display_path(Path(file.new_path))}"

    def _summary(self, proposal: Proposal, call: CallContext) -> str:
        """What became of it, by file when there are several."""
        mine = call.preview.writes if call.preview is not None else frozenset[str]()
        files = [file for file in proposal.files if file.path in mine] or proposal.files
        if len(files) == 1:
            return f"Changes: {_hunk_counts(files[0], draft=proposal.draft)}"
        return "\n".join(f"{self._name(file)}: {_hunk_counts(file, draft=proposal.draft)}" for file in files)


_ONE_PART_PER_FILE = "put all changes to a file in one part, or call again in the next step."
_DIFFERENCE_LABELS = {"blank lines around it": "blank lines around", "small differences": "words or signs in places"}
"""What was forgiven, where the name of it does not go with "matched with other …"."""


def _changed(change: Change, base: FileText) -> tuple[str | None, Sequence[str]]:
    """The text, and what was forgiven. Raises `ToolError`."""
    changed = change(base)
    text, forgiven = (changed.text, changed.forgiven) if isinstance(changed, MatchedText) else (changed, ())
    if text is not None and mask_added(base.text, text):
        raise ToolError(f"{_MASKED_SECRET} Nothing was changed.")
    if text is not None:
        base.check_new(text)
        if (inside := unfenced(text, base.text, base.path)) is not None:
            return inside, [*forgiven, _FENCE]
    return text, forgiven


def _binary_file_error(file_change: FileChange) -> BinaryFile:
    """A proposal holds text: what becomes of anything else is a command's business."""
    name = shlex.quote(file_change.path)
    if file_change.new_path is None:
        verb, command = "deleted", f"rm -- {name}"
    else:
        verb, command = "moved", f"mv -- {name} {shlex.quote(file_change.new_path)}"
    return BinaryFile(
        f"{file_change.path} is a binary file, and only text files are {verb} by this tool. Use run_shell_command, "
        f"for example: {command} (with git in front of it for a file that git tracks). The user cannot undo that here."
    )


def one_line_explanation(text: str | None) -> str:
    """What the model says a change is for, as one line of some length."""
    return one_line(" ".join((text or "").split()))


def _hunk_counts(file: ProposedFile, *, draft: bool) -> str:
    counts: dict[str, int] = {}
    for hunk in file.hunks:
        counts[hunk.state] = counts.get(hunk.state, 0) + 1
    labels = {"pending": "drafted" if draft else "open", "conflicted": "in conflict", "reverted": "taken back"}
    return ", ".join(f"{count} {labels.get(state, state)}" for state, count in counts.items()) + (
        ", not saved" if file.unsaved else ""
    )
