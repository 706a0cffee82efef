"""The rows below a slash command that is being typed, from what the session's daemon knows."""

import time
from collections.abc import Mapping, Sequence

from amanu.cli.slash_words import ALIASES
from amanu.cli.ui.completions import Known, Need, Row, completions, needed
from amanu.client.session_view import SessionView
from amanu_protocol import requests as r

FRESH_SECONDS = 10.0
"""A list of models, sessions or checkpoints is not asked for again within that time."""


class SlashCompletion:
    """`own` are the chat's slash commands with their descriptions."""

    def __init__(self, view: SessionView, own: Mapping[str, str]) -> None:
        self._view = view
        self._own = own
        self.daemons: Sequence[r.Command] = ()
        """Prompts that mean something of their own to the daemon."""
        self._models: r.ModelListResult | None = None
        self._sessions: r.SessionListResult | None = None
        self._checkpoints: r.CheckpointListResult | None = None
        self._learned_at: dict[Need, float] = {}

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys([*self._own, *(f"/{command.name}" for command in self.daemons)]))

    def rows(self, typed: str) -> list[Row]:
        known = Known(
            self._view.state,
            self._own,
            self.daemons,
            self._models.models if self._models is not None else (),
            self._sessions.sessions if self._sessions is not None else (),
            self._checkpoints.checkpoints[::-1] if self._checkpoints is not None else (),
        )
        return completions(typed, known)

    def taken(self, typed: str) -> str:
        """The command that Enter sends: the marked row, for a name that is not typed to its end."""
        if " " in typed or typed in ALIASES or typed in self.names:
            return typed
        rows = self.rows(typed)
        return rows[0].prompt(typed).strip() if rows and rows[0].complete else typed

    async def learn(self, typed: str) -> None:
        """Ask for what the rows need. Raises AmanuError or Disconnected."""
        need = needed(typed)
        if need is None or time.monotonic() - self._learned_at.get(need, -FRESH_SECONDS) < FRESH_SECONDS:
            return
        request = self._view.client.request
        match need:
            case "models":
                self._models = await request("amanu/model/list", r.Empty(), r.ModelListResult)
            case "sessions":
                params = r.SessionListParams(root=self._view.state.roots[0])
                self._sessions = await request("amanu/session/list", params, r.SessionListResult)
            case "checkpoints":
                checkpoints = r.CheckpointListParams(session_id=self._view.session_id)
                self._checkpoints = await request("amanu/checkpoint/list", checkpoints, r.CheckpointListResult)
        self._learned_at[need] = time.monotonic()
