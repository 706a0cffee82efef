"""What the tools that change files share: a proposal in `preview`, its application and an exact report in `run`."""

import asyncio
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from amanu.core.tool import CallContext, CallDraft, Outcome, Params, Preview, Subject, ToolError
from amanu.proposals.model import LiveFile
from amanu.proposals.proposals import FileEdit
from amanu.text.display import one_line, visible
from amanu.text.redaction import MASK, marks_added
from amanu.tools.edits.draft import EditDraft
from amanu.tools.edits.match import Matched
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.workspace.file_names import folded, folds, link, spelt
from amanu.workspace.text_file import Binary, FileText
from amanu_protocol.items import Effect, Proposal, ProposedFile


class EditParams(Params):
    explanation: str | None = Field(
        default=None, description="One short sentence for the person who reviews the change: what it is for."
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The path stays first and the reason last: clients draw an edit while the model is still writing it."""
        found = handler(core)
        properties = handler.resolve_ref_schema(found)["properties"]
        properties["explanation"] = properties.pop("explanation")
        return found


P = TypeVar("P", bound=EditParams)
_SMALL = 64 * 1024  # characters that are worked on in the event loop
_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all
_NAMED = 5  # files named in a title
_MARKED = (
    f"{MASK} stands where a secret is that you are not shown; it is not in the file, and no edit can write it there. "
    "Edit around it: leave the lines that hold it out of what you search for and of what you write."
)
_MOST = 500  # files of one call


Change = Callable[[FileText], str | Matched | None]
"""The new text of a file, None to delete it. CPU-bound, without effect; may run in a thread. Raises `ToolError`, which
may quote the file; the path to name it by is in `FileChange`."""
Way = Literal["edit", "write", "delete", "move"]
"""What a call does to a file: change some of its text (and move it, perhaps), say the whole of it, remove it, or move
it as it is."""


@dataclass(frozen=True)
class FileChange:
    """What a call wants of one file, before that is looked at. Without `change` its text stays."""

    path: str
    change: Change | None = None
    new_path: str | None = None
    """The file goes there."""
    there: bool | None = None
    """True: the file must exist. False: it must not. None: the change decides."""
    blind: bool = False
    """Whether it fits does not depend on what the file says, so it cannot be used to find that out."""
    part: str = ""
    """Which part of the call it is, for errors: "File 2 of 3". "" when it is all of it."""
    way: Way = "edit"


@dataclass
class _Work:
    """The changes of a call so far. Several parts may be about one file: each starts from what the last left."""

    bases: dict[Path, FileText] = field(default_factory=dict[Path, FileText])
    now: dict[Path, FileText | None] = field(default_factory=dict[Path, FileText | None])
    """None: deleted."""
    moves: dict[Path, Path] = field(default_factory=dict[Path, Path])
    forgiven: dict[Path, dict[str, None]] = field(default_factory=dict[Path, dict[str, None]])
    """In what the model's text differed from the file's."""


class EditTool(SessionTool[P]):
    """A tool that computes what becomes of one or several files. All of it is proposed, or nothing."""

    effect: Effect = "write"
    verb: ClassVar[str] = "Edit"
    """What it does to a file, for the title of a call that has no preview yet."""
    signs: ClassVar[Mapping[str, str]] = {}
    """Arguments that hold text of the file → "-" or "+", see `EditDraft`."""

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._proposals = environment.proposals
        self._feedback = environment.feedback

    @abstractmethod
    def changes(self, params: P) -> Sequence[FileChange]:
        """What the call wants, in order. No file is looked at yet. Raises `ToolError`."""

    def shown(self, base: FileText) -> str:
        """The path of that file, for the model."""
        return self._workspace.shown(base.path)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        path = arguments.get("path")
        return f"{self.verb} {self._workspace.as_written(path)}" if isinstance(path, str) else self.name

    def draft(self) -> CallDraft:
        return EditDraft(self.title_of, self.signs)

    async def preview(self, params: P, call: CallContext) -> Preview:
        wanted = await asyncio.to_thread(self.changes, params)  # a patch may be long
        if len(wanted) > _MOST:
            raise ToolError(f"These are {len(wanted)} files; one call changes at most {_MOST}. Nothing was changed.")
        try:
            edits, forgiven = await self._edits(wanted, call, explained(params.explanation))
        except ToolError as error:
            if MASK in str(params) and _MARKED not in str(error):
                raise ToolError(f"{error} {_MARKED}") from None
            raise
        proposal = await self._proposals.propose(call, edits)
        diff = await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        stat = "\n".join(self._stat(file) for file in proposal.files)
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        why = f"The model says: {edits[0].explanation}\n\n" if edits[0].explanation else ""
        paths = [path for edit in edits for path in (edit.base.path, edit.new_path) if path is not None]
        subject, *also = [Subject(self.name, self.effect, self._workspace.relative(path)) for path in paths]
        # Under another name it would be read where no rule about this one applies.
        also += [self._reading(edit.base.path) for edit in edits if edit.new_path is not None]
        touched = frozenset(map(str, paths))
        return Preview(
            title=self._title(edits),
            subject=subject,
            also=tuple(also),
            detail=visible("\n\n".join(filter(None, [f"{why}{stat}", forgiven, diff]))),
            reads=touched,
            writes=touched,
            proposal_id=proposal.proposal_id,
            note=forgiven,
        )

    async def again(self, params: P, call: CallContext) -> Preview | None:
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
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_person=call.by_person)
            await self._proposals.together(call.call_id)
        report = await self._proposals.outcome(call.call_id)
        proposal = self._proposals.get(proposal.proposal_id)
        if not report:
            report = "Nothing is left to change: the edits of this step take each other back."
        states = {hunk.state for file in proposal.files for hunk in file.hunks}
        failed = states.isdisjoint({"applied", "pending", "accepted"})
        after = [Path(file.new_path or file.path) for file in proposal.files]
        news = await self._news(after, call) if "applied" in states else ""
        return Outcome(
            "\n\n".join(filter(None, [report, call.preview and call.preview.note, news])),
            self._summary(proposal, call),
            refused=states == {"rejected"},
            is_error=failed,
        )

    async def _news(self, paths: Sequence[Path], call: CallContext) -> str:
        """What the edit did to the files' findings. Nothing of a file the model would have to ask for: they quote."""
        if self._feedback is None:
            return ""
        readable = [path for path in paths if call.allowed([self._reading(path)])]
        try:
            return await self._feedback.news(readable)
        except asyncio.CancelledError:  # the edit is made: that is what the model must hear, not that it was cut short
            return ""

    def _reading(self, path: Path) -> Subject:
        return Subject("read_file", "read", self._workspace.relative(path))

    async def reject(self, params: P, call: CallContext, reason: str) -> str | None:
        proposal = self._proposals.of_call(call.call_id)
        if proposal is not None:
            await self._proposals.reject_all(
                proposal.proposal_id, reason or None, call.call_id, by_person=call.by_person
            )
        return None

    # What the call wants, on what is there ------------------------------------------------------------

    async def _edits(
        self, wanted: Sequence[FileChange], call: CallContext, explanation: str
    ) -> tuple[list[FileEdit], str]:
        """With what the matcher forgave. Every part is tried, so that the model hears of all that do not fit at
        once."""
        work = _Work()
        faults: list[str] = []
        for each in wanted:
            try:
                await self._add(each, call, work)
            except ToolError as error:
                faults.append(f"{each.part}: {error}" if each.part else str(error))
        if len(faults) == 1:
            raise ToolError(faults[0] if "othing was changed" in faults[0] else f"{faults[0]} Nothing was changed.")
        if faults:
            raise ToolError("\n\n".join([f"{len(faults)} parts do not fit. Nothing was changed.", *faults]))
        edits = [
            FileEdit(base, None if now is None else now.text, work.moves.get(path), explanation)
            for path, base in work.bases.items()
            for now in [work.now[path]]
        ]
        return edits, self._forgiven(work)

    async def _add(self, wanted: FileChange, call: CallContext, work: _Work) -> None:
        path = self._workspace.resolve(wanted.path)
        if path in self._workspace.roots:
            raise ToolError(f"{wanted.path} is a folder, the workspace root. Name a file.")
        pending = self._proposals.pending(call, path)
        if pending is not None:
            self._check_pending(wanted, path, pending)
        if path in work.moves.values():
            raise ToolError(f"An earlier part moves a file to {self._workspace.shown(path)}; {_IN_ONE}")
        if path not in work.bases:
            base = await self._base(wanted, call, path)
            await self._check_spelling(path, work)
        elif path in work.moves or (last := work.now[path]) is None:
            raise ToolError(f"An earlier part removes {self._workspace.shown(path)}; {_IN_ONE}")
        else:
            base = last
        if not wanted.blind and (base.exists or base.from_buffer) and call.denied([self._reading(path)]):
            raise ToolError(
                f"A rule denies reading {self._workspace.shown(path)}, so no part of it is edited, nor is it moved; "
                "that would tell what it says."
            )
        try:
            new, forgiven = await self._result(wanted, base)
        except ToolError:
            read = {path, path if pending is None else pending.base.path}
            if len(call.allowed(map(self._reading, read))) == len(read):
                raise
            raise ToolError(  # the reason would quote what the person has not let the model read
                f"The edit does not fit {self._workspace.shown(path)}. Nothing was changed. Read the file first: that "
                "needs the person's yes."
            ) from None
        if new is None or wanted.new_path is not None:
            await self._check_removal(wanted, base)
            if path in work.bases:
                raise ToolError(f"An earlier part edits {self.shown(base)}; {_IN_ONE}")
        if wanted.new_path is not None:
            work.moves[path] = await self._destination(path, wanted.new_path, work, call)
        work.forgiven.setdefault(path, {}).update(dict.fromkeys(forgiven))
        work.bases.setdefault(path, base)
        work.now[path] = None if new is None else replace(base, text=new, exists=True)

    async def _base(self, wanted: FileChange, call: CallContext, path: Path) -> FileText:
        try:
            return await self._proposals.text(call, path)
        except Binary:
            if wanted.way == "edit" and wanted.new_path is None:
                raise
            raise _no_text(wanted) from None

    def _check_pending(self, wanted: FileChange, path: Path, pending: LiveFile) -> None:
        """What an earlier call of the step wants of the file, and this one of what comes of it: some of it cannot be
        told as one change."""
        shown, old = self._workspace.shown(path), self._workspace.shown(pending.base.path)
        removes = wanted.way == "delete" or wanted.new_path is not None
        if pending.change == "create" and removes:
            verb = "delete" if wanted.way == "delete" else "move"
            raise ToolError(f"{shown} is not there yet: this step creates it. To {verb} it, call again in a next step.")
        if pending.delete and wanted.there:
            raise ToolError(f"{shown} is not there any more: an earlier call of this step deletes it.")
        if pending.new_path is None or pending.delete:
            return
        new = self._workspace.shown(pending.new_path)
        if path == pending.base.path and (removes or wanted.way == "write" or wanted.there is False):
            raise ToolError(
                f"{shown} moves to {new} in this same step. Name {new} if you mean that file; for another one at "
                f"{shown} call again in a next step."
            )
        if wanted.way == "delete":
            raise ToolError(f"{shown} is where this same step moves {old}. To delete it, call again in a next step.")

    async def _result(self, wanted: FileChange, base: FileText) -> tuple[str | None, Sequence[str]]:
        """The text, and what was forgiven."""
        there = base.exists or base.from_buffer
        if wanted.there and not there:
            await self._workspace.read(base.path)  # says what is there instead
            raise ToolError(f"There is no file {self.shown(base)} any more.")
        if wanted.there is False and there:
            raise ToolError(f"{self.shown(base)} exists already. Change it by an edit, or replace it by write_file.")
        if wanted.change is None:
            return base.text, ()
        new = wanted.change(base) if len(base.text) < _SMALL else await asyncio.to_thread(wanted.change, base)
        text, forgiven = (new.text, new.forgiven) if isinstance(new, Matched) else (new, ())
        if text is not None and marks_added(base.text, text):
            raise ToolError(f"{_MARKED} Nothing was changed.")
        return text, forgiven

    async def _check_spelling(self, path: Path, work: _Work) -> None:
        """Two names of one file would be written one over the other."""
        there = await asyncio.to_thread(spelt, self._workspace.guard, path)
        if there not in (None, path):
            raise ToolError(
                f"The file is called {there.name} there, and this system takes {path.name} for the same. Use that name."
            )
        for other in (*work.bases, *work.moves.values()):
            if folded(str(other)) == folded(str(path)) and await asyncio.to_thread(folds, path.parent):
                raise ToolError(f"{path.name} and {other.name} are the same file on this system.")

    async def _check_removal(self, wanted: FileChange, base: FileText) -> None:
        shown = self.shown(base)
        if base.unsaved:
            raise ToolError(
                f"{shown} has unsaved changes in the editor, so it is not removed. Ask the person to save or close it."
            )
        if await asyncio.to_thread(link, self._workspace.roots, wanted.path):
            raise ToolError(
                f"{wanted.path} is a symbolic link to {shown}. Name that file, or use a command for the link."
            )

    async def _destination(self, path: Path, wanted: str, work: _Work, call: CallContext) -> Path:
        """Where a file goes: a place that is free, or the same name in another case."""
        new = self._workspace.resolve(self._beside(path, wanted))
        shown = self._workspace.shown(new)
        if new == path:
            raise ToolError(f"{shown} is where the file is already.")
        guard, roots = self._workspace.guard, self._workspace.roots
        if await asyncio.to_thread(guard.real(new).is_dir):
            whole = self._workspace.shown(new / path.name)
            raise ToolError(f"{shown} is a folder. Give the whole new path, {whole} for example.")
        pending = self._proposals.pending(call, new)
        if new in work.now or (pending is not None and pending.base.path != path):
            raise ToolError(f"{shown} is changed in this same step. To move a file there, call again in a next step.")
        there = await asyncio.to_thread(spelt, guard, new)
        taken = there not in (None, path) or self._workspace.find(new) is not None
        if taken or new in work.moves.values():
            raise ToolError(f"{shown} exists already; nothing is moved over it.")
        if there is None and await asyncio.to_thread(link, roots, wanted):
            raise ToolError(f"{wanted} is a symbolic link; nothing is moved over it.")
        if there is None:
            await self._workspace.look(new)  # refuses what cannot become a file
        return new

    def _beside(self, path: Path, wanted: str) -> str:
        """Of several roots, a relative path that names none means the one the file is in."""
        roots = self._workspace.roots
        parts = Path(wanted).parts
        if len(roots) == 1 or not parts or Path(wanted).is_absolute() or parts[0] in {root.name for root in roots}:
            return wanted
        return str(roots[self._workspace.guard.locate(path)[0]] / wanted)

    def _forgiven(self, work: _Work) -> str:
        """For model and person: which texts were found although they were not in the file as they were written."""
        lines = [
            f"{self._workspace.shown(path)}: the text to replace was not there exactly; it was matched with other "
            f"{', '.join(_OTHER.get(how, how) for how in forgiven)}."
            for path, forgiven in work.forgiven.items()
            if forgiven
        ]
        return "\n".join(lines)

    # For the person -----------------------------------------------------------------------------------

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
            names.append(name)
        verb = verbs.pop() if len(verbs) == 1 else "Change"
        if len(names) == 1:
            return f"{verb} {names[0]}"
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{verb} {len(names)} files: {', '.join(names[:_NAMED])}{more}"

    def _stat(self, file: ProposedFile) -> str:
        if file.change == "rename":  # its one hunk is the whole file, changed or not
            same = all(hunk.old_text == hunk.new_text for hunk in file.hunks)
            return f"{self._name(file)}  renamed{'' if same else ' and changed'}"
        what = {"create": "  new", "delete": "  deleted"}.get(file.change, "")
        return f"{self._name(file)}  +{file.added} −{file.removed}{what}"

    def _name(self, file: ProposedFile) -> str:
        name = self._workspace.shown(Path(file.path))
        return name if file.new_path is None else f"{name} → {self._workspace.shown(Path(file.new_path))}"

    def _summary(self, proposal: Proposal, call: CallContext) -> str:
        """What became of it, by file when there are several."""
        mine = call.preview.writes if call.preview is not None else frozenset[str]()
        files = [file for file in proposal.files if file.path in mine] or proposal.files
        if len(files) == 1:
            return f"Changes: {_counted(files[0])}"
        return "\n".join(f"{self._name(file)}: {_counted(file)}" for file in files)


_IN_ONE = "say all about a file in one part, or call again in a next step."
_OTHER = {"blank lines around it": "blank lines around", "small differences": "words or signs in places"}
"""What was forgiven, where the name of it does not go with "matched with other …"."""


def _no_text(wanted: FileChange) -> Binary:
    """A proposal holds text: what becomes of anything else is a command's business."""
    name = shlex.quote(wanted.path)
    if wanted.new_path is None:
        verb, command = "deleted", f"rm -- {name}"
    else:
        verb, command = "moved", f"mv -- {name} {shlex.quote(wanted.new_path)}"
    return Binary(
        f"{wanted.path} is a binary file, and only text files are {verb} by this tool. Use run_shell_command, "
        f"for example: {command} (with git in front of it for a file that git keeps). The person cannot undo that here."
    )


def explained(text: str | None) -> str:
    """What the model says a change is for, as one line of some length."""
    return one_line(" ".join((text or "").split()))


def _counted(file: ProposedFile) -> str:
    counts: dict[str, int] = {}
    for hunk in file.hunks:
        counts[hunk.state] = counts.get(hunk.state, 0) + 1
    words = {"pending": "open", "conflicted": "in conflict", "revertedByPerson": "taken back"}
    return ", ".join(f"{count} {words.get(state, state)}" for state, count in counts.items()) + (
        ", not saved" if file.unsaved else ""
    )
