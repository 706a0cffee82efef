"""The patch files that are open here: made of a proposal, edited by the user, applied as they stand."""

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain.command_arguments import PatchArguments
from amanu.frontends.lsp.plain.decisions import Decisions
from amanu.frontends.lsp.plain.documents import PATCH, Documents
from amanu.frontends.lsp.plain.editor import ERROR, PlainEditor
from amanu.workspace.diagnostics import OWN
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class PatchFiles:
    """Those of one client; what they decide goes to `decisions`."""

    def __init__(self, sessions: "Sessions", documents: Documents, editor: PlainEditor, decisions: Decisions) -> None:
        self._sessions = sessions
        self._documents = documents
        self._editor = editor
        self._decisions = decisions
        self._open: set[Path] = set()
        """Files that were made here and not applied yet."""

    def hidden(self) -> list[Path]:
        """Those that the editor shows without us."""
        return [path for path in sorted(self._open) if not self._documents.at(path).opened]

    async def review(self, session: "Session", proposal_id: str | None) -> None:
        """Make the patch file of a proposal and show it; None: of the last one with an open change."""
        opened = [proposal for proposal in session.state.proposals if patch.has_open(proposal)]
        proposal_id = proposal_id or (opened[-1].proposal_id if opened else None)
        if proposal_id is None:
            raise AmanuError("invalidParams", "There are no open proposals.")
        proposal = session.edits.proposal(proposal_id)
        document = self._documents.of(session.state.session_id, f"{proposal_id}{PATCH}")
        await document.replace(patch.of_proposal(proposal, Path(session.state.roots[0])))
        self._open.add(document.path)
        self._complain(document.path, None)
        await self._editor.show(document.path, focus=True)

    async def apply(self, arguments: PatchArguments) -> None:
        path = Path(arguments.path)
        session_id = self._documents.session_of(path)
        if session_id is None or path.suffix != PATCH:
            raise AmanuError("invalidParams", "That is not a patch file made by Amanu.")
        session = await self._sessions.get(session_id)
        document = self._documents.at(path)
        text = await document.text() or ""
        try:
            proposal_id = patch.proposal_of(text)
            if proposal_id is None:
                raise patch.PatchError(
                    0, 'The line "# review …" is missing: it records what was shown. Open the review again.'
                )
            proposal = session.edits.proposal(proposal_id)
            decided = patch.decisions(text, proposal)
        except patch.PatchError as error:
            self._complain(path, error)
            return
        decisions = [*decided.hunks, *decided.rows]
        if decisions and not await self._decisions.resolve(session, proposal, decided):
            return
        self._complain(path, None)
        self._open.discard(path)
        accepted = sum(decision.decision == "accept" for decision in decisions)
        await document.replace(f"# Decided: {accepted} accepted, {len(decisions) - accepted} rejected.\n")

    def _complain(self, path: Path, error: patch.PatchError | None) -> None:
        """Say in the patch file where it cannot be read."""
        uri = self._editor.uri(path)
        if error is None:
            self._editor.publish(uri, [])
            return
        position = types.Range(types.Position(error.line, 0), types.Position(error.line + 1, 0))
        self._editor.publish(uri, [types.Diagnostic(position, str(error), types.DiagnosticSeverity.Error, source=OWN)])
        self._editor.say(f"Amanu: nothing was applied. Line {error.line + 1}: {error}", ERROR)
