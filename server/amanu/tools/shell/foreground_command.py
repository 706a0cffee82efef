"""A command that its call waits for, until it has ended or the user puts it in the background."""

import asyncio

from amanu.core.tool import Outcome, ToolError
from amanu.tools.shell.job import Job, JobEnd
from amanu_protocol.items import CommandSandbox

_HAS_ENDED = "The command has just ended, so it was not put in the background."


class ForegroundCommand:
    """`title`: of the job that it may become."""

    def __init__(self, call_id: str, title: str, sandbox: CommandSandbox | None) -> None:
        self.call_id = call_id
        self.title = title
        self.sandbox = sandbox
        self.may_move = False
        """It runs where it can go on without its call, and nobody has put it in the background yet."""
        self.job: Job | None = None
        """The job that it is to become."""
        self.wanted = asyncio.Event()
        """The user wants it in the background."""
        self.moved = asyncio.Event()
        """It is in the background."""
        self.work: asyncio.Task[Outcome | JobEnd] | None = None
        """Runs it to its end."""

    @property
    def has_ended(self) -> bool:
        return self.work is None or self.work.done()

    async def go_on(self, job: Job) -> JobEnd:
        """Go on as that job, to its end. Raises `ToolError`."""
        if self.work is None or self.work.done():
            raise ToolError(_HAS_ENDED)
        self.job = job
        self.wanted.set()
        try:
            await asyncio.wait({self.work})
        except asyncio.CancelledError:
            self.work.cancel()
            await asyncio.gather(self.work, return_exceptions=True)
            raise
        if not self.moved.is_set():
            raise ToolError(_HAS_ENDED)
        end = self.work.result()
        assert isinstance(end, JobEnd)
        return end
