"""Whether a session's folders are trusted, kept up to date: the user decides, editors come and go, files change.

What trust covers, and how it is recorded: `permissions/trust_store.py`.
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from amanu.permissions.trust_store import reviewed_changes
from amanu.session.core import SessionCore
from amanu.session.events import Client
from amanu_protocol.events import SessionChanged
from amanu_protocol.items import Proposal


class SessionTrust:
    """The trust of one session. `changed` is called after a change was emitted, with whether trust was taken back."""

    def __init__(self, core: SessionCore, changed: Callable[[bool], None]) -> None:
        self._core = core
        self._trust = core.services.trust
        self._state = core.state
        self._changed = changed
        self._declared: Collection[str] | None = None
        """The roots that the last editor which takes part in trust declared trusted."""
        self._lock = asyncio.Lock()
        self._reviewed: dict[Path, tuple[Path, bytes, bytes]] = {}
        """Files changed by the user's approval of a diff: (path, old content, new content). They need no further
        question."""

    async def refresh(self, client: Client | None = None) -> None:
        """Check again whether the roots are trusted: the user may have decided, an editor may have come, or what the
        roots enable may have changed."""
        if self._core.assignment is not None:
            return  # its parent's trust holds, and its parent says when it changes
        if client is not None and client.trusted_roots is not None:
            self._declared = client.trusted_roots
        async with self._lock:  # an older result must not be announced after a newer one
            while self._reviewed:
                await asyncio.to_thread(self._trust.on_reviewed_change, self._state.roots, *self._reviewed.popitem()[1])
            standing = await asyncio.to_thread(self._trust.standing, self._state.roots, self._declared)
            self._announce(standing == "trusted", standing == "changed")

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal has changed: files that trust enables and the user's approval changed stay trusted."""
        if self._state.trusted:
            self._reviewed |= {change[0]: change for change in reviewed_changes(proposal)}

    def _announce(self, trusted: bool, changed: bool) -> None:
        was = self._state.trusted
        if (trusted, changed) == (was, self._state.trust_changed) or not self._core.access.writable:
            return
        self._core.emit(SessionChanged(trusted=trusted, trust_changed=changed))
        self._changed(was and not trusted)
