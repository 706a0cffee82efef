"""Why an agent stopped."""

from dataclasses import dataclass

from amanu_protocol.errors import ErrorKind
from amanu_protocol.events import EndReason


@dataclass(frozen=True)
class Ending:
    """Of a turn."""

    reason: EndReason
    message: str = ""
    """For the user; "" when there is nothing to say."""
    can_continue: bool = False
    """Another prompt may go on from there."""
    kind: ErrorKind | None = None
    """Of a failure, for programs: is it the key, the address, the service?"""
