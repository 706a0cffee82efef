"""What a server starts and may do, in words for the user who is asked about it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.mcp.config import ServerConfig, expand
from amanu.mcp.opened_folders import OpenedFolders
from amanu.mcp.variables import UserVariables
from amanu.sandbox.sandbox import Sandbox
from amanu.text.display import visible


def target_text(config: ServerConfig, variables: UserVariables, roots: Sequence[Path]) -> str:
    """The exact command line or address. References stay where they name a secret, or what is not set. Of a workspace's
    file the values of variables are part of it: they can make a program run something else."""
    table, known = config.table, variables.shown(roots)

    def shown(text: str) -> str:
        try:
            return text if config.is_literal else expand(text, known)
        except KeyError:
            return text

    if table.url:
        return visible(shown(table.url))
    words = [shlex.quote(shown(word)) for word in (table.command, *table.args)]
    if config.root is not None:
        words = [*(f"{name}={shlex.quote(shown(value))}" for name, value in table.env.items()), *words]
    return visible(" ".join(words)) if table.command else ""


@dataclass(frozen=True)
class Reads:
    """The paths that a server reads besides what all servers see."""

    programs: Sequence[str]
    """The files of the workspace that it runs."""
    opened: OpenedFolders
    own_folder: Path | None
    """The folder it starts in, if that is outside the workspace and it may read all of it."""


def access_sentence(config: ServerConfig, sandbox: Sandbox, reads: Reads) -> str:
    """Its access, the variables and headers it gets, and what it reads."""
    sentences = [_reach(config, sandbox)]
    if folders := reads.opened.folders:
        sentences.append(
            f"It can also read {_list([str(folder) for folder in folders])}, but not the secrets in there."
        )
    if closed := reads.opened.closed:
        names = _list([str(folder) for folder in closed])
        sentences.append(f"It cannot read {names}: what it needs must be in a folder inside that.")
    access, table = config.access, config.table
    if config.kind == "stdio" and access.caches and access.sandbox:
        sentences.append(f"It can write {_list(access.caches)}.")
    if config.root is None and table.env:
        sentences.append(f"It gets the variables {_list(sorted(table.env))} as you set them.")
    if config.variables:
        sentences.append(f"It gets {_list(config.variables)} from your environment.")
    if table.headers:
        sentences.append(f"The headers {_list(sorted(table.headers))} go with each request.")
    if table.cwd:
        sentences.append(f"It starts in {table.cwd}{', and can read all of it' if reads.own_folder else ''}.")
    if programs := reads.programs:
        sentences.append(f"It runs {_list(programs)} of the workspace: you approve the content as it is now.")
    return visible(" ".join(sentences))


def _reach(config: ServerConfig, sandbox: Sandbox) -> str:
    if config.kind == "http":
        return "It is reached over the network, and receives the arguments of each call."
    access = config.access
    if not access.sandbox:
        return "Not sandboxed: it can do anything you can."
    if sandbox.proof is not None and sandbox.tier == "none":
        return sandbox.describe(access.place).summary
    writes = "can change files of the workspace" if access.writes else "can read the workspace and change nothing"
    network = "can use the network" if access.network else "has no network access"
    return f"Sandboxed: it {writes}, {network}, and sees only installed tools in your home folder."


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
