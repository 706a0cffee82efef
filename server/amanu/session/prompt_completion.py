"""Completes what the user types in a prompt: slash commands and mentions."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from amanu.context import slash_commands
from amanu.context.editor import EditorContext
from amanu.core.session_part import SlashCommand
from amanu.session.daemon_part import DaemonPart
from amanu.session.mention_completion import MentionCompletion
from amanu.session.own_parts import OwnParts
from amanu.session.services import Services
from amanu.session.session import Session
from amanu.session.skills import user_slash_commands
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import (
    Command,
    CommandListParams,
    CommandListResult,
    MentionCompleteParams,
    MentionCompleteResult,
)


class SessionSource(Protocol):
    """Implemented by `sessions.Sessions`."""

    async def get(self, session_id: str) -> Session: ...


class PromptCompletion:
    """In a session, or in the folders of one that is yet to be created."""

    def __init__(self, services: Services, sessions: SessionSource, parts: Sequence[DaemonPart]) -> None:
        self._home = services.home
        self._overlay = services.overlay
        self._sessions = sessions
        self._kinds = [*OwnParts.KINDS, *(part.session_part for part in parts)]
        self._completions: dict[tuple[Path, ...], MentionCompletion] = {}
        """Of the folders that were asked about last, before there is a session."""

    async def slash_commands(self, params: CommandListParams) -> CommandListResult:
        """The daemon's own slash commands, but for those of parts that the session has not; the user's, those of the
        session's workspace if it is trusted, skills, and prompts of MCP servers."""
        of_servers: Sequence[Command] = []
        kinds = self._kinds
        if params.session_id is not None:
            session = await self._sessions.get(params.session_id)
            listed = await asyncio.to_thread(session.composer.list_slash_commands)
            of_servers = await session.own_parts.mcp.prompt_commands()
            kinds = [kind for kind in kinds if session.core.parts.find(kind) is not None]
        else:
            listed = await asyncio.to_thread(user_slash_commands, self._home)
        of_parts = [_listed(command) for kind in kinds for command in kind.slash_commands()]
        built_in = [*slash_commands.BUILT_IN, *of_parts]
        taken = {command.name for command in built_in}
        listed = [command for command in listed if command.name not in taken]
        return CommandListResult(commands=[*built_in, *listed, *of_servers])

    async def mention(
        self, params: MentionCompleteParams, editor: EditorContext | None = None
    ) -> MentionCompleteResult:
        """What the mention at the end of a text may become. `editor`: what the client's user sees."""
        used: list[str] = []
        if params.session_id is not None:
            session = await self._sessions.get(params.session_id)
            completion = session.mentions
            changed = [file.path for proposal in reversed(session.state.proposals) for file in proposal.files]
            used = [*changed, *map(str, reversed(session.core.workspace.shown_files.files))]
        else:
            roots = tuple(Path(root) for root in params.roots if Path(root).is_absolute())
            if not roots:
                return MentionCompleteResult(typed="", items=[])
            if roots not in self._completions:  # the next key asks again
                self._completions = {
                    roots: MentionCompletion(Workspace(roots, self._overlay, private=self._home.private))
                }
            completion = self._completions[roots]
        return await completion.complete(params.text, terminal=params.terminal, editor=editor, used=used)


def _listed(command: SlashCommand) -> Command:
    return Command(
        name=command.name, description=command.description, argument_hint=command.argument_hint, source="daemon"
    )
