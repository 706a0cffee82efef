"""Whether a session's folders are trusted, while it goes on: the user decides, editors come and go, files change.

What trust is about, and what is kept of it, is in `permissions/trust_store.py`.
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
    """Of one session. `changed` is called after a change was told, with whether trust was taken back."""

    def __init__(self, core: SessionCore, changed: Callable[[bool], None]) -> None:
        self._core = core
        self._trust = core.services.trust
        self._state = core.state
        self._changed = changed
        self._declared: Collection[str] | None = None
        """What the last editor with a say said of trust."""
        self._heeding = asyncio.Lock()
        self._reviewed: dict[Path, tuple[Path, bytes, bytes]] = {}
        """Files the user changed by a yes to what they saw, from what and to what: nothing to ask about again."""

    async def refresh(self, client: Client | None = None) -> None:
        """See whether the roots are trusted, as they are now: the user may have decided, an editor come along that
        has a say, or what they enable may have changed."""
        if client is not None and client.trusted_roots is not None:
            self._declared = client.trusted_roots
        async with self._heeding:  # what was seen first must not be told last
            while self._reviewed:
                await asyncio.to_thread(self._trust.on_reviewed_change, self._state.roots, *self._reviewed.popitem()[1])
            standing = await asyncio.to_thread(self._trust.standing, self._state.roots, self._declared)
            self._tell(standing == "trusted", standing == "changed")

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal is now this: files that trust enables, changed by the user's yes, stay trusted."""
        if self._state.trusted:
            self._reviewed |= {change[0]: change for change in reviewed_changes(proposal)}

    def _tell(self, trusted: bool, changed: bool) -> None:
        was = self._state.trusted
        if (trusted, changed) == (was, self._state.trust_changed) or not self._core.access.writable:
            return
        self._core.emit(SessionChanged(trusted=trusted, trust_changed=changed))
        self._changed(was and not trusted)
