"""Which commands need something that the sandbox hides, such as the user's keys or the socket of a service: network
access alone would not be enough."""

import re
from collections.abc import Iterable, Sequence

from amanu.core.command import Command
from amanu.shell.call import names

_PROGRAMS = names("ssh scp sftp gh glab docker podman kubectl helm aws gcloud az twine")
_SSH = re.compile(r"ssh://|[\w.+-]+@[\w.-]+:(?!//)")
_SSH_REMOTE = re.compile(r"ssh://|(?!file:)[\w.@+-]+:(?!//)")
"""An address as git understands it, where only an address can stand: its host may be a name from the user's
settings."""
_HTTP = re.compile(r"https?://(?![^/@]+:[^/@]+@)")
"""Without a password in it."""


def logs_in(commands: Iterable[Command], remotes: Sequence[str]) -> bool:
    """Whether one of the commands probably does. `remotes`: the addresses of the repository's remotes."""
    return any(_logs_in(command, remotes) for command in commands)


def _logs_in(command: Command, remotes: Sequence[str]) -> bool:
    program, *words = [word or "" for word in command.words[command.assigned :]] or [""]
    if program in _PROGRAMS:  # by its bare name: the workspace may have another of that name
        return True
    if not (command.git and command.network):
        return False
    named = [word for word in words if "://" in word or _SSH.match(word)]
    if any(map((_SSH if named else _SSH_REMOTE).match, named or remotes)):
        return True
    return "push" in words and any(map(_HTTP.match, named or remotes))
