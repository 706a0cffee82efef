"""A pipe whose exit code hides a failure is not shown as success: the failed command is named, to the model and the
user."""

import re
from pathlib import Path

import pytest

from amanu.sandbox.self_test import Tier
from amanu_protocol.items import ToolCall
from sandbox.test_network_attempts import outcome_of
from support.draft_session import DONE, results
from support.required_programs import needs
from support.scripted_session import scripted_session, step
from unit.test_session_layer import shell

_NOTE = re.compile(r"In its pipe, (.*); the exit code above is the last command's\.")
LINES: list[tuple[str, str]] = [
    ("(exit 3) | cat", "`(exit 3)` ended with exit code 3"),
    ("cd / && python3 -m nothing 2>&1 | tail -5", "`python3 -m nothing 2>&1` ended with exit code 1"),
    ("true; A=1 bash -c 'exit 9' | tee out | wc -c", "`A=1 bash -c 'exit 9'` ended with exit code 9"),
    ("bash -c 'exit 2' | bash -c 'exit 4' |& cat # all", "`bash -c 'exit 2'` ended with exit code 2, `bash"),
    ("exec 2>&1\nls /nowhere |\n  head", "`ls /nowhere` ended with exit code 2"),
    ("yes | head -1", ""),
    ("echo a | grep b | wc -l", ""),
    ("grep b /nowhere 2>&1 | cat", "`grep b /nowhere 2>&1` ended with exit code 2"),
    ("true | cat", ""),
    ("bash -c 'exit 3' | cat; echo done", ""),
    ("bash -c 'exit 3' | cat; false", ""),
    ("bash -c 'exit 3' | (exit 1)", ""),
    ("set -o pipefail; bash -c 'exit 3' | cat", ""),
    ("! bash -c 'exit 3' | false", ""),
    ("true || bash -c 'exit 3' | cat", ""),
    ("trap 'echo mine' EXIT; bash -c 'exit 3' | cat", ""),
    ("trap 'echo mine' EXIT; true | cat", ""),
    ("echo 'a | b'", ""),
    ("if true | cat", ""),
]


def check(text: str, said: str) -> None:
    found = _NOTE.search(text)
    assert ("" if found is None else found[1]).startswith(said), text
    assert (found is not None) == bool(said), text


@pytest.mark.parametrize(("line", "said"), LINES, ids=[line for line, _ in LINES])
async def test_the_command_that_failed_is_named(tmp_path: Path, line: str, said: str) -> None:
    needs("bwrap")
    outcome = await outcome_of(tmp_path, line, "bubblewrap")
    for text in (outcome.for_model, outcome.for_user):
        check(text, said)
    assert outcome.warns == bool(said)
    assert (outcome.fields.get("notes") is not None) == bool(said)
    assert said in outcome.line
    assert "trap 'printf" not in outcome.for_model


@pytest.mark.parametrize("tier", ["landlock", "none"])
async def test_whatever_holds_it(tmp_path: Path, tier: Tier) -> None:
    outcome = await outcome_of(tmp_path, LINES[0][0], tier)
    check(outcome.for_model, LINES[0][1])


async def test_what_else_is_written_there_is_no_status(tmp_path: Path) -> None:
    outcome = await outcome_of(tmp_path, "for f in /proc/self/fd/*; do echo 7 x >$f; done 2>&1 | cat", "none")
    assert not outcome.warns


@pytest.mark.layers
async def test_in_a_session(tmp_path: Path) -> None:
    """Its changes are applied, and the call is shown with a warning, not as success."""
    async with scripted_session(
        tmp_path, step("", shell("bash -c 'echo x >made; exit 3' | cat")), DONE, mode="acceptEdits"
    ) as d:
        await d.prompt("go")
        state = await d.ended()
        (result,) = results(d)
        check(result, "`bash -c 'echo x >made; exit 3'` ended with exit code 3")
        (call,) = [item for item in state.items if isinstance(item, ToolCall)]
        assert call.state == "succeeded"
        assert call.warns
        assert (d.root / "made").read_text() == "x\n"
