"""All sessions of one daemon: created, opened, closed and deleted; and the parts that answer requests about no single
session."""

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace

from amanu.config import load_settings
from amanu.core.service_tiers import offers
from amanu.home import find_home
from amanu.mcp.model import McpServers
from amanu.parts import daemon_parts
from amanu.session.baseline import baseline
from amanu.session.child_sessions import NewChild
from amanu.session.client_models import ClientModels
from amanu.session.core import Assignment
from amanu.session.events import Client
from amanu.session.folder_trust import FolderTrust
from amanu.session.keys import Keys
from amanu.session.loader import SessionLoader
from amanu.session.prompt_completion import PromptCompletion
from amanu.session.roots import real_root
from amanu.session.search import SessionSearch
from amanu.session.services import Services, make_services
from amanu.session.session import Session
from amanu.session.settings import UserSettings
from amanu.session.summaries import Summaries
from amanu.session.title import gist
from amanu.session.user_rules import UserRules
from amanu.system.tasks import run_to_completion
from amanu.text import wording
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import SessionChanged
from amanu_protocol.items import Purpose
from amanu_protocol.requests import (
    AuditQueryParams,
    AuditQueryResult,
    CommitMessageParams,
    CommitMessageResult,
    EventAckParams,
    PromptBeginParams,
    PromptSendParams,
    PromptSendResult,
    ProposalBaselineParams,
    ProposalBaselineResult,
    RewriteStartParams,
    SessionAttachParams,
    SessionAttachResult,
    SessionCreateParams,
    SessionForkParams,
    SessionResult,
)
from amanu_protocol.state import SessionState

PREPARE_SECONDS = 0.3
"""Delay after the first session was opened; a prompt sent before that prepares what it needs itself."""

_MESSAGES = (PromptSendParams, PromptSendResult, EventAckParams)
"""What a first turn exchanges; their schemas are built on first use."""

log = logging.getLogger(__name__)


class Sessions:
    """One per process. Opens sessions on demand and keeps them until they are closed."""

    def __init__(self, services: Services, environ: Mapping[str, str] = os.environ) -> None:
        """`environ`: what goes before the settings file."""
        services = self.services = services.with_callbacks(self._session_changed, self._reconsider_approvals)
        self.overlay = services.overlay
        self.offered = services.registry.offered
        """Models that clients offer."""
        self.documents = services.home.state / "documents"
        """Documents shown by editors without a plugin: one folder for each session."""
        self.lock = asyncio.Lock()
        """Held while a session is opened or closed."""
        self._open: dict[str, Session] = {}
        self._clients: list[Client] = []
        self._shutting_down = False
        self._preparing: asyncio.Task[None] | None = None
        """Once in a process."""
        self.settings = UserSettings(services, environ, self._settings_changed)
        self.summaries = Summaries(services.home.sessions)
        mask = services.secrets.mask_output
        self.search = SessionSearch(services.home.sessions, self.summaries, mask, self._written)
        self.models = ClientModels(services, self.settings)
        self.keys = Keys(services)
        self.trust = FolderTrust(services, self._open)
        self.rules = UserRules(services, self.settings, self._open)
        self.parts = [part(services.home, services.settings, self) for part in daemon_parts()]
        self.completion = PromptCompletion(services, self, self.parts)
        self._loader = SessionLoader(services, self.settings, self.summaries, self.parts)
        if services.mcp is not None:
            services.mcp.listeners.append(self._mcp_changed)

    async def create(self, params: SessionCreateParams, client: Client) -> SessionResult:
        """Start a session and attach the client. A known id returns that session, unchanged."""
        await self._create(params, client)
        return await self._attach_new(params.session_id, client)

    async def fork(self, params: SessionForkParams, client: Client) -> SessionResult:
        """A session of its own with the conversation up to a turn. A known id returns that session."""
        async with self.lock:
            session = await run_to_completion(self._fork(params, client))
        await session.trust.refresh(client)
        await self.summaries.put(session.state)
        self._announce(params.new_session_id)
        await session.emit.durable()
        return await self._attach_new(params.new_session_id, client)

    async def start_rewrite(self, params: RewriteStartParams, client: Client) -> SessionResult:
        """Rewrite lines of a file in a session of its own, and attach the client. A known id returns that session."""
        is_known = params.session_id in self._open
        wanted = SessionCreateParams(
            session_id=params.session_id,
            roots=params.roots,
            title=gist(params.instruction),
            mode="ask",
            model_id=params.model_id or self.settings.current.routing.rewrite,
        )
        await self._create(wanted, client, "rewrite")
        try:
            await (await self.get(params.session_id)).rewrite(params, client)
        except BaseException:
            if not is_known:
                await self.delete(params.session_id)
            raise
        return await self._attach_new(params.session_id, client)

    async def get(self, session_id: str) -> Session:
        """The session of that id, opened from disk if need be; read-only while another daemon holds it."""
        session = self._open.get(session_id)
        if session is not None and not session.superseded:
            session.last_used = time.monotonic()
            return session  # what happens to other sessions delays nothing here
        async with self.lock:
            return await run_to_completion(self._get(session_id))

    def opened(self, session_id: str) -> Session | None:
        """The session, if it is open here."""
        return self._open.get(session_id)

    async def attach(self, params: SessionAttachParams, client: Client) -> SessionAttachResult:
        """Attach a client; the trust its editor declares counts from here on."""
        session = await self.get(params.session_id)
        if session.state.read_only:
            async with self.lock:
                session = await run_to_completion(self._read_again(params.session_id))
        await session.trust.refresh(client)
        session = await self.get(params.session_id)  # it may have been closed meanwhile
        self.models.connect(session.state.model_id, client)
        self._prepare_soon()
        return session.attach(client, params.epoch, params.since_seq)

    def begin_prompt(self, params: PromptBeginParams, client: Client) -> None:
        """The user has begun to type: connect to the model that the prompt will be sent to."""
        if params.session_id is None:
            self.models.connect(params.model_id, client)
        elif (session := self._open.get(params.session_id)) is not None:
            self.models.connect(session.state.model_id, client)

    async def close(self, session_id: str) -> None:
        """Cancel what runs and close the session. Unknown ids are fine. Raises `AmanuError` (storageError), leaving it
        open, when something could not be saved."""
        async with self.lock:
            session = self._open.pop(session_id, None)
            if session is not None:
                try:
                    await session.close()
                except AmanuError:
                    self._open[session_id] = session
                    raise
                session.emit(SessionChanged(closed=True))
                await self.summaries.put(session.state, closed=True)
        self._announce(session_id)

    async def put_away(self, session_id: str) -> None:
        """Close the session if nobody looks at it and nothing runs in it, so that another process can open it. Unknown
        ids are fine. Raises `AmanuError` (storageError) as `close` does."""
        async with self.lock:
            session = self._open.get(session_id)
            if session is not None and session.idle:
                await run_to_completion(self._put_away(session))

    async def archive(self, session_id: str, archived: bool) -> None:
        """Have lists leave a session out until somebody opens it again, or no longer. Raises `AmanuError`
        (turnInProgress, sessionNotFound, storageError)."""
        await self.put_away(session_id)
        async with self.lock:
            if session_id in self._open:
                raise AmanuError(
                    "turnInProgress", "The session is in use.", hint="Leave it in every window, or stop it."
                )
            await self.summaries.archive(session_id, archived)
        self._announce(session_id)

    async def delete(self, session_id: str) -> None:
        """Close a session and remove all its files, for good."""
        async with self.lock:
            await self._delete(session_id)

    async def audit_query(self, params: AuditQueryParams) -> AuditQueryResult:
        """The audit log of a session, and whether it is intact. Also of one that was deleted."""
        return wording.explain_audit(await self.services.audit.query(params), detailed=params.detailed)

    def connect(self, client: Client) -> None:
        """Tell the client when the list changes. Its keys are hidden from now on."""
        self.services.auth.learn(client.environment)
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
        services = self.services
        async with self.lock:
            await asyncio.gather(*map(self._close_for_shutdown, self._open.values()))
            self._open.clear()
        if self._preparing is not None:
            self._preparing.cancel()
        await services.watching.close()
        services.events.close()
        await services.checkers.end()
        await self._loader.close()
        if services.mcp is not None:
            await services.mcp.close()
        await services.sandbox.close()
        await self.search.close()
        await self.summaries.close()
        await services.audit.close()
        await self.models.close()

    async def write_commit_message(self, params: CommitMessageParams, client: Client) -> CommitMessageResult:
        """Raises `AmanuError`, see the params."""
        session = None if params.session_id is None else self._open.get(params.session_id)
        count = None if session is None else session.core.costs.count_beside
        return await self.models.write_commit_message(params, client, count)

    async def baseline(self, params: ProposalBaselineParams) -> ProposalBaselineResult:
        """See the params. Raises `AmanuError` (proposalNotFound)."""
        wanted = [each for each in self._open.values() if params.session_id in (None, each.state.session_id)]
        # The newest first: what each one made is taken out of what the earlier ones had left.
        return await baseline([each.edits for each in reversed(wanted) if each.core.access.writable], params)

    # Housekeeping -----------------------------------------------------------------------------------

    async def recover_unfinished(self) -> None:
        """Finish what a killed daemon left half done: edits that reached only some of their files, temporary files.
        Only in sessions that were not closed and that nobody has opened since."""
        for session_id in await (await self.summaries.index()).left():
            async with self.lock:
                if session_id not in self._open:
                    await run_to_completion(self._loader.recover(session_id))

    async def apply_retention(self) -> None:
        """Remove what is too old by the settings (`[history]`). Open sessions stay as they are; opening one meanwhile
        waits for one removal at most."""
        from amanu.storage import retention

        history = self.settings.current.history
        if history.keep_sessions_days:
            oldest = _now() - history.keep_sessions_days * retention.DAY_MS
            for summary in await self.summaries.all():
                async with self.lock:
                    if summary.updated_at < oldest and summary.session_id not in self._open:
                        with contextlib.suppress(AmanuError):  # another Amanu has it open
                            await self._delete(summary.session_id)
        for removal in await asyncio.to_thread(retention.removals, self.services.home.sessions, history, _now()):
            async with self.lock:
                await asyncio.to_thread(removal.apply)

    async def refresh_catalogue(self) -> None:
        """Ask vendors which models there are, with the keys of the clients."""
        await self.models.refresh_catalogue(self._clients)

    # Sub-agents -------------------------------------------------------------------------------------

    async def begin_child(self, child: NewChild) -> Session:
        """See `ChildSessions`."""
        parent = child.assignment.parent.state
        first = SessionChanged(
            roots=parent.roots,
            title=child.title,
            mode=parent.mode,
            model_id=child.model_id,
            effort=parent.effort,
            trusted=parent.trusted,
            trust_changed=parent.trust_changed,
            parent_session_id=parent.session_id,
            agent=child.assignment.definition.name,
        )
        async with self.lock:
            await run_to_completion(self._begin(child.session_id, first, child.assignment))
        session = self._open[child.session_id]
        await self.summaries.put(session.state)
        self._announce(child.session_id)
        return session

    async def end_child(self, session_id: str) -> None:
        """See `ChildSessions`. Without the lock: who closes its parent holds it, and waits for this."""
        session = self._open.get(session_id)
        if session is None or session.core.access.closed:
            return
        try:
            await session.close(anyway=True)
        except Exception:  # its parent goes on all the same
            log.exception("%s could not be closed", session_id)
        self._open.pop(session_id, None)
        session.emit(SessionChanged(closed=True))
        await self.summaries.put(session.state)
        self._announce(session_id)

    # Inside -----------------------------------------------------------------------------------------
    #
    # Opening or closing a session runs to its end even when the caller gives up: half way, a session is neither open
    # nor closed, and its lease would stay with us.

    async def _create(self, params: SessionCreateParams, client: Client, purpose: Purpose | None = None) -> None:
        roots = [real_root(root) for root in params.roots]
        model_id = await self.models.choose(params.model_id, client)
        doubt = await self.models.doubt(model_id, client)
        tier = params.service_tier or self.settings.current.service_tier
        async with self.lock:
            is_new = params.session_id not in self._open
            if is_new:
                standing = await asyncio.to_thread(self.services.trust.standing, roots, client.trusted_roots)
                first = SessionChanged(
                    roots=roots,
                    title=params.title or "",
                    mode=params.mode or self.settings.current.mode,
                    model_id=model_id,
                    effort=params.effort,
                    service_tier=tier if tier in offers(model_id) else None,
                    trusted=standing == "trusted",
                    trust_changed=standing == "changed",
                    purpose=purpose,
                )
                await run_to_completion(self._begin(params.session_id, first))
            session = self._open[params.session_id]
            if is_new and doubt is not None:
                session.core.notices.report_on_session("modelDoubt", "warning", doubt)
        await session.trust.refresh(client)
        await self.summaries.put(session.state)
        self._announce(params.session_id)
        await session.emit.durable()

    async def _fork(self, params: SessionForkParams, client: Client) -> Session:
        if (known := self._open.get(params.new_session_id)) is not None:
            return known
        source = await self._get(params.session_id)
        standing = await asyncio.to_thread(self.services.trust.standing, source.state.roots, client.trusted_roots)
        is_new = await self._loader.copy(source, params.new_session_id, params.turn_id, standing)
        await self._make_room()
        session = self._open[params.new_session_id] = await self._loader.open(params.new_session_id, begins=is_new)
        return session

    async def _attach_new(self, session_id: str, client: Client) -> SessionResult:
        session = await self.get(session_id)  # it may have been closed meanwhile
        self.models.connect(session.state.model_id, client)  # only now: an import blocks everything else
        self._prepare_soon()
        attached = session.attach(client, None, None)  # no await from here to the reply: no event comes before it
        return SessionResult(state=session.view(), epoch=attached.epoch, from_seq=attached.from_seq)

    def _prepare_soon(self) -> None:
        """Make what the first turn needs while its user types."""
        if self._preparing is None:
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        await asyncio.sleep(PREPARE_SECONDS)
        for message in _MESSAGES:
            message.model_rebuild()
        for session in list(self._open.values())[:1]:
            await asyncio.to_thread(session.composer.prepare)

    async def _begin(self, session_id: str, first: SessionChanged, assignment: Assignment | None = None) -> None:
        await self._make_room()
        self._open[session_id] = await self._loader.begin(session_id, first, assignment)

    async def _get(self, session_id: str) -> Session:
        session = self._open.get(session_id)
        if session is not None and session.superseded:
            await self._open.pop(session_id).close()
            session = None
        if session is None:
            await self._make_room()
            session = self._open[session_id] = await self._loader.open(session_id)
        return session

    async def _read_again(self, session_id: str) -> Session:
        """A session that another process has open, read anew, because its events do not reach this process."""
        session = self._open.get(session_id)
        if session is not None and session.state.read_only:
            again = self._open[session_id] = await self._loader.open(session_id)
            session.emit.hand_over(again.emit)
            if not again.state.read_only:  # all of them attach again; else each does when it wants to see more
                again.emit(SessionChanged(closed=False))
            await session.close()
            return again
        return await self._get(session_id)

    async def _delete(self, session_id: str) -> None:
        session = self._open.pop(session_id, None)
        if session is not None:
            await session.close(anyway=True)
            session.emit(SessionChanged(closed=True))
        for summary in await self.summaries.all():
            if summary.parent_session_id == session_id:
                await self._delete(summary.session_id)
        await (await self.summaries.index()).delete(session_id)
        await self.search.forget(session_id)
        await asyncio.to_thread(shutil.rmtree, self.documents / f"s-{session_id}", ignore_errors=True)
        self._announce(session_id)

    async def _close_for_shutdown(self, session: Session) -> None:
        try:
            await session.interrupt()
            await session.close(anyway=True)
        except Exception:  # the others must be closed all the same
            log.exception("%s could not be closed", session.state.session_id)
        await self.summaries.put(session.state)

    async def _make_room(self) -> None:
        """Make room for one more session: close idle ones, the least recently used first, until they are asked for
        again. Raises `AmanuError` (tooManySessions)."""
        if self._shutting_down:
            raise AmanuError("sessionNotFound", "Amanu is shutting down.", hint="Try again: it will be restarted.")
        most = self.settings.current.max_sessions
        idle = sorted(
            (session for session in self._open.values() if session.idle), key=lambda session: session.last_used
        )
        for session in idle:
            if len(self._open) < most:
                return
            if not session.idle:
                continue  # a client came meanwhile
            try:
                await self._put_away(session)
            except AmanuError as error:
                log.warning("%s cannot be closed: %s", session.state.session_id, error)
        if len(self._open) >= most:
            await self.settings.refresh()  # whoever was refused raises it there, and tries again
        if len(self._open) >= self.settings.current.max_sessions:
            raise AmanuError(
                "tooManySessions",
                f"All {len(self._open)} sessions are in use.",
                hint="Close one of them, or raise max_sessions in config.toml.",
            )

    async def _put_away(self, session: Session) -> None:
        """Close an idle session until it is asked for again. Raises `AmanuError`, leaving it open."""
        session_id = session.state.session_id
        del self._open[session_id]  # a request for it now waits for the lock, and opens it again
        try:
            await session.close()
        except AmanuError:
            self._open[session_id] = session
            raise
        await self.summaries.put(session.state)

    # What changed -----------------------------------------------------------------------------------

    def _session_changed(self, state: SessionState) -> None:
        """A turn began or ended, or the title changed: update the list."""
        self.summaries.changed(state)
        self.search.changed()
        self._announce(state.session_id)

    def _written(self, session_id: str) -> int | None:
        session = self._open.get(session_id)
        return None if session is None or session.state.read_only else session.core.journal.position

    def _settings_changed(self) -> None:
        self.services.registry.base_urls = self.settings.current.base_urls
        self._reconsider_approvals()

    def _reconsider_approvals(self) -> None:
        """Rules have changed: they hold in all sessions."""
        for session in self._open.values():
            session.approvals.reconsider()

    def _mcp_changed(self) -> None:
        for session in self._open.values():
            session.own_parts.mcp.announce()
        for client in self._clients:
            client.mcp_changed()

    def _announce(self, session_id: str) -> None:
        """What the list of sessions shows of that one has changed."""
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


def _now() -> int:
    return int(time.time() * 1000)
