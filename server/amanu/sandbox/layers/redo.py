"""Notes of files that git ignores, on their way from a layer into the workspace. A note is in the layer's folder before
the first file moves, and the next daemon finishes what one that has ended left. Everything here blocks.

    STATE/layers/ID/redo/*.json    what is on its way into the workspace
"""

import contextlib
import json
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot, left_layers
from amanu.sandbox.layers.old_notes import finish_old
from amanu.sandbox.layers.transfer import transfer


@contextmanager
def noted(
    layer: Path, ignored: Sequence[tuple[LayerRoot, str]], *, begun: int | None = None, kept: Collection[str] = ()
) -> Generator[None]:
    """A context in which to transfer ignored files: if the daemon is killed meanwhile, the next one transfers the rest.
    Neither the note nor the files are synced: the command that made the files can make them again. `layer`: the
    layer's folder; `begun`, `kept`: as in `transfer`. Raises `OSError`."""
    entry = {"ignored": [[root.folder.name, name] for root, name in ignored], "begun": begun, "kept": [*kept]}
    folder = layer / "redo"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{token_hex(8)}.json"
    try:
        path.with_suffix(".new").write_text(json.dumps(entry), encoding="utf-8")
        path.with_suffix(".new").rename(path)
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
                with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, LayerError):
                    _finish(Layer.open(folder), json.loads(path.read_bytes()))


def _finish(layer: Layer, entry: dict[str, Any]) -> None:
    finish_old(layer, entry)
    roots = {root.folder.name: root for root in layer.roots}
    for root, name in entry["ignored"]:
        with contextlib.suppress(OSError, LayerError):
            transfer(roots[root], name, entry["begun"], entry.get("kept", ()))
