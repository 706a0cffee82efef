"""A line may take 16 ms of the processor: what other tests left is not looked through meanwhile."""

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """For good: `unfreeze` would give back what all tests have frozen, too (`tests/conftest.py`)."""
    gc.collect()
    gc.freeze()
