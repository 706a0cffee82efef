"""Rules for the folders from which git runs hooks, where its settings name one inside the workspace: writing there is
asked about, as it is for `.git`."""

import os
from collections.abc import Sequence
from pathlib import Path

from amanu.core.rules import Rule, RuleTable
from amanu.permissions.matching import escape_glob
from amanu.sandbox.git_dirs import HOOKS, hooks_folders, repository_of, settings_files
from amanu.system.file_stamp import file_stamp

_REASON = "git runs the hooks in this folder"


class GitHookRules:
    """The rules of one session. They are made again when the settings have changed."""

    def __init__(self) -> None:
        self._seen: object = None
        self._rules: tuple[Rule, ...] = ()

    def rules(self, roots: Sequence[str]) -> tuple[Rule, ...]:
        """Blocking, for an instant: it looks whether a few files are the same."""
        home = Path.home()
        repositories = {(real := Path(os.path.realpath(root))): repository_of(real) for root in roots}
        files = [file for found in repositories.values() if found is not None for file in settings_files(found, home)]
        if self._seen != (seen := [*repositories.values(), *map(file_stamp, files)]):
            globs = dict.fromkeys(
                glob
                for root, found in repositories.items()
                for folder in (() if found is None else hooks_folders(found, home))
                for glob in _globs(root, folder)
            )
            self._rules = tuple(
                RuleTable(decision="mustAsk", tool="@write", path=glob, reason=_REASON).rule("built in")
                for glob in globs
            )
            self._seen = seen
        return self._rules


def _globs(root: Path, folder: Path) -> Sequence[str]:
    """The hooks in that folder, as a rule of that root names them."""
    if folder == root or folder in root.parents:
        return HOOKS if folder == root else ()
    if root not in folder.parents:
        return ()
    path = escape_glob(folder.relative_to(root).as_posix())
    return path, f"{path}/**"
