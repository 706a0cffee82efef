"""Hints for the model: which part of a failed command's output looks like the sandbox's doing, and what to do next."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from amanu.sandbox.denials import NETWORK
from amanu.tools.shell.blocked import HIDING, REFUSED, SERVICE, missed_paths
from amanu.tools.shell.report import CommandEnd
from amanu_protocol.items import CommandSandbox

_TAIL = 20_000  # characters at the end, where errors usually are
_WRITING = re.compile(
    r"read-only file system|permission denied|device or resource busy|\b(EROFS|EACCES|EBUSY)\b", re.IGNORECASE
)
_OTHER = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_MISSING = re.compile(
    r"""([^\s:'"‘’]+)['"’]?: (?:no such file or directory|cannot execute|bad interpreter|not found)""", re.IGNORECASE
)
_MAX_NAMED = 3
"""Names that are looked at or listed."""
_SHOWN = tuple(map(Path, ("/usr", "/bin", "/sbin", "/opt", "/nix")))
_SET_UP = re.compile(r"^(bwrap: |The sandbox could not be set up)", re.MULTILINE)


def missing_program_hint(output: str, roots: Sequence[Path], folder: Path) -> str | None:
    """A line for the model about a program of the workspace that was "not found" although it exists: it, or the
    interpreter in its first line, is a link to a place the sandbox does not show (a virtual environment of an
    interpreter outside the usual folders). Such places are not shown automatically, because a repository could name any
    place. Blocking."""
    for name in list(dict.fromkeys(_MISSING.findall(output[-_TAIL:])))[:_MAX_NAMED]:
        path = Path(os.path.normpath(folder / name))
        if not _inside(path, roots):
            continue  # else a command could ask what there is elsewhere
        for program in _program_and_interpreter(path):
            real = Path(os.path.realpath(program))
            if not _inside(real, (*roots, *_SHOWN)) and real.is_file():
                return (
                    f"[{name} needs {real}, which the sandbox hides. The user can show its folder to all commands "
                    "(`read` under [sandbox] in their config.toml), or allow this one to run outside. "
                    f"{_RETRY_OUTSIDE}]"
                )
    return None


def hidden_hint(output: str, end: CommandEnd, *, read_only: bool) -> str | None:
    """A line for the model about paths that it was told are missing, and that the sandbox hides."""
    missed = missed_paths(end.hidden, output[-_TAIL:].splitlines(), failed=end.failed)
    if not missed:
        return None
    names = ", ".join(named.spelled for named in missed[:_MAX_NAMED])
    they_are = "It exists" if len(missed) == 1 else "They exist"
    advice = "No command can see it in this mode." if read_only else _RETRY_OUTSIDE
    return f"[{names}: hidden by the sandbox, not missing. {they_are}. {advice}]"


def _program_and_interpreter(path: Path) -> Iterable[Path]:
    """The program, and the interpreter its first line names."""
    yield path
    try:
        with path.open("rb") as file:
            first = file.readline(300)
    except OSError:
        return
    if first.startswith(b"#!") and (shebang := os.fsdecode(first[2:]).split()) and os.path.isabs(shebang[0]):  # noqa: PTH117
        yield Path(shebang[0])


def _inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def network_hint(*, read_only: bool) -> str:
    """A line for the model and the user about a command that tried the network and had none, however it ended."""
    advice = "No command has it in this mode." if read_only else _retry_with("network")
    return f"[The command tried to use the network, which its sandbox does not have. {advice}]"


def denial_hint(
    output: str,
    sandbox: CommandSandbox,
    protected: Sequence[str] = (),
    unseen: Sequence[str] = (),
    *,
    tried_network: bool = False,
) -> str | None:
    """A line for the model, or None when the failure has nothing to do with the sandbox. `protected`: names of files
    that stay as they were approved while the command runs; `unseen`: paths of files with secrets that it could not
    read; `tried_network`: `network_hint` is there already."""
    if sandbox.tier == "none":
        return None
    tail = output[-_TAIL:]
    hiding = "\n".join(line for line in tail.splitlines() if HIDING.search(line))
    if secret := [path for path in unseen if os.path.basename(path) in hiding]:  # noqa: PTH119
        names = ", ".join(secret[:_MAX_NAMED])
        return f"[{names}: files with secrets are hidden unless the user allows them. {_retry_with('secrets')}]"
    if _SET_UP.search(tail):
        return f"[The sandbox could not be set up for this command. {_RETRY_OUTSIDE}]"
    if SERVICE.search(tail):
        return (
            "[The command ran in a sandbox that hides keys and tokens in the user's home folder and the sockets of "
            f"services. {_RETRY_OUTSIDE}]"
        )
    if not sandbox.network and not tried_network and (NETWORK.search(tail) or REFUSED.search(tail)):
        return f"[The sandbox has no network access. {_retry_with('network')}]"
    if _WRITING.search(tail):
        return f"[{_write_hint(tail, sandbox, protected, unseen)}]"
    if _OTHER.search(tail):
        return f"[The sandbox blocks some system calls (ptrace, mount, namespaces). {_RETRY_OUTSIDE}]"
    return None


def _write_hint(tail: str, sandbox: CommandSandbox, protected: Sequence[str], unseen: Sequence[str]) -> str:
    refused = "\n".join(line for line in tail.splitlines() if _WRITING.search(line))
    if sandbox.tier == "bubblewrap" and (named := [path for path in protected if path in refused]):
        return (
            f"{', '.join(named)}: a command cannot change the files it runs, because they must stay as they were "
            f"approved. Change them with the edit tools. {_RETRY_OUTSIDE}"
        )
    if sandbox.writes == "nothing":
        return f"The command was judged read-only, so nothing can be written in its sandbox. {_RETRY_OUTSIDE}"
    if sandbox.tier == "landlock" and unseen:
        names = ", ".join(unseen[:_MAX_NAMED])
        return (
            f"The sandbox hides files with secrets ({names}), and nothing new can be created in their folders and the "
            f"folders above. {_retry_with('secrets')}"
        )
    protected_places = "outside the workspace"
    if sandbox.tier != "landlock":
        protected_places += " or in the settings of git, editors and agents"
    return f"The command ran in a sandbox where nothing can be written {protected_places}. {_RETRY_OUTSIDE}"


def _retry_with(argument: str) -> str:
    return f"If the command needs this, call again with {argument}=true and a reason; the user is asked."


_RETRY_OUTSIDE = _retry_with("outside")
