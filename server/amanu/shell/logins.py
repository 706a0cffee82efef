"""Which commands need what the sandbox hides, the user's keys or the socket of a service: network access alone would
not do."""

import re
from collections.abc import Iterable, Sequence

from amanu.core.command import Command
from amanu.shell.call import names

_PROGRAMS = names("ssh scp sftp gh glab docker podman kubectl helm aws gcloud az twine")
_SSH = re.compile(r"ssh://|[\w.+-]+@[\w.-]+:(?!//)")
_SSH_REMOTE = re.compile(r"ssh://|(?!file:)[\w.@+-]+:(?!//)")
"""As git understands an address, where nothing else can stand: the name of a host from the user's settings, too."""
_HTTP = re.compile(r"https?://(?![^/@]+:[^/@]+@)")
"""Without a password in it."""


def logs_in(commands: Iterable[Command], remotes: Sequence[str]) -> bool:
    """Whether one of the commands probably does. `remotes`: the addresses of the repository's."""
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
