"""The question as a document: all that is asked about, and the rules that would answer it from then on, to be edited.

What the edited rules would do is said in the document as it is typed, and only what answers this question is saved.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from amanu.frontends.lsp.buffers import path_of
from amanu.frontends.lsp.plain.command_arguments import RuleArguments
from amanu.frontends.lsp.plain.documents import Documents
from amanu.frontends.lsp.plain.editor import ERROR, PlainEditor
from amanu.frontends.lsp.plain.transcript import question_text
from amanu.text.approval_answers import answers_at_once
from amanu.text.display import visible
from amanu.workspace.diagnostics import OWN
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, ApprovalAnswer
from amanu_protocol.labels import IGNORED
from amanu_protocol.requests import ApprovalResolveParams, RulePreviewParams, RulePreviewResult

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions

QUESTION = "question.md"
RULES = "## Rules that would answer this from now on"
_HOW = "One per line; edit them as you like. A code action here saves them for the scope its title names."
SOON = 0.3
"""Seconds after the last change until the rules are looked at."""


@dataclass
class _OpenQuestion:
    session_id: str
    approval: Approval


class RuleEditor:
    """`client` is who answers."""

    def __init__(
        self,
        sessions: "Sessions",
        documents: Documents,
        editor: PlainEditor,
        client: "Client",
    ) -> None:
        self._sessions = sessions
        self._documents = documents
        self._editor = editor
        self._client = client
        self._open: dict[Path, _OpenQuestion] = {}
        self._due: asyncio.TimerHandle | None = None
        self._preview_task: asyncio.Task[None] | None = None

    async def show(self, session: "Session", approval: Approval) -> None:
        """Open that question before the user."""
        document = self._documents.of(session.state.session_id, QUESTION)
        offered = dict.fromkeys(answer.rule for answer in _kept(approval))
        rules = "\n".join(visible(rule) for rule in offered)
        await document.replace(question_text(approval) + (f"\n{RULES}\n\n{_HOW}\n\n{rules}\n" if rules else ""))
        self._open[document.path] = _OpenQuestion(session.state.session_id, approval)
        await self._editor.show(document.path, focus=True)
        await self._show_preview(document.path)

    def offers(self, path: Path) -> list[tuple[str, str, dict[str, Any]]]:
        """The code actions of that document: title, command, argument."""
        question = self._open.get(path)
        if question is None:
            return []
        session_id = question.session_id
        return [
            (
                f"Amanu: {answer.label[0].lower()}{answer.label[1:]}, by the rules below",
                "amanu.saveRule",
                RuleArguments(session=session_id, path=str(path), scope=answer.scope).model_dump(by_alias=True),
            )
            for answer in _kept(question.approval)
        ]

    def shows(self, uri: str) -> bool:
        """That document is a question of ours, and what is to be said in it is said here."""
        return path_of(uri) in self._open

    def document_used(self, uri: str) -> None:
        """The user typed there, or looked at it."""
        path = path_of(uri)
        if path is not None and path in self._open:
            if self._due is not None:
                self._due.cancel()
            self._due = asyncio.get_running_loop().call_later(SOON, self._start_preview, path)

    async def save(self, session: "Session", arguments: RuleArguments) -> None:
        """Say yes by the rules as they stand in the document. Raises `AmanuError` (invalidRule) when they do not
        answer the question."""
        path = Path(arguments.path)
        question = self._open.get(path)
        kept = {} if question is None else {answer.scope: answer for answer in _kept(question.approval)}
        if question is None or arguments.scope not in kept:
            raise AmanuError("invalidParams", "That is not a pending question.")
        rule = await self._written(path)
        preview = self._preview(question, rule)
        if not preview.fits:
            raise AmanuError("invalidRule", next(line.text for line in preview.lines if line.tone == "bad"))
        result = await session.resolve_approval(
            ApprovalResolveParams(
                session_id=question.session_id,
                tool_call_id=question.approval.tool_call_id,
                decision="allow",
                scope=arguments.scope,
                rule=rule,
                digest=question.approval.digest,
                grants=kept[arguments.scope].grants,
            ),
            self._client,
        )
        match result.status:
            case "stale":
                self._editor.say(IGNORED["stale"], ERROR)
            case "tooSoon":
                self._editor.say(IGNORED["tooSoon"])
            case _:
                self._open.pop(path, None)
                self._editor.publish(self._editor.uri(path), [])

    def _start_preview(self, path: Path) -> None:
        self._preview_task = asyncio.create_task(self._show_preview(path))

    async def _show_preview(self, path: Path) -> None:
        """Say in the document what its rules would do."""
        question = self._open.get(path)
        text = await self._documents.at(path).text() or ""
        if question is None or RULES not in text:
            return
        preview = self._preview(question, await self._written(path))
        position = types.Position(text[: text.index(RULES)].count("\n"), 0)
        diagnostic = types.Diagnostic(
            types.Range(position, types.Position(position.line, len(RULES))),
            "\n".join(visible(line.text) for line in preview.lines),
            types.DiagnosticSeverity.Information if preview.fits else types.DiagnosticSeverity.Error,
            source=OWN,
        )
        self._editor.publish(self._editor.uri(path), [diagnostic])

    async def _written(self, path: Path) -> str:
        text = await self._documents.at(path).text() or ""
        lines = text.partition(RULES)[2].replace(_HOW, "").split("\n")
        return "\n".join(line.strip() for line in lines if line.strip())

    def _preview(self, question: _OpenQuestion, rule: str) -> RulePreviewResult:
        return self._sessions.rules.preview(
            RulePreviewParams(rule=rule, session_id=question.session_id, tool_call_id=question.approval.tool_call_id)
        )


def _kept(approval: Approval) -> list[ApprovalAnswer]:
    """The answers that save rules."""
    return [answer for answer in answers_at_once(approval) if answer.rule]
