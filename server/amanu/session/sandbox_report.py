"""Tells sessions which sandbox their commands run in."""

import asyncio
import logging
from weakref import WeakSet

from amanu.sandbox.sandbox import Sandbox
from amanu.session.session import Session
from amanu_protocol.items import CommandSandbox

log = logging.getLogger(__name__)


class SandboxReport:
    """The sandbox is tried in the background with the first session: only commands wait for it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._trial: asyncio.Task[None] | None = None
        self._waiting: WeakSet[Session] = WeakSet()
        """None is kept for this: it may be closed meanwhile."""

    @property
    def current(self) -> CommandSandbox | None:
        """The sandbox for commands; None until it has been tried."""
        return None if self._sandbox.proof is None else self._sandbox.describe(None)

    def tell(self, session: Session) -> None:
        """Now, or once it has been tried."""
        if self.current is not None:
            session.set_sandbox(self.current)
            return
        self._waiting.add(session)
        if self._trial is None:
            self._trial = asyncio.create_task(self._try())

    async def close(self) -> None:
        if self._trial is not None:
            self._trial.cancel()
            await asyncio.gather(self._trial, return_exceptions=True)

    async def _try(self) -> None:
        try:
            await self._sandbox.proved()
        except Exception:
            log.exception("the sandbox could not be tried")
            return
        for session in list(self._waiting):
            session.set_sandbox(self._sandbox.describe(None))
        self._waiting.clear()
