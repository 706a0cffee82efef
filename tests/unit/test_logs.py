"""The log: private, rotated, without keys, without endless lines."""

import logging
import stat
from collections.abc import Iterator

import pytest

from amanu import logs
from amanu.home import Home, find_home


@pytest.fixture
def home() -> Iterator[Home]:
    """A home that is logged into; afterwards logging is as before."""
    root = logging.getLogger()
    before = (root.handlers, root.level)
    levels = {name: logging.getLogger(name).level for name in ("amanu", "pygls")}
    yield find_home().make()
    for handler in root.handlers:
        if handler not in before[0]:
            handler.close()
    root.handlers, root.level = before
    logging.captureWarnings(False)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing to hide: tokens 12, a key is pressed", "nothing to hide: tokens 12, a key is pressed"),
        ("ANTHROPIC_API_KEY=sk-ant-api03-abcdef", "ANTHROPIC_API_KEY=[hidden]"),
        ('{"x-api-key": "abcdef123456"}', '{"x-api-key": "[hidden]"}'),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [hidden]"),
        ("'authorization': 'Basic abcdef123456'", "'authorization': 'Basic [hidden]'"),
        ("sent bearer abcdef123456.x", "sent bearer [hidden]"),
        ("https://h/v1?key=abcdef123456&alt=sse", "https://h/v1?key=[hidden]&alt=sse"),
        ("x-goog-api-key: AIzaSyAbcdefghijklmnopqrstuvwx", "x-goog-api-key: [hidden]"),
        ("the key AIzaSyAbcdefghijklmnopqrstuvwx failed", "the key [hidden] failed"),
        ("the key sk-proj-abcdef-ghijkl failed", "the key [hidden] failed"),
        ("ghp_abcdefghijklmnopqrstuvwxyz", "[hidden]"),
        ("password = hunter22", "password = [hidden]"),
        ("client_secret: 'abcdefgh'", "client_secret: '[hidden]'"),
    ],
)
def test_redact(text: str, expected: str) -> None:
    assert logs.redact(text) == expected


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
    assert "seen [hidden]" in text and "Bearer [hidden]" in text and "ValueError" in text
    for absent in ("below", "body", "not ours", "abcdef"):
        assert absent not in text
    assert max(map(len, text.splitlines())) < logs.LINE + 100
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_rotation_and_tail(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SIZE", 2000)
    path = logs.start(home, "info")
    for number in range(300):
        logging.getLogger("amanu").info("number %d.", number)
    files = sorted(home.logs.iterdir())
    assert [file.name for file in files] == ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size <= 2000 for file in files)
    last = logs.tail(home, 50)
    assert [line.rpartition(" ")[2] for line in last] == [f"{number}." for number in range(250, 300)]
    assert path.exists() and len(logs.tail(home, 10_000)) < 300
    text = logs.collect(home, 3)
    assert text.startswith("amanu ") and text.count("number") == 3


def test_no_log_yet(home: Home) -> None:
    assert logs.tail(home, 5) == []
    assert str(logs.log_file(home)) in logs.collect(home)
