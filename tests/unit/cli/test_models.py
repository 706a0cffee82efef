"""`amanu models`: what is listed, what is asked, what is said of what failed."""

import json
import re
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from amanu.cli import models
from amanu.cli.console import open_console
from amanu.home import Home, find_home
from amanu.models.catalogue import Catalogue
from amanu_protocol.items import ModelInfo
from support.cli_in_process import InProcessCli, fails

LISTING = {
    "data": [
        {
            "id": "z-ai/glm-5.3",
            "name": "Z.AI: GLM 5.3 \x1b[31m",
            "context_length": 1_000_000,
            "pricing": {"prompt": "0.0000014", "completion": "0.0000044"},
        },
        {"id": "z-ai/free:free", "context_length": 131_072, "pricing": {"prompt": "0", "completion": "0"}},
    ]
}


class Handler(BaseHTTPRequestHandler):
    status = 200
    asked = 0

    def do_GET(self) -> None:
        Handler.asked += 1
        body = json.dumps(LISTING if self.status == 200 else {"error": {"message": "closed today"}}).encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def openrouter(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Handler]]:
    """OpenRouter on this machine, and a key for it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = find_home().make()
    unused = "".join(f'{name} = "http://127.0.0.1:9/v1"\n' for name in ("ollama", "llamacpp", "vllm"))
    address = f"http://127.0.0.1:{server.server_port}/api/v1"
    (home.config / "config.toml").write_text(f'[base_urls]\nopenrouter = "{address}"\n{unused}')
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    Handler.status, Handler.asked = 200, 0
    yield Handler
    server.shutdown()
    server.server_close()


@pytest.fixture
def home() -> Home:
    return find_home().make()


def test_the_shipped_ones(tmp_path: Path, inside: InProcessCli, openrouter: type[Handler]) -> None:
    ran = inside.run(models.main, cwd=tmp_path)
    lines = [re.sub(" +", " ", line).strip() for line in ran.stdout.splitlines()]
    assert "anthropic:claude-opus-5-5 1M $4 / $20 Amanu, 2026-11-30" in lines
    haiku, sol = "anthropic:claude-haiku-5-5 1M $0.1 / $0.5", "openai:gpt-6.2-sol 336k $2 / $10"
    assert f"{haiku} Amanu, 2026-11-30 · above 100k tokens: 5 times the price" in lines
    assert f"{sol} Amanu, 2026-11-30" in lines  # whose prompts never get that long
    assert "anthropic — Set ANTHROPIC_API_KEY, or run: amanu auth set anthropic" in lines
    assert any(line.endswith("· shuts down on 2027-01-14; use openai:gpt-6-luna") for line in lines)
    assert any(line.endswith("· deprecated; use gemini:gemini-3.8-flash") for line in lines)
    assert (ran.returncode, ran.stderr, openrouter.asked) == (0, "", 0), "nobody is asked unasked"


def test_refresh_and_search(tmp_path: Path, inside: InProcessCli, openrouter: type[Handler]) -> None:
    ran = inside.run(models.main, "--refresh", "GLM", "z-ai", cwd=tmp_path)
    assert re.fullmatch(
        r"openrouter\n  openrouter:z-ai/glm-5\.3      1M  \$1\.4 / \$4\.4       OpenRouter, \d{4}-\d\d-\d\d\n"
        r"Amanu's table of models: 2026-11-30.*\n",
        ran.stdout,
    )
    assert (ran.returncode, ran.stderr, openrouter.asked) == (0, "", 1)
    again = inside.run(models.main, "z-ai", cwd=tmp_path)
    assert "z-ai/free:free    131k  free " in again.stdout and "glm-5.3" in again.stdout
    assert openrouter.asked == 1
    fails(inside.run(models.main, "no", "such", cwd=tmp_path), 1, "No model has “no such” in its id or name.")


def test_what_failed_is_said_and_what_was_known_stays(
    tmp_path: Path, inside: InProcessCli, openrouter: type[Handler]
) -> None:
    inside.run(models.main, "--refresh", cwd=tmp_path)
    openrouter.status = 503
    ran = inside.run(models.main, "--refresh", "glm", cwd=tmp_path)
    assert ran.returncode == 1
    assert ran.stderr == (
        "openrouter: OpenRouter cannot answer right now: closed today. Its models are listed as last known.\n"
    )
    assert "openrouter:z-ai/glm-5.3" in ran.stdout


@pytest.mark.parametrize("variables", [{}, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}])
def test_nobody_to_ask(
    tmp_path: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ran = inside.run(models.main, "--refresh", "opus-5-5", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (
        1,
        "There is no vendor to ask: you have no key for any, or their addresses were changed.\n",
    )
    assert "claude-opus-5-5" in ran.stdout


def test_a_key_that_others_can_read(tmp_path: Path, inside: InProcessCli, home: Home) -> None:
    (home.config / "auth.json").write_text('{"keys": {"openai": "k"}}')
    (home.config / "auth.json").chmod(0o644)
    fails(inside.run(models.main, "--refresh", cwd=tmp_path), 1, "can be read by others")


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, "Amanu's table of models: 2026-11-30\n"),
        (31, "Amanu's table of models: 2026-11-30, 31 days old\nPrices may have changed since. Update Amanu, or "),
    ],
)
def test_the_age_of_what_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days: int, expected: str
) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() + days * 24 * 3600
    models.show_age(Catalogue(tmp_path, lambda: now), open_console(sys.stdout))
    assert capsys.readouterr().out.replace("\n  ", " ").startswith(expected)


TIER = {"above": 200_000, "input": 2, "output": 1}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, []),
        ({"retires": "2020-01-01", "successor": "a:b"}, ["shut down on 2020-01-01; use a:b"]),
        ({"retires": "2999-01-01"}, ["shuts down on 2999-01-01"]),
        ({"successor": "a:b"}, ["deprecated; use a:b"]),
        ({"long_prompt": TIER}, ["above 200k tokens: input 2 times the price"]),
        ({"long_prompt": {**TIER, "output": 1.5}}, ["above 200k tokens: input 2 times the price, output 1.5 times"]),
        ({"long_prompt": {**TIER, "output": 2}}, ["above 200k tokens: 2 times the price"]),
        ({"long_prompt": TIER, "context_window": 201_000}, []),
    ],
)
def test_what_to_know_before_choosing_a_model(facts: dict[str, Any], expected: list[str]) -> None:
    told: dict[str, Any] = {"context_window": 300_000, "max_output": 1_000, **facts}
    info = ModelInfo(
        model_id="a:a",
        name="A",
        thinking=False,
        images=False,
        available=True,
        **told,
    )
    assert list(models.notes(info)) == expected
