"""What is piped in beside a prompt."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from amanu.cli import stdin
from amanu.cli.stdin import MAX_CHARACTERS, read_piped_input

Given = Callable[[bytes | None], None]


@pytest.fixture
def pipe_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Given]:
    with ExitStack() as opened:

        def given(data: bytes | None) -> None:
            (tmp_path / "in").write_bytes(data or b"")
            path = Path(os.devnull) if data is None else tmp_path / "in"
            monkeypatch.setattr(sys, "stdin", opened.enter_context(path.open()))

        yield given


@pytest.mark.parametrize(
    ("data", "text", "notice"),
    [
        (None, None, ""),
        (b"", None, ""),
        (b" \n", None, ""),
        (b"one\ntwo", "one\ntwo", "Standard input is attached to the prompt: 2 lines."),
        (b"caf\xe9\n", "caf\ufffd\n", "Standard input is attached to the prompt: 1 line."),
        (
            b"a" * 60_000 + b"b" * 60_000,
            "a" * 50_000 + "\n[20000 characters omitted]\n" + "b" * 50_000,
            "1 line, without 20,000 characters in the middle (limit: 100,000).",
        ),
    ],
    ids=["/dev/null", "empty", "blank", "text", "no UTF-8", "much"],
)
def test_what_goes_with_the_prompt(pipe_in: Given, data: bytes | None, text: str | None, notice: str) -> None:
    pipe_in(data)
    found = read_piped_input()
    assert (found.attachment and found.attachment.text) == text
    assert notice in found.notice and bool(notice) == bool(found.notice)
    assert text is None or len(text) < MAX_CHARACTERS + 100


def test_a_pipe_that_says_nothing_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdin, "WAIT_SECONDS", 0.01)
    reads, writes = os.pipe()
    with os.fdopen(reads) as pipe, os.fdopen(writes, "w"):
        monkeypatch.setattr(sys, "stdin", pipe)
        found = read_piped_input()
    assert found.attachment is None and "Nothing arrived on standard input within 0.01 s" in found.notice


def test_no_standard_input_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert read_piped_input() == stdin.PipedInput()
