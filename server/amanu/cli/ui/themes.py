"""`/theme`: the colours of this chat and of later ones."""

import os
from collections.abc import Mapping
from typing import get_args

from amanu.cli.console import Console, RichConsole
from amanu.cli.pickers import Pickers
from amanu.cli.styles import Theme
from amanu.cli.ui.background import by_environment
from amanu.cli.ui.dialog import Choice
from amanu.cli.ui.terminal import Terminal
from amanu.client.daemon_client import DaemonClient
from amanu.config import ThemeChoice
from amanu_protocol.requests import SettingsSetParams, SettingsSetResult

_ABOUT: Mapping[ThemeChoice, str] = {
    "auto": "as the terminal's background is, if it says so; else colours that read on both",
    "dark": "for a dark background",
    "light": "for a light background",
    "plain": "no colours",
}


class Themes:
    """The theme of one chat."""

    def __init__(self, console: Console, terminal: Terminal, environ: Mapping[str, str] = os.environ) -> None:
        self._console = console
        self._terminal = terminal
        self._environ = environ
        self._chosen: ThemeChoice = "auto"

    async def use(self, chosen: ThemeChoice) -> None:
        theme = await self._of(chosen)
        self._chosen = chosen
        self._terminal.draw_in(theme)
        if isinstance(self._console, RichConsole):
            self._console.theme = theme

    async def run(self, argument: str, pickers: Pickers, client: DaemonClient) -> None:
        """The slash command. Raises `AmanuError`, and changes nothing, when the settings cannot be written."""
        names = get_args(ThemeChoice)
        choices = [Choice(each, each, ("now · " if each == self._chosen else "") + _ABOUT[each]) for each in names]
        name = await pickers.theme(choices, argument)
        if name is None:
            return
        params = SettingsSetParams(key="terminal.theme", value=name)
        await client.request("amanu/settings/set", params, SettingsSetResult)
        await self.use(next(each for each in names if each == name))
        self._console.line(("dim", f"theme {name}, in later chats as well ([terminal] theme in config.toml)"))

    async def _of(self, chosen: ThemeChoice) -> Theme:
        if self._environ.get("NO_COLOR") or not isinstance(self._console, RichConsole):
            return "plain"
        if chosen != "auto":
            return chosen
        return await self._terminal.background() or by_environment(self._environ) or "neutral"
