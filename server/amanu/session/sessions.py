"""All sessions of one daemon: created, opened from disk, listed, closed; and the requests about no single session."""

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from amanu.config import Settings, load_settings
from amanu.context import slash_commands as commands
from amanu.context.editor import EditorContext
from amanu.home import find_home
from amanu.mcp.model import McpServers
from amanu.models import routing
from amanu.models.credentials import check_form
from amanu.models.key_services import KEY_SERVICES
from amanu.models.listing_request import ListingAddress
from amanu.permissions import offers
from amanu.session.child_sessions import NewChild
from amanu.session.commit_message import commit_message
from amanu.session.core import Assignment
from amanu.session.events import Client
from amanu.session.mention_completion import MentionCompletion
from amanu.session.restore import REWINDS, Restored, restore, rewound
from amanu.session.services import Services, make_services
from amanu.session.session import Session
from amanu.session.settings import UserSettings
from amanu.session.skills import user_commands
from amanu.session.summary import summarize
from amanu.session.summary_writer import SummaryWriter
from amanu.session.title import gist
from amanu.storage import retention
from amanu.storage.journal import Journal, Record
from amanu.storage.session_index import SessionIndex
from amanu.system.tasks import run_to_completion
from amanu.text import wording
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import SessionChanged
from amanu_protocol.items import CommandSandbox, Purpose
from amanu_protocol.requests import (
    AuditQueryParams,
    AuditQueryResult,
    AuthCheckParams,
    AuthCheckResult,
    AuthSetParams,
    AuthStatus,
    AuthStatusResult,
    Command,
    CommandListParams,
    CommandListResult,
    CommitMessageParams,
    CommitMessageResult,
    MentionCompleteParams,
    MentionCompleteResult,
    ModelListResult,
    PromptSendParams,
    PromptSendResult,
    RewriteStartParams,
    RuleListParams,
    RuleListResult,
    RulePreviewParams,
    RulePreviewResult,
    SessionAttachParams,
    SessionAttachResult,
    SessionCreateParams,
    SessionListParams,
    SessionListResult,
    SessionResult,
    TrustGetParams,
    TrustGetResult,
    TrustSetParams,
)
from amanu_protocol.state import SessionState, fold

_ALL = 1_000_000
_MAX_COVERED = 20  # past questions named

log = logging.getLogger(__name__)


class Sessions:
    """One per process. Opens sessions on demand and keeps them until they are closed."""

    def __init__(self, services: Services, environ: Mapping[str, str] = os.environ) -> None:
        """`environ`: what goes before the settings file."""
        self._services = services.with_callbacks(self._session_changed, self._rules_changed)
        self.settings = UserSettings(services, environ, self._settings_changed)
        self._home = services.home
        self.secrets = services.secrets
        self.audit = services.audit
        self.overlay = services.overlay
        self.auth = services.auth
        self.registry = services.registry
        self.offered = services.registry.offered
        self.rules = services.rules
        self.trust = services.trust
        self.sandbox = services.sandbox
        self._proving: asyncio.Task[None] | None = None
        self.documents = services.home.state / "documents"
        """Documents shown by editors without a plugin: one folder for each session."""
        self._open: dict[str, Session] = {}
        self._created: dict[str, int] = {}
        self._clients: list[Client] = []
        self._lock = asyncio.Lock()
        self._shutting_down = False
        self._warming: set[asyncio.Task[None]] = set()
        self._index_opened: SessionIndex | None = None
        self._index_opening = asyncio.Lock()
        self._summaries = SummaryWriter(self._put_summary)
        self._completions: dict[tuple[Path, ...], MentionCompletion] = {}
        """Of the folders that were asked about last, before there is a session."""
        if services.mcp is not None:
            services.mcp.listeners.append(self._mcp_changed)

    async def create(self, params: SessionCreateParams, client: Client) -> SessionResult:
        """Start a session and attach the client. A known id returns that session, unchanged."""
        await self._create(params, client)
        return await self._entered(params.session_id, client)

    async def start_rewrite(self, params: RewriteStartParams, client: Client) -> SessionResult:
        """Rewrite lines of a file in a session of its own, and attach the client. A known id returns that session."""
        is_known = params.session_id in self._open
        model_id = params.model_id or self._services.settings.routing.rewrite
        wanted = SessionCreateParams(
            session_id=params.session_id,
            roots=params.roots,
            title=gist(params.instruction),
            mode="ask",
            model_id=model_id,
        )
        await self._create(wanted, client, "rewrite")
        try:
            await (await self.get(params.session_id)).rewrite(params, client)
        except BaseException:
            if not is_known:
                await self.delete(params.session_id)
            raise
        return await self._entered(params.session_id, client)

    async def continue_rewrite(self, session_id: str, client: Client) -> None:
        """Make a chat of a session that rewrote lines."""
        await (await self.get(session_id)).continue_rewrite(self._default_model(client))

    async def send_prompt(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """A prompt of the user's. A session that rewrote lines becomes a chat by it."""
        session = await self.get(params.session_id)
        if session.state.purpose == "rewrite":
            await session.continue_rewrite(self._default_model(client))
        return await session.prompts.send(params, client)

    async def _entered(self, session_id: str, client: Client) -> SessionResult:
        session = await self.get(session_id)  # it may have been closed meanwhile
        attached = session.attach(client, None, None)  # no await from here to the reply: no event comes before it
        return SessionResult(state=session.view(), epoch=attached.epoch, from_seq=attached.from_seq)

    async def _create(self, params: SessionCreateParams, client: Client, purpose: Purpose | None = None) -> None:
        roots = [_root(root) for root in params.roots]
        model_id = params.model_id or self._default_model(client)
        if model_id is None:
            raise _no_model()
        await routing.check(model_id, self._services.settings, self.registry, client.environment)
        async with self._lock:
            if params.session_id not in self._open:
                await run_to_completion(self._begin(params, roots, model_id, client, purpose))
            session = self._open[params.session_id]
        await session.trust.refresh(client)
        await self._put_summary(session.state)
        self._announce_list_change(params.session_id)
        await session.emit.durable()

    async def get(self, session_id: str) -> Session:
        """The session of that id, opened from disk if need be; read-only while another daemon holds it."""
        session = self._open.get(session_id)
        if session is not None and not session.superseded:
            session.last_used = time.monotonic()
            return session  # what happens to other sessions delays nothing here
        async with self._lock:
            return await run_to_completion(self._opened(session_id))

    def opened(self, session_id: str) -> Session | None:
        """The session, if it is open here."""
        return self._open.get(session_id)

    async def attach(self, params: SessionAttachParams, client: Client) -> SessionAttachResult:
        """Attach a client; the trust its editor declares counts from here on."""
        session = await self.get(params.session_id)
        await session.trust.refresh(client)
        session = await self.get(params.session_id)  # it may have been closed meanwhile
        reaching = asyncio.create_task(self._warm_route(session.state.model_id, client))
        self._warming.add(reaching)
        reaching.add_done_callback(self._warming.discard)
        return session.attach(client, params.epoch, params.since_seq)

    async def list(self, params: SessionListParams) -> SessionListResult:
        root = None if params.root is None else _root(params.root)
        await self._summaries.settled()
        listed = await (await self._index()).list(root, params.limit, agents=params.agents)
        return SessionListResult(sessions=listed)

    async def commands(self, params: CommandListParams) -> CommandListResult:
        """The daemon's own commands, the user's, those of the session's workspace if it is trusted, skills, and prompts
        of MCP servers."""
        of_servers: Sequence[Command] = []
        if params.session_id is not None:
            session = await self.get(params.session_id)
            listed = await asyncio.to_thread(session.composer.list_commands)
            of_servers = await session.mcp.prompt_commands()
        else:
            listed = await asyncio.to_thread(user_commands, self._home)
        return CommandListResult(commands=[*commands.BUILT_IN, *listed, *of_servers])

    async def complete_mention(
        self, params: MentionCompleteParams, editor: EditorContext | None = None
    ) -> MentionCompleteResult:
        """What the mention at the end of a text may become. `editor`: what the client's user sees."""
        changed: list[str] = []
        if params.session_id is not None:
            session = await self.get(params.session_id)
            completion = session.mentions
            changed = [file.path for proposal in reversed(session.state.proposals) for file in proposal.files]
        else:
            roots = tuple(Path(root) for root in params.roots if Path(root).is_absolute())
            if not roots:
                return MentionCompleteResult(typed="", items=[])
            if roots not in self._completions:  # the next key asks again
                self._completions = {
                    roots: MentionCompletion(Workspace(roots, self.overlay, private=self._home.private))
                }
            completion = self._completions[roots]
        return await completion.complete(params.text, terminal=params.terminal, editor=editor, changed=changed)

    async def close(self, session_id: str) -> None:
        """Cancel what runs and close the session. Unknown ids are fine. Raises `AmanuError` (storageError), leaving it
        open, when something could not be saved."""
        async with self._lock:
            session = self._open.pop(session_id, None)
            if session is not None:
                try:
                    await session.close()
                except AmanuError:
                    self._open[session_id] = session
                    raise
                session.emit(SessionChanged(closed=True))
                await self._put_summary(session.state, closed=True)
        self._announce_list_change(session_id)

    async def delete(self, session_id: str) -> None:
        """Close a session and remove all its files, for good."""
        async with self._lock:
            await self._delete(session_id)

    async def recover_unfinished(self) -> None:
        """Finish what a killed daemon left half done: edits that reached only some of their files, temporary files.
        Only in sessions that were not closed and that nobody has opened since; they are closed again."""
        index = await self._index()
        for session_id in await index.left():
            async with self._lock:
                if session_id not in self._open:
                    await run_to_completion(self._recover(session_id, index.folder(session_id)))

    async def apply_retention(self) -> None:
        """Remove what is too old by the settings (`[history]`). Open sessions stay as they are; opening one meanwhile
        waits for one removal at most."""
        history = self._services.settings.history
        if history.keep_sessions_days:
            oldest = _now() - history.keep_sessions_days * retention.DAY_MS
            for summary in await (await self._index()).list(limit=_ALL):
                async with self._lock:
                    if summary.updated_at < oldest and summary.session_id not in self._open:
                        with contextlib.suppress(AmanuError):  # another Amanu has it open
                            await self._delete(summary.session_id)
        for removal in await asyncio.to_thread(retention.removals, self._home.sessions, history, _now()):
            async with self._lock:
                await asyncio.to_thread(removal.apply)

    async def refresh_catalogue(self) -> None:
        """Ask the vendors that clients have keys for which models there are: those that did not answer in the last day.
        What fails is in the log."""
        if not self._services.settings.catalogue.refresh:
            return
        addresses: list[ListingAddress] = []
        for client in self._clients:
            with contextlib.suppress(AmanuError):  # keys that others can read: the prompt will report it
                addresses += self.registry.listing_addresses(client.environment)
        await self.registry.catalogue.refresh(addresses)

    def connect(self, client: Client) -> None:
        """Tell the client when the list changes. Its keys are hidden from now on."""
        self.auth.learn(client.environment)
        self._clients.append(client)

    def disconnect(self, client: Client) -> None:
        """The client is gone. Never cancels a turn."""
        if client in self._clients:
            self._clients.remove(client)
        for session in self._open.values():
            session.detach(client)

    @property
    def busy(self) -> bool:
        """Whether any turn is running."""
        return any(session.running for session in self._open.values())

    async def shutdown(self) -> None:
        """Cancel turns, flush journals, close connections to models. From now on no session is opened."""
        self._shutting_down = True
        async with self._lock:
            await asyncio.gather(*map(self._close_for_shutdown, self._open.values()))
            self._open.clear()
        await self._services.watching.close()
        await self._summaries.settled()
        await self._services.checkers.end()
        if self._proving is not None:
            self._proving.cancel()
            await asyncio.gather(self._proving, return_exceptions=True)
        if self._services.mcp is not None:
            await self._services.mcp.close()
        await self.sandbox.close()
        if self._index_opened is not None:
            await self._index_opened.close()
        await self.audit.close()
        for reaching in self._warming:
            reaching.cancel()
        await self.registry.close()

    # Models, keys, trust, rules ---------------------------------------------------------------------

    async def models(self, client: Client) -> ModelListResult:
        models = await routing.listed(self._services.settings, self.registry, client.environment)
        return ModelListResult(
            models=models,
            default_model_id=self._default_model(client),
            vendors={"amanu": "Automatic", **self.registry.titles},
        )

    async def warm(self, client: Client) -> None:
        """Import the SDK of the client's likely vendor, so that the first prompt need not wait for it."""
        model_id = self._default_model(client)
        if model_id == routing.AUTO:
            model_id = self.registry.default(client.environment)
        if model_id is not None:
            await self.registry.warm(model_id.partition(":")[0])

    async def _warm_route(self, model_id: str, client: Client) -> None:
        """Connect to the model of a session that a client shows: a prompt may follow."""
        with contextlib.suppress(AmanuError):  # the prompt will report it
            await routing.check(model_id, self._services.settings, self.registry, client.environment)

    async def commit_message(self, params: CommitMessageParams, client: Client) -> CommitMessageResult:
        """A message for these changes. Raises `AmanuError`, see the params."""
        model_id = params.model_id or self._services.settings.routing.utility or self._default_model(client)
        if model_id is None:
            raise _no_model()
        return await commit_message(self._services, params, model_id, client.environment)

    def auth_status(self, client: Client) -> AuthStatusResult:
        services = list(KEY_SERVICES)
        statuses = sorted(
            self.auth.status(client.environment),
            key=lambda status: services.index(status.vendor) if status.vendor in services else len(services),
        )
        return AuthStatusResult(vendors=[_described(status) for status in statuses])

    async def auth_check(self, params: AuthCheckParams, client: Client) -> AuthCheckResult:
        """Whether the vendor takes a key. Nothing is kept."""
        key = None if params.key is None else check_form(params.key)
        self.secrets.learn([key or ""])
        return await self.registry.check_key(params.vendor, key, client.environment)

    def auth_set(self, params: AuthSetParams) -> None:
        self.auth.set(params.vendor, params.key)

    async def trust_set(self, params: TrustSetParams) -> None:
        """Declare a folder trusted or not; this takes effect in its sessions at once. Raises `AmanuError`
        (trustChanged) when the user was shown something else."""
        root = _root(params.root)
        await asyncio.to_thread(self.trust.set, root, params.trusted, params.digest)
        confirmation = f"{root} is {'now trusted' if params.trusted else 'no longer trusted'}."
        self.audit.add("trust", confirmation, root=root, digest=params.digest)
        await self.audit.durable()
        for session in list(self._open.values()):
            if root in session.state.roots:
                await session.trust.refresh()

    async def trust_get(self, params: TrustGetParams, client: Client) -> TrustGetResult:
        """What trusting that folder enables, and what of it changed since it was trusted."""
        trust = await asyncio.to_thread(self.trust.look, _root(params.root), client.trusted_roots)
        return wording.explain_trust(trust)

    async def audit_query(self, params: AuditQueryParams) -> AuditQueryResult:
        """The audit log of a session, and whether it is intact. Also of one that was deleted."""
        return wording.explain_audit(await self.audit.query(params), detailed=params.detailed)

    async def list_rules(self, params: RuleListParams, client: Client) -> RuleListResult:
        """The rules that hold beyond a session, for those folders; of a folder's own file only when it is trusted."""
        roots = [root for root in params.roots if Path(root).is_absolute()]
        states = [await asyncio.to_thread(self.trust.look, root, client.trusted_roots) for root in roots]
        trusted = [root for root, trust in zip(roots, states, strict=True) if trust.state == "trusted"]
        return RuleListResult(rules=await asyncio.to_thread(self.settings.rules, roots, trusted))

    def rule_preview(self, params: RulePreviewParams) -> RulePreviewResult:
        """What rules, written as text, mean, and which past questions they would have answered: those of that session,
        and of other open sessions in the same folders."""
        try:
            explanation = offers.explain(params.rule, params.decision)
            covers, covered = None, list[str]()
            asking = self._open.get(params.session_id or "")
            if asking is not None:
                covers, covered = asking.approvals.would_cover(params.rule, params.tool_call_id)
                for session in self._open.values():
                    if session is not asking and session.state.roots == asking.state.roots:
                        covered += session.approvals.would_cover(params.rule, None)[1]
            preview = RulePreviewResult(
                valid=True,
                explanation=explanation,
                covers=covers,
                covered=covered[:_MAX_COVERED],
                covered_count=len(covered),
            )
        except AmanuError as error:
            preview = RulePreviewResult(valid=False, explanation=f"{error} {error.data.hint or ''}".strip())
        return wording.explain_rule_preview(preview)

    # Sub-agents -------------------------------------------------------------------------------------

    async def begin_child(self, child: NewChild) -> Session:
        """See `agents.ChildSessions`."""
        async with self._lock:
            session = await run_to_completion(self._begin_child(child))
        await self._put_summary(session.state)
        self._announce_list_change(child.session_id)
        return session

    async def end_child(self, session_id: str) -> None:
        """See `agents.ChildSessions`. Without the lock: who closes its parent holds it, and waits for this."""
        session = self._open.get(session_id)
        if session is None or session.core.access.closed:
            return
        try:
            await session.close(anyway=True)
        except Exception:  # its parent goes on all the same
            log.exception("%s could not be closed", session_id)
        self._open.pop(session_id, None)
        session.emit(SessionChanged(closed=True))
        await self._put_summary(session.state)
        self._announce_list_change(session_id)

    # Inside -----------------------------------------------------------------------------------------
    #
    # Opening or closing a session runs to its end even when the caller gives up: half way, a session is neither open
    # nor closed, and its lease would stay with us.

    async def _begin(
        self,
        params: SessionCreateParams,
        roots: Sequence[str],
        model_id: str,
        client: Client,
        purpose: Purpose | None,
    ) -> None:
        """Open the session of that id, new or from disk. Call with the lock held."""
        await self._make_room()
        standing = await asyncio.to_thread(self.trust.standing, roots, client.trusted_roots)
        journal = await Journal.open((await self._index()).folder(params.session_id))
        begins = journal.empty
        if begins:
            first = SessionChanged(
                roots=list(roots),
                title=params.title or "",
                mode=params.mode or self._services.settings.mode,
                model_id=model_id,
                effort=params.effort,
                trusted=standing == "trusted",
                trust_changed=standing == "changed",
                sandbox=self._command_sandbox,
                purpose=purpose,
            )
            journal.append(Record(0, 0, _now(), first.model_dump_json(), None))
        await self._load(params.session_id, journal, begins=begins)

    async def _begin_child(self, child: NewChild) -> Session:
        await self._make_room()
        journal = await Journal.open((await self._index()).folder(child.session_id))
        parent = child.assignment.parent.state
        first = SessionChanged(
            roots=parent.roots,
            title=child.title,
            mode=parent.mode,
            model_id=child.model_id,
            effort=parent.effort,
            trusted=parent.trusted,
            trust_changed=parent.trust_changed,
            sandbox=parent.sandbox,
            parent_session_id=parent.session_id,
            agent=child.assignment.definition.name,
        )
        journal.append(Record(0, 0, _now(), first.model_dump_json(), None))
        return await self._load(child.session_id, journal, begins=True, assignment=child.assignment)

    async def _opened(self, session_id: str) -> Session:
        """The session of that id, opened if need be. Call with the lock held."""
        session = self._open.get(session_id)
        if session is not None and session.superseded:
            await self._open.pop(session_id).close()
            session = None
        if session is None:
            await self._make_room()
        return session or await self._open_from_disk(session_id)

    async def _delete(self, session_id: str) -> None:
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.close(anyway=True)
            session.emit(SessionChanged(closed=True))
        await self._summaries.settled()
        for summary in await (await self._index()).list(limit=_ALL):
            if summary.parent_session_id == session_id:
                await self._delete(summary.session_id)
        await (await self._index()).delete(session_id)
        await asyncio.to_thread(shutil.rmtree, self.documents / f"s-{session_id}", ignore_errors=True)
        self._announce_list_change(session_id)

    async def _close_for_shutdown(self, session: Session) -> None:
        try:
            await session.close(anyway=True)
        except Exception:  # the others must be closed all the same
            log.exception("%s could not be closed", session.state.session_id)
        await self._put_summary(session.state)

    async def _recover(self, session_id: str, folder: Path) -> None:
        try:
            journal = await Journal.open(folder)
        except AmanuError as error:  # usually another Amanu has it open
            log.info("%s was not recovered: %s", session_id, error)
            return
        try:
            await self._load(session_id, journal)
            await self._open.pop(session_id).close(anyway=True)
        except Exception:
            log.exception("%s could not be recovered", session_id)

    def _default_model(self, client: Client) -> str | None:
        return self._services.settings.model or self.registry.default(client.environment)

    async def _index(self) -> SessionIndex:
        async with self._index_opening:
            return self._index_opened or await run_to_completion(self._open_index())

    async def _open_index(self) -> SessionIndex:
        self._index_opened = await SessionIndex.open(self._home.sessions)
        return self._index_opened

    async def _make_room(self) -> None:
        """Make room for one more session: close idle ones, the least recently used first, until they are asked for
        again. Raises `AmanuError` (tooManySessions). Call with the lock held."""
        if self._shutting_down:
            raise AmanuError("sessionNotFound", "Amanu is shutting down.", hint="Try again: it will be restarted.")
        most = self._services.settings.max_sessions
        idle = sorted(
            (session for session in self._open.values() if session.idle), key=lambda session: session.last_used
        )
        for session in idle:
            if len(self._open) < most:
                return
            if not session.idle:
                continue  # a client came meanwhile
            session_id = session.state.session_id
            del self._open[session_id]  # a request for it now waits for the lock, and opens it again
            try:
                await session.close()
            except AmanuError as error:
                self._open[session_id] = session
                log.warning("%s cannot be closed: %s", session_id, error)
                continue
            await self._put_summary(session.state)
        if len(self._open) >= most:
            raise AmanuError(
                "tooManySessions",
                f"All {len(self._open)} sessions are in use.",
                hint="Close one of them, or raise max_sessions in config.toml.",
            )

    async def _open_from_disk(self, session_id: str) -> Session:
        folder = (await self._index()).folder(session_id)
        if not folder.exists():
            raise AmanuError("sessionNotFound", f"There is no session {session_id}.")
        try:
            journal = await Journal.open(folder)
        except AmanuError as error:
            if error.kind != "sessionReadOnly":
                raise
            journal = await Journal.read(folder)
        return await self._load(session_id, journal)

    async def _load(
        self, session_id: str, journal: Journal, *, begins: bool = False, assignment: Assignment | None = None
    ) -> Session:
        try:
            spans = rewound(await journal.holding(REWINDS))
            restoring = partial(restore, session_id, spans=spans, read_only=journal.read_only)
            restored = await journal.read_through(restoring)
            is_gone = journal.empty and not begins and not journal.read_only
            if is_gone or journal.damage:
                known = await self._recover_from_index(session_id, journal, restored)
                if is_gone and not known:  # its creation was cut off
                    raise AmanuError("sessionNotFound", f"There is no session {session_id}.")
            self._created[session_id] = _now() if restored.created_at is None else restored.created_at
            session = Session(self._services, journal, restored, self, assignment)
            await session.open(begins=begins)
        except BaseException:
            with contextlib.suppress(AmanuError):
                await journal.close()  # otherwise its lease stays with us, and nobody can open it
            raise
        self._open[session_id] = session
        if restored.closing_events:
            await self._put_summary(session.state)  # as the dead daemon left it, it says that a turn is running
        if self._command_sandbox is not None:
            session.set_sandbox(self._command_sandbox)
        elif self._proving is None:
            self._proving = asyncio.create_task(self._prove_sandbox())
        return session

    async def _recover_from_index(self, session_id: str, journal: Journal, restored: Restored) -> bool:
        """Fill in what a damaged journal no longer holds, from the entry in the list of sessions. Returns whether there
        is one."""
        summary = await (await self._index()).get(session_id)
        if summary is None:
            return False
        if not journal.damage:
            journal.damage = (
                f"This session's journal is missing from {journal.folder}: the conversation is lost, and earlier edits "
                "can no longer be undone. The session continues empty."
            )
        recalled = SessionChanged(
            title=summary.title,
            roots=None if restored.state.roots else summary.roots,
            model_id=summary.model_id or None,
        )
        fold(restored.state, recalled)
        restored.closing_events.insert(0, (recalled, None))
        return True

    @property
    def _command_sandbox(self) -> CommandSandbox | None:
        """The sandbox for commands; None until it has been tried."""
        return None if self.sandbox.proof is None else self.sandbox.describe(None)

    async def _prove_sandbox(self) -> None:
        """Try the sandbox, in the background with the first session: only commands wait for it."""
        try:
            await self.sandbox.proved()
        except Exception:
            log.exception("the sandbox could not be tried")
            return
        for session in self._open.values():
            session.set_sandbox(self.sandbox.describe(None))

    def _session_changed(self, state: SessionState) -> None:
        """A turn began or ended, or the title changed: update the list."""
        self._summaries.changed(state)
        self._announce_list_change(state.session_id)

    def _settings_changed(self, settings: Settings) -> None:
        """Sessions that are opened from now on have them; rules hold in all."""
        self._services = replace(self._services, settings=settings)
        self.rules.reconfigure(settings)
        self._rules_changed()

    def _rules_changed(self) -> None:
        for session in self._open.values():
            session.approvals.reconsider()

    def _mcp_changed(self) -> None:
        for session in self._open.values():
            session.mcp.announce()
        for client in self._clients:
            client.mcp_changed()

    async def _put_summary(self, state: SessionState, *, closed: bool = False) -> None:
        self._summaries.written(state)
        if state.read_only:
            return
        created_at = self._created[state.session_id]
        summary = summarize(state, created_at=created_at, updated_at=_now(), closed=closed)
        with contextlib.suppress(AmanuError):  # the list is a convenience; the session's journal is the truth
            await (await self._index()).put(summary)

    def _announce_list_change(self, session_id: str) -> None:
        for client in self._clients:
            client.list_changed(session_id)


def open_sessions(
    environ: Mapping[str, str] = os.environ, *, headless: bool = False, mcp: McpServers | None = None
) -> Sessions:
    """The sessions of this user, with their settings. `mcp`: other MCP servers than the user's. Raises `AmanuError`
    naming what is wrong in a settings file."""
    home = find_home(environ).make()
    services = make_services(home, load_settings(home, environ), headless=headless)
    return Sessions(services if mcp is None else replace(services, mcp=mcp), environ)


def _described(status: AuthStatus) -> AuthStatus:
    service = KEY_SERVICES.get(status.vendor)
    if service is None:
        return status
    return status.model_copy(update={"title": service.title, "about": service.about, "page": service.page})


def _no_model() -> AmanuError:
    return AmanuError(
        "authRequired",
        "No model is available: no API key is set.",
        hint="Set ANTHROPIC_API_KEY, GEMINI_API_KEY or OPENAI_API_KEY, or run `amanu auth set VENDOR`.",
    )


def _root(path: str) -> str:
    """A workspace folder, absolute and real. Raises `AmanuError` (invalidParams) when it is not a folder."""
    root = Path(path)
    if not root.is_absolute() or not os.path.isdir(root):  # noqa: PTH112  False for a name no system would take
        raise AmanuError("invalidParams", f"{_short(path)} is not the absolute path of a folder.", path="roots")
    return str(root.resolve())


def _short(path: str) -> str:
    return path if len(path) <= 300 else f"{path[:300]}…"


def _now() -> int:
    return int(time.time() * 1000)
