"""Opens sessions from their journals: new ones, those that were closed, and those that a killed daemon left."""

import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from amanu.session.core import Assignment
from amanu.session.daemon_part import DaemonPart
from amanu.session.restore import REWINDS, Restored, restore, rewound
from amanu.session.sandbox_report import SandboxReport
from amanu.session.services import Services
from amanu.session.session import Session
from amanu.session.settings import UserSettings
from amanu.session.summaries import Summaries
from amanu.storage.journal import Journal, Record
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import SessionChanged
from amanu_protocol.state import fold

log = logging.getLogger(__name__)


class SessionLoader:
    """It keeps no session. Call with `Sessions.lock` held, and to completion: half way, a session is neither open nor
    closed, and its lease would stay with us."""

    def __init__(
        self, services: Services, settings: UserSettings, summaries: Summaries, parts: Sequence[DaemonPart]
    ) -> None:
        self._services = services
        self._settings = settings
        self._summaries = summaries
        self._parts = parts
        self._sandbox = SandboxReport(services.sandbox)

    async def begin(self, session_id: str, first: SessionChanged, assignment: Assignment | None = None) -> Session:
        """A session that starts with that event, or the one on disk that has the id."""
        journal = await Journal.open((await self._summaries.index()).folder(session_id))
        begins = journal.empty
        if begins:
            first = first.model_copy(update={"sandbox": self._sandbox.current})
            journal.append(Record(0, 0, int(time.time() * 1000), first.model_dump_json(), None))
        return await self._load(session_id, journal, begins=begins, assignment=assignment)

    async def open(self, session_id: str) -> Session:
        """The session on disk; read-only while another daemon holds it. Raises `AmanuError` (sessionNotFound)."""
        folder = (await self._summaries.index()).folder(session_id)
        if not folder.exists():
            raise _not_found(session_id)
        try:
            journal = await Journal.open(folder)
        except AmanuError as error:
            if error.kind != "sessionReadOnly":
                raise
            journal = await Journal.read(folder)
        return await self._load(session_id, journal)

    async def recover(self, session_id: str) -> None:
        """Finish what a killed daemon left half done in it. What fails is in the log."""
        try:
            journal = await Journal.open((await self._summaries.index()).folder(session_id))
        except AmanuError as error:  # usually another Amanu has it open
            log.info("%s was not recovered: %s", session_id, error)
            return
        try:
            session = await self._load(session_id, journal)
            await session.close(anyway=True)
        except Exception:
            log.exception("%s could not be recovered", session_id)

    async def close(self) -> None:
        await self._sandbox.close()

    async def _load(
        self, session_id: str, journal: Journal, *, begins: bool = False, assignment: Assignment | None = None
    ) -> Session:
        try:
            spans = rewound(await journal.beginning(REWINDS))
            restoring = partial(
                restore, session_id, spans=spans, read_only=journal.read_only, blob_text=journal.blob_text
            )
            restored = await journal.read_through(restoring)
            is_gone = journal.empty and not begins and not journal.read_only
            if is_gone or journal.damage:
                known = await self._recover_from_summary(session_id, journal, restored)
                if is_gone and not known:  # its creation was cut off
                    raise _not_found(session_id)
            self._summaries.opened(session_id, restored.created_at)
            services = replace(self._services, settings=self._settings.current)
            session = Session(services, journal, restored, self._parts, assignment)
            await session.open(begins=begins)
        except BaseException:
            with contextlib.suppress(AmanuError):
                await journal.close()  # otherwise its lease stays with us, and nobody can open it
            raise
        if restored.closing_events:
            await self._summaries.put(session.state)  # as the dead daemon left it, it says that a turn is running
        self._sandbox.tell(session)
        return session

    async def _recover_from_summary(self, session_id: str, journal: Journal, restored: Restored) -> bool:
        """Fill in what a damaged journal no longer holds, from the session's summary. Returns whether there is one."""
        summary = await (await self._summaries.index()).get(session_id)
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


def _not_found(session_id: str) -> AmanuError:
    return AmanuError("sessionNotFound", f"There is no session {session_id}.")
