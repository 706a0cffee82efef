"""The conversation for elsewhere: its last answer in the clipboard, all of it in a file."""

import os
from pathlib import Path

from amanu.cli.console import Console
from amanu.cli.text import visible
from amanu.cli.ui.sequences import LONGEST_COPY, clipboard, write_now
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Answer, UserMessage

_SUFFIXES = {"md": ".md", "markdown": ".md", "json": ".json"}


class ConversationSlashCommands:
    """`/copy`, `/export` and `/edit`. Raise `AmanuError`."""

    def __init__(self, view: SessionView, console: Console) -> None:
        self._view = view
        self._console = console

    def copy(self) -> None:
        """The last answer, as the model wrote it."""
        answers = (item for item in reversed(self._view.state.items) if isinstance(item, Answer) and not item.agent_id)
        answer = next(answers, None)
        if answer is None:
            raise AmanuError("invalidParams", "There is no answer to copy yet.")
        write_now(clipboard(answer.text, os.environ))
        count = plural(len(answer.text), "character")
        self._console.line(("dim", f"copied: the last answer, {count}, if this terminal lets programs copy"))
        if len(answer.text.encode()) > LONGEST_COPY:
            self._console.line(("yellow", "It is long: some terminals copy none of it. /export writes it to a file."))

    async def export(self, argument: str) -> None:
        """The whole conversation in a new file: `[md | json] [FILE]`."""
        word, _, rest = argument.partition(" ")
        suffix = _SUFFIXES.get(word) or (".json" if argument.endswith(".json") else ".md")
        name = rest.strip() if word in _SUFFIXES else argument
        params = r.SessionExportParams(
            session_id=self._view.session_id, format="json" if suffix == ".json" else "markdown"
        )
        exported = await self._view.client.request("amanu/session/export", params, r.SessionExportResult)
        target = _target(name, exported.name, suffix)
        try:
            with target.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(exported.text)
        except FileExistsError:
            raise AmanuError("invalidParams", f"{target} exists. Nothing was written; choose another name.") from None
        except OSError as error:
            raise AmanuError("invalidParams", f"{target} cannot be written: {error.strerror}.") from None
        self._console.line(("dim", f"written: {visible(str(target))}"))

    def last_prompt(self) -> str:
        prompts = [item for item in self._view.state.items if isinstance(item, UserMessage)]
        if not prompts:
            raise AmanuError("invalidParams", "There is no prompt to edit yet.")
        return prompts[-1].text


def _target(name: str, stem: str, suffix: str) -> Path:
    """The file that is meant; without a name a new one here."""
    path = Path(name).expanduser() if name else Path()
    if name and not path.is_dir():
        return path.absolute()
    names = [stem, *(f"{stem}-{number}" for number in range(2, 100))]
    free = (each for each in names if not os.path.lexists(path / f"{each}{suffix}"))
    return (path / f"{next(free, stem)}{suffix}").absolute()
