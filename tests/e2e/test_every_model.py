"""`amanu run` with every model of the shipped table: tools, an edit, an answer; the strict services refuse nothing."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from amanu.cli.run import main
from amanu.core.model_families import MODELS
from support.cli_in_process import InProcessCli

SERVICES = {"anthropic": "anthropic", "gemini": "gemini", "openai": "responses"}
"""Vendor → the module of its strict service."""
SCRIPT = [
    {
        "thought": "**Looking** at the file",
        "text": "I read the file and look around.",
        "calls": [
            {"tool": "read_file", "arguments": {"path": "a.txt"}},
            {"tool": "list_directory", "arguments": {"path": "."}},
        ],
    },
    {"calls": [{"tool": "edit_file", "arguments": {"path": "a.txt", "old_text": "one", "new_text": "two"}}]},
    {"text": "Done."},
]


@contextlib.contextmanager
def serving(module: str, folder: Path) -> Generator[tuple[str, Path]]:
    """The service as a process; its address and its log."""
    script, log = folder / "script.json", folder / "log.ndjson"
    script.write_text(json.dumps(SCRIPT))
    command = [sys.executable, "-m", f"support.strict_services.{module}", "--script", str(script), "--log", str(log)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}", log
        finally:
            process.terminate()


@pytest.mark.parametrize("model_id", [info.model_id for info in MODELS])
def test_a_turn_with_tools(
    model_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vendor = model_id.partition(":")[0]
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    with serving(SERVICES[vendor], tmp_path) as (url, log):
        for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, "sk-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        arguments = ["Change it.", "--model", model_id, "--allow", "@write(*.txt)", "--effort", "max"]
        done = InProcessCli(monkeypatch, capsys).run(main, *arguments, cwd=work)
    assert (done.returncode, (work / "a.txt").read_text()) == (0, "two\n"), done.stderr
    assert "Done." in done.stdout
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [request["refused"] for request in requests] == [None] * 3
    assert requests[-1]["lint"] == []
