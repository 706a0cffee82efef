"""Which session is meant: an id, the beginning of one, or `latest`."""

import time
from collections.abc import Awaitable, Callable, Sequence

from amanu.cli.text import one_line, visible
from amanu.client.daemon_client import DaemonClient
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionListParams, SessionListResult, SessionSummary

LATEST = "latest"
SHORTEST = 4
"""Characters of an id's beginning: fewer are a slip."""
SHORT = 8
"""Characters of an id's beginning that tell sessions apart, where a user is to type it."""
WHOLE = 32
"""Characters of an id that Amanu gave."""
_LOOKED_THROUGH = 500
_LISTED = 5

Listing = Callable[[SessionListParams], Awaitable[SessionListResult]]


def listing(client: DaemonClient) -> Listing:
    """As a client asks for it."""
    return lambda params: client.request("amanu/session/list", params, SessionListResult)


async def begins_an_id(typed: str, sessions: Listing) -> bool:
    """Whether a session has that id, or one that begins so; where it is as long as one, nobody needs to look."""
    if len(typed) < SHORTEST or " " in typed:
        return False
    if len(typed) == WHOLE:
        return True
    listed = (await sessions(SessionListParams(limit=_LOOKED_THROUGH, agents=True, archived=True))).sessions
    return any(summary.session_id.startswith(typed) for summary in listed)


async def resolve_session_id(typed: str, root: str | None, sessions: Listing) -> str:
    """The id. Raises AmanuError `sessionNotFound` for what cannot be one, for a beginning that several have, and for
    `latest` where nothing was said yet in that root (None: anywhere)."""
    if typed == LATEST:
        return await latest(root, sessions)
    if SHORTEST <= len(typed) < WHOLE:
        listed = (await sessions(SessionListParams(limit=_LOOKED_THROUGH, agents=True, archived=True))).sessions
        matching = [summary for summary in listed if summary.session_id.startswith(typed)]
        if any(summary.session_id == typed for summary in matching):
            return typed
        if len(matching) > 1:
            raise AmanuError(
                "sessionNotFound",
                f"“{visible(typed)}” matches {len(matching)} sessions.",
                hint=f"Type more of the id: {_named(matching)}.",
            )
        if matching:
            return matching[0].session_id
    return parse_session_id(typed)


def _named(sessions: Sequence[SessionSummary]) -> str:
    entries = [f"{summary.session_id} ({one_line(summary.title, 40) or 'Untitled'})" for summary in sessions[:_LISTED]]
    return ", ".join(entries) + (", …" if len(sessions) > _LISTED else "")


async def latest(root: str | None, sessions: Listing) -> str:
    """Of those in which something was said. Raises like `resolve_session_id`."""
    listed = (await sessions(SessionListParams(root=root))).sessions
    started = next((summary for summary in listed if summary.title), None)
    if started is None:
        raise AmanuError("sessionNotFound", "No session with any messages" + (" here." if root else "."))
    return started.session_id


def parse_session_id(session_id: str) -> str:
    """An id as a user typed it. Raises AmanuError `sessionNotFound` for what cannot be one."""
    try:
        return r.SessionParams(session_id=session_id).session_id
    except ValueError:
        raise AmanuError("sessionNotFound", f"“{visible(session_id)}” is not a session id.") from None


def session_line(summary: SessionSummary, digits: int = WHOLE) -> str:
    """One session in one line: its id or the first `digits` of it, when, how it stands, title."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.updated_at / 1000))
    return f"{summary.session_id[:digits]}  {when}  {summary.status:11}  {one_line(summary.title, 80) or 'Untitled'}"
