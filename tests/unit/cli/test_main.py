"""`amanu` and the word after it."""

import sys

import pytest

from amanu.__main__ import main


@pytest.mark.parametrize(
    ("word", "said", "lists_all"),
    [
        ("chta", "unknown command 'chta'. Did you mean chat?", False),
        ("session", "Did you mean sessions?", False),
        ("login", "unknown command 'login'. Use amanu auth set VENDOR", False),
        ("resume", "Use amanu chat --continue", False),
        ("-p", "Use amanu run PROMPT.", False),
        ("frobnicate", "unknown command 'frobnicate'\n\nusage: amanu COMMAND", True),
    ],
)
def test_a_slip_of_the_finger(
    word: str, said: str, lists_all: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["amanu", word])
    assert main() == 2
    told = capsys.readouterr().err
    assert said in told and ("chat in the terminal" in told) is lists_all
