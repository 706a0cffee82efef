"""`amanu run` hands a question about a project of 2,000 files to the investigator: real SDKs, strict services, a model
that reads what it finds."""

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli_process import AMANU
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Received, Say, Script, Service, ToolUse
from support.strict_services.responses import Responses
from support.warm_process import warm

VENDORS: list[tuple[Callable[[Script], Service], str, dict[str, str]]] = [
    (Anthropic, "anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": "{url}"}),
    (Gemini, "gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "AIza-test", "GOOGLE_GEMINI_BASE_URL": "{url}"}),
    (Responses, "openai:gpt-6.2-sol", {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "{url}/v1"}),
]


def make_project(root: Path) -> None:
    """2,000 files in 40 packages; `discount` is defined in one and used in another."""
    for package in range(40):
        folder = root / f"package{package:02}"
        folder.mkdir(parents=True)
        for number in range(50):
            (folder / f"module{number:02}.py").write_text(f"def work_{package}_{number}():\n    return {number}\n" * 5)
    (root / "package07" / "module13.py").write_text("RATE = 0.2\n\n\ndef discount(price):\n    return price * RATE\n")
    (root / "package31" / "module42.py").write_text(
        "from package07.module13 import discount\n\n\ndef bill(price):\n    return price - discount(price)\n"
    )


class Investigation:
    """Both models: the one that asks, and the investigator, which learns all it reports from its tools."""

    def __init__(self) -> None:
        self.step = 0
        self.agent_tools = ""
        self.answer_seen = ""

    def answer(self, received: Received) -> Say:
        text = json.dumps(received.json, ensure_ascii=False)
        if "You are the investigator" not in text:
            if "relevant_locations" not in text:
                task = {
                    "agent": "investigator",
                    "prompt": "Where is `discount` made and used?",
                    "description": "find it",
                }
                return Say(text="", calls=[ToolUse("run_agent", task)])
            self.answer_seen = text
            return Say(text="It is used in one place.")
        self.step += 1
        if self.step == 1:
            self.agent_tools = text
            calls = [ToolUse("grep", {"pattern": "discount"}), ToolUse("glob", {"pattern": "**/module13.py"})]
            return Say(text="Open questions: where is it defined; who uses it?", calls=calls)
        paths = sorted(set(re.findall(r"package(?:07/module13|31/module42)\.py", text)))
        if self.step == 2:
            return Say(text="", calls=[ToolUse("read_file", {"path": path}) for path in paths])
        report = {
            "summary_of_findings": "price * RATE" if "price * RATE" in text else "I could not read it.",
            "exploration_trace": ["searched for discount", f"read {len(paths)} files"],
            "relevant_locations": [
                {"file_path": path, "reasoning": "it is there", "key_symbols": ["discount"]} for path in paths
            ],
        }
        return Say(text="No question is open.", calls=[ToolUse("complete_task", report)])


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS, ids=[model for _, model, _ in VENDORS])
async def test_it_finds_its_way_through_two_thousand_files(
    make: Callable[[Script], Service], model: str, variables: dict[str, str], tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    make_project(root)
    assert sum(1 for _ in root.rglob("*.py")) == 2_000
    models = Investigation()
    service = make(models.answer)
    url = await service.start()
    process = await asyncio.create_subprocess_exec(
        *warm([*AMANU, "run", "How is the discount made?", "--model", model]),
        *("--workspace", str(root), "--output-format", "json"),
        env={**os.environ, **{name: value.format(url=url) for name, value in variables.items()}},
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
    assert result["result"] == "It is used in one place."
    calls = [(call["tool"], call["state"]) for call in result["toolCalls"]]
    reads = [("grep", "succeeded"), ("glob", "succeeded"), ("read_file", "succeeded"), ("read_file", "succeeded")]
    assert sorted(calls) == sorted([("run_agent", "succeeded"), *reads])
    for part in ("price * RATE", "package07/module13.py", "package31/module42.py", "completed its task (3 steps"):
        assert part in models.answer_seen
    assert "write_file" not in models.agent_tools and "run_shell_command" not in models.agent_tools
