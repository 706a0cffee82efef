"""A file that was hidden because of its name stays where it is: brought under a harmless name with the folder above it,
the next command would read it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.protected_scan import Identity, identity


def identities(paths: Iterable[Path]) -> dict[Path, Identity]:
    return {path: known for path in paths if (known := identity(path)) is not None}


def bring_back(before: Mapping[Path, Identity], roots: Iterable[Path]) -> list[Path]:
    """Those that have left their places for ones whose names say nothing are there again. All of the roots is looked
    through, where one is missing. Blocking."""
    missing = {known: path for path, known in before.items() if identity(path) != known}
    back: list[Path] = []
    for root in roots if missing else ():
        for folder, below, names in os.walk(root):
            for name in (*below, *names):
                place = Path(folder, name)
                found = identity(place) if missing else None
                path = None if found is None else missing.pop(found, None)
                if path is None or protected.is_secret(place.relative_to(root).as_posix()) or os.path.lexists(path):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                place.rename(path)
                back.append(path)
    return back
