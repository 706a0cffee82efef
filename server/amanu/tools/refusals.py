"""What of a failed command's output looks like the sandbox's doing, and what the model can do about it."""

import re
from collections.abc import Sequence

from amanu_protocol.items import Walls

_TAIL = 20_000  # characters; what went wrong stands at the end
_NETWORK = re.compile(
    r"network is unreachable|could not resolve host|temporary failure in name resolution|name or service not known"
    r"|\b(EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|no address associated with hostname|dns error|failed to lookup address"
    r"|failed to establish a new connection|no such host|unable to access 'https?://|network unreachable",
    re.IGNORECASE,
)
_WRITING = re.compile(
    r"read-only file system|permission denied|device or resource busy|\b(EROFS|EACCES|EBUSY)\b", re.IGNORECASE
)
_OTHER = re.compile(r"operation not permitted|\bEPERM\b", re.IGNORECASE)
_SET_UP = re.compile(r"^(bwrap: |The sandbox could not be set up)", re.MULTILINE)


def hint(output: str, walls: Walls, held: Sequence[str] = ()) -> str | None:
    """A line for the model, or None when the failure has nothing to do with the sandbox. `held`: names of files that
    stay as they were approved while it runs."""
    if walls.tier == "none":
        return None
    said = output[-_TAIL:]
    if _SET_UP.search(said):
        return "[The sandbox could not be set up for this command; tell the person, who can allow it without one.]"
    if not walls.network and _NETWORK.search(said):
        return "[There is no network in the sandbox. If it is needed, call again and say so: the person can allow it.]"
    if _WRITING.search(said):
        refused = "\n".join(line for line in said.splitlines() if _WRITING.search(line))
        if walls.tier == "bubblewrap" and (named := [each for each in held if each in refused]):
            return (
                f"[{', '.join(named)}: what a command runs stays as it was approved until the command has ended, so it "
                "cannot change that itself. If it must, call again and say so: the person can allow it without a "
                "sandbox. Or change the file with the edit tools.]"
            )
        if walls.writes == "nothing":
            return "[It ran in a sandbox where nothing can be written, for it was judged to have no effect.]"
        if walls.tier == "landlock":
            return (
                "[It ran in a sandbox: only what is in the workspace can be written, nothing new at its top, not git's "
                "files. If that is needed, call again and say so: the person can allow it without a sandbox.]"
            )
        return (
            "[It ran in a sandbox: outside the workspace, and in git's, editors' and agents' own settings, nothing can "
            "be written. If that is needed, call again and say so: the person can allow it without a sandbox.]"
        )
    if _OTHER.search(said):
        return "[It ran in a sandbox, which refuses some system calls (ptrace, mount, namespaces).]"
    return None
