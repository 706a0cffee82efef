"""The prompt that an ACP client waits on, from its first word to its stop reason."""

import asyncio
from dataclasses import dataclass, field

from amanu.frontends.acp.peer import INTERNAL_ERROR, RpcError
from amanu_protocol.events import EndReason, TurnEnded

STOP_REASONS: dict[EndReason, str] = {
    "completed": "end_turn",
    "loop": "end_turn",
    "cancelled": "cancelled",
    "refused": "refusal",
    "stepLimit": "max_turn_requests",
    "timeLimit": "max_turn_requests",
    "costLimit": "max_turn_requests",
}
"""The others are errors: the turn failed, a hook ended it, or the daemon died in it."""


@dataclass
class OwnPrompt:
    """The prompt that the client waits on."""

    prompt_id: str
    turn_id: str | None = None
    cancelled: bool = False
    preparation: "asyncio.Task[None] | None" = None
    sent: bool = False
    ended: "asyncio.Future[TurnEnded | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """None: it was taken back before it started."""

    def end(self, ended: TurnEnded | None) -> None:
        if not self.ended.done():
            self.ended.set_result(ended)

    def fail(self, error: RpcError) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)

    def stop_reason(self, ended: TurnEnded | None) -> str:
        """The answer to `session/prompt`. Raises `RpcError` for the endings that are errors."""
        if ended is None or (self.cancelled and ended.reason != "completed"):
            return "cancelled"
        if ended.reason not in STOP_REASONS:
            text = ended.message or "The turn was interrupted: the daemon has stopped. Send another prompt to go on."
            raise RpcError(INTERNAL_ERROR, text, {"reason": ended.reason, "canContinue": ended.can_continue})
        return STOP_REASONS[ended.reason]
