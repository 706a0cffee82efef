"""The words typed at a question: an answer, or a slash command of the chat, which is never an answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from amanu.cli.console import Console
from amanu.cli.review_prompt import UserInput
from amanu.cli.slash_words import ALIASES, slash_command, why_not
from amanu.cli.text import visible
from amanu.cli.ui.dialog import Dialog
from amanu.client.daemon_client import Disconnected

WHILE_WAITING = (
    "/agents",
    "/audit",
    "/cancel",
    "/checkpoints",
    "/context",
    "/copy",
    "/cost",
    "/diff",
    "/exit",
    "/export",
    "/help",
    "/jobs",
    "/memory",
    "/notes",
    "/queue",
    "/quit",
    "/running",
    "/search",
    "/skills",
    "/todos",
    "/unqueue",
)
"""Slash commands that neither ask anything nor change what is asked about."""


class SlashCommands(Protocol):
    @property
    def names(self) -> Sequence[str]:
        """All that the chat knows now."""
        ...


class QuestionInput:
    """A user at a question. `run` performs a slash command; `lost` tells whether the daemon is gone, which asks."""

    def __init__(
        self,
        user_input: UserInput,
        console: Console,
        slash_commands: SlashCommands,
        run: Callable[[str], Awaitable[None]],
        lost: Callable[[], bool],
    ) -> None:
        self._user_input = user_input
        self._console = console
        self._slash_commands = slash_commands
        self._run = run
        self._lost = lost

    async def ask(self, dialog: Dialog) -> str | None:
        """See `UserInput`. Slash commands are run, and `?` shows the choices: then it is asked again. Raises
        Disconnected as soon as nobody asks any more."""
        is_asked = dialog.valid
        dialog = replace(dialog, valid=lambda: is_asked() and not self._lost())
        while True:
            answer = await self._user_input.ask(dialog)
            if self._lost():
                raise Disconnected
            chosen = next((each.label for each in dialog.choices if each.value == answer), answer)
            if answer is None or dialog.default:  # a text that is edited may begin like one
                return answer
            if answer != "?":
                word = slash_command(answer, self._slash_commands.names)
                if word is None:
                    if chosen:
                        self._console.line(("dim", f"  › {visible(chosen)}"))
                    return answer
                await self._perform(word, answer)
            dialog = replace(dialog, typed="")
            if not dialog.valid():
                return None
            if dialog.again is not None:
                dialog.again()

    async def edit(self, text: str, suffix: str) -> str | None:
        return await self._user_input.edit(text, suffix)

    async def view(self, text: str) -> None:
        await self._user_input.view(text)

    async def _perform(self, word: str, answer: str) -> None:
        known = word in self._slash_commands.names or word in ALIASES
        if known and word in WHILE_WAITING:
            await self._run(answer)
        elif known:
            self._console.line(("yellow", f"{word} must wait until the question is answered. Nothing was sent."))
        else:
            self._console.line(("yellow", f"{why_not(word, self._slash_commands.names)} Nothing was sent."))
