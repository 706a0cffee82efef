"""The patch files that are open here: made of a proposal, edited by the person, applied as they stand."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from amanu.frontends.lsp.plain import commands as orders
from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain.decisions import Resolve
from amanu.frontends.lsp.plain.documents import PATCH, Documents
from amanu.frontends.lsp.plain.editor import ERROR, Face
from amanu.workspace.diagnostics import OWN
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class Patches:
    """`named` finds a session, that of the workspace by default; `resolve` takes its decisions; `uri` is a file's as
    the editor has it."""

    def __init__(
        self,
        sessions: "Sessions",
        documents: Documents,
        face: Face,
        uri: Callable[[Path], str],
        named: "Callable[[str | None], Awaitable[Session]]",
        resolve: Resolve,
    ) -> None:
        self._sessions = sessions
        self._documents = documents
        self._face = face
        self._uri = uri
        self._named = named
        self._resolve = resolve
        self._open: set[Path] = set()
        """Files that were made here and not applied yet."""

    def unseen(self) -> list[Path]:
        """Those that the editor shows without us."""
        return [path for path in sorted(self._open) if not self._documents.at(path).opened]

    async def review(self, order: orders.OneProposal) -> None:
        session = await self._named(order.session)
        opened = [proposal for proposal in session.state.proposals if patch.has_open(proposal)]
        proposal_id = order.proposal or (opened[-1].proposal_id if opened else None)
        if proposal_id is None:
            raise AmanuError("invalidParams", "Nothing is proposed.")
        proposal = session.edits.proposal(proposal_id)
        document = self._documents.of(session.state.session_id, f"{proposal_id}{PATCH}")
        await document.replace(patch.of_proposal(proposal, Path(session.state.roots[0])))
        self._open.add(document.path)
        self._complain(document.path, None)
        await self._face.show(document.path, focus=True)

    async def apply(self, order: orders.Reviewed) -> None:
        path = Path(order.path)
        session_id = self._documents.session_of(path)
        if session_id is None or path.suffix != PATCH:
            raise AmanuError("invalidParams", "That is no patch file of Amanu's.")
        session = await self._sessions.get(session_id)
        document = self._documents.at(path)
        text = await document.text() or ""
        try:
            proposal_id = patch.proposal_of(text)
            if proposal_id is None:
                raise patch.Unfit(0, 'The line "# review …" is gone: it says what was seen. Open the review again.')
            proposal = session.edits.proposal(proposal_id)
            decided = patch.decisions(text, proposal)
        except patch.Unfit as error:
            self._complain(path, error)
            return
        if decided and not await self._resolve(session, proposal, decided):
            return
        self._complain(path, None)
        self._open.discard(path)
        accepted = sum(decision.decision == "accept" for decision in decided)
        await document.replace(f"# Decided: {accepted} accepted, {len(decided) - accepted} rejected.\n")

    def _complain(self, path: Path, error: patch.Unfit | None) -> None:
        """Say in the patch file where it cannot be read."""
        uri = self._uri(path)
        if error is None:
            self._face.publish(uri, [])
            return
        position = types.Range(types.Position(error.line, 0), types.Position(error.line + 1, 0))
        self._face.publish(uri, [types.Diagnostic(position, str(error), types.DiagnosticSeverity.Error, source=OWN)])
        self._face.say(f"Amanu: nothing was applied. Line {error.line + 1}: {error}", ERROR)
