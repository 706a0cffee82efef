"""Lists to choose from with arrows, narrowed by what is typed: models, efforts, sessions, checkpoints."""

import asyncio
import time
from collections.abc import Sequence
from typing import get_args

from amanu.cli.header import describe, model_info
from amanu.cli.session_lookup import session_line
from amanu.cli.text import one_line
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.cli.ui.terminal import StopRequested, Terminal
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.items import Effort

_PROMPT = "{} › "


class Pickers:
    """Each returns what was chosen, or None when the user left with Esc or there was nothing."""

    def __init__(self, view: SessionView, terminal: Terminal) -> None:
        self._view = view
        self._terminal = terminal

    async def model(self) -> str | None:
        """The id of a model."""
        answer = await self._view.client.request("amanu/model/list", r.Empty(), r.ModelListResult)
        current = self._view.state.model_id
        models = sorted(answer.models, key=lambda each: (each.model_id != current, not each.available))
        return await self._pick(
            "model",
            [
                Choice(each.model_id, describe(each), "" if each.available else one_line(each.unavailable or ""))
                for each in models
            ],
        )

    async def effort(self) -> Effort | None:
        offered = (await asyncio.to_thread(model_info, self._view.state.model_id)).efforts
        current = self._view.state.effort
        choices = [Choice(each, each, "now" if each == current else "") for each in offered]
        chosen = await self._pick("effort", choices)
        return next((each for each in get_args(Effort) if each == chosen), None)

    async def session(self, root: str) -> str | None:
        """The id of another session of that folder."""
        answer = await self._view.client.request(
            "amanu/session/list", r.SessionListParams(root=root), r.SessionListResult
        )
        others = [each for each in answer.sessions if each.session_id != self._view.session_id]
        return await self._pick("session", [Choice(each.session_id, session_line(each, 8)) for each in others])

    async def checkpoint(self, checkpoints: Sequence[r.Checkpoint]) -> str | None:
        """The arguments of `/restore`: the number of a checkpoint, newest first, and what goes back."""
        choices: list[Choice] = []
        for number, each in enumerate(checkpoints, 1):
            when = time.strftime("%H:%M", time.localtime(each.at / 1000))
            parts = [plural(len(each.files), "file")] if each.files else []
            parts += [plural(len(each.commands), "command")] if each.commands else []
            choices.append(Choice(str(number), f"{when} {one_line(each.text, 50)}", " · ".join(parts)))
        number = await self._pick("go back to before", choices)
        if number is None:
            return None
        what = [
            Choice("", "Its files", "the conversation stays"),
            Choice(" all", "Its files and the conversation", "your prompt is put back for you to edit"),
        ]
        part = await self._pick("take back", what)
        return None if part is None else number + part

    async def _pick(self, name: str, choices: Sequence[Choice]) -> str | None:
        if not choices:
            return None
        try:
            return await self._terminal.ask(
                Dialog(
                    _PROMPT.format(name),
                    choices,
                    is_picker=True,
                    valid=lambda: not self._view.client.lost.is_set(),
                )
            )
        except StopRequested:
            return None
