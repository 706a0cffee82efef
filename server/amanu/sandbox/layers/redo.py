"""What is to be brought into the workspace is noted in the layer's folder first: whoever finds the layer of a daemon
that has ended finishes it. Everything here blocks.

    STATE/layers/ID/redo/*.json    what is on its way into the workspace
"""

import contextlib
import json
import os
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from amanu.sandbox.layers.apply import ApplyError, Batch, Move
from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot, left_layers
from amanu.sandbox.layers.transfer import set_executable, transfer
from amanu.system.untrusted_files import opened_folder, sync, sync_folder


@contextmanager
def noted(
    layer: Path,
    batches: Sequence[Batch] = (),
    *,
    ignored: Sequence[tuple[LayerRoot, str]] = (),
    begun: int | None = None,
    kept: Collection[str] = (),
) -> Generator[None]:
    """A context in which to apply batches and transfer ignored files: if the daemon is killed meanwhile or the power
    fails, the next daemon does it. `layer`: the layer's folder. Raises `OSError`."""
    if not (batches or ignored):
        yield
        return
    if batches:
        _sync_stored(layer, batches)
    entry = {
        "batches": [_described(batch) for batch in batches],
        "ignored": [[root.folder.name, name] for root, name in ignored],
        "begun": begun,
        "kept": [*kept],
    }
    folder = layer / "redo"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{token_hex(8)}.json"
    try:
        with path.with_suffix(".new").open("w", encoding="utf-8") as file:
            json.dump(entry, file)
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".new").rename(path)
        for each in (folder, layer, layer.parent) if batches else ():
            sync_folder(each)
    except OSError:
        path.with_suffix(".new").unlink(missing_ok=True)
        raise
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def finish_left(layers: Path) -> None:
    """Finish what daemons that have ended were bringing into the workspace."""
    with contextlib.suppress(OSError), left_layers(layers) as left:
        for folder in left:
            for path in sorted(folder.glob("redo/*.json")):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError, LayerError):
                    _finish(Layer.open(folder), json.loads(path.read_bytes()))


def _finish(layer: Layer, entry: dict[str, Any]) -> None:
    roots = {root.folder.name: root for root in layer.roots}
    for described in entry["batches"]:
        moves = [
            Move(roots[root], name, below and (below[0], below[1]), stored and Path(stored))
            for root, name, below, stored in described["moves"]
        ]
        with contextlib.suppress(ApplyError):
            Batch(described["token"], tuple(moves), described["lock"] and Path(described["lock"])).apply()
    set_executable(layer, {Path(path): is_set for path, is_set in entry.get("executable", ())})
    for root, name in entry["ignored"]:
        with contextlib.suppress(OSError, LayerError):
            transfer(roots[root], name, entry["begun"], entry.get("kept", ()))


def _sync_stored(layer: Path, batches: Sequence[Batch]) -> None:
    """Sync to disk what a note names, before the note is written. Not what git ignores: the command that made it did
    not sync it either and can make it again, and there may be a hundred thousand files of it."""
    stored = [move.stored for batch in batches for move in batch.moves if move.stored is not None]
    for path in [layer / "layer.json", *stored]:
        with opened_folder(path.parent) as folder:
            sync(path.name, folder)
    for parent in dict.fromkeys(path.parent for path in stored):
        sync_folder(parent)


def _described(batch: Batch) -> dict[str, Any]:
    return {
        "moves": [
            [move.root.folder.name, move.name, move.below, None if move.stored is None else str(move.stored)]
            for move in batch.moves
        ],
        "token": batch.token,
        "lock": None if batch.lock is None else str(batch.lock),
    }
