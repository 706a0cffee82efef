"""Questions to the user: the one that is open, and what was asked before."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from amanu.core.tool import Preview, Subject
from amanu_protocol.items import Approval, Decision


@dataclass
class PendingApproval:
    """A question waiting for the user."""

    approval: Approval
    preview: Preview
    """The call as it was when the question was first asked."""
    open_subjects: tuple[Subject, ...]
    """Those of `subjects` that no rule allows."""
    answer: "asyncio.Future[Decision]"
    preview_again: Callable[[], Awaitable[Preview]] | None = None
    """Makes the preview anew, where what is asked about can change while the question is open; None: it cannot."""
    revised: Preview | None = None
    """What is asked about now, if that has changed since the question was first asked."""
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return (self.preview.subject, *self.preview.extra_subjects)

    @property
    def review(self) -> bool:
        """Whether it is about all that is open of its proposal, whichever calls that is from."""
        return self.preview.review


@dataclass(frozen=True)
class PastQuestion:
    """A question the user was asked."""

    call_id: str
    title: str
    subjects: tuple[Subject, ...]
    """What no rule allowed at the time."""
