"""What the sandbox blocked, told from what a command printed: so that the user can be asked to allow it.

Only what nothing else explains counts, since a question in vain costs the user more than a failed command costs the
model, which can ask for more by itself (`denial_hints.py`).
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.core.requirements import NamedPath
from amanu.core.tool import Blocked, Need
from amanu.sandbox.denials import NETWORK, READ_ONLY
from amanu_protocol.items import CommandSandbox

_TAIL = 20_000  # characters at the end, where errors usually are
REFUSED = re.compile(r"connection refused|\bECONNREFUSED\b|couldn't connect to server", re.IGNORECASE)
_LOCAL = re.compile(r"\blocalhost\b|\b127\.0\.0\.1\b|::1\b", re.IGNORECASE)
_PORT = re.compile(r"(?:[:\]]|\bport[ =:]+)(\d{2,5})\b", re.IGNORECASE)
SERVICE = re.compile(
    r"docker daemon|\b(docker|podman|containerd|mysqld|redis)\.sock\b|\.s\.PGSQL|publickey|host key verification failed"
    r"|gh auth login|not logged in|unable to locate credentials|could not read (username|password)"
    r"|could not read from remote repository|^ssh: ",
    re.IGNORECASE | re.MULTILINE,
)
_CLIENTS = re.compile(
    r"\b(docker|podman|kubectl|helm|gh|glab|git|ssh|scp|sftp|rsync|aws|gcloud|az|psql|mysql|redis-cli|npm|cargo|twine)\b"
)
"""What may say so: any program can print such words, and must not choose what the user is asked."""
NOT_COPIED = re.compile(
    r"invalid cross-device link|\bEXDEV\b|value too large for defined data type|\bEOVERFLOW\b"
    r"|the layer could not be mounted",
    re.IGNORECASE,
)
"""What an overlay cannot do: rename a folder of the workspace, change a file of another user."""
DENIED = re.compile(r"permission denied|\bEACCES\b", re.IGNORECASE)
HIDING = re.compile(
    r"permission denied|device or resource busy|operation not permitted|can only add regular files"
    r"|unsupported file type|\b(EACCES|EBUSY|EPERM)\b",
    re.IGNORECASE,
)
"""How programs report a file with secrets: it exists, and cannot be opened."""
_MISSING = re.compile(
    r"no such|not found|cannot (access|open|stat|find|execute)|can't (open|find|read|cd)|(not|n't) exist|\bENOENT\b"
    r"|FileNotFoundError|bad interpreter|not a (valid )?(file|directory)|(unable to|could not) (open|find|read|locate)"
    r"|permission denied|\bEACCES\b",
    re.IGNORECASE,
)
"""The words in which programs report a path that is missing, or, under Landlock, one they cannot open."""
_WARNING = re.compile(r"warning|\bwarn\b", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.])/[^\s:'\"‘’“”,;]+")
_SPEAKER = re.compile(r"^\s*/\S+: ")
"""The program that prints a line, where it names itself by its path."""
_EXAMINED = 5
"""Ports looked up, and paths looked at on a line."""
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


@dataclass(frozen=True)
class Attempt:
    """How a command ran, and what it printed."""

    output: str
    failed: bool
    sandbox: CommandSandbox
    may_need_more: bool
    """It was tried, or ran on a private copy: what it could not write there, it may be able to write elsewhere."""
    command: str
    """The command line."""
    connects: bool
    """It probably needs network access, or more."""
    unseen: Sequence[str]
    """Files with secrets that it could not read, as it may have named them."""
    roots: Sequence[Path]
    """Of the workspace, as they may be named."""
    hidden: Sequence[NamedPath] = ()
    """Paths that the line names, and that exist and cannot be seen."""

    @property
    def lines(self) -> list[str]:
        return self.output[-_TAIL:].splitlines()


def find_blocked(attempt: Attempt) -> Blocked | None:
    """What the user can be asked for; None where the command did not fail, or not by the sandbox's doing. Blocking."""
    sandbox = attempt.sandbox
    if sandbox.tier == "none":
        return None
    lines = attempt.lines
    if hidden := missed_paths(attempt.hidden, lines, failed=attempt.failed):
        return _blocked("unsandboxed", f"the sandbox hides {hidden[0].path}")
    if not attempt.failed:  # a command may go on after what it could not write; a warning says that it does
        lines = [line for line in lines if not _WARNING.search(line)]
        if not attempt.connects:  # of what does, `git push | tail` ends well however the push did
            return _unwritten(attempt, lines)
    elif (secret_line := secrets_line(lines, attempt.unseen)) is not None:
        return _blocked("secrets", secret_line)
    for line in lines if _CLIENTS.search(attempt.command) else ():
        if SERVICE.search(line):
            return _blocked("unsandboxed", line)
    for line in lines if not sandbox.network else ():
        if NETWORK.search(line) or (
            REFUSED.search(line) and (_is_served(line) or (attempt.connects and not _is_own_server(line)))
        ):
            return _blocked("network", line)
    return _unwritten(attempt, lines)


def missed_paths(hidden: Iterable[NamedPath], lines: Sequence[str], *, failed: bool) -> list[NamedPath]:
    """The hidden paths that a command that printed these lines did not find."""
    found = [line for line in lines if _MISSING.search(line)]
    is_silent = failed and not any(line.strip() for line in lines)
    return [
        named
        for named in hidden
        if any(str(named.path) in line or named.spelled in line for line in found)
        or ((is_silent or named.looked_at) and not named.is_temporary)
    ]


def secrets_line(lines: Iterable[str], unseen: Sequence[str]) -> str | None:
    """The line that says that one of the hidden files cannot be opened."""
    names = [os.path.basename(path) for path in unseen]  # noqa: PTH119
    return next((line for line in lines if HIDING.search(line) and any(name in line for name in names)), None)


def _unwritten(attempt: Attempt, lines: Iterable[str]) -> Blocked | None:
    """What could not be written. Once the workspace could be, only what is outside it is the sandbox's doing."""
    pattern = DENIED if attempt.sandbox.tier == "landlock" else READ_ONLY
    for line in lines:
        if attempt.may_need_more and NOT_COPIED.search(line):
            return _blocked("write", line)
        if pattern.search(line):
            paths = _PATH.findall(_SPEAKER.sub("", line))[:_EXAMINED]
            outside = [path for path in paths if not _is_in(Path(path), attempt.roots)]
            if any(path in attempt.command for path in outside) and attempt.sandbox.tier != "landlock":
                return _blocked("unsandboxed", line)
            if attempt.may_need_more and not outside:
                return _blocked("write", line)
    return None


def _is_in(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _is_served(line: str) -> bool:
    """Whether the line names a port on which this machine listens: what refused it was the sandbox's own network."""
    ports = {int(port) for port in _PORT.findall(line)[:_EXAMINED]}
    return bool(ports & _served_ports()) if ports else False


def _is_own_server(line: str) -> bool:
    """Whether what refused it is a server of the command's own, which does not run."""
    return bool(_LOCAL.search(line) and _PORT.search(line))


def _served_ports() -> set[int]:
    ports: set[int] = set()
    for table in _TABLES:
        try:
            rows = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        fields = (row.split() for row in rows)
        ports |= {int(parts[1].rpartition(":")[2], 16) for parts in fields if parts[3] == _LISTENS}
    return ports


def _blocked(need: Need, line: str) -> Blocked:
    return Blocked(frozenset({need}), line.strip())
