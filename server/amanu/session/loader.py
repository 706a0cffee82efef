"""Opens sessions from their journals: new ones, those that were closed, and those that a killed daemon left."""

import contextlib
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from amanu.permissions.trust_store import Standing
from amanu.session.core import Assignment
from amanu.session.daemon_part import DaemonPart
from amanu.session.fork import beginning, ending, forked, named_blobs
from amanu.session.restore import REWINDS, Restored, restore, rewound
from amanu.session.sandbox_report import SandboxReport
from amanu.session.services import Services
from amanu.session.session import Session
from amanu.session.settings import UserSettings
from amanu.session.summaries import Summaries
from amanu.storage.journal import Journal, Record, kept_blobs, write_new
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

    async def copy(self, source: Session, session_id: str, turn_id: str | None, standing: Standing) -> bool:
        """Write a session with the conversation of `source` up to the end of that turn, which `open` opens. Nothing is
        done, and False returned, where the id is known. Raises `AmanuError` (itemNotFound, turnInProgress)."""
        folder, old = (await self._summaries.index()).folder(session_id), source.core.journal
        spans = rewound(await old.beginning(REWINDS))
        state = source.state
        first = beginning(state, trusted=standing == "trusted", trust_changed=standing == "changed")

        def copy(taken: Iterable[Record]) -> bool:
            records = [first, *forked(taken, spans, turn_id), ending(state)]
            blobs = named_blobs(records, kept_blobs(old.folder))
            return write_new(folder, [each.position or each for each in records], old.folder, blobs)

        await old.durable()  # records are copied from file to file
        return await old.read_through(copy)

    async def open(self, session_id: str, *, begins: bool = False) -> Session:
        """The session on disk; read-only while another daemon holds it. `begins`: it was just copied. Raises
        `AmanuError` (sessionNotFound)."""
        folder = (await self._summaries.index()).folder(session_id)
        if not folder.exists():
            raise _not_found(session_id)
        try:
            journal = await Journal.open(folder)
        except AmanuError as error:
            if error.kind != "sessionReadOnly":
                raise
            journal = await Journal.read(folder)
        return await self._load(session_id, journal, begins=begins)

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
