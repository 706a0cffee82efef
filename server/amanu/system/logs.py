"""Where the daemon says what it does: one rotating file, private, without bodies and without keys.

The file is `daemon.log` in the home's log folder, level `log_level` of the settings (`AMANU_LOG_LEVEL`). `amanu logs`
shows it; `collect` makes the text a user can send, redacted once more.
"""

import logging
import logging.handlers
import os
import platform
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path

from amanu import __version__
from amanu.home import Home, HomeError
from amanu.text.redaction import Secrets

SIZE = 5 * 1024 * 1024
"""Bytes of one file; with `KEPT` older ones, 20 MB at most."""
KEPT = 3
LINE = 4000
"""Characters of one record that are kept, tracebacks by their end; a body that slipped into an error is no log."""

_secrets = Secrets()
"""Of this process; see `hide`."""


def start(home: Home, level: str) -> Path:
    """Log this process into the home's file from now on. `level`: debug, info, warning or error. Raises `HomeError`."""
    path = log_file(home)
    try:
        handler = _PrivateFile(path, maxBytes=SIZE, backupCount=KEPT, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise HomeError(f"{path} cannot be written ({error.strerror}); set AMANU_HOME to a folder of yours") from None
    handler.setFormatter(_Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for earlier in root.handlers:
        if isinstance(earlier, _PrivateFile):
            earlier.close()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("amanu").setLevel(level.upper())
    # pygls writes whole messages at INFO, and values at ERROR (facts/sdk.md §1.2, 12).
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    logging.captureWarnings(True)
    return path


def log_file(home: Home) -> Path:
    """The present log file; older ones have `.1`, `.2` … behind their name."""
    return home.logs / "daemon.log"


def tail(home: Home, lines: int) -> list[str]:
    """The last lines, oldest first; of the older files as far as needed."""
    tail_lines: list[str] = []
    for path in _newest_first(home):
        with path.open(encoding="utf-8", errors="replace") as file:
            tail_lines = file.read().splitlines()[-(lines - len(tail_lines)) :] + tail_lines
        if len(tail_lines) >= lines:
            break
    return tail_lines


def collect(home: Home, lines: int = 2000) -> str:
    """What a user can send with a report: version, system, and the last lines, redacted."""
    head = [
        f"amanu {__version__}",
        f"python {platform.python_version()} on {platform.platform()}",
        f"log {log_file(home)}",
        "",
    ]
    return redact("\n".join([*head, *tail(home, lines)])) + "\n"


def use_secrets(secrets: Secrets) -> None:
    """Keep what these know out of the log from now on, beside what looks like a secret."""
    global _secrets
    _secrets = secrets


def redact(text: str) -> str:
    """The text without what is known or looks like a key."""
    return _secrets.mask(text)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record))
        if len(text) > LINE:
            text = f"{text[: LINE // 2]} […] {text[-LINE // 2 :]}"
        return text


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Readable by its owner alone, also after each rotation."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=_private)

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk must not end a turn; say it once on stderr and go on."""
        if not getattr(self, "_failed", False):
            self._failed = True
            print(f"amanu: cannot write {self.baseFilename}: {sys.exc_info()[1]}", file=sys.stderr)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _newest_first(home: Home) -> Iterable[Path]:
    first = log_file(home)
    for number in range(KEPT + 1):
        path = first if number == 0 else Path(f"{first}.{number}")
        if path.exists():
            yield path
