"""What the model is told of the session it works in: its mode, the sandbox, and whether anybody answers questions.

It goes with the prompt, as what the editor shows does, so that the system prompt stays the same for all sessions: once,
and again when it changes or when what was told may be gone (a compaction, a rewind).
"""

from amanu.core.conversation import Conversation
from amanu.permissions.policy import mode_text
from amanu.text.fences import block
from amanu_protocol.items import CommandSandbox, Mode
from amanu_protocol.state import SessionState

HEADLESS = (
    "Nobody is watching: no question of yours is answered, and what would need a permission is denied. Do not ask and "
    "do not try variants of what was denied; decide sensibly, do what you can, and say at the end what is left and why."
)
NO_SANDBOX = "Sandbox: none works on this machine. Commands run with the user's own rights once they are allowed."
SANDBOX = (
    "Sandbox: commands run in one ({tier}). They write in the workspace and in a temporary folder only, do not see the "
    "user's secrets, and have no network unless the user grants it."
)


class SessionStatus:
    """What the model of one session knows of it."""

    def __init__(self, conversation: Conversation, state: SessionState, *, headless: bool) -> None:
        self._conversation = conversation
        self._state = state
        self._headless = headless
        self._sandbox: CommandSandbox | None = None
        # A fresh conversation in the mode everybody begins in needs no words; a resumed one may tell of another mode.
        self._heard: str | None = None if len(conversation) else _text("ask", None, headless=False)
        self._generation = conversation.generation
        self._told = False

    def with_prompt(self) -> str:
        """The block that goes with a prompt, which the model has heard when this returns; "" when nothing is new."""
        self._sandbox = self._state.sandbox
        return self.news()

    def news(self) -> str:
        """Like `with_prompt`, between two steps: what was found out about the sandbox meanwhile can wait."""
        if self._conversation.generation != self._generation:
            self._generation = self._conversation.generation
            self._heard = None if self._told else self._heard
        status = _text(self._state.mode, self._sandbox, headless=self._headless)
        if status == self._heard:
            return ""
        self._heard, self._told = status, True
        return block("session_status", status)


def _text(mode: Mode, sandbox: CommandSandbox | None, *, headless: bool) -> str:
    lines = [f"Mode: {mode}. {mode_text(mode)}"]
    if sandbox is not None:
        lines.append(NO_SANDBOX if sandbox.tier == "none" else SANDBOX.format(tier=sandbox.tier))
    if headless:
        lines.append(HEADLESS)
    return "\n".join(lines)
