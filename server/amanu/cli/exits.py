"""Exit codes of `amanu`, the same for every command that runs a turn."""

from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EndReason

OK = 0
FAILED = 1
USAGE = 2
DENIED = 3
"""The turn ended, but nobody could be asked: a call was denied, or a draft or a conflict is left."""
UNAVAILABLE = 4
"""No key, a key that is refused, an unknown model, or one that cannot be reached."""
LIMIT = 5
"""Stopped at a limit (steps, time, cost), or because the model went round in circles."""
CANCELLED = 130

HELP = (
    "exit codes: 0 completed · 1 failed · 2 wrong usage · 3 completed, but nobody could be asked: a call was "
    "denied, or a draft or conflict is left · 4 no key, or model not available · 5 stopped at a limit or in a "
    "loop · 130 cancelled"
)

CHAT_HELP = (
    "Exit codes: 0 you left · 1 failed, or the daemon is gone · 2 wrong usage, no terminal, or unknown session · "
    "4 no key, or model not available · 130 interrupted before it began"
)

_OF_REASON: dict[EndReason, int] = {
    "completed": OK,
    "cancelled": CANCELLED,
    "stepLimit": LIMIT,
    "timeLimit": LIMIT,
    "costLimit": LIMIT,
    "loop": LIMIT,
    "refused": FAILED,
    "hook": FAILED,
    "failed": FAILED,
    "interrupted": FAILED,
}
_UNAVAILABLE_KINDS = ("authRequired", "modelNotFound", "modelUnavailable")


def of_turn(reason: EndReason, *, denied: bool, notices: frozenset[str] = frozenset()) -> int:
    """Of a turn that ended. `denied`: something needed a user who was not there. `notices` are the codes of the notices
    in it: they tell a missing key from other failures."""
    if reason == "failed" and not notices.isdisjoint(_UNAVAILABLE_KINDS):
        return UNAVAILABLE
    if reason == "completed" and denied:
        return DENIED
    return _OF_REASON[reason]


def of_error(error: AmanuError) -> int:
    """Of a request the daemon refused."""
    if error.kind in _UNAVAILABLE_KINDS:
        return UNAVAILABLE
    return USAGE if error.kind in ("invalidParams", "invalidRule", "sessionNotFound") else FAILED
