"""How a turn ends."""

from dataclasses import dataclass

from amanu_protocol.errors import ErrorKind
from amanu_protocol.events import EndReason

DAEMON_STOPPED = "The daemon stopped in the middle of this turn."
"""The message of an interrupted turn. A daemon that stops in good order cancels the turn's task with it."""


@dataclass(frozen=True)
class Ending:
    """Why an agent stopped, and whether it can go on."""

    reason: EndReason
    message: str = ""
    """A sentence for the user; "" when there is nothing to say."""
    can_continue: bool = False
    """Another prompt can continue from there."""
    kind: ErrorKind | None = None
    """What failed (the key, the address, the service), for programs; None when nothing did."""
