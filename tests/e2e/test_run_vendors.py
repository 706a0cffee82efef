"""`amanu run` on a small real project, real SDKs, against strict services of all three wires: thought, parallel reads,
edit allowed by rule, tests run, exit 0, nothing refused, no lint."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from support.cli_process import AMANU
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Say, Script, Service, ToolUse
from support.strict_services.openai import OpenAI
from support.strict_services.responses import Responses
from support.warm_process import warm

VENDORS: list[tuple[Callable[[Script], Service], str, dict[str, str]]] = [
    (Anthropic, "anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": "{url}"}),
    (Anthropic, "anthropic:claude-haiku-4-5", {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": "{url}"}),
    (Gemini, "gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "AIza-test", "GOOGLE_GEMINI_BASE_URL": "{url}"}),
    (Gemini, "gemini:gemini-2.5-pro", {"GEMINI_API_KEY": "AIza-test", "GOOGLE_GEMINI_BASE_URL": "{url}"}),
    (Responses, "openai:gpt-6.2-sol", {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "{url}/v1"}),
    (OpenAI, "openrouter:openai/gpt-5.5", {"OPENROUTER_API_KEY": "sk-test", "OPENROUTER": "{url}/v1"}),
]
"""Service, model, and the environment; `OPENROUTER` is an address the user set in their settings."""
TESTS = "python3 -m unittest"

SCRIPT = [
    Say(
        thought="**Looking** at both files",
        text="I will read the till and its tests first.",
        calls=[ToolUse("read_file", {"path": "cart.py"}), ToolUse("read_file", {"path": "test_cart.py"})],
    ),
    Say(
        thought="**Two mistakes**",
        text="Both are one-line fixes.",
        calls=[
            ToolUse(
                "edit_file",
                {"path": "cart.py", "old_text": "sum(item.price for", "new_text": "sum(item.price * item.quantity for"},
            ),
            ToolUse(
                "edit_file",
                {"path": "cart.py", "old_text": "if amount > FREE", "new_text": "if amount >= FREE"},
            ),
        ],
    ),
    Say(text="Now the tests.", calls=[ToolUse("run_shell_command", {"command": TESTS})]),
    Say(text="All green."),
]


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS, ids=[model for _, model, _ in VENDORS])
async def test_the_main_job(
    make: Callable[[Script], Service], model: str, variables: dict[str, str], tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    with as_file(files("amanu.cli") / "sample") as sample:
        shutil.copytree(sample, shop)
    service = make(list(SCRIPT))
    url = await service.start()
    environment = _environment(variables, url)
    process = await asyncio.create_subprocess_exec(
        *warm([*AMANU, "run", "The tests fail. Mend it.", "--model", model]),
        *("--workspace", str(shop), "--allow", "@write(*.py)", "--allow", f"run_shell_command({TESTS})"),
        *("--output-format", "json"),
        env={**os.environ, **environment},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await process.communicate()
    await service.stop()
    assert process.returncode == 0, err.decode()
    assert not service.refused and not service.lint
    result: dict[str, Any] = json.loads(out)
    assert result["reason"] == "completed"
    assert "All green." in result["result"]
    states = [(call["tool"], call["state"]) for call in result["toolCalls"]]
    edits = [("edit_file", "succeeded")] * 2
    assert states == [("read_file", "succeeded")] * 2 + edits + [("run_shell_command", "succeeded")]
    text = (shop / "cart.py").read_text()
    assert "item.price * item.quantity" in text and "amount >= FREE" in text
    assert "OK" in service.requests[3].body.decode()  # the model saw the tests pass
    assert len(service.requests) == 4
    for request in service.requests:  # tools in every request
        assert "run_shell_command" in request.body.decode()


def _environment(variables: dict[str, str], url: str) -> dict[str, str]:
    environment = {name: value.format(url=url) for name, value in variables.items()}
    if "OPENROUTER" in environment:
        settings = f'[base_urls]\nopenrouter = "{environment["OPENROUTER"]}"\n'
        (find_home().make().config / "config.toml").write_text(settings)
    return environment


WORDS = {"anthropic": "Not this.", "gemini": "SAFETY", "openai": "content_filter"}


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS[::2], ids=[model for _, model, _ in VENDORS[::2]])
async def test_a_refusal_is_told_in_the_words_of_the_service(
    make: Callable[[Script], Service], model: str, variables: dict[str, str], tmp_path: Path
) -> None:
    service = make([Say(text="I begin, but", stop="refused")])
    url = await service.start()
    process = await asyncio.create_subprocess_exec(
        *(*AMANU, "run", "Do it.", "--model", model, "--output-format", "stream-json"),
        env={**os.environ, **_environment(variables, url)},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await process.communicate()
    await service.stop()
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, lines[-1]["reason"], lines[-1]["result"]) == (1, "refused", "I begin, but")
    items = [line["event"]["item"] for line in lines if line.get("event", {}).get("kind") == "itemCompleted"]
    (notice,) = [item for item in items if item["kind"] == "notice"]
    assert (notice["level"], notice["code"]) == ("warning", "refused")
    assert WORDS[model.partition(":")[0]] in notice["text"] == lines[-1]["message"]
    assert notice["text"] in err.decode()


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS[::2], ids=[model for _, model, _ in VENDORS[::2]])
async def test_replies_without_an_answer_cost_and_the_limit_holds(
    make: Callable[[Script], Service], model: str, variables: dict[str, str], tmp_path: Path
) -> None:
    thought = Say(thought="Hm.", usage={"output": 50_000})
    service = make([thought, thought, Say(text="Done.")])
    url = await service.start()
    process = await asyncio.create_subprocess_exec(
        *warm([*AMANU, "run", "Do it.", "--model", model, "--max-cost", "0.10", "--output-format", "json"]),
        env={**os.environ, **_environment(variables, url)},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await process.communicate()
    await service.stop()
    result: dict[str, Any] = json.loads(out)
    assert (process.returncode, result["reason"], len(service.requests)) == (5, "costLimit", 1), err.decode()
    assert result["turnUsage"]["outputTokens"] == result["usage"]["outputTokens"] == 50_000
    assert result["turnUsage"]["costUsd"] > 0.10
    assert "its limit is $0.10" in result["message"]
