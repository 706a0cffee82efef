"""Which words make a command destroy work that cannot be undone (`rm -r`, `git reset --hard`).

A rule that names only the program, or a sub-command that is mostly harmless (`git *`, `git checkout *`, `rm *`), does
not cover such a command.
"""

import re
from collections.abc import Mapping, Sequence

_WORDS: Mapping[str, str] = {
    "rm": r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive",
    "find": r"-delete",
    "shred": r".+",
    "docker": r"prune|rm|rmi",
    "podman": r"prune|rm|rmi",
    "kubectl": r"delete",
    "terraform": r"destroy",
    "gh": r"delete",
}
"""Program → words that destroy work, wherever they stand."""
_FORCE = r"-[a-zA-Z]*f[a-zA-Z]*|--force.*"
_GIT: Mapping[str, str] = {
    "clean": r"clean",
    "prune": r"prune",
    "filter-branch": r"filter-branch",
    "filter-repo": r"filter-repo",
    "restore": r"restore",
    "reset": r"--hard|--merge",
    "checkout": rf"{_FORCE}|--|\.|:/.*",
    "switch": rf"{_FORCE}|--discard-changes",
    "stash": r"drop|clear",
    "branch": rf"-[a-zA-Z]*D[a-zA-Z]*|{_FORCE}",
    "tag": rf"-[a-zA-Z]*d[a-zA-Z]*|--delete|{_FORCE}",
    "push": rf"{_FORCE}|-d|--delete|--mirror|--prune|\+.+|:.+",
    "reflog": r"expire|delete",
    "gc": r"--prune.*",
    "update-ref": r"-d|--stdin",
    "worktree": rf"{_FORCE}",
    "rm": rf"{_FORCE}",
}
"""Sub-command of git → words that destroy work."""


def destroying(words: Sequence[str | None]) -> frozenset[str]:
    """Those of the command's words that make it destroy work: none for nearly all commands. `words` begin with the
    program; None is a word that is not known before the command runs."""
    literal = [word for word in words if word is not None]
    name = literal[0].rpartition("/")[2] if literal else ""
    if name == "git":
        command = next((word for word in literal[1:] if word in _GIT), None)
        pattern = None if command is None else _GIT[command]
    else:
        pattern = _WORDS.get(name)
    return frozenset() if pattern is None else frozenset(word for word in literal[1:] if re.fullmatch(pattern, word))
