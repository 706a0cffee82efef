"""`amanu sessions search`."""

import json
from pathlib import Path

import pytest

from amanu.cli import run, sessions
from support.cli_in_process import InProcessCli
from support.cli_process import script


@pytest.fixture
def shop(tmp_path: Path, inside: InProcessCli) -> Path:
    """A folder in which two sessions were."""
    root = tmp_path / "shop"
    root.mkdir()
    for prompt, answer in (("mend the till", "Quantities count now."), ("paint\x1b[31m it", "It is red.")):
        model = script(tmp_path, {"text": answer})
        assert inside.run(run.main, prompt, "--trust", "--model", model, cwd=root).returncode == 0
    return root


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["quant"], ["answer   Quantities count now."]),
        (["till", "mend"], ["you      mend the till"]),
        (["it"], ["you      paint␛[31m it", "answer   It is red."]),
        (['"is red"'], ["answer   It is red."]),
        (["it", "--root", "."], ["you      paint␛[31m it", "answer   It is red."]),
        (["it", "--root", "/"], []),
        (["nowhere"], []),
        (["AND", "(*"], []),
    ],
)
def test_sessions_are_found(shop: Path, inside: InProcessCli, words: list[str], lines: list[str]) -> None:
    done = inside.run(sessions.main, "search", *words, cwd=shop)
    assert done.returncode == (0 if lines else 1)
    assert sorted(line.strip() for line in done.stdout.splitlines() if line.startswith("  ")) == sorted(lines)
    if lines:
        assert str(shop) in done.stdout
    else:
        assert "No session has" in done.stdout


def test_as_json(shop: Path, inside: InProcessCli) -> None:
    (found,) = json.loads(inside.run(sessions.main, "search", "quantities", "--json", cwd=shop).stdout)["sessions"]
    assert found["session"]["title"] == "mend the till"
    assert found["places"][0]["excerpt"] == [
        {"text": "Quantities", "found": True},
        {"text": " count now.", "found": False},
    ]
