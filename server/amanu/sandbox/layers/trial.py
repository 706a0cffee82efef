"""Find out whether commands in these roots can run in a layer, by running one that creates a file and a folder and
opens a file for writing. File systems, owners, containers and kernels forbid it in too many ways to ask for each."""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from secrets import token_hex

from amanu.core import protected_paths as protected
from amanu.sandbox.layers.changes import read_changes
from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot, explained, outermost_roots, refusal
from amanu.sandbox.layers.mount import mount_programs, mount_way, mounts_below
from amanu.sandbox.layers.upper import make_opaque, make_whiteout
from amanu.sandbox.self_test import Launch
from amanu.storage.errors import is_full
from amanu.system.tasks import kill, start_process
from amanu.system.untrusted_files import opened_folder

InLayer = Callable[[Sequence[str], Path, Sequence[Path]], AbstractAsyncContextManager[Launch]]
"""Command line, folder of a layer, roots → how to start it in that layer."""

_SECONDS = 10.0
_SAID = 300  # characters of what the command said when it failed
_SMALL = 1 << 20
_LOOKED_AT = 200  # entries of a root, to find a small file
_SCRIPT = """
set -e
name=$1
shift
while [ $# -gt 0 ]; do
  cd "$1"
  : > "$name"
  mkdir "$name.d"
  : > "$name.d/x"
  if [ -n "$2" ]; then : >> "$2"; fi
  shift 2
done
"""
"""Creates, and opens for writing; it deletes and overwrites nothing, whatever it might run in."""


async def layer_fault(layers: Path, roots: Sequence[Path], in_layer: InLayer) -> str:
    """Why commands in these roots, which are real paths, cannot run in a layer with its files in `layers`, as a
    sentence; "" when they can. Some 0.1 s. Raises `LayerError` when the disk is full."""
    outermost = outermost_roots(roots)
    try:
        if fault := await asyncio.to_thread(_static_fault, layers, outermost):
            return fault
        layer = await asyncio.to_thread(Layer.create, layers, outermost)
        try:
            return await _try(layer, in_layer)
        finally:
            await asyncio.to_thread(layer.remove)
    except LayerError as error:
        return str(error)
    except (OSError, TimeoutError) as error:
        if is_full(error):
            raise LayerError(explained(error)) from None
        return f"A layer could not be tried: {error or type(error).__name__}."


def _static_fault(layers: Path, roots: Sequence[Path]) -> str:
    if fault := refusal(layers, roots):
        return fault
    if mount_programs() is None:
        return "unshare, mount or sh is missing from the system folders."
    if not mount_way().own_user_namespace:
        return ""
    for root in roots:
        if below := mounts_below(root):
            return f"{below[0]} is a mount point, so only root can make a layer over {root}."
        status = root.stat()
        if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            return f"{root} belongs to another user or group, so only root can make a layer over it."
    return ""


async def _try(layer: Layer, in_layer: InLayer) -> str:
    name = f".amanu-{token_hex(8)}"
    small = await asyncio.to_thread(lambda: {root.path: _small_file(root.path) for root in layer.roots})
    pairs = [part for path, file in small.items() for part in (str(path), file)]
    argv = ["/bin/sh", "-c", _SCRIPT, "amanu", name, *pairs]
    failed = await _run(argv, layer, in_layer)
    if failed:
        return failed
    return await asyncio.to_thread(_judge, layer, name, small)


async def _run(argv: Sequence[str], layer: Layer, in_layer: InLayer) -> str:
    """Why it failed, as a sentence; "" when it did not."""
    async with in_layer(argv, layer.folder, [root.path for root in layer.roots]) as launch, asyncio.timeout(_SECONDS):
        process = await start_process(
            kill,
            *launch.argv,
            env=launch.environment,
            cwd=launch.folder,
            pass_fds=launch.pass_fds,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, errors = await process.communicate()
        except BaseException:
            await kill(process)
            raise
    if process.returncode == 0:
        return ""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    if any(os.strerror(errno.ENOSPC) in line for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    said = lines[0] if lines else f"exit code {process.returncode}"
    return f"Commands cannot run in a layer here: {said[:_SAID].rstrip('.')}."


def _judge(layer: Layer, name: str, small: dict[Path, str]) -> str:
    expected = {(name, "file"), (f"{name}.d", "folder"), (f"{name}.d/x", "file")}
    for root in layer.roots:
        if os.path.lexists(root.path / name):
            return f"A command in a layer wrote to the workspace: {root.path / name}. Remove that file."
        found = {(change.path, change.kind) for change in read_changes(root, limit=10).found}
        copied = not small[root.path] or os.path.lexists(root.upper / small[root.path])
        if found != expected or not copied:
            return f"What commands change in {root.path} cannot be read back from a layer."
        if fault := _cannot_hide(root, f"{name}.d"):
            return fault
    return ""


def _cannot_hide(root: LayerRoot, folder: str) -> str:
    """Why the layer's file system cannot store what hides files of the workspace, as a sentence."""
    with opened_folder(root.upper) as upper, opened_folder(folder, upper) as made:
        try:
            make_opaque(made)
            make_whiteout("gone", made)
        except OSError as error:
            if is_full(error):
                raise
            return f"The file system of {root.folder} cannot store deletions: {error.strerror}."
    return ""


def _small_file(root: Path) -> str:
    """The name of a file in the root that any command may write; "" when the first ones are no such files."""
    with os.scandir(root) as entries:
        for _, entry in zip(range(_LOOKED_AT), entries, strict=False):
            if entry.is_file(follow_symlinks=False) and not protected.is_secret(entry.name):
                status = entry.stat(follow_symlinks=False)
                ours = (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()) or os.geteuid() == 0
                if ours and status.st_size <= _SMALL and status.st_mode & 0o200:
                    return entry.name
    return ""
