"""A session folder belongs to one daemon at a time."""

import os
from pathlib import Path

import pytest

from amanu.storage import lease
from amanu_protocol.errors import AmanuError


def test_a_child_that_is_being_started_does_not_keep_a_lease(tmp_path: Path) -> None:
    """It has copies of all descriptors until it executes its program."""
    first = lease.take(tmp_path)
    copy = os.dup(first.descriptor)
    with pytest.raises(AmanuError):
        lease.take(tmp_path)
    first.release()
    lease.take(tmp_path).release()
    os.close(copy)
