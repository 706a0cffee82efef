"""Which variables of the user's environment a server gets."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from amanu.mcp.config import ServerConfig, expand
from amanu.mcp.opened_folders import OpenedFolders, is_reached_through, opened_folders
from amanu.mcp.process import Command, StartFailed, find_program
from amanu.sandbox.filesystem_view import home_folders
from amanu.sandbox.toolchains import visibility
from amanu.text.redaction import holds_secret, without_service_access

_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE"
)
"""What programs need to run at all, and to trust what the user's programs trust."""
_NETWORK = re.compile(r"(HTTPS?|NO|ALL)_PROXY|UV_(DEFAULT_INDEX|INDEX_URL)|npm_config_registry|PIP_INDEX_URL", re.I)
"""How the network is reached; without a password that may be in an address."""
_NEVER = re.compile(
    r"AMANU_.*|(ANTHROPIC|GEMINI|GOOGLE|OPENAI|OPENROUTER|AZURE_OPENAI)_(.*_)?(API_KEY|AUTH_TOKEN)|BASH_ENV|ENV|BASH_FUNC_.*",
    re.I,
)
"""Ours, the keys of models' services, and what makes a shell run foreign code."""


class UserVariables:
    """The user's environment."""

    def __init__(self, variables: Mapping[str, str], key_variables: Collection[str]) -> None:
        self._variables = variables
        self._keys = frozenset(key_variables)

    def is_never_passed(self, name: str) -> bool:
        return name in self._keys or _NEVER.fullmatch(name) is not None

    def values(self, roots: Sequence[Path]) -> dict[str, str]:
        """What references of a configuration may name."""
        allowed = {name: value for name, value in self._variables.items() if not self.is_never_passed(name)}
        return {**allowed, "workspaceFolder": str(roots[0]) if roots else ""}

    def shown(self, roots: Sequence[Path]) -> dict[str, str]:
        """The same without secrets, for what is shown."""
        return {name: value for name, value in self.values(roots).items() if not holds_secret(name, value)}

    def environment(self, config: ServerConfig, roots: Sequence[Path]) -> dict[str, str]:
        """The variables of a server's process. Raises `StartFailed`."""
        environment: dict[str, str] = {}
        for name, value in self._variables.items():
            if self.is_never_passed(name):
                continue
            if name in config.table.env_pass:
                environment[name] = value
            elif _PASSED.fullmatch(name) or (config.access.network and _NETWORK.fullmatch(name)):
                reduced = without_service_access(name, value)
                if reduced is not None:
                    environment[name] = reduced
        environment |= {name: self.expanded(config, value, roots) for name, value in config.table.env.items()}
        if config.root is not None and "PATH" in config.table.env:
            environment["PATH"] = _without_links(environment["PATH"], roots)
        environment.setdefault("PATH", os.defpath)
        return environment

    def expanded(self, config: ServerConfig, text: str, roots: Sequence[Path]) -> str:
        """The text with its references replaced. Raises `StartFailed`."""
        if config.is_literal:
            return text
        try:
            return expand(text, self.values(roots))
        except KeyError as error:
            name = str(error.args[0])
            if self.is_never_passed(name):
                raise StartFailed(
                    f"{config.source} refers to {name}, which is never passed on: it holds an API key for models."
                ) from None
            raise StartFailed(f"{config.source} refers to the variable {name}, which is not set.") from None

    def home(self, config: ServerConfig, roots: Sequence[Path]) -> Path:
        """The server's home folder. Raises `StartFailed`."""
        own = self.expanded(config, config.table.env.get("HOME", ""), roots)
        return Path(own or self._variables.get("HOME") or Path.home())

    def folder(self, config: ServerConfig, roots: Sequence[Path]) -> Path:
        """The folder that it works in, real; the first root where the configuration names none. Raises
        `StartFailed`."""
        cwd = self.expanded(config, config.table.cwd, roots).replace("~", str(self.home(config, roots)), 1)
        return Path(os.path.realpath((roots[0] if roots else Path("/")) / cwd))

    def command(self, config: ServerConfig, roots: tuple[Path, ...]) -> Command:
        """What to start. Blocking. Raises `StartFailed`."""
        table = config.table
        environment = self.environment(config, roots)
        home, folder = self.home(config, roots), self.folder(config, roots) if table.cwd else None
        if folder is not None and not folder.is_dir():
            raise StartFailed(f"Its working folder {folder} does not exist.")
        spelled, *arguments = self.words(config, roots)
        program = find_program(spelled, environment["PATH"], folder, roots)
        readable = tuple(path for path in (config.folder, self.own_folder(config, roots)) if path is not None)
        opened = self.opened(config, roots).folders
        return Command((program, *arguments), folder, environment, config.access, roots, home, readable, opened)

    def words(self, config: ServerConfig, roots: Sequence[Path]) -> list[str]:
        """The command and its arguments. Raises `StartFailed`."""
        table, home = config.table, self.home(config, roots)
        words = [self.expanded(config, word, roots) for word in (table.command, *table.args)]
        return [str(home / word[2:]) if word.startswith("~/") else word for word in words]

    def own_folder(self, config: ServerConfig, roots: Sequence[Path]) -> Path | None:
        """The folder outside the workspace that the user lets it start in, and read with everything in it: no other
        configuration can say so. Blocking. Raises `StartFailed`."""
        if config.kind == "http" or not config.table.cwd or config.root is not None:
            return None
        folder = self.folder(config, roots)
        is_outside = not any(folder.is_relative_to(root) for root in roots)
        is_shown = visibility(folder, home_folders(self.environment(config, roots))) == "on request"
        return folder if is_outside and is_shown else None

    def opened(self, config: ServerConfig, roots: Sequence[Path]) -> OpenedFolders:
        """The other folders outside the workspace that it may read. Blocking. Raises `StartFailed`."""
        if config.kind == "http" or not config.access.sandbox:
            return OpenedFolders()
        environment, own = self.environment(config, roots), self.own_folder(config, roots)
        words = self.words(config, roots)
        if config.table.cwd:
            words.append(str(self.folder(config, roots)))
        searched = {name: environment[name] for name in config.table.env}
        return opened_folders(words, searched, environment, roots).outside(own).outside(config.folder)


def _without_links(path: str, roots: Sequence[Path]) -> str:
    """The PATH without what the roots link to: its folders are shown to the server, and a repository could make those
    lead anywhere after it was approved."""
    return os.pathsep.join(
        folder
        for folder in path.split(os.pathsep)
        if not is_reached_through(folder, roots)
        or any(Path(os.path.realpath(folder)).is_relative_to(root) for root in roots)
    )
