"""Whatever is typed at a chat: no traceback, no dead keyboard, and the terminal as it was.

`make soak` types 10,000 keys in each state.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from support.chat_fuzz import State, fuzz
from support.running_daemon import signal_daemon
from support.sweeps import WHOLE

COUNT = 10_000 if WHOLE else 150


@pytest.fixture(autouse=True)
def daemon() -> Iterator[None]:
    yield
    signal_daemon()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("state", get_args(State))
def test_no_key_breaks_the_chat(tmp_path: Path, state: State) -> None:
    fuzzed = fuzz(tmp_path, state, seed=7, count=COUNT)
    assert "Traceback" not in fuzzed.shown and "Internal error" not in fuzzed.shown, fuzzed.shown[-6000:]
    assert fuzzed.code is not None, f"it takes no key any more: {fuzzed.shown[-3000:]}"
    assert fuzzed.is_sane
