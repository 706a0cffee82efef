"""The session that is meant by what somebody typed."""

import pytest

from amanu.cli.session_lookup import resolve_session_id
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionListParams, SessionListResult, SessionSummary


def summary(session_id: str, title: str, root: str = "/w") -> SessionSummary:
    return SessionSummary(
        session_id=session_id, title=title, roots=[root], model_id="m", created_at=0, updated_at=0, status="idle"
    )


SESSIONS = [
    summary("1995db" + "0" * 26, "", "/w"),
    summary("1995aa" + "0" * 26, "Mend the parser", "/w"),
    summary("abcdef" + "0" * 26, "Elsewhere", "/other"),
    summary("short-id", "By a client of its own", "/other"),
]


async def listed(params: SessionListParams) -> SessionListResult:
    return SessionListResult(sessions=[each for each in SESSIONS if params.root in (None, *each.roots)])


@pytest.mark.parametrize(
    ("typed", "root", "found"),
    [
        ("1995d", "/w", SESSIONS[0].session_id),
        ("abcd", "/w", SESSIONS[2].session_id),
        (SESSIONS[1].session_id, "/w", SESSIONS[1].session_id),
        ("short-id", None, "short-id"),
        ("latest", "/w", SESSIONS[1].session_id),
        ("latest", "/other", SESSIONS[2].session_id),
        ("latest", None, SESSIONS[1].session_id),
        ("abc", "/w", "abc"),  # too short to be a beginning: the daemon says that there is none
        ("ffff", "/w", "ffff"),
        ("1995", "/w", "“1995” matches 2 sessions. Type more of the id: 1995db"),
        ("latest", "/empty", "No session with any messages here."),
        ("../x", "/w", "is not a session id"),
    ],
)
async def test_which(typed: str, root: str | None, found: str) -> None:
    try:
        assert await resolve_session_id(typed, root, listed) == found
    except AmanuError as error:
        assert error.kind == "sessionNotFound"
        assert found in f"{error} {error.data.hint or ''}"
