"""What a user at a terminal says about edits that are there: take them back, bring them again, keep them, look at
them, go back to before a turn. What would happen is shown before it does."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from amanu.cli.console import Console
from amanu.cli.diff import relative, show_diff, show_file_header, show_hunks, show_row
from amanu.cli.edit_scope import CONCERNED, Scope, changes_at
from amanu.cli.long_text import is_long, printed, show_extent, show_files_again
from amanu.cli.review_prompt import UserInput
from amanu.cli.text import one_line, visible
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, Proposal, ProposedFile, Row
from amanu_protocol.labels import IGNORED


class EditSlashCommands:
    """The slash commands of the chat that are about one session's edits. Raise `AmanuError`."""

    def __init__(self, view: SessionView, console: Console, user_input: UserInput) -> None:
        self._view = view
        self._console = console
        self._user_input = user_input

    async def undo(self, argument: str) -> None:
        """Show what would be taken back, and if the user agrees, do it."""
        scope, _ = self._find("undo", argument)
        dry = await self._undo(scope, dry_run=True)
        text = printed(lambda console: self._show_diffs(dry.files, console))
        self._show(dry.files, [])
        if not any(file.undone for file in dry.files):
            self._console.line(("dim", "nothing can be undone"))
        elif await self._yes("Undo this?", text):
            result = await self._undo(scope, dry_run=False)
            self._say_undone(result.files)
            if result.note:
                self._console.line(("yellow", visible(result.note)))

    async def decide(self, decision: Literal["accept", "reject", "redo", "keep"], argument: str) -> None:
        """What a review left open is shown again before it is accepted or rejected."""
        scope, proposals = self._find(decision, argument)
        if decision in ("accept", "reject"):
            text = printed(lambda console: self._show_open(proposals, scope.path, console))
            files = self._show_open(proposals, scope.path, self._console)
            if is_long(text):
                show_extent(text, self._console)
                show_files_again(files, self._view.state.roots, self._console)
            if not await self._yes(f"{decision.capitalize()} the changes above?", text):
                return
        versions = [
            r.SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version) for proposal in proposals
        ]
        params = r.ProposalDecideParams(session_id=self._view.session_id, scope=scope, decision=decision, seen=versions)
        answer = await self._view.client.request("amanu/proposal/decide", params, r.ProposalDecideResult)
        if answer.status == "tooSoon":
            self._console.line(("yellow", IGNORED["tooSoon"]))
        elif decision in ("accept", "redo"):
            self._say_applied(decision, scope.path, proposals, answer.proposals)
        else:
            self._console.line(("dim", _done(decision, proposals, scope.path)))

    def _say_applied(
        self,
        decision: Literal["accept", "redo"],
        path: str | None,
        before: Sequence[Proposal],
        after: Sequence[Proposal],
    ) -> None:
        """Tell the outcome: each change that was to be applied and was not, the reason, and what to do."""
        wanted = {_id(change) for _, change in changes_at(before, path) if CONCERNED[decision](change)}
        left = [
            (place, change)
            for place, change in changes_at(after, path)
            if _id(change) in wanted and change.state != "applied"
        ]
        if not left:
            self._console.line(("dim", _done(decision, before, path)))
            return
        count = len(wanted) - len(left)
        self._console.line(("yellow", f"Applied {count} of {plural(len(wanted), 'change')}. Not applied:"))
        for place, change in left:
            line = f", line {change.lines.first}" if isinstance(change, Hunk) else ""
            self._console.line(("yellow", f"  {self._name(place)}{line}: {one_line(change.reason or change.state)}"))
        others = {
            "accept": "/reject them, or /retry: the model makes them again.",
            "redo": "or ask for the change again in a prompt.",
        }
        what = "those lines" if all(isinstance(change, Hunk) for _, change in left) else "what was there"
        self._console.line(("yellow", f"Restore {what} and /{decision} again, {others[decision]}"))

    async def retry(self, argument: str) -> None:
        """Ask the model again for what is in conflict, to be made on the files as they are now."""
        scope, proposals = self._find("retry", argument)
        count = 0
        for proposal in proposals:
            changes = [change for _, change in changes_at([proposal], scope.path) if CONCERNED["retry"](change)]
            params = r.ProposalRetryParams(
                session_id=self._view.session_id,
                proposal_id=proposal.proposal_id,
                version=proposal.version,
                hunk_ids=[change.hunk_id for change in changes if isinstance(change, Hunk)],
                row_ids=[change.row_id for change in changes if isinstance(change, Row)],
            )
            answer = await self._view.client.request("amanu/proposal/retry", params, r.ProposalRetryResult)
            if answer.status == "tooSoon":
                self._console.line(("yellow", IGNORED["tooSoon"]))
            else:
                count += len(changes)
        if count:
            self._console.line(("dim", f"asked for {plural(count, 'change')} again, on the files as they are now"))

    async def diff(self, argument: str) -> None:
        """What is applied of a turn, a file, or of all of it, as one diff."""
        scope, proposals = self._find("diff", argument)
        params = r.ProposalDiffParams(session_id=self._view.session_id, scope=scope)
        answer = await self._view.client.request("amanu/proposal/diff", params, r.ProposalDiffResult)
        if answer.diff:
            show_diff(self._console, answer.diff)
        for _, change in changes_at(proposals, scope.path):
            if isinstance(change, Row) and CONCERNED["diff"](change):
                show_row(self._console, change, self._view.state.roots)
        for file in answer.files:
            to = f" → {self._name(file.new_path)}" if file.new_path is not None else ""
            self._console.line(
                ("", f"{file.change} {self._name(file.path)}{to} "),
                ("green", f"+{file.added} "),
                ("red", f"−{file.removed}"),
            )

    # Checkpoints ---------------------------------------------------------------------------------------

    async def checkpoints(self) -> None:
        checkpoints = await self.list_checkpoints()
        for number, checkpoint in enumerate(checkpoints, 1):
            when = time.strftime("%H:%M", time.localtime(checkpoint.at / 1000))
            notes = _outcomes(checkpoint.files)
            notes += [plural(len(checkpoint.commands), "command")] if checkpoint.commands else []
            self._console.line(
                ("bold", f"{number:3} "), ("", f"{when} {one_line(checkpoint.text, 60)} "), ("dim", " · ".join(notes))
            )
        if not checkpoints:
            self._console.line(("dim", "No checkpoints: nothing has been asked yet."))
        else:
            self._console.line(
                (
                    "dim",
                    "/restore NUMBER goes back to before that turn; /restore NUMBER all: including the conversation",
                )
            )

    async def restore(self, argument: str) -> str | None:
        """Go back to before a turn. The prompt that began it, when it left the conversation."""
        number, _, part = argument.partition(" ")
        checkpoints = await self.list_checkpoints()
        if not number.isdecimal() or not 1 <= int(number) <= len(checkpoints) or part not in ("", "files", "all"):
            raise AmanuError("invalidParams", "Usage: /restore NUMBER [files|all], with a number from /checkpoints.")
        chosen = checkpoints[int(number) - 1]
        params = r.CheckpointPreviewParams(session_id=self._view.session_id, turn_id=chosen.turn_id)
        preview = await self._view.client.request("amanu/checkpoint/preview", params, r.CheckpointPreviewResult)
        text = printed(lambda console: self._show_diffs(preview.files, console))
        self._show(preview.files, preview.commands)
        turns = f"{plural(preview.turns, 'turn')} of the conversation"
        changes = any(file.undone for file in preview.files)
        if not changes and part != "all":
            words = (
                f"Nothing to undo: no change of that turn or a later one is applied. /restore {number} all goes back"
            )
            self._console.line(("dim", f"{words} {turns}."))
            return None
        question = "Undo the changes above" if changes else f"Go back {turns}"
        if not await self._yes(f"{question}{f', and {turns}' if changes and part == 'all' else ''}?", text):
            return None
        restore_params = r.CheckpointRestoreParams(
            session_id=self._view.session_id, turn_id=chosen.turn_id, files=True, conversation=part == "all"
        )
        result = await self._view.client.request("amanu/checkpoint/restore", restore_params, r.CheckpointRestoreResult)
        self._say_undone(result.files)
        return result.text

    async def list_checkpoints(self) -> list[r.Checkpoint]:
        """Newest first."""
        params = r.CheckpointListParams(session_id=self._view.session_id)
        answer = await self._view.client.request("amanu/checkpoint/list", params, r.CheckpointListResult)
        return answer.checkpoints[::-1]

    # Of what -------------------------------------------------------------------------------------------

    def _find(self, verb: str, argument: str) -> tuple[r.EditScope, list[Proposal]]:
        """`turn` (the last one there is something of; the default), `session`, `file PATH`. Raises `AmanuError` when
        there is nothing."""
        word, _, remainder = (argument or "turn").partition(" ")
        if word not in get_args(Scope) or (word == "file") != bool(remainder):
            raise AmanuError("invalidParams", f"Usage: /{verb} [turn | session | file PATH]")
        operation = CONCERNED[verb]
        path = self._path(remainder.strip()) if word == "file" else None

        proposals = [
            proposal
            for proposal in self._view.state.proposals
            if any(operation(change) for _, change in changes_at([proposal], path))
        ]
        if not proposals:
            what = f"{'show' if verb == 'diff' else verb}{' in ' + visible(remainder) if remainder else ''}"
            raise AmanuError("invalidParams", f"There is nothing to {what}.")
        match word:
            case "session":
                return r.EditScope(), proposals
            case "file":
                example = next(place for place, change in changes_at(proposals[-1:], path) if operation(change))
                return r.EditScope(path=example), proposals
            case _:
                turn_id = proposals[-1].turn_id
                return r.EditScope(turn_id=turn_id), [proposal for proposal in proposals if proposal.turn_id == turn_id]

    def _path(self, typed: str) -> str:
        """As the user means it: of the workspace folders the first that has it."""
        roots = [Path(root) for root in self._view.state.roots]
        paths = {
            path
            for proposal in self._view.state.proposals
            for change in (*proposal.files, *proposal.rows)
            for path in (change.path, change.new_path)
        }
        return next((str(root / typed) for root in roots if str(root / typed) in paths), str(roots[0] / typed))

    def _show_open(self, proposals: Sequence[Proposal], path: str | None, console: Console) -> list[ProposedFile]:
        """Returns the files of which something is open."""
        shown: list[ProposedFile] = []
        for file in (file for proposal in proposals for file in proposal.files if path in (None, file.path)):
            hunks = [hunk for hunk in file.hunks if CONCERNED["accept"](hunk)]
            if hunks:
                shown.append(file)
                show_file_header(console, file, self._view.state.roots)
                show_hunks(console, file, hunks)
        for row in (row for proposal in proposals for row in proposal.rows if path in (None, row.path, row.new_path)):
            if CONCERNED["accept"](row):
                show_row(console, row, self._view.state.roots)
        return shown

    # Small ---------------------------------------------------------------------------------------------

    async def _undo(self, scope: r.EditScope, *, dry_run: bool) -> r.ProposalUndoResult:
        params = r.ProposalUndoParams(session_id=self._view.session_id, scope=scope, dry_run=dry_run)
        return await self._view.client.request("amanu/proposal/undo", params, r.ProposalUndoResult)

    async def _yes(self, question: str, text: str) -> bool:
        """`text` is what it is about, as shown above."""
        choices = [Choice("y", "Yes"), Choice("n", "No")]
        if is_long(text):
            choices.append(Choice("v", "View all of it", "in the pager"))
        self._console.line(("heading", "? "), ("bold", question))
        while True:
            answer = await self._user_input.ask(
                Dialog("› ", choices, valid=lambda: not self._view.client.lost.is_set())
            )
            if answer != "v":
                return answer is not None and answer.lower() in ("y", "yes")
            await self._user_input.view(text)

    def _show_diffs(self, files: Sequence[r.UndoneFile], console: Console) -> None:
        for file in files:
            if file.diff.startswith(("--- ", "rename ")):  # of a row it is its title; the list names it
                show_diff(console, file.diff)

    def _show(self, files: Sequence[r.UndoneFile], commands: Sequence[str]) -> None:
        self._show_diffs(files, self._console)
        for file in files:
            effect = effect_of_undo(file, self._view.state.roots)
            self._console.line(("bold", self._name(file.path)), ("", f": {effect}"))
            for hunk in file.skipped:
                self._console.line(("yellow", f"  will not be undone: {_inside(hunk.reason)}"))
        if commands:
            self._console.line(("yellow", "Changes made by these commands are not undone:"))
        for command in commands:
            self._console.line(("yellow", f"  {one_line(command)}"))

    def _say_undone(self, files: Sequence[r.UndoneFile]) -> None:
        undone = sum(len(file.undone) for file in files)
        changed = sum(bool(file.undone) for file in files)
        if undone:
            them = "it" if undone == 1 else "them"
            self._console.line(
                ("dim", f"undid {plural(undone, 'change')} in {plural(changed, 'file')}; /redo applies {them} again")
            )
        for path, hunk in ((each.path, hunk) for each in files for hunk in each.skipped):
            self._console.line(("yellow", f"{self._name(path)}: not undone: {_inside(hunk.reason)}"))

    def _name(self, path: str) -> str:
        return relative(path, self._view.state.roots)


def effect_of_undo(file: r.UndoneFile, roots: Sequence[str]) -> str:
    """The effect that undoing will have on one file."""
    to = f" to {relative(file.new_path, roots)}" if file.new_path is not None else ""
    return {
        "edit": f"{plural(len(file.undone), 'change')} will be undone",
        "create": "will be restored",
        "delete": "will be deleted, since Amanu created it",
        "rename": f"will be renamed{to}",
        "none": "stays as it is",
    }[file.action]


def _outcomes(files: Sequence[r.CheckpointFile]) -> list[str]:
    """The number of files that a turn has changed, and what became of its other proposals."""
    words = {"": 0, " open": 0, " undone": 0, " rejected": 0}
    for file in files:
        words["" if file.applied else " open" if file.open else " undone" if file.undone else " rejected"] += 1
    return [f"{plural(count, 'file')}{word}" for word, count in words.items() if count]


def _done(decision: str, proposals: Sequence[Proposal], path: str | None) -> str:
    """The effect of a decision, with counts."""
    changes = [(place, change) for place, change in changes_at(proposals, path) if CONCERNED[decision](change)]
    counts = f"{plural(len(changes), 'change')} in {plural(len({place for place, _ in changes}), 'file')}"
    return {
        "accept": f"accepted {counts}",
        "reject": f"rejected {counts}",
        "redo": f"applied {counts} again",
        "keep": f"kept {counts}",
    }[decision]


def _inside(reason: str) -> str:
    """A reason within a sentence."""
    reason = one_line(reason).removesuffix(".")
    return reason[:1].lower() + reason[1:]


def _id(change: Hunk | Row) -> str:
    return change.hunk_id if isinstance(change, Hunk) else change.row_id
