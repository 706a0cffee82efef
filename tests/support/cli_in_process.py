"""A command run inside this process: the same `main`, without the cost of a new interpreter."""

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


class InProcessCli:
    """Calls `main(argv)` in a folder, standard input a pipe with `typed` in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def run(self, main: Callable[[list[str]], int], *argv: str, cwd: Path, typed: str = "") -> Ran:
        self._monkeypatch.chdir(cwd)
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        try:
            code = main(list(argv))
        except SystemExit as left:  # argparse
            code = left.code if isinstance(left.code, int) else 1
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)


def fails(ran: Ran, code: int, said: str | Sequence[str]) -> None:
    """Nothing on stdout, a sentence on stderr, no traceback."""
    assert ran.returncode == code
    for part in [said] if isinstance(said, str) else said:
        assert part in ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
