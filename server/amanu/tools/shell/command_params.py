"""The arguments of a call of `run_shell_command`, and what they ask of the user."""

from collections.abc import Iterable

from pydantic import Field

from amanu.core.command import Command
from amanu.core.tool import Blocked, Need, Params

TOOL = "run_shell_command"


class RunShellCommandParams(Params):
    command: str = Field(min_length=1)
    description: str | None = Field(default=None, description="What it does, in a short sentence for the user.")
    path: str | None = Field(default=None, description="Folder to run it in. Default: the workspace root.")
    timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="Default: 1800; at most 300 for commands that only read; no limit for others with background.",
    )
    background: bool = Field(
        default=False,
        description="Keep it running after this call and return its id; until, port, wait_s and tty are for this.",
    )
    until: str | None = Field(default=None, max_length=500, description="Return when its output matches this regex.")
    port: int | None = Field(default=None, ge=1, le=65_535, description="Return when it listens on this port.")
    wait_s: float | None = Field(
        default=None, gt=0, le=300, description="Longest wait for either. Default: 30; at most 300."
    )
    tty: bool = Field(default=False, description="Give it a terminal.")
    network: bool = Field(default=False, description="It needs the network, which is off otherwise.")
    outside: bool = Field(
        default=False,
        description="It cannot work in the sandbox: it needs a service's socket (docker), the user's keys (gh, ssh) "
        "or to write outside the workspace.",
    )
    secrets: bool = Field(default=False, description="It needs files with secrets (.env, keys), hidden otherwise.")
    reason: str | None = Field(default=None, description="Why it needs network, outside or secrets; the user is asked.")

    def with_needs(self, blocked: Blocked | None) -> "RunShellCommandParams":
        """The call, asking for what the sandbox blocked as well."""
        needs = frozenset[Need]() if blocked is None else blocked.needs
        asked: dict[str, bool] = {
            "network": self.network or "network" in needs,
            "outside": self.outside or "unsandboxed" in needs,
            "secrets": self.secrets or "secrets" in needs,
        }
        return self.model_copy(update=asked) if needs else self


def is_worth_trying(params: RunShellCommandParams, commands: Iterable[Command]) -> bool:
    """Whether a call may be tried before anybody is asked. Not one that asks for more by itself, and not what probably
    waits a minute for a network that is not there."""
    asks = params.network or params.outside or params.secrets
    return not asks and not any(command.network and not _fails_at_once(command) for command in commands)


_FAILS_AT_ONCE = frozenset({"git", "gh", "curl", "wget", "ssh", "uv"})
"""Programs that notice at once that there is no network; npm and pip try again for a minute."""


def _fails_at_once(command: Command) -> bool:
    return command.program is not None and command.program.rpartition("/")[2] in _FAILS_AT_ONCE
