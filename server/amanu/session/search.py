"""Finds sessions by what was said, done and changed in them.

The index is kept up from the journals. A session is behind if its summary is newer than the reading of its journal, or
it is open here and its journal is longer. What is behind is read on a moment after a session has changed, and a little
of it before each answer.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from amanu.session.found_places import BATCH, read_places, title_place
from amanu.session.roots import real_root
from amanu.session.summaries import Summaries
from amanu.storage.search_index import ExcerptParts, Match, Reading, SearchIndex, fts_query
from amanu.storage.session_index import SessionHead, SessionIndex
from amanu.system.tasks import run_to_completion
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    ExcerptPart,
    FoundPlace,
    FoundSession,
    SessionSearchParams,
    SessionSearchResult,
    SessionSummary,
)

LINGER = 2.0
"""Seconds after a change until the session is read on."""
PAUSE = 0.005
"""Seconds between two batches, for the searches that wait."""
READ_AT_ONCE = 2 * BATCH
"""Records that are read before an answer."""
SHOWN_PLACES = 5
HALF_LIFE = 30 * 24 * 3600 * 1000
"""Milliseconds after which a session counts half as much as one of now."""
_WEIGHTS = {"title": 3.0, "userMessage": 2.0, "question": 1.5, "answer": 1.5}
_LONGEST_PART = 120
"""Characters of an excerpt's piece beside what was found."""

log = logging.getLogger(__name__)


class SessionSearch:
    """One per process. The index is opened when it is first needed."""

    def __init__(
        self,
        folder: Path,
        summaries: Summaries,
        mask: Callable[[str], str],
        written: Callable[[str], int | None] = lambda session_id: None,
    ) -> None:
        """`mask` hides secrets; `written` is the position of a session's last record, if it is open here."""
        self._folder = folder
        self._summaries = summaries
        self._mask = mask
        self._written = written
        self._index: SearchIndex | None = None
        self._opening = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None
        self._changed = False

    async def find(self, params: SessionSearchParams) -> SessionSearchResult:
        """Raises `AmanuError` (storageError, invalidParams)."""
        root = None if params.root is None else real_root(params.root)
        query = fts_query(params.text)
        if not query:
            return SessionSearchResult(sessions=[])
        await self._summaries.settled()
        sessions, index = await self._summaries.index(), await self._opened()
        heads = await sessions.heads(root, agents=params.agents, archived=params.archived)
        unread = await self._read_some(sessions, index, heads)
        if unread:
            self._read_behind()
        found = ranked(await index.matches(query, [head.session_id for head in heads]), heads, int(time.time() * 1000))
        found = found[: params.limit]
        excerpts = await index.excerpts(query, [place.place_id for places in found for place in places[:SHOWN_PLACES]])
        summaries = await sessions.listed([places[0].session_id for places in found])
        return SessionSearchResult(
            sessions=[
                self._found(summaries[places[0].session_id], places, excerpts)
                for places in found
                if places[0].session_id in summaries  # it may have been deleted meanwhile
            ],
            unread=unread,
        )

    def changed(self) -> None:
        """Something was said or done in a session: read on soon."""
        self._changed = True
        if self._timer is None and self._reading is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self._read_behind)

    async def catch_up(self) -> None:
        """Read everything that is behind, the latest first, and forget what is gone."""
        sessions, index = await self._summaries.index(), await self._opened()
        heads = await sessions.heads()
        read = await index.read()
        for head in heads:
            complete = not self._is_behind(head, read)
            while not complete:
                complete = (await self._read_on(sessions, index, head)).complete
                await asyncio.sleep(PAUSE)
        present = {head.session_id for head in await sessions.heads()}
        await index.forget(read.keys() - present)

    async def forget(self, session_id: str) -> None:
        """The session is gone for good. What cannot be written now, `catch_up` does."""
        with contextlib.suppress(AmanuError):
            await (await self._opened()).forget([session_id])

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._index is not None:
            await self._index.close()

    async def _opened(self) -> SearchIndex:
        async with self._opening:
            return self._index or await run_to_completion(self._open())

    async def _open(self) -> SearchIndex:
        self._index = await SearchIndex.open(self._folder)
        return self._index

    def _read_behind(self) -> None:
        self._timer = None
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all())

    async def _read_all(self) -> None:
        try:
            self._changed = False
            await self.catch_up()
        except AmanuError as error:  # whoever searches hears of it
            log.info("Sessions could not be read for searching. %s", error)
        except Exception:
            log.exception("sessions could not be read for searching")
        finally:
            self._reading = None
        if self._changed:
            self.changed()

    async def _read_some(self, sessions: SessionIndex, index: SearchIndex, heads: Sequence[SessionHead]) -> int:
        """Read a little of what is behind, the latest first. Returns how many sessions are behind still."""
        read = await index.read()
        behind = [head for head in heads if self._is_behind(head, read)]
        left = READ_AT_ONCE
        for at, head in enumerate(behind):
            complete = False
            while left > 0 and not complete:
                reading = await self._read_on(sessions, index, head)
                left, complete = left - reading.records - 1, reading.complete
            if not complete:
                return len(behind) - at
        return 0

    def _is_behind(self, head: SessionHead, read: Mapping[str, tuple[int, int]]) -> bool:
        position, updated_at = read.get(head.session_id, (0, -1))
        return updated_at != head.updated_at or (self._written(head.session_id) or position) > position

    async def _read_on(self, sessions: SessionIndex, index: SearchIndex, head: SessionHead) -> Reading:
        read = partial(read_places, sessions.folder(head.session_id), head.roots, self._mask)

        def with_title(position: int) -> Reading:
            reading = read(position)
            if head.title:
                reading.places["title"] = title_place(self._mask(head.title), head.updated_at)
            return reading

        return await index.read_on(head.session_id, head.updated_at, with_title)

    def _found(
        self, summary: SessionSummary, places: Sequence[Match], excerpts: Mapping[int, ExcerptParts]
    ) -> FoundSession:
        shown = [
            FoundPlace(
                kind=place.kind,  # pyright: ignore[reportArgumentType]
                item_id=place.item_id,
                turn_id=place.turn_id,
                at=place.timestamp,
                excerpt=self._excerpt(excerpts[place.place_id]),
            )
            for place in places[:SHOWN_PLACES]
            if place.place_id in excerpts
        ]
        return FoundSession(session=summary, places=shown, count=len(places))

    def _excerpt(self, parts: ExcerptParts) -> list[ExcerptPart]:
        whole = "".join(text for text, _ in parts)
        masked = self._mask(whole)  # a key may have become known since
        if masked != whole:
            return [ExcerptPart(text=_short(masked, is_first=False))]
        last = len(parts) - 1
        shown = [
            (text.lstrip() if at == 0 else text.rstrip() if at == last else text) for at, (text, _) in enumerate(parts)
        ]
        return [
            ExcerptPart(
                text=_on_one_line(text) if found else _short(_on_one_line(text), is_first=at == 0 < last), found=found
            )
            for at, (text, (_, found)) in enumerate(zip(shown, parts, strict=True))
            if text
        ]


def ranked(matches: Iterable[Match], heads: Iterable[SessionHead], now: int) -> list[list[Match]]:
    """The matches of each session, the best ones first, and the sessions in that order. `now` in milliseconds."""
    worth = {head.session_id: _worth(now - head.updated_at) for head in heads}
    by_session: dict[str, list[Match]] = {}
    for match in matches:
        score = match.score * _WEIGHTS.get(match.kind, 1.0) * worth.get(match.session_id, 0.0)
        by_session.setdefault(match.session_id, []).append(replace(match, score=score))
    for places in by_session.values():
        places.sort(key=lambda place: (-place.score, -place.place_id))
    return sorted(by_session.values(), key=lambda places: (-places[0].score, -places[0].place_id))


def _worth(age: int) -> float:
    return 1 / (1 + max(0, age) / HALF_LIFE)


def _on_one_line(text: str) -> str:
    flat = " ".join(text.split())
    return f"{' ' * text[0].isspace()}{flat}{' ' * text[-1].isspace()}" if flat else " "


def _short(text: str, *, is_first: bool) -> str:
    """The part beside what was found, if it is long."""
    if len(text) <= _LONGEST_PART:
        return text
    return f"…{text[1 - _LONGEST_PART :]}" if is_first else f"{text[: _LONGEST_PART - 1]}…"
