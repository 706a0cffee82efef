"""Words that begin with `/`: a slash command, one that does not exist, or a path, which is a prompt like any other."""

import difflib
import os
import re
from collections.abc import Sequence

from amanu.cli.text import visible

ALIASES = ("/clear", "/exit", "/resume", "/rewind")
"""Other names of slash commands, which no list has."""
ELSEWHERE = {
    "/config": "settings are in config.toml; amanu doctor says where.",
    "/init": "ask for it in a prompt: Write an AGENTS.md for this project.",
    "/login": "in a shell, amanu auth set VENDOR stores a key, and amanu auth login signs in with ChatGPT.",
    "/permissions": "in a shell, amanu policy shows the rules.",
    "/status": "/context, /cost and /running show how things stand.",
}
"""Names that other agents have for something, and what does it here."""
_SLASH_COMMAND = re.compile(r"/[\w:-]+")


def split(text: str) -> tuple[str, str]:
    """The first word, and the rest."""
    word, *rest = text.split(maxsplit=1) or [""]
    return word, "".join(rest).strip()


def is_known(word: str, slash_commands: Sequence[str]) -> bool:
    return word in slash_commands or word in ALIASES


def slash_command(text: str, slash_commands: Sequence[str]) -> str | None:
    """The slash command that a text is: one of those known, or a single `/word`. A path with words after it is none."""
    word, _, rest = text.partition(" ")
    if is_known(word, slash_commands) or (not rest and _SLASH_COMMAND.fullmatch(word)):
        return word
    return None


def unknown(text: str, slash_commands: Sequence[str]) -> str | None:
    """The first word of a prompt if it is meant as a slash command and is none. A path that is there is a prompt, and
    so is whatever no command can be named."""
    word, _ = split(text)
    if is_known(word, slash_commands) or not _SLASH_COMMAND.fullmatch(word) or os.path.lexists(word):
        return None
    return word


def why_not(word: str, slash_commands: Sequence[str]) -> str:
    """Why a slash command does nothing: it wants an argument, or there is none of that name."""
    if word in slash_commands:
        return f"{word} needs an argument; /help says which."
    if word in ELSEWHERE:
        return f"There is no command {word}: {ELSEWHERE[word]}"
    near = difflib.get_close_matches(word, slash_commands, 1, 0.75)
    return f"There is no command {visible(word)}. " + (f"Did you mean {near[0]}?" if near else "/help lists them.")
