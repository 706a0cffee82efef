"""`amanu run` with every model of the shipped table: tools, an edit, an answer; the strict services refuse nothing."""

from pathlib import Path

import pytest

from amanu.cli.run import main
from amanu.core.model_families import MODELS
from support.cli_in_process import InProcessCli
from support.google_account import service_account
from support.service_thread import serving
from support.strict_services import clouds
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Received, Say, Service, ToolUse
from support.strict_services.responses import Responses

SERVICES: dict[str, type[Service]] = {"anthropic": Anthropic, "gemini": Gemini, "openai": Responses}
"""Vendor → its strict service."""
CLOUDS: dict[str, type[Service]] = {
    "bedrock:anthropic.claude-opus-5-5": clouds.Bedrock,
    "foundry:claude-sonnet-5-5": clouds.Foundry,
    "vertex:claude-haiku-5-5": clouds.VertexClaude,
    "vertex:gemini-4-hydrogen": clouds.VertexGemini,
}
"""A model of each cloud → the service."""
SCRIPT = [
    Say(
        thought="**Looking** at the file",
        text="I read the file and look around.",
        calls=[ToolUse("read_file", {"path": "a.txt"}), ToolUse("list_directory", {"path": "."})],
    ),
    Say(calls=[ToolUse("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"})]),
    Say(text="Done."),
]


@pytest.mark.parametrize("model_id", [*(info.model_id for info in MODELS), *CLOUDS])
def test_a_turn_with_tools(
    model_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vendor = model_id.partition(":")[0]
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    service = (CLOUDS.get(model_id) or SERVICES[vendor])(list(SCRIPT))
    checked: list[Received] = []  # without those for a token
    service.on_request = checked.append
    with serving(service) as url:
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
    assert [request.refused for request in checked] == [None] * 3
    assert not service.lint
