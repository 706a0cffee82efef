"""Which of the files that a line runs are changed by the line itself."""

from collections.abc import Sequence
from pathlib import PurePath

from amanu.core.command import Command
from amanu.shell.call import names

_PACKAGE_MANAGERS = names("npm pnpm yarn bun")
_ONLY_RUN = names("run run-script test t start stop restart exec x dlx")
_REWRITE = {
    "cargo": names("add remove rm fix init"),
    "pre-commit": names("autoupdate"),
    "git": names("checkout switch restore stash pull merge rebase reset cherry-pick revert apply am clean mv rm"),
}
_MANIFESTS = {"cargo": names("Cargo.toml Cargo.lock"), "pre-commit": names(".pre-commit-config.yaml")}


def rewritten(commands: Sequence[Command]) -> frozenset[str]:
    """The files these commands run that one of them also changes: a package manager its manifest, git anything in the
    tree. Such files cannot be pinned to the content that was approved, since the line must be able to write them."""
    runs = frozenset(path for command in commands for path in command.runs)
    return frozenset(path for path in runs if any(_rewrites(command, PurePath(path).name) for command in commands))


def _rewrites(command: Command, file: str) -> bool:
    argv = [word or "" for word in command.words] + ["", ""]
    program = argv[0].rsplit("/", 1)[-1]
    if program in _PACKAGE_MANAGERS:
        return file == "package.json" and argv[1] not in _ONLY_RUN
    rewrites = any(word in _REWRITE.get(program, ()) for word in argv[1:])
    return rewrites and (program not in _MANIFESTS or file in _MANIFESTS[program])
