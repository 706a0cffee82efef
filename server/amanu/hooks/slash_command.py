"""`/hooks`: lists the hooks with their states, and lets the user approve one of them."""

import asyncio
from collections.abc import Sequence

from amanu.hooks.audit import record_approval
from amanu.hooks.model import HookView
from amanu.hooks.report import listing
from amanu.hooks.session_hooks import SessionHooks
from amanu.session.core import SessionCore
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError

CODE = "hooks"
"""The code of the notices."""
USAGE = "Usage: /hooks, or /hooks approve NUMBER"


class HooksSlashCommand:
    """Methods raise `AmanuError`."""

    def __init__(self, core: SessionCore, hooks: SessionHooks) -> None:
        self._core = core
        self._hooks = hooks
        self._listed: Sequence[HookView] = ()
        """The hooks in the list that was shown last, by number less 1."""

    async def carry_out(self, argument: str) -> None:
        """Carry out `/hooks` with that argument; the answer is a notice."""
        match argument.split():
            case []:
                text = await self._list()
            case ["approve", number] if number.isdecimal():
                text = await self._approve(int(number))
            case _:
                raise AmanuError("invalidParams", USAGE)
        self._core.notices.report_on_session(CODE, "info", text)
        await self._core.emit.durable()

    async def _list(self) -> str:
        self._listed = await self._hooks.views()
        unread: list[str] = []
        if not self._core.trusted():
            unread = await asyncio.to_thread(self._hooks.configured_hooks.unread, self._core.workspace)
        text = listing(self._listed, unread)
        if any(view.state in ("new", "changed") for view in self._listed):
            text += "\n/hooks approve NUMBER approves one as it is now. Check the files it runs first."
        return text

    async def _approve(self, number: int) -> str:
        """Approve the hook that the user was shown under that number."""
        if not self._listed:  # an approval is of what was shown
            return f"Nothing was approved, because you have not seen the list yet:\n{await self._list()}"
        if not 0 < number <= len(self._listed):
            return f"There is no hook {number} in the list. These are the hooks now:\n{await self._list()}"
        shown = self._listed[number - 1]
        current = next((view for view in await self._hooks.views() if view.digest == shown.digest), None)
        if current is None:
            return f"Nothing was approved: that hook has changed since it was shown.\n{await self._list()}"
        label = one_line(shown.hook.label)
        if current.state not in ("new", "changed"):
            return f"Nothing to approve: {label} is {current.state}. {current.reason}".rstrip()
        await asyncio.to_thread(self._hooks.configured_hooks.pins.approve, [current])
        record_approval(self._core.audit, current)
        return f"Approved {label} as it is now: it runs from the next {shown.hook.event} on."
