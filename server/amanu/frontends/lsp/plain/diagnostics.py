"""Amanu's diagnostics in a plain client. Changes are shown in their files; questions without an open dialog, in the
document that the user is in."""

import asyncio
from pathlib import Path

from lsprotocol import types

from amanu.frontends.lsp.buffers import path_of
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.announcements import Announcements
from amanu.frontends.lsp.plain.change_marks import Mark, marks
from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.frontends.lsp.plain.questions import Questions, diagnostic
from amanu.frontends.lsp.plain.rule_editor import RuleEditor
from amanu.frontends.lsp.plain.user_questions import UserQuestions
from amanu.frontends.lsp.plain.workspace_session import WorkspaceSession

SOON = 0.05
"""Seconds in which changes become one publishing."""


class Diagnostics:
    """The diagnostics of one client, for the current session of `workspace`. Changes that wait are announced, too."""

    def __init__(
        self,
        editor: PlainEditor,
        workspace: WorkspaceSession,
        questions: Questions,
        user_questions: UserQuestions,
        rule_editor: RuleEditor,
        announcements: Announcements,
    ) -> None:
        self._editor = editor
        self._workspace = workspace
        self._questions = questions
        self._user_questions = user_questions
        self._rule_editor = rule_editor
        self._announcements = announcements
        self.shown: list[Mark] = []
        """The changes that wait for the user, who was told about them."""
        self._marks: list[Mark] | None = None
        """None: to be computed again."""
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._pulled: dict[str, list[types.Diagnostic]] = {}
        """Diagnostics of open documents, for a client that asks for these itself."""
        self._current_uri: str | None = None
        """The document the user was in last."""
        self._due: asyncio.TimerHandle | None = None
        self._refreshing: asyncio.Task[None] | None = None
        questions.listeners.append(self.publish_soon)
        user_questions.listeners.append(self.publish_soon)

    def marks(self) -> list[Mark]:
        """All changes of the session that are open or applied."""
        if self._marks is None:
            session = self._workspace.current
            self._marks = [] if session is None else marks(session.state, self._editor.encoding, self._editor.name)
        return self._marks

    def marks_of(self, path: Path | None) -> list[Mark]:
        return [mark for mark in self.marks() if mark.path == path]

    def proposals_changed(self) -> None:
        """The session's proposals changed, or the session itself."""
        self._marks = None
        self.publish_soon()

    def document_used(self, uri: str) -> None:
        """The user opened or changed that document."""
        if path_of(uri) is None:
            return
        previous, self._current_uri = self._current_uri, uri
        if uri in self._published and self._is_pulled(uri):
            self.publish_soon()  # it was not open until now
        if uri != previous and (self._questions.unanswered or self._user_questions.diagnostics() or self.shown):
            self.publish_soon()

    def pull(self, uri: str) -> types.RelatedFullDocumentDiagnosticReport:
        """The diagnostics of a document, for a client that asks itself."""
        return types.RelatedFullDocumentDiagnosticReport(self._pulled.get(uri, []))

    def publish_soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(SOON, self._publish)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _publish(self) -> None:
        self._due = None
        self.shown = [mark for mark in self.marks() if mark.waits]
        by_uri: dict[str, list[types.Diagnostic]] = {}
        for mark in (mark for mark in self.shown if mark.in_document):
            by_uri.setdefault(self._editor.uri(mark.path), []).append(review.diagnostic(mark))
        if self._current_uri is not None and not self._rule_editor.shows(self._current_uri):
            for approval in self._questions.unanswered.values():
                by_uri.setdefault(self._current_uri, []).append(diagnostic(approval))
            if question_diagnostics := self._user_questions.diagnostics():
                by_uri.setdefault(self._current_uri, []).extend(question_diagnostics)
        pulled = {uri: diagnostics for uri, diagnostics in by_uri.items() if self._is_pulled(uri)}
        pushed = {uri: diagnostics for uri, diagnostics in by_uri.items() if uri not in pulled}
        for uri in self._published.keys() - pushed.keys():
            self._editor.publish(uri, [])
        for uri, diagnostics in pushed.items():
            if self._published.get(uri) != diagnostics:
                self._editor.publish(uri, diagnostics)
        if (pulled, pushed) != (self._pulled, self._published):
            self._refreshing = asyncio.create_task(self._refresh(pulled != self._pulled))
        self._published, self._pulled = pushed, pulled
        self._announcements.update(self.shown)

    def _is_pulled(self, uri: str) -> bool:
        path = path_of(uri)
        return self._editor.pulls_diagnostics and path is not None and self._editor.buffers.buffer(path) is not None

    async def _refresh(self, diagnostics: bool) -> None:
        if diagnostics:
            await self._editor.refresh_diagnostics()
        await self._editor.refresh_lenses()
