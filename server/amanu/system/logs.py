"""The daemon's log: one rotating file that only its owner can read, without message bodies and without keys.

The file is `daemon.log` in the home's log folder; its level is the setting `log_level` (`AMANU_LOG_LEVEL`). `amanu
logs` shows it; `amanu doctor --report` has its end, redacted once more.
"""

import logging
import logging.handlers
import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path

from amanu.home import Home, HomeError
from amanu.text.redaction import Secrets

MAX_SIZE = 5 * 1024 * 1024
"""Bytes of one file; 20 MB together with the `OLDER_FILES`."""
OLDER_FILES = 3
MAX_RECORD = 4000
"""Characters kept of one record: its beginning and its end, where a traceback has its message."""

CLIENT_CONNECTED = "client connected: "
"""The beginning of the record about a client, which its name follows."""

_secrets = Secrets()
"""The secrets this process knows; see `use_secrets`."""


def start(home: Home, level: str) -> Path:
    """Log to the home's file from now on. `level`: debug, info, warning or error. Returns the file. Raises
    `HomeError`."""
    path = log_file(home)
    try:
        handler = _PrivateFile(
            path, maxBytes=MAX_SIZE, backupCount=OLDER_FILES, encoding="utf-8", errors="backslashreplace"
        )
    except OSError as error:
        raise HomeError(
            f"{path} cannot be written ({error.strerror}). Set AMANU_HOME to a folder you can write to"
        ) from None
    handler.setFormatter(_Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for earlier in root.handlers:
        if isinstance(earlier, _PrivateFile):
            earlier.close()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("amanu").setLevel(level.upper())
    # pygls logs whole messages at INFO, and values at ERROR.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.captureWarnings(True)
    return path


def log_file(home: Home) -> Path:
    """The current log file; older ones have `.1`, `.2` … appended."""
    return home.logs / "daemon.log"


def tail(home: Home, lines: int) -> list[str]:
    """The last `lines` lines, oldest first, reaching into older files if necessary."""
    tail_lines: list[str] = []
    for path in _newest_first(home):
        with path.open(encoding="utf-8", errors="replace") as file:
            tail_lines = file.read().splitlines()[-(lines - len(tail_lines)) :] + tail_lines
        if len(tail_lines) >= lines:
            break
    return tail_lines


def use_secrets(secrets: Secrets) -> None:
    """Keep these secrets out of the log from now on, in addition to whatever looks like one."""
    global _secrets
    _secrets = secrets


def redact(text: str) -> str:
    """The text without known secrets and without anything that looks like one."""
    return _secrets.mask(text)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record))
        if len(text) > MAX_RECORD:
            text = f"{text[: MAX_RECORD // 2]} […] {text[-MAX_RECORD // 2 :]}"
        return text


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Readable by its owner alone, also after each rotation."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk must not end a turn: report it once on stderr and go on."""
        if not getattr(self, "_failed", False):
            self._failed = True
            print(f"amanu: cannot write {self.baseFilename}: {sys.exc_info()[1]}", file=sys.stderr)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _newest_first(home: Home) -> Iterable[Path]:
    first = log_file(home)
    for number in range(OLDER_FILES + 1):
        path = first if number == 0 else Path(f"{first}.{number}")
        if path.exists():
            yield path
