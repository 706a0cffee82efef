"""Which session a plain client works in: the last one of its workspace folders, or a new one."""

import asyncio
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.system.missing_folder import missing_folder
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session
    from amanu.session.sessions import Sessions


class WorkspaceSession:
    """`client` is attached to the session, `folders` are its workspace folders by URI (None: not a path on this
    machine), `model_id` is that of a new session. `listeners` are called with each session that becomes the
    current one."""

    def __init__(
        self,
        sessions: "Sessions",
        client: "Client",
        folders: Mapping[str, Path | None],
        model_id: str | None,
    ) -> None:
        self._sessions = sessions
        self._client = client
        self._folders = folders
        self._model_id = model_id
        self._choosing = asyncio.Lock()
        self.current: Session | None = None
        self.listeners: list[Callable[[Session], None]] = []

    async def resume(self) -> None:
        """Go on with the last session of the folders, if there is one."""
        async with self._choosing:
            if self.current is None and (roots := self._present()):
                session = await self._newest(roots)
                if session is not None:
                    self._enter(session)

    async def get(self) -> "Session":
        """The current session; else the last one of the folders, else a new one. Raises `AmanuError` when there are no
        folders."""
        async with self._choosing:
            if self.current is None:
                roots = self._roots()
                self._enter(await self._newest(roots) or await self._create(roots))
            assert self.current is not None
            return self.current

    async def named(self, session_id: str | None) -> "Session":
        """The session with that id; None: the current one. Raises `AmanuError`."""
        return await self.get() if session_id is None else await self._sessions.get(session_id)

    async def begin(self) -> None:
        """Leave the current session and begin a new one."""
        async with self._choosing:
            if self.current is not None:
                self.current.detach(self._client)
                self.current = None
            self._enter(await self._create(self._roots()))

    async def _newest(self, roots: list[str]) -> "Session | None":
        """The last session of exactly these folders, if it can be written."""
        listed = await self._sessions.summaries.list(r.SessionListParams(root=roots[0]))
        for summary in sorted(listed.sessions, key=lambda summary: -summary.updated_at):
            if sorted(summary.roots) == sorted(roots) and summary.status != "closed":
                await self._sessions.attach(r.SessionAttachParams(session_id=summary.session_id), self._client)
                session = self._sessions.opened(summary.session_id)
                if session is not None and not session.state.read_only:
                    return session
                if session is not None:
                    session.detach(self._client)
                return None
        return None

    async def _create(self, roots: list[str]) -> "Session":
        session_id = f"s-{secrets.token_hex(8)}"
        await self._sessions.create(
            r.SessionCreateParams(session_id=session_id, roots=roots, model_id=self._model_id), self._client
        )
        return await self._sessions.get(session_id)

    def _enter(self, session: "Session") -> None:
        self.current = session
        for listener in self.listeners:
            listener(session)

    def _roots(self) -> list[str]:
        """Raises `AmanuError` when none of the folders is here."""
        if roots := self._present():
            return roots
        if self._folders:
            missing = missing_folder(next(iter(self._folders)))
            raise AmanuError("invalidParams", missing.reason, hint=missing.hint)
        reason = "This editor named no workspace folder."
        raise AmanuError("invalidParams", reason, hint="Set the root folder of the language server.")

    def _present(self) -> list[str]:
        paths = filter(None, self._folders.values())
        return sorted({os.path.realpath(path) for path in paths if os.path.isdir(path)})  # noqa: PTH112  is_dir may raise
