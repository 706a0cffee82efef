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
from support.google_account import service_account

SERVICES = {"anthropic": "anthropic", "gemini": "gemini", "openai": "responses"}
"""Vendor → the module of its strict service."""
CLOUDS = {
    "bedrock:anthropic.claude-opus-5-5": "clouds bedrock",
    "foundry:claude-sonnet-5-5": "clouds foundry",
    "vertex:claude-haiku-5-5": "clouds vertex-claude",
    "vertex:gemini-4-hydrogen": "clouds vertex-gemini",
}
"""A model of each cloud → the module, and what it is told."""
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
    arguments = ["--script", str(script), "--log", str(log)]
    command = [sys.executable, "-m", *f"support.strict_services.{module}".split(), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}", log
        finally:
            process.terminate()


@pytest.mark.parametrize("model_id", [*(info.model_id for info in MODELS), *CLOUDS])
def test_a_turn_with_tools(
    model_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vendor = model_id.partition(":")[0]
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    with serving(CLOUDS.get(model_id) or SERVICES[vendor], tmp_path) as (url, log):
        for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(name, "sk-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        for name in ("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY"):
            monkeypatch.setenv(name, "sk-test")
        for name in ("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL"):
            monkeypatch.setenv(name, f"{url}/anthropic")
        for name in ("GOOGLE_VERTEX_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"):
            monkeypatch.setenv(name, url)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "shop-1")
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(tmp_path, url)))
        arguments = ["Change it.", "--model", model_id, "--allow", "@write(*.txt)", "--effort", "max"]
        done = InProcessCli(monkeypatch, capsys).run(main, *arguments, cwd=work)
    assert (done.returncode, (work / "a.txt").read_text()) == (0, "two\n"), done.stderr
    assert "Done." in done.stdout
    requests = [json.loads(line) for line in log.read_text().splitlines()]
    assert [request["refused"] for request in requests] == [None] * 3
    assert requests[-1]["lint"] == []
