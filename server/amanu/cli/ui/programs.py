"""The user's own editor and pager, on a private temporary file. They block: not for the event loop."""

import contextlib
import os
import shlex
import shutil
import tempfile
from pathlib import Path


def page_text(text: str, suffix: str = ".diff") -> None:
    """Open $PAGER, else less or more, and wait."""
    _with_program(os.environ.get("PAGER") or ("less" if shutil.which("less") else "more"), text, suffix)


def edit_text(text: str, suffix: str) -> str | None:
    """Open $VISUAL or $EDITOR, else vi, and wait. None when it failed."""
    return _with_program(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi", text, suffix)


def _with_program(program: str, text: str, suffix: str) -> str | None:
    import subprocess

    command = shlex.split(program)
    number, name = tempfile.mkstemp(suffix=suffix, prefix="amanu-")
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="", errors="surrogateescape") as file:
            file.write(text)
        try:
            if subprocess.run([*command, name], check=False).returncode != 0:
                return None
        except OSError:
            return None
        with Path(name).open(encoding="utf-8", newline="", errors="surrogateescape") as file:
            return file.read()
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
