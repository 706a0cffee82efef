"""Hooks as a part of a session, and of the daemon."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from amanu.config import Settings
from amanu.core.agent import AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.session_part import PromptListener, SessionPart, SlashCommand, Slot
from amanu.home import Home
from amanu.hooks.hooks import Hooks
from amanu.hooks.listener import HookEnding, HookListener
from amanu.hooks.plugin_hooks import plugin_hooks
from amanu.hooks.session_hooks import SessionHooks
from amanu.hooks.slash_command import HooksSlashCommand
from amanu.session.child_sessions import ChildSessions
from amanu.session.core import SessionCore
from amanu.session.daemon_part import DaemonPart


class HooksPart(SessionPart):
    """The hooks of one session."""

    def __init__(self, core: SessionCore, configured_hooks: Hooks) -> None:
        self.hooks = SessionHooks(core, configured_hooks)
        self._slash_command = HooksSlashCommand(core, self.hooks)

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [
            SlashCommand(
                "hooks",
                "Show the hooks and their state, or approve one",
                lambda part, arguments: part.answer(arguments),
                "[approve NUMBER]",
            )
        ]

    async def answer(self, arguments: str) -> None:
        """Answer `/hooks` with those arguments."""
        await self._slash_command.carry_out(arguments)

    def listen_to_prompt(self) -> PromptListener:
        return _PromptHooks(self.hooks)

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        listener = HookListener(self.hooks, run.turn_id, run.task)
        return {"over": [HookEnding(listener)], "calls": [listener]}

    def program_files(self) -> Iterable[tuple[Path, str]]:
        return [(path, "a hook runs this file") for path in self.hooks.program_files()]

    async def stop(self) -> None:
        await self.hooks.end()


class _PromptHooks(PromptListener):
    def __init__(self, hooks: SessionHooks) -> None:
        self._hooks = hooks
        self.calls = self._listener = HookListener(hooks, None, "")

    async def begin(self) -> str:
        return await self._hooks.begin()

    async def on_words(self, words: str, *, typed: str) -> str:
        return await self._hooks.submit_prompt(words, typed=typed)

    def told(self, *, opens_turn: bool) -> None:
        self._hooks.on_prompt_told(self._listener.ending, opens_turn=opens_turn)


class DaemonHooks(DaemonPart):
    """The hooks of all sessions, and what the user has approved."""

    session_part = HooksPart

    def __init__(self, home: Home, settings: Settings, sessions: ChildSessions | None) -> None:
        super().__init__(home, settings, sessions)
        self.hooks = Hooks(home.config, home.state / "hooks.json", partial(plugin_hooks, home.plugins))

    def part_of(self, core: SessionCore) -> SessionPart:
        return HooksPart(core, self.hooks)


DAEMON_PART = DaemonHooks
