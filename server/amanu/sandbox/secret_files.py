"""Move secret files back to where they were. They are hidden by their names, so a command that moved one with its
folder to a harmless name would let the next command read it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.protected_scan import Identity, identity


def identities(paths: Iterable[Path]) -> dict[Path, Identity]:
    """The device and inode of each path that exists. Blocking."""
    return {path: file_identity for path in paths if (file_identity := identity(path)) is not None}


def restore_secrets(former: Mapping[Path, Identity], roots: Iterable[Path]) -> list[Path]:
    """Move back the files that were moved to names that do not look secret, and return them. Walks all of the roots
    when one is missing. Blocking."""
    missing = {file_identity: path for path, file_identity in former.items() if identity(path) != file_identity}
    back: list[Path] = []
    for root in roots if missing else ():
        for folder, below, names in os.walk(root):
            for name in (*below, *names):
                current_path = Path(folder, name)
                file_identity = identity(current_path) if missing else None
                path = None if file_identity is None else missing.pop(file_identity, None)
                if (
                    path is None
                    or protected.is_secret(current_path.relative_to(root).as_posix())
                    or os.path.lexists(path)
                ):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                current_path.rename(path)
                back.append(path)
    return back
