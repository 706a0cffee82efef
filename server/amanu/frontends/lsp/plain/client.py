"""One plain client: the editor's messages come in as LSP, the session's events by `send`; what is shown goes out
through `PlainEditor`."""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from lsprotocol import types
from pydantic import ValidationError
from pygls.lsp.server import LanguageServer

from amanu.frontends.lsp.buffers import path_of
from amanu.frontends.lsp.plain import command_arguments as c
from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.announcements import Announcements
from amanu.frontends.lsp.plain.background import BackgroundTasks
from amanu.frontends.lsp.plain.chat_document import SEND
from amanu.frontends.lsp.plain.code_actions import ActionContext, ActionSubjects, actions
from amanu.frontends.lsp.plain.completion import complete
from amanu.frontends.lsp.plain.connection_client import ConnectionClient
from amanu.frontends.lsp.plain.decisions import Decisions
from amanu.frontends.lsp.plain.diagnostics import Diagnostics
from amanu.frontends.lsp.plain.documents import CHAT, PATCH, Documents
from amanu.frontends.lsp.plain.editor import PlainEditor
from amanu.frontends.lsp.plain.patch_files import PatchFiles
from amanu.frontends.lsp.plain.progress import Progress
from amanu.frontends.lsp.plain.prompting import Prompting
from amanu.frontends.lsp.plain.questions import Questions
from amanu.frontends.lsp.plain.rule_editor import RuleEditor
from amanu.frontends.lsp.plain.transcript import AUDIT, Transcript, audit_text
from amanu.frontends.lsp.plain.trust_dialog import TrustDialog
from amanu.frontends.lsp.plain.user_questions import UserQuestions
from amanu.frontends.lsp.plain.workspace_session import WorkspaceSession
from amanu.text.display import one_line, visible
from amanu.text.markdown import prose
from amanu.text.sub_agents import agent_label, find_agent
from amanu_protocol import requests as r
from amanu_protocol.base import Wire
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, ProposalChanged, SessionChanged, TurnEnded

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class PlainClient(ConnectionClient):
    """A `Client` of the session it shows, in the name of `connection`. `folders` are the workspace folders by URI,
    `model_id` is the model of new sessions."""

    def __init__(
        self,
        sessions: "Sessions",
        connection: "Client",
        editor: PlainEditor,
        folders: Mapping[str, Path | None],
        model_id: str | None,
    ) -> None:
        super().__init__(connection)
        self._sessions = sessions
        self._editor = editor
        self._documents = Documents(sessions.documents, sessions.overlay)
        self._workspace = WorkspaceSession(sessions, self, folders, model_id)
        self._workspace.listeners.append(self._on_session)
        self._background = BackgroundTasks(editor)
        self._progress = Progress(editor)
        self._announcements = Announcements(editor)
        self._prompting = Prompting(self._workspace, self._documents, editor, self)
        self._rule_editor = RuleEditor(sessions, self._documents, editor, self)
        self._questions = Questions(editor, self, self._rule_editor)
        self._user_questions = UserQuestions(editor, self._documents, self)
        self._diagnostics = Diagnostics(
            editor, self._workspace, self._questions, self._user_questions, self._rule_editor, self._announcements
        )
        self._decisions = Decisions(sessions, editor, self._diagnostics)
        self._patch_files = PatchFiles(sessions, self._documents, editor, self._decisions)
        self._trust_dialog = TrustDialog(sessions, self._documents, editor, self)

    # Client of the session --------------------------------------------------------------------------

    def send(self, message: EventMessage) -> None:
        session = self._workspace.current
        if session is None or message.session_id != session.state.session_id:
            return
        self._prompting.chat_of(session).on_event(message.seq, message.event)
        match message.event:
            case SessionChanged(closed=True):
                self._workspace.current = None
                self._diagnostics.proposals_changed()
                return
            case ProposalChanged():
                self._diagnostics.proposals_changed()
            case SessionChanged(trust_changed=True):
                self._background.start(self._trust_dialog.notify_untrusted(session))
            # By event, not `wait_for_turn`: turns of every client are announced, and only while this session is shown.
            case TurnEnded(reason="completed") as ended:
                self._announcements.announce_answer(session.state, ended.turn_id)
            case TurnEnded() as ended if ended.message and ended.reason != "cancelled":
                self._editor.say(f"Amanu stopped: {ended.message}")
            case _:
                pass
        self._progress.update(session)
        unanswered = len(self._questions.unanswered)
        self._questions.update(session)
        self._user_questions.update(session)
        if unanswered != len(self._questions.unanswered):
            self._diagnostics.publish_soon()

    def list_changed(self, session_id: str) -> None:
        """Which sessions there are does not matter here."""

    def mcp_changed(self) -> None:
        """Nor which servers: `/mcp` tells."""

    def _on_session(self, session: "Session") -> None:
        """That session is the current one from now on."""
        self._diagnostics.proposals_changed()
        self._progress.update(session)
        self._questions.update(session)
        self._user_questions.update(session)
        self._background.start(self._trust_dialog.notify_untrusted(session))

    # LSP --------------------------------------------------------------------------------------------

    def listen(self, server: LanguageServer) -> Mapping[str, Callable[[Any], Any]]:
        """Register what is answered with typed params. Returns what wants them as JSON."""
        on = server.feature

        @on(types.TEXT_DOCUMENT_HOVER)
        def hover(p: types.HoverParams) -> types.Hover | None:  # pyright: ignore[reportUnusedFunction]
            marks = self._diagnostics.marks_of(self._path_used(p.text_document.uri))
            under_cursor = [mark for mark in marks if mark.meets(p.position.line, p.position.line)]
            return review.hover([mark for mark in under_cursor if mark.waits], self._editor.hover)

        @on(types.TEXT_DOCUMENT_CODE_ACTION)
        def code_actions(p: types.CodeActionParams) -> list[Any]:  # pyright: ignore[reportUnusedFunction]
            return self._actions(p)

        @on(types.TEXT_DOCUMENT_COMPLETION)
        async def completion(p: types.CompletionParams) -> types.CompletionList | None:  # pyright: ignore[reportUnusedFunction]
            path = self._path_used(p.text_document.uri)
            session_id = None if path is None or path.name != CHAT else self._documents.session_of(path)
            buffer = None if path is None else self._editor.buffers.buffer(path)
            if session_id is None or buffer is None:
                return None
            session = await self._sessions.get(session_id)
            return await complete(session, buffer.text, p.position, self._editor.encoding)

        @on(types.TEXT_DOCUMENT_CODE_LENS)
        def lenses(p: types.CodeLensParams) -> list[types.CodeLens]:  # pyright: ignore[reportUnusedFunction]
            return review.lenses(self._diagnostics.marks_of(self._path_used(p.text_document.uri)))

        @on(types.TEXT_DOCUMENT_DIAGNOSTIC)
        def diagnostics(p: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:  # pyright: ignore[reportUnusedFunction]
            return self._diagnostics.pull(p.text_document.uri)

        return {
            "workspace/executeCommand": self._execute,
            "window/workDoneProgress/cancel": lambda p: self._progress.cancel(_dict(p).get("token")),
        }

    def begin(self) -> None:
        """The client is ready: show what is open in the last session of its workspace, if there is one."""
        self._background.start(self._workspace.resume())

    def document_used(self, uri: str) -> None:
        """The user opened or changed that document."""
        self._rule_editor.document_used(uri)
        self._diagnostics.document_used(uri)
        path = path_of(uri)
        if path is not None and path.name == CHAT and (session_id := self._documents.session_of(path)) is not None:
            self._sessions.begin_prompt(r.PromptBeginParams(session_id=session_id), self)

    def close(self) -> None:
        self._progress.close()
        self._announcements.close()
        self._questions.close()
        self._user_questions.close()
        self._diagnostics.close()
        self._sessions.disconnect(self)

    def _path_used(self, uri: str) -> Path | None:
        path = path_of(uri)
        self.document_used(uri)
        return None if path is None else Path(os.path.realpath(path))

    def _actions(self, p: types.CodeActionParams) -> list[Any]:
        path = self._path_used(p.text_document.uri)
        if path is None:
            return []
        session_id = self._documents.session_of(path)
        buffer = self._editor.buffers.buffer(path)
        context = ActionContext(
            path,
            _inclusive(p.range),
            p.context.diagnostics,
            text="" if buffer is None else _lines(buffer.text, p.range),
            selected=p.range.start != p.range.end,
            chat=session_id if path.name == CHAT else None,
            patch=session_id is not None and path.suffix == PATCH,
            offers=self._rule_editor.offers(path)
            or self._trust_dialog.offers(path)
            or self._user_questions.offers(path),
        )
        session = self._workspace.current
        subjects = ActionSubjects(
            None if session is None else session.state, self._diagnostics.marks(), self._hidden_documents()
        )
        only = [str(getattr(kind, "value", kind)) for kind in p.context.only or ()]
        offered = actions(
            context,
            subjects,
            lambda kind: not only or any(kind == prefix or kind.startswith(f"{prefix}.") for prefix in only),
        )
        return offered if self._editor.takes_literals else [action.command for action in offered]

    def _hidden_documents(self) -> list[tuple[str, dict[str, Any]]]:
        """Commands about documents of ours that the editor shows without us: it serves one server per file."""
        commands: list[tuple[str, dict[str, Any]]] = []
        session = self._workspace.current
        if session is not None:
            chat = self._prompting.chat_of(session)
            if chat.shown and not chat.document.opened:
                command = {"command": "amanu.send", "arguments": {"session": session.state.session_id}}
                commands.append((f"{SEND} the text written in the chat", command))
        for path in self._patch_files.hidden():
            commands.append((patch.APPLY, {"command": "amanu.applyPatch", "arguments": {"path": str(path)}}))
        return commands

    # Commands ---------------------------------------------------------------------------------------

    def _execute(self, params: Any) -> Awaitable[None] | None:
        """Answered at once, for an editor may wait for the answer and do nothing else; with a `workDoneToken`, when the
        turn that the command starts is over, as the token is good only until then."""
        tree = _dict(params)
        name: Any = tree.get("command")
        values: Any = tree.get("arguments")
        command = self.COMMANDS.get(name) if isinstance(name, str) else None
        if command is None:
            raise AmanuError("invalidParams", f"Unknown command {str(name)[:100]}.", path="command")
        kind, run = command
        first: Any = cast("list[Any]", values)[0] if isinstance(values, list) and values else {}
        try:
            arguments = kind.model_validate(
                {"text": first} if isinstance(first, str) else first, by_alias=True, by_name=False
            )
        except ValidationError as error:
            location = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise AmanuError("invalidParams", f"{name}: {location} is missing or invalid.", path="arguments") from None
        work = self._background.start(run(self, arguments))
        token = tree.get("workDoneToken")
        if isinstance(token, str) or type(token) is int:
            return self._progress.show_on(token, work, lambda: self._workspace.current)
        return None

    async def _answer(self, arguments: c.AnswerArguments) -> None:
        await self._questions.answer(await self._sessions.get(arguments.session), arguments)

    async def _save_rule(self, arguments: c.RuleArguments) -> None:
        await self._rule_editor.save(await self._sessions.get(arguments.session), arguments)

    async def _show_question(self, arguments: c.QuestionArguments) -> None:
        await self._user_questions.show(await self._sessions.get(arguments.session), arguments)

    async def _answer_question(self, arguments: c.QuestionAnswerArguments) -> None:
        await self._user_questions.answer(await self._sessions.get(arguments.session), arguments)

    async def _review(self, arguments: c.ProposalArguments) -> None:
        await self._patch_files.review(await self._workspace.named(arguments.session), arguments.proposal)

    async def _audit(self, arguments: c.SessionArguments) -> None:
        session = await self._workspace.named(arguments.session)
        params = r.AuditQueryParams(session_id=session.state.session_id)
        document = self._documents.of(session.state.session_id, AUDIT)
        await document.replace(audit_text(await self._sessions.audit_query(params)))
        await self._editor.show(document.path, focus=True)

    async def _job(self, arguments: c.JobArguments) -> None:
        """Show what it has printed so far."""
        session, text, offset = await self._workspace.named(arguments.session), "", 0
        while True:
            params = r.JobOutputParams(session_id=arguments.session, job_id=arguments.job, offset=offset)
            piece = await session.core.jobs.output(params)
            if piece.next_offset == offset:
                break
            text, offset = text + piece.text, piece.next_offset
        document = self._documents.of(arguments.session, f"{arguments.job}.txt")
        await document.replace(visible(text))
        await self._editor.show(document.path, focus=True)

    async def _stop_job(self, arguments: c.JobArguments) -> None:
        session = await self._workspace.named(arguments.session)
        result = await session.core.jobs.end(r.JobParams(session_id=arguments.session, job_id=arguments.job))
        self._editor.say(f"{result.job.job_id} ({one_line(result.job.title)}): {result.job.summary}.")

    async def _agent(self, arguments: c.AgentArguments) -> None:
        """Show all that its own session holds so far."""
        session = await self._workspace.named(arguments.session)
        agent = find_agent(session.state.agents, arguments.agent)
        if agent is None:
            raise AmanuError("agentNotFound", f"This session has no agent {arguments.agent}.")
        child = (await self._sessions.get(agent.session_id)).state
        document = self._documents.of(arguments.session, f"{agent.agent_id}.md")
        head = f"# {agent_label(agent.name, agent.agent_id)}: {prose(agent.description)}"
        await document.replace(f"{head}\n\n{agent.summary}\n\n{Transcript().new_text(child)}")
        await self._editor.show(document.path, focus=True)

    async def _stop_agent(self, arguments: c.AgentArguments) -> None:
        session = await self._workspace.named(arguments.session)
        params = r.AgentParams(session_id=arguments.session, agent_id=arguments.agent)
        result: r.AgentResult = await session.core.parts.ask("amanu/agent/stop", params, self)
        self._editor.say(f"{agent_label(result.agent.name, result.agent.agent_id)}: {result.agent.summary}.")

    async def _trust(self, arguments: c.SessionArguments) -> None:
        await self._trust_dialog.show(await self._workspace.named(arguments.session))

    COMMANDS: ClassVar[Mapping[str, tuple[type[Wire], Callable[[Any, Any], Coroutine[Any, Any, None]]]]] = {
        "amanu.prompt": (c.TextArguments, lambda self, arguments: self._prompting.prompt(arguments)),
        "amanu.chat": (c.NoArguments, lambda self, _: self._prompting.open_chat()),
        "amanu.ask": (c.LinesArguments, lambda self, arguments: self._prompting.open_chat(arguments)),
        "amanu.fix": (c.LinesArguments, lambda self, arguments: self._prompting.fix(arguments)),
        "amanu.explain": (c.LinesArguments, lambda self, arguments: self._prompting.request("explain", arguments)),
        "amanu.document": (c.LinesArguments, lambda self, arguments: self._prompting.request("document", arguments)),
        "amanu.test": (c.LinesArguments, lambda self, arguments: self._prompting.request("test", arguments)),
        "amanu.send": (c.SessionArguments, lambda self, arguments: self._prompting.send_draft(arguments)),
        "amanu.new": (c.NoArguments, lambda self, _: self._prompting.new_session()),
        "amanu.mode": (c.ModeArguments, lambda self, arguments: self._prompting.set_mode(arguments)),
        "amanu.model": (c.TextArguments, lambda self, arguments: self._prompting.set_model(arguments)),
        "amanu.effort": (c.EffortArguments, lambda self, arguments: self._prompting.set_effort(arguments)),
        "amanu.stop": (c.NoArguments, lambda self, _: self._prompting.stop()),
        "amanu.answer": (c.AnswerArguments, _answer),
        "amanu.question": (c.QuestionArguments, _show_question),
        "amanu.answerQuestion": (c.QuestionAnswerArguments, _answer_question),
        "amanu.saveRule": (c.RuleArguments, _save_rule),
        "amanu.accept": (c.ChangesArguments, lambda self, arguments: self._decisions.decide(arguments, "accept")),
        "amanu.reject": (c.ChangesArguments, lambda self, arguments: self._decisions.decide(arguments, "reject")),
        "amanu.keep": (c.ChangesArguments, lambda self, arguments: self._decisions.decide(arguments, "keep")),
        "amanu.undo": (c.ChangesArguments, lambda self, arguments: self._decisions.undo(arguments)),
        "amanu.undoTurn": (c.TurnArguments, lambda self, arguments: self._decisions.undo_turn(arguments)),
        "amanu.review": (c.ProposalArguments, _review),
        "amanu.applyPatch": (c.PatchArguments, lambda self, arguments: self._patch_files.apply(arguments)),
        "amanu.job": (c.JobArguments, _job),
        "amanu.stopJob": (c.JobArguments, _stop_job),
        "amanu.agent": (c.AgentArguments, _agent),
        "amanu.stopAgent": (c.AgentArguments, _stop_agent),
        "amanu.audit": (c.SessionArguments, _audit),
        "amanu.trust": (c.SessionArguments, _trust),
        "amanu.setTrust": (c.TrustArguments, lambda self, arguments: self._trust_dialog.set(arguments)),
    }
    """By name, as the handshake lists them too: the arguments, and what is done."""


def _inclusive(range: types.Range) -> types.Range:
    """A selection of whole lines ends at the start of the next one, which is not meant."""
    start, end = range.start, range.end
    if end.character == 0 and end.line > start.line:
        return types.Range(start, types.Position(end.line - 1, 0))
    return range


def _lines(text: str, range: types.Range) -> str:
    lines = text.split("\n")
    within = _inclusive(range)
    return "\n".join(lines[within.start.line : within.end.line + 1])


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
