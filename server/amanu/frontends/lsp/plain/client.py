"""One plain client and the session of its workspace. Messages come in as LSP, and go out through `Face`."""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from lsprotocol import types
from pydantic import ValidationError

from amanu.context.editor import EditorContext
from amanu.frontends.lsp.buffers import Buffers, path_of
from amanu.frontends.lsp.jsonrpc import Server
from amanu.frontends.lsp.plain import commands as orders
from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.announcements import Announcing
from amanu.frontends.lsp.plain.chat import SEND, Chat, chat_of
from amanu.frontends.lsp.plain.code_actions import Place, View, actions
from amanu.frontends.lsp.plain.decisions import Decisions
from amanu.frontends.lsp.plain.documents import CHAT, PATCH, Documents
from amanu.frontends.lsp.plain.editor import ERROR, Face
from amanu.frontends.lsp.plain.hunk_marks import Mark, marks
from amanu.frontends.lsp.plain.patch_files import Patches
from amanu.frontends.lsp.plain.progress import Progress
from amanu.frontends.lsp.plain.questions import Questions
from amanu.frontends.lsp.plain.questions import diagnostic as question_diagnostic
from amanu.frontends.lsp.plain.rule_editor import Rules
from amanu.frontends.lsp.plain.transcript import AUDIT, audited
from amanu.frontends.lsp.plain.trust_dialog import Trusting
from amanu.workspace.diagnostics import OWN, line
from amanu_protocol import requests as r
from amanu_protocol.base import Wire
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, ProposalChanged, SessionChanged, TurnEnded
from amanu_protocol.items import SelectionAttachment

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions

SOON = 0.05
"""Seconds in which changes become one publishing of diagnostics."""
_FIX = "Fix this. What is found there:\n"
_MEND = "Find what is wrong with these lines and fix it."

log = logging.getLogger(__name__)


class Standard:
    """`person` is the connection, `folders` its workspace folders. A `Client` of the session it shows."""

    def __init__(
        self,
        sessions: "Sessions",
        person: "Client",
        face: Face,
        buffers: Buffers,
        folders: Callable[[], Iterable[Path]],
        model_id: str | None,
    ) -> None:
        self._sessions = sessions
        self._person = person
        self._face = face
        self._buffers = buffers
        self._folders = folders
        self._model_id = model_id
        self._session: Session | None = None
        self._choosing = asyncio.Lock()
        self._marks: list[Mark] | None = None
        """None: to be looked for again."""
        self._published: dict[str, list[types.Diagnostic]] = {}
        self._seen: list[Mark] = []
        """What the published diagnostics show."""
        self._looked_at: str | None = None
        """URI of the document the person was in last."""
        self._due: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._documents = Documents(sessions.documents, sessions.overlay)
        self._progress = Progress(face)
        self._announcing = Announcing(face)
        self._rules = Rules(sessions, self._documents, face, buffers.uri, self)
        self._questions = Questions(face, self, self._rules.show, self._soon)
        self._decisions = Decisions(sessions, face, lambda: self._seen)
        self._patches = Patches(sessions, self._documents, face, buffers.uri, self._named, self._decisions.resolve)
        self._trusting = Trusting(sessions, self._documents, face, self)

    # Client of the session --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._person.name

    @property
    def environment(self) -> Mapping[str, str]:
        return self._person.environment

    @property
    def trusted_roots(self) -> Collection[str] | None:
        return self._person.trusted_roots

    @property
    def ripgrep(self) -> str | None:
        return self._person.ripgrep

    @property
    def context(self) -> EditorContext | None:
        return self._person.context

    def send(self, message: EventMessage) -> None:
        session = self._session
        if session is None or message.session_id != session.state.session_id:
            return
        self._chat(session).hear(message.seq, message.event)
        match message.event:
            case SessionChanged(closed=True):
                self._session = None
                self._marks = None
                self._soon()
                return
            case ProposalChanged():
                self._marks = None
                self._soon()
            case SessionChanged(trust_changed=True):
                self._start(self._trusting.tell(session))
            case TurnEnded(reason="completed") as ended:
                self._announcing.answered(session.state, ended.turn_id)
            case TurnEnded() as ended if ended.message and ended.reason != "cancelled":
                self._face.say(f"Amanu stopped: {ended.message}")
            case _:
                pass
        self._progress.update(session)
        open_count = len(self._questions.left)
        self._questions.update(session)
        if open_count != len(self._questions.left):
            self._soon()

    def list_changed(self, session_id: str) -> None:
        """Which sessions there are does not matter here."""

    # LSP --------------------------------------------------------------------------------------------

    def listen(self, server: Server) -> Mapping[str, Callable[[Any], Any]]:
        """Register what is answered with typed params. Returns what wants them as JSON."""
        on = server.feature

        @on(types.TEXT_DOCUMENT_HOVER)
        def hover(p: types.HoverParams) -> types.Hover | None:  # pyright: ignore[reportUnusedFunction]
            path = self._at(p.text_document.uri)
            marks = [mark for mark in self._of(path) if mark.meets(p.position.line, p.position.line)]
            return review.hover([mark for mark in marks if mark.open or mark.unreviewed], self._face.hover)

        @on(types.TEXT_DOCUMENT_CODE_ACTION)
        def code_actions(p: types.CodeActionParams) -> list[Any]:  # pyright: ignore[reportUnusedFunction]
            return self._actions(p)

        @on(types.TEXT_DOCUMENT_CODE_LENS)
        def lenses(p: types.CodeLensParams) -> list[types.CodeLens]:  # pyright: ignore[reportUnusedFunction]
            return review.lenses(self._of(self._at(p.text_document.uri)))

        return {
            "workspace/executeCommand": self._execute,
            "window/workDoneProgress/cancel": lambda p: self._progress.cancel(_dict(p).get("token")),
        }

    def begin(self) -> None:
        """The client is there: show what is open in the last session of its workspace, if there is one."""
        self._start(self._resume())

    def looked_at(self, uri: str) -> None:
        """The person opened or changed that document."""
        if path_of(uri) is None:
            return
        was, self._looked_at = self._looked_at, uri
        self._rules.changed(uri)
        if uri != was and (self._questions.left or self._seen):
            self._soon()

    def close(self) -> None:
        self._progress.close()
        self._announcing.close()
        self._questions.close()
        if self._due is not None:
            self._due.cancel()
        self._sessions.disconnect(self)

    def _execute(self, params: Any) -> None:
        """Answered at once: an editor may wait for the answer and do nothing else."""
        tree = _dict(params)
        name: Any = tree.get("command")
        arguments: Any = tree.get("arguments")
        command = self.COMMANDS.get(name) if isinstance(name, str) else None
        if command is None:
            raise AmanuError("invalidParams", f"Amanu has no command {str(name)[:100]}.", path="command")
        kind, run = command
        first: Any = cast("list[Any]", arguments)[0] if isinstance(arguments, list) and arguments else {}
        try:
            order = kind.model_validate(
                {"text": first} if isinstance(first, str) else first, by_alias=True, by_name=False
            )
        except ValidationError as error:
            location = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise AmanuError("invalidParams", f"{name}: {location} is missing or wrong.", path="arguments") from None
        self._start(run(self, order))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._done(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _done(self, awaitable: Awaitable[None]) -> None:
        try:
            await awaitable
        except AmanuError as error:
            hint = f" {error.data.hint}" if error.data.hint else ""
            self._face.say(f"Amanu: {error}{hint}", ERROR)
        except ValidationError:  # half a surrogate pair, say: text that no message of ours can hold
            self._face.say("Amanu: what was sent cannot be read as text.", ERROR)
        except Exception:
            log.exception("a command failed")
            self._face.say("Amanu: an internal error; `amanu logs` shows what happened.", ERROR)

    # The session ------------------------------------------------------------------------------------

    async def _resume(self) -> None:
        async with self._choosing:
            if self._session is None and (roots := self._roots()):
                session = await self._newest(roots)
                if session is not None:
                    self._show(session)

    async def _mine(self) -> "Session":
        """The workspace's session: the last one, else a new one."""
        async with self._choosing:
            if self._session is None:
                roots = self._roots()
                if not roots:
                    raise AmanuError(
                        "invalidParams",
                        "This editor named no workspace folder.",
                        hint="Set the root folder of the language server.",
                    )
                self._show(await self._newest(roots) or await self._create(roots))
            assert self._session is not None
            return self._session

    async def _newest(self, roots: list[str]) -> "Session | None":
        """The last session of exactly these folders, if it can be written."""
        listed = await self._sessions.list(r.SessionListParams(root=roots[0]))
        for summary in sorted(listed.sessions, key=lambda listed_session: -listed_session.updated_at):
            if sorted(summary.roots) == sorted(roots) and summary.status != "closed":
                await self._sessions.attach(r.SessionAttachParams(session_id=summary.session_id), self)
                session = self._sessions.opened(summary.session_id)
                if session is not None and not session.state.read_only:
                    return session
                if session is not None:
                    session.detach(self)
                return None
        return None

    async def _create(self, roots: list[str]) -> "Session":
        session_id = f"s-{secrets.token_hex(8)}"
        await self._sessions.create(
            r.SessionCreateParams(session_id=session_id, roots=roots, model_id=self._model_id), self
        )
        return await self._sessions.get(session_id)

    def _show(self, session: "Session") -> None:
        self._session = session
        self._marks = None
        self._progress.update(session)
        self._questions.update(session)
        self._soon()
        self._start(self._trusting.tell(session))

    def _roots(self) -> list[str]:
        return sorted({os.path.realpath(folder) for folder in self._folders() if folder.is_dir()})

    async def _named(self, session_id: str | None) -> "Session":
        return await self._mine() if session_id is None else await self._sessions.get(session_id)

    # Prompting --------------------------------------------------------------------------------------

    async def _prompt(self, order: orders.Said) -> None:
        if not order.text.strip():
            return await self._open_chat()
        return await self._say(await self._mine(), order.text, [])

    async def _fix(self, order: orders.Lines) -> None:
        findings = [finding for finding in order.findings if finding.source != OWN]
        text = _FIX + "\n".join(line(finding) for finding in findings) if findings else _MEND
        await self._say(await self._mine(), text, [_selection(order)])

    async def _send(self, order: orders.InSession) -> None:
        session = await self._named(order.session)
        chat = self._chat(session)
        written = await chat.written()
        selections = [selection for name, selection in chat.selections.items() if name in written]
        await self._say(session, written, selections)
        await chat.sent(written)

    async def _say(self, session: "Session", text: str, selections: list[SelectionAttachment]) -> None:
        """Into the running turn, or as a prompt of its own."""
        session_id, prompt_id = session.state.session_id, f"u-{secrets.token_hex(8)}"
        turn = session.state.turn
        if turn is not None:
            try:
                return await session.prompts.steer(
                    r.PromptSteerParams(
                        session_id=session_id,
                        prompt_id=prompt_id,
                        turn_id=turn.turn_id,
                        text=text,
                        attachments=[*selections],
                    ),
                    self,
                )
            except AmanuError as error:
                if error.kind != "staleTurn":
                    raise
        await session.prompts.send(
            r.PromptSendParams(session_id=session_id, prompt_id=prompt_id, text=text, attachments=[*selections]), self
        )
        return None

    async def _open_chat(self, selection: SelectionAttachment | None = None) -> None:
        chat = self._chat(await self._mine())
        position = await chat.begin(selection)
        await self._face.show(chat.document.path, focus=True, line=position)

    async def _new(self) -> None:
        async with self._choosing:
            if self._session is not None:
                self._session.detach(self)
                self._session = None
            self._show(await self._create(self._roots()))
        await self._open_chat()

    async def _mode(self, order: orders.ChosenMode) -> None:
        await (await self._mine()).set_mode(order.text)
        self._face.say(f"Amanu: mode {order.text}.")

    async def _model(self, order: orders.Said) -> None:
        await (await self._mine()).set_model(order.text, self)
        self._face.say(f"Amanu: model {order.text}, from the next turn on.")

    async def _trust(self, order: orders.InSession) -> None:
        await self._trusting.show(await self._named(order.session))

    async def _stop(self) -> None:
        session = await self._mine()
        if session.state.turn is not None:
            await session.prompts.cancel(session.state.turn.turn_id)

    def _chat(self, session: "Session") -> Chat:
        path = self._documents.of(session.state.session_id, CHAT).path
        return chat_of(session, path, self._sessions.overlay)

    async def _answer(self, order: orders.Reply) -> None:
        await self._questions.answer(await self._sessions.get(order.session), order)

    async def _save_rule(self, order: orders.SavedRule) -> None:
        await self._rules.save(await self._sessions.get(order.session), order)

    async def _audit(self, order: orders.InSession) -> None:
        session = await self._named(order.session)
        params = r.AuditQueryParams(session_id=session.state.session_id)
        document = self._documents.of(session.state.session_id, AUDIT)
        await document.replace(audited(await self._sessions.audit_query(params)))
        await self._face.show(document.path, focus=True)

    # What is shown where ----------------------------------------------------------------------------

    def _all(self) -> list[Mark]:
        if self._marks is None:
            session = self._session
            self._marks = [] if session is None else marks(session.state, self._face.encoding, self._face.name)
        return self._marks

    def _of(self, path: Path | None) -> list[Mark]:
        return [mark for mark in self._all() if mark.path == path]

    def _at(self, uri: str) -> Path | None:
        path = path_of(uri)
        self.looked_at(uri)
        return None if path is None else Path(os.path.realpath(path))

    def _soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(SOON, self._publish)

    def _publish(self) -> None:
        self._due = None
        now: dict[str, list[types.Diagnostic]] = {}
        self._seen = [mark for mark in self._all() if mark.open or mark.unreviewed]
        for mark in self._seen:
            now.setdefault(self._buffers.uri(mark.path), []).append(review.diagnostic(mark))
        if self._looked_at is not None and not self._rules.shows(self._looked_at):
            for approval in self._questions.left.values():
                now.setdefault(self._looked_at, []).append(question_diagnostic(approval))
        for uri in self._published.keys() - now.keys():
            self._face.publish(uri, [])
        for uri, diagnostics in now.items():
            if self._published.get(uri) != diagnostics:
                self._face.publish(uri, diagnostics)
        if now != self._published:
            self._start(self._face.refresh_lenses())
        self._published = now
        self._announcing.waiting(self._seen)

    def _actions(self, p: types.CodeActionParams) -> list[Any]:
        path = self._at(p.text_document.uri)
        if path is None:
            return []
        session_id = self._documents.session_of(path)
        chat = session_id if path.name == CHAT else None
        buffer = self._buffers.buffer(path)
        selected = p.range.start != p.range.end
        text = "" if buffer is None else _lines(buffer.text, p.range)
        place = Place(
            path,
            _inclusive(p.range),
            p.context.diagnostics,
            text,
            selected,
            chat,
            session_id is not None and path.suffix == PATCH,
            self._rules.offers(path) or self._trusting.offers(path),
        )
        only = [str(getattr(kind, "value", kind)) for kind in p.context.only or ()]
        offered = actions(
            place,
            View(None if self._session is None else self._session.state, self._all(), self._unseen()),
            lambda kind: not only or any(kind == prefix or kind.startswith(f"{prefix}.") for prefix in only),
        )
        return offered if self._face.takes_literals else [action.command for action in offered]

    def _unseen(self) -> list[tuple[str, dict[str, Any]]]:
        """For what the editor shows without us: it has one server per file, or none for ours."""
        unseen_messages: list[tuple[str, dict[str, Any]]] = []
        session = self._session
        if session is not None:
            chat = self._chat(session)
            if chat.begun and not chat.document.opened:
                order = {"command": "amanu.send", "arguments": {"session": session.state.session_id}}
                unseen_messages.append((f"{SEND} what is written in the chat", order))
        for path in self._patches.unseen():
            unseen_messages.append((patch.APPLY, {"command": "amanu.applyPatch", "arguments": {"path": str(path)}}))
        return unseen_messages

    # Commands ---------------------------------------------------------------------------------------

    COMMANDS: ClassVar[Mapping[str, tuple[type[Wire], Callable[[Any, Any], Coroutine[Any, Any, None]]]]] = {
        "amanu.prompt": (orders.Said, _prompt),
        "amanu.chat": (orders.Nothing, lambda self, _: self._open_chat()),
        "amanu.ask": (orders.Lines, lambda self, order: self._open_chat(_selection(order))),
        "amanu.fix": (orders.Lines, _fix),
        "amanu.send": (orders.InSession, _send),
        "amanu.new": (orders.Nothing, lambda self, _: self._new()),
        "amanu.mode": (orders.ChosenMode, _mode),
        "amanu.model": (orders.Said, _model),
        "amanu.stop": (orders.Nothing, lambda self, _: self._stop()),
        "amanu.answer": (orders.Reply, _answer),
        "amanu.saveRule": (orders.SavedRule, _save_rule),
        "amanu.accept": (orders.Hunks, lambda self, order: self._decisions.decide(order, "accept")),
        "amanu.reject": (orders.Hunks, lambda self, order: self._decisions.decide(order, "reject")),
        "amanu.keep": (orders.Hunks, lambda self, order: self._decisions.decide(order, "keep")),
        "amanu.undo": (orders.Hunks, lambda self, order: self._decisions.undo(order)),
        "amanu.undoTurn": (orders.Turn, lambda self, order: self._decisions.undo_turn(order)),
        "amanu.review": (orders.OneProposal, lambda self, order: self._patches.review(order)),
        "amanu.applyPatch": (orders.Reviewed, lambda self, order: self._patches.apply(order)),
        "amanu.audit": (orders.InSession, _audit),
        "amanu.trust": (orders.InSession, _trust),
        "amanu.setTrust": (orders.Trusted, lambda self, order: self._trusting.set(order)),
    }
    """By name, as the handshake lists them too: the arguments, and what is done."""


def _selection(order: orders.Lines) -> SelectionAttachment:
    return SelectionAttachment(path=order.path, start_line=order.start_line, end_line=order.end_line, text=order.text)


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
