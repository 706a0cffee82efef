"""The user's trust in folders, as clients ask for it and change it."""

import asyncio
from collections.abc import Mapping

from amanu.session.events import Client
from amanu.session.roots import real_root
from amanu.session.services import Services
from amanu.session.session import Session
from amanu.text import wording
from amanu_protocol.requests import TrustGetParams, TrustGetResult, TrustSetParams


class FolderTrust:
    """`sessions` are the open ones."""

    def __init__(self, services: Services, sessions: Mapping[str, Session]) -> None:
        self._trust = services.trust
        self._audit = services.audit
        self._sessions = sessions

    async def get(self, params: TrustGetParams, client: Client) -> TrustGetResult:
        """What trusting that folder enables, and what of it changed since it was trusted."""
        trust = await asyncio.to_thread(self._trust.look, real_root(params.root), client.trusted_roots)
        return wording.explain_trust(trust)

    async def set(self, params: TrustSetParams) -> None:
        """Declare a folder trusted or not; this takes effect in its sessions at once. Raises `AmanuError`
        (trustChanged) when the user was shown something else."""
        root = real_root(params.root)
        await asyncio.to_thread(self._trust.set, root, params.trusted, params.digest)
        confirmation = f"{root} is {'now trusted' if params.trusted else 'no longer trusted'}."
        self._audit.add("trust", confirmation, root=root, digest=params.digest)
        await self._audit.durable()
        for session in [*self._sessions.values()]:
            if root in session.state.roots:
                await session.trust.refresh()
