"""`amanu run`: output formats, exit codes, denials that name the rule, orderly ends."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import checked_edits
from support.cli_process import AMANU, amanu, call, script
from support.raw_client import RawClient
from support.required_programs import needs
from support.running_daemon import signal_daemon

WRITE = call("write_file", path="a.txt", content="one\n")
SLOW: dict[str, Any] = {"text": "slow " * 2000, "chunk": 4, "delay_ms": 20}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def test_text_is_only_the_answers(shop: Path) -> None:
    model = script(shop.parent, {"thought": "**Hm**", "text": "One.", "calls": [WRITE]}, {"text": "Two.\x1b[2J"})
    done = amanu("run", "do it", "--model", model, "--allow", "@write(a.txt)", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "One.\n\nTwo.\n\n")
    assert (shop / "a.txt").read_text() == "one\n"
    for part in ("plays a script", "› do it", "… Hm", "✓ Create a.txt", "+one"):
        assert part in done.stderr


def test_the_model_hears_of_checkers_with_the_result_of_its_edit_and_mends_it(shop: Path) -> None:
    checked_edits.prepare(shop)
    model = script(shop.parent, *checked_edits.STEPS)
    done = amanu("run", "do it", "--model", model, "--mode", "acceptEdits", "--trust", cwd=shop)
    assert (done.returncode, done.stdout.strip()) == (0, "Heard.")
    assert "Ruff, a.py: adds 1 error now that it is applied" in done.stderr, "the user hears it, too"
    assert (shop / checked_edits.FILE).read_text() == checked_edits.MENDED


def test_the_prompt_may_come_from_a_pipe(shop: Path) -> None:
    model = script(shop.parent, {"expect": "from the pipe", "text": "Heard."})
    assert amanu("run", "--model", model, cwd=shop, typed="from the pipe\n").stdout == "Heard.\n\n"


def test_what_is_piped_in_goes_with_the_prompt_as_data(shop: Path) -> None:
    (shop / "a.txt").write_text("a secret plan\n")
    model = script(shop.parent, {"expect": 'lines 1-2">\nboom\nsee @a.txt\n\n</selection>', "text": "Heard."})
    done = amanu("run", "explain", "--model", model, cwd=shop, typed="boom\nsee @a.txt\n")
    assert (done.stdout, "Standard input is attached to the prompt: 2 lines." in done.stderr) == ("Heard.\n\n", True)


def test_a_session_goes_on_by_its_beginning_and_as_the_latest(shop: Path) -> None:
    model = script(shop.parent, {"text": "One."}, {"text": "Two."}, {"text": "Three."})
    begun = json.loads(amanu("run", "go", "--model", model, "--output-format", "json", cwd=shop).stdout)
    for which, answer in ((["--session", begun["sessionId"][:8]], "Two."), (["--continue"], "Three.")):
        assert amanu("run", "on", *which, cwd=shop).stdout == f"{answer}\n\n"


def test_a_prompt_that_is_no_text_is_read_as_far_as_it_goes(shop: Path) -> None:
    model = script(shop.parent, {"expect": "caf\ufffd", "text": "Heard."})
    for prompt, typed in ((b"caf\xe9", b""), (b"-", b"caf\xe9")):
        done = subprocess.run(
            [*AMANU, "run", prompt, "--model", model], cwd=shop, input=typed, capture_output=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, b"Heard.\n\n"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_in_order(shop: Path, number: int) -> None:
    model = script(shop.parent, SLOW)
    arguments = [*AMANU, "run", "x", "--model", model, "--output-format", "stream-json"]
    lines: list[str] = []
    with subprocess.Popen(arguments, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if '"itemDelta"' in line and number:
                process.send_signal(number)
                number = 0
    assert process.returncode == 130
    assert json.loads(lines[-1])["reason"] == "cancelled"
    assert any('"turnEnded"' in line for line in lines)


@pytest.mark.parametrize(("output", "first"), [("stream-json", "{"), ("text", "s")])
def test_a_reader_that_leaves_ends_the_turn(shop: Path, output: str, first: str) -> None:
    model = script(shop.parent, SLOW)
    arguments = [*AMANU, "run", "x", "--model", model, "--output-format", output]
    with subprocess.Popen(arguments, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(1) == first
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 130
    assert "Traceback" not in said and "Exception ignored" not in said


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_denial_names_the_way_out_and_that_is_one(shop: Path, tmp_path: Path, mode: str) -> None:
    """Where nobody can be asked, what is said to permit a call does."""
    needs("bwrap")
    outside = tmp_path / "outside.txt"
    run = call("run_shell_command", command=f"./put {outside}", outside=True, reason="it is elsewhere")
    (shop / "put").write_text('#!/bin/sh\necho here > "$1"\n')
    (shop / "put").chmod(0o755)
    model = script(tmp_path, {"calls": [run]}, {"text": "Done."})
    denied = amanu("run", "do it", "--model", model, "--mode", mode, "--output-format", "json", cwd=shop)
    permitted_by = json.loads(denied.stdout)["toolCalls"][0]["decision"]["allow"]
    assert permitted_by.startswith("run_shell_command+unsandboxed(") and not outside.exists()
    amanu("run", "do it", "--model", model, "--mode", mode, "--allow", permitted_by, cwd=shop)
    assert outside.read_text() == "here\n"


async def test_a_session_whose_queue_waits_for_the_user_runs_nothing(shop: Path) -> None:
    run = {"tool": "run_shell_command", "arguments": {"command": "touch -c it", "network": True}}
    model = script(shop.parent, {"text": "", "calls": [run]}, {"text": "Two."}, {"text": "Three."})
    editor = await RawClient.spawn([*AMANU, "serve"], {**os.environ, "AMANU_IDLE_SECONDS": "60"})
    try:
        await editor.initialize()
        session = {"sessionId": "s" * 32}
        await editor.request("amanu/session/create", {**session, "roots": [str(shop)], "modelId": model})
        turn = (await editor.request("amanu/prompt/send", {**session, "promptId": "p1", "text": "one"}))["result"]
        while (await editor.notification("amanu/event"))["event"]["kind"] != "approvalRequested":
            pass
        await editor.request("amanu/prompt/send", {**session, "promptId": "p2", "text": "two"})
        await editor.request("amanu/turn/cancel", {**session, "turnId": turn["turnId"]})
        await editor.request("amanu/session/detach", session)
        refused = await asyncio.to_thread(amanu, "run", "three", "--continue", cwd=shop)
        said = " ".join(refused.stderr.split())
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "1 prompt in the session's queue would run first." in said and "amanu chat --session ssss" in said
    finally:
        await editor.stop()
        signal_daemon()


async def test_a_session_that_the_daemon_holds_goes_on_when_nobody_looks_at_it(shop: Path) -> None:
    model = script(shop.parent, {"text": "One."}, {"text": "Two."})
    environment = {**os.environ, "AMANU_IDLE_SECONDS": "60"}
    editor = await RawClient.spawn([*AMANU, "serve"], environment)
    watcher = await RawClient.spawn([*AMANU, "serve"], environment)
    try:
        for client in (editor, watcher):
            await client.initialize()
        await editor.request("amanu/session/create", {"sessionId": "s" * 32, "roots": [str(shop)], "modelId": model})
        await editor.request("amanu/prompt/send", {"sessionId": "s" * 32, "promptId": "p", "text": "go"})
        while (await editor.notification("amanu/event"))["event"]["kind"] != "turnEnded":
            pass
        refused = await asyncio.to_thread(amanu, "run", "on", "--continue", cwd=shop)
        assert (refused.returncode, refused.stdout) == (1, "")
        said = " ".join(refused.stderr.split())
        assert "a client shows it, or something runs in it. Go on there, or close it there." in said
        assert "amanu chat --session ssssssss" in said
        await editor.request("amanu/session/detach", {"sessionId": "s" * 32})
        went_on = await asyncio.to_thread(amanu, "run", "on", "--continue", cwd=shop)
        assert (went_on.returncode, went_on.stdout) == (0, "Two.\n\n")
        attached = (await watcher.request("amanu/session/attach", {"sessionId": "s" * 32}))["result"]
        assert [item["text"] for item in attached["state"]["items"] if item["kind"] == "answer"] == ["One.", "Two."]
        assert not attached["state"]["readOnly"]
    finally:
        await watcher.stop()
        await editor.stop()
        signal_daemon()
