"""The log: private, rotated, without keys, without endless lines."""

import logging
import stat

import pytest

from amanu.home import Home, find_home
from amanu.system import logs
from amanu.text.redaction import MASK, Secrets


@pytest.fixture
def home() -> Home:
    """A home that is logged into."""
    return find_home().make()


def test_a_log(home: Home) -> None:
    path = logs.start(home, "info")
    logging.getLogger("amanu.x").info("seen sk-abcdefghijklmnop")
    logging.getLogger("amanu.x").debug("below the level")
    logging.getLogger("pygls.y").error("Sending data: the whole body")
    logging.getLogger("other").info("not ours")
    try:
        raise ValueError("Bearer abcdef123456")
    except ValueError:
        logging.getLogger("amanu.x").exception("failed")
    logging.getLogger("amanu.x").warning("x" * 100_000)
    logging.getLogger("amanu.x").warning("\ud834 a lone half")
    text = path.read_text()
    assert f"seen {MASK}" in text and f"Bearer {MASK}" in text and "ValueError" in text
    for absent in ("below", "body", "not ours", "abcdef"):
        assert absent not in text
    assert max(map(len, text.splitlines())) < logs.MAX_RECORD + 100
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_known_is_hidden(home: Home) -> None:
    secrets = Secrets()
    logs.use_secrets(secrets)
    try:
        path = logs.start(home, "info")
        secrets.learn(["an odd key"])
        logging.getLogger("amanu.x").info("it is %r", "an odd key")
        assert "an odd key" not in path.read_text() and MASK in path.read_text()
    finally:
        logs.use_secrets(Secrets())


def test_rotation_and_tail(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_SIZE", 2000)
    path = logs.start(home, "info")
    for number in range(300):
        logging.getLogger("amanu").info("number %d.", number)
    files = sorted(home.logs.iterdir())
    assert [file.name for file in files] == ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size <= 2000 for file in files)
    last = logs.tail(home, 50)
    assert [line.rpartition(" ")[2] for line in last] == [f"{number}." for number in range(250, 300)]
    assert path.exists() and len(logs.tail(home, 10_000)) < 300


def test_no_log_yet(home: Home) -> None:
    assert logs.tail(home, 5) == []
