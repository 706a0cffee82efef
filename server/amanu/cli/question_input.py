"""What is typed at a question: an answer, or a command of the chat, which is never an answer."""

import re
from collections.abc import Awaitable, Callable, Sequence

from amanu.cli.console import Console
from amanu.cli.review_prompt import Preview, UserInput

WHILE_WAITING = (
    "/audit",
    "/cancel",
    "/checkpoints",
    "/context",
    "/diff",
    "/exit",
    "/help",
    "/jobs",
    "/memory",
    "/notes",
    "/queue",
    "/quit",
    "/todos",
    "/unqueue",
)
"""Commands that neither ask anything nor change what is asked about."""
_COMMAND = re.compile(r"/[\w-]+")


class QuestionInput:
    """A user at a question. `commands` are all that the chat knows now; `run` performs one."""

    def __init__(
        self,
        user_input: UserInput,
        console: Console,
        commands: Sequence[str],
        run: Callable[[str], Awaitable[None]],
    ) -> None:
        self._user_input = user_input
        self._console = console
        self._commands = commands
        self._run = run

    async def ask(
        self,
        question: str,
        *,
        default: str = "",
        valid: Callable[[], bool],
        preview: Preview | None = None,
        again: Callable[[], None] | None = None,
        roots: Sequence[str] = (),
    ) -> str | None:
        """See `UserInput`. Commands are run, and `?` shows the choices: then it is asked again."""
        while True:
            answer = await self._user_input.ask(question, default=default, valid=valid, preview=preview, roots=roots)
            if answer is None:
                return None
            if answer != "?":
                word = command_word(answer, self._commands)
                if word is None:
                    return answer
                await self._perform(word, answer)
            if not valid():
                return None
            if again is not None:
                again()

    async def edit(self, text: str, suffix: str) -> str | None:
        return await self._user_input.edit(text, suffix)

    async def _perform(self, word: str, answer: str) -> None:
        if word in WHILE_WAITING and word in self._commands:
            await self._run(answer)
        elif word in self._commands:
            self._console.line(("yellow", f"{word} must wait until the question is answered. Nothing was sent."))
        else:
            self._console.line(("yellow", f"There is no command {word}. Nothing was sent; /help lists the commands."))


def command_word(text: str, commands: Sequence[str]) -> str | None:
    """The command that a text is: one of those known, or a single `/word`. A path with words after it is none."""
    word, _, rest = text.partition(" ")
    if word in commands or (not rest and _COMMAND.fullmatch(word)):
        return word
    return None
