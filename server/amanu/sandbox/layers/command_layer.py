"""A layer as one command runs in it: locked, mounted before bubblewrap, and bound over the roots. Everything here
blocks."""

import os
import stat
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.sandbox.bubblewrap import LayerBinds
from amanu.sandbox.filesystem_view import FilesystemView
from amanu.sandbox.folder_scan import scan_folder
from amanu.sandbox.layers import mount
from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot
from amanu.sandbox.toolchains import is_inside

_FOLDERS = 500
"""The most folders of an upper folder that are searched for secrets, the nearest first; as of a root."""


class CommandLayer:
    """The layer of one command. `roots`: the opened descriptors of its roots. All methods raise `LayerError`, and so
    does the constructor when a root does not belong to the layer."""

    def __init__(self, layer: Layer, lock: int, roots: Mapping[Path, int]) -> None:
        programs = mount.mount_programs()
        if programs is None:
            raise LayerError("unshare, mount or sh is missing from the system folders.")
        self._programs = programs
        self._layer = layer
        self._lock = lock
        self._roots = {path: (_root(layer, path, handle), handle) for path, handle in roots.items()}
        self._secret_folders: frozenset[Path] = frozenset()

    @property
    def handle(self) -> int:
        """What bubblewrap inherits."""
        return self._lock

    def prefix(self) -> list[str]:
        """What mounts, to stand before bubblewrap's command line."""
        roots = [(path, handle, root.folder) for path, (root, handle) in self._roots.items()]
        return mount.prefix(self._programs, mount.mount_way(), roots)

    def binds(self) -> LayerBinds:
        below = [path for root in self._roots for path in mount.mounts_below(root)]
        return LayerBinds(
            merged={path: root.merged for path, (root, _) in self._roots.items()},
            mounted=tuple(self._as_in_workspace(below)),
            secret_folders=self._secret_folders,
            lock=self._lock,
            identity=(os.geteuid(), os.getegid()) if mount.mount_way().own_user_namespace else None,
        )

    def view(self, view: FilesystemView, *, secrets: bool) -> FilesystemView:
        """What the command sees. In the roots all is writable, and stays in the layer; git's folders that lie elsewhere
        are read only. Hidden is what holds secrets in the workspace, and unless the command may read `secrets`, what
        does so in the layer alone. To hide a path that the layer does not show would create it there."""
        roots = () if secrets else [root for root, _ in self._roots.values()]
        new = {path: is_folder for root in roots for path, is_folder in _new_secrets(root)}
        new |= dict.fromkeys(self._as_in_workspace(self._changed(view.shown_secrets)), False)
        self._secret_folders = frozenset(path for path, is_folder in new.items() if is_folder)
        gits = {folder for git_dirs in view.protected.repositories for folder in (git_dirs.folder, git_dirs.common)}
        outside = [path for path in view.writable if path not in gits and not is_inside(path, self._roots)]
        return replace(
            view,
            roots=tuple(self._roots),
            writable=(*outside, *(path for path in self._roots if path in view.writable)),
            read_only=tuple(path for path in view.read_only if not is_inside(path, self._roots)),
            guarded=(),
            secret=(*self._as_in_workspace(view.secret), *new),
            workspace_secrets=(*view.workspace_secrets, *new),
            sockets=tuple(self._as_in_workspace(view.sockets)),
        )

    def _changed(self, paths: Iterable[Path]) -> list[Path]:
        """Those that are another file in the layer than in the workspace, such as unsaved text."""
        roots = [root for root, _ in self._roots.values()]
        return [
            path
            for root in roots
            for path in paths
            if path.is_relative_to(root.path) and os.path.lexists(root.upper / path.relative_to(root.path))
        ]

    def shown(self, pinned: Mapping[str, bytes]) -> dict[str, bytes]:
        """Those of the pinned files that the command finds at their paths."""
        found = {*self._as_in_workspace(map(Path, pinned))}
        return {path: data for path, data in pinned.items() if Path(path) in found}

    def _as_in_workspace(self, paths: Iterable[Path]) -> list[Path]:
        """Without the paths in the roots at which the layer shows nothing, or something of another kind."""
        return [path for path in paths if not is_inside(path, self._roots) or self._has_its_kind(path)]

    def _has_its_kind(self, path: Path) -> bool:
        try:
            found = self._layer.visible(path)
        except OSError as error:
            raise LayerError(f"The layer's {path} cannot be read: {error.strerror}.") from None
        try:
            return found is not None and stat.S_IFMT(found.st_mode) == stat.S_IFMT(path.lstat().st_mode)
        except OSError:  # it is gone from the workspace
            return False


@contextmanager
def command_layer(folder: Path, roots: Mapping[Path, int]) -> Generator[CommandLayer]:
    """The layer in that folder for a command in these opened roots, of which none is in another; locked until the
    context is left and the command has ended. Raises `LayerError`."""
    layer = Layer.open(folder)
    with layer.locked() as lock:
        yield CommandLayer(layer, lock, roots)


def _new_secrets(root: LayerRoot) -> Iterator[tuple[Path, bool]]:
    """What holds secrets in the layer, judged by its name, and is not there in the workspace: an earlier command may
    have copied it. With each path, in the workspace, whether it is a folder."""
    todo, visited = deque([root.upper]), 0
    while todo and visited < _FOLDERS:
        visited += 1
        folder = scan_folder(str(todo.popleft()))
        for name in folder.perhaps_secret:
            path, inside = Path(name), os.path.relpath(name, root.upper)
            mode = path.lstat().st_mode
            if not protected.is_secret(inside) or os.path.lexists(root.path / inside):
                continue
            is_environment = stat.S_ISDIR(mode) and (path / "pyvenv.cfg").is_file()
            is_harmless = stat.S_ISREG(mode) and path.name == ".npmrc" and not protected.npmrc_holds_token(name)
            if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and not (is_environment or is_harmless):
                yield root.path / inside, stat.S_ISDIR(mode)
        todo += map(Path, folder.below)


def _root(layer: Layer, path: Path, handle: int) -> LayerRoot:
    opened = os.fstat(handle)
    for root in layer.roots:
        if root.path == path and root.identity == (opened.st_dev, opened.st_ino):
            return root
    raise LayerError(f"The layer is not of the folder that is now {path}.")
