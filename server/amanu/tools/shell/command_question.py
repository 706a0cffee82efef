"""What the question about a command says of it."""

from collections.abc import Mapping

from amanu.core.tool import Blocked, Need
from amanu.text.display import one_line
from amanu.tools.shell.command_params import RunShellCommandParams


def short_line(command: str) -> str:
    """The first line of the command, and how many more there are."""
    first, *further_lines = command.strip().splitlines()
    short = first if len(first) <= 80 else first[:79] + "…"
    return f"{short} … and {len(further_lines)} more line{'s' * (len(further_lines) != 1)}" if further_lines else short


def request_line(params: RunShellCommandParams) -> str:
    """What the call asks the user for, to follow "It asks"."""
    requests = {
        "to run outside the sandbox": params.outside,
        "for the network": params.network and not params.outside,
        "for the workspace's files that hold secrets": params.secrets,
    }
    return " and ".join(request for request, is_requested in requests.items() if is_requested)


def background_lines(params: RunShellCommandParams) -> list[str]:
    """What there is to know of a command in the background, for the user."""
    if not params.background:
        return []
    lines = ["It keeps running after this call until it ends, you or the model stop it, or the session is closed."]
    if not (params.network or params.outside):
        lines.append("If it is a server, your browser can reach it only if you allow it with network access.")
    return lines


def blocked_line(blocked: Blocked) -> str:
    """What it lacked when it was tried, and the line that says so."""
    needs = " and ".join(lack for need, lack in _LACKS.items() if need in blocked.needs)
    return f"needs {needs} ({one_line(blocked.evidence)})"


_LACKS: Mapping[Need, str] = {
    "write": "to run on the workspace itself",
    "network": "network access",
    "unsandboxed": "access that the sandbox denies",
    "secrets": "files that hold secrets",
}
