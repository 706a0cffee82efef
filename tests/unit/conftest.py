"""Fixtures that these tests share."""

import os

import pytest

from amanu.sandbox.layers import trial
from amanu.sandbox.layers.layer import Layer
from amanu.sandbox.layers.trial import InLayer

_tried: set[tuple[int, ...]] = set()
"""User, the layers' device and the roots' devices with which commands can run in a layer."""


@pytest.fixture(autouse=True)
def _one_trial_of_layers(  # pyright: ignore[reportUnusedFunction]
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Try once for each file system whether commands can run in a layer, and not again in each new session: the trial
    is a fifth of the cost of a command. `tests/sandbox/test_layers.py` tests it."""
    if request.node.get_closest_marker("layers") is None:
        return
    tries = trial._try  # pyright: ignore[reportPrivateUsage]

    async def remembered(layer: Layer, in_layer: InLayer) -> str:
        devices = [path.stat().st_dev for path in (layer.folder, *(root.path for root in layer.roots))]
        key = (os.geteuid(), *devices)
        if key in _tried:
            return ""
        fault = await tries(layer, in_layer)
        if not fault:
            _tried.add(key)
        return fault

    monkeypatch.setattr(trial, "_try", remembered)
