"""What the model is told about its session: the mode, the sandbox, and whether anybody answers questions.

It goes with a prompt, like the state of the editor, so that the system prompt stays the same for all sessions: once,
and again when it changes or when what was told may be gone (a compaction, a rewind).
"""

from pathlib import Path

from amanu.core.conversation import Conversation
from amanu.permissions.policy import mode_text
from amanu.session.jobs import running_jobs
from amanu.text.fences import block
from amanu.tools.shell.job_report import names
from amanu_protocol.items import CommandSandbox, Mode
from amanu_protocol.state import SessionState

HEADLESS = (
    "Nobody is watching: your questions will not be answered, and whatever needs approval is denied. Do not ask, and "
    "do not try variants of what was denied; decide sensibly, do what you can, and say at the end what is left and why."
)
HEADLESS_PLAN = (
    "Nobody is watching: nobody can answer questions or approve the plan. Decide sensibly, say what you assumed, and "
    "end with the plan as your answer."
)
PLAN_OF_PARENT = (
    "The session you work for is planning. Nothing may change: you may read, search, and run commands, but nothing "
    "that they change is kept."
)
NO_SANDBOX = "Sandbox: none works on this machine. Commands that are allowed run with all of the user's permissions."
SANDBOX = (
    "Sandbox: commands run in one ({tier}). They can write only in the workspace and in a temporary folder, cannot see "
    "the user's secrets, and have no network access unless the user grants it."
)
GOING_ON = "Plan mode does not stop what runs in the background: {}."


class SessionStatus:
    """What one session's model has been told about its session."""

    def __init__(
        self, conversation: Conversation, state: SessionState, plan: Path, *, headless: bool, sub_agent: bool = False
    ) -> None:
        self._conversation = conversation
        self._state = state
        self._plan = plan
        self._headless = headless
        self._sub_agent = sub_agent
        self._sandbox: CommandSandbox | None = None
        # A new conversation in the default mode needs no note; a resumed one may have mentioned another mode.
        self._last_text: str | None = None if len(conversation) else _text("ask", None, plan, headless=False)
        self._generation = conversation.generation
        self._told = False

    def note_with_prompt(self) -> str:
        """The block that goes with a prompt, which counts as told when this returns; "" when nothing is new."""
        self._sandbox = self._state.sandbox
        return self.note()

    def note(self) -> str:
        """Like `note_with_prompt`, between two steps: what was found out about the sandbox meanwhile can wait."""
        if self._conversation.generation != self._generation:
            self._generation = self._conversation.generation
            self._last_text = None if self._told else self._last_text
        status = _text(self._state.mode, self._sandbox, self._plan, headless=self._headless, sub_agent=self._sub_agent)
        if status == self._last_text:
            return ""
        self._last_text, self._told = status, True
        if self._state.mode == "plan" and (jobs := running_jobs(self._state)):
            status += f"\n{GOING_ON.format(names(jobs))}"  # once: the end of one is told by itself
        return block("session_status", status)


def _text(mode: Mode, sandbox: CommandSandbox | None, plan: Path, *, headless: bool, sub_agent: bool = False) -> str:
    about = PLAN_OF_PARENT if sub_agent and mode == "plan" else mode_text(mode).replace("{plan}", str(plan))
    lines = [f"Mode: {mode}. {about}"]
    if sandbox is not None:
        lines.append(NO_SANDBOX if sandbox.tier == "none" else SANDBOX.format(tier=sandbox.tier))
    if headless:
        lines.append(HEADLESS_PLAN if mode == "plan" and not sub_agent else HEADLESS)
    return "\n".join(lines)
