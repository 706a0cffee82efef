"""What a process says outside its log, an uncaught exception above all, goes through the same mask.

The daemon's stdout and stderr are the file `daemon.out` beside the log. Only what the interpreter or a library in C
writes as the process falls down passes this by: that names places in code, never values.
"""

import io
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Literal

from amanu.system import logs


def mask(*names: Literal["stdout", "stderr"]) -> None:
    """From now on these streams of the process are masked."""
    for name in names:
        stream = _Masked(getattr(sys, name).fileno())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # the interpreter goes back to it at its end
    sys.excepthook = _say
    threading.excepthook = lambda args: _say(args.exc_type, args.exc_value, args.exc_traceback, _where(args.thread))
    sys.unraisablehook = lambda args: _say(
        args.exc_type, args.exc_value, args.exc_traceback, "Where none can be raised"
    )


def _say(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None, context: str | None = None
) -> None:
    """A traceback, whole: a secret may go over several of its lines."""
    if issubclass(kind, SystemExit) and context is not None:
        return  # a thread that ends
    report = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(f"{context}:\n{report}" if context else report)


def _where(thread: threading.Thread | None) -> str:
    return "In a thread" if thread is None else f"In the thread {thread.name}"


class _Masked(io.TextIOBase):
    """Text goes on when its line ends: a part of a secret would not be known as one. Never fails: whoever speaks here
    has nobody else to tell."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begun = ""
        self._lock = threading.RLock()  # a finalizer may speak in the middle of a write

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return "utf-8"

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        with self._lock:
            self._begun += text
            if text.endswith("\n"):
                self.flush()
        return len(text)

    def flush(self) -> None:
        with self._lock:
            begun, self._begun = self._begun, ""
            self._send(begun)

    def _send(self, text: str) -> None:
        data = logs.redact(text).encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            return
