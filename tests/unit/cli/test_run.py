"""`amanu run`: output formats, exit codes, denials that name the rule, orderly ends."""

import asyncio
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.report import Report
from amanu.cli.run import main
from amanu.cli.run_printer import RunPrinter
from amanu.home import find_home
from amanu.models.retry import RetryPolicy
from amanu_protocol.events import EventMessage, ItemCompleted, TurnStarted
from amanu_protocol.state import SessionState, fold
from support.agent_session import ask_agent, user_agent
from support.cli_in_process import InProcessCli, fails
from support.cli_process import call, script
from support.fake_daemon import state
from support.hook_files import answer, configure_user, handler
from support.service_thread import serving
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Fault, Say, ToolUse
from support.strict_services.responses import Responses
from unit.tools.test_run_shell_command import running

WRITE = call("write_file", path="a.txt", content="one\n")
SLOW: dict[str, Any] = {"text": "slow " * 2000, "chunk": 4, "delay_ms": 20}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def test_what_nobody_can_be_asked_is_denied_and_says_what_would_help(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"calls": [WRITE]}, {"expect": "--allow '@write(a.txt)'", "text": "A pity."})
    done = inside.run(main, "do it", "--model", model, "--output-format", "json", cwd=shop)
    assert done.returncode == 3
    found = json.loads(done.stdout)
    (used,) = found["toolCalls"]
    assert (used["state"], used["decision"]["outcome"], used["decision"]["allow"]) == (
        "rejected",
        "denied",
        "@write(a.txt)",
    )
    assert not (shop / "a.txt").exists()
    again = inside.run(main, "do it", "--model", model, "--allow", used["decision"]["allow"], cwd=shop)
    assert (again.returncode, (shop / "a.txt").exists()) == (0, True)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "moves"), [("xterm", True), ("dumb", False), ("", False)])
async def test_a_line_moves_only_on_a_terminal_that_can_take_it_away(
    term: str, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    now, screen = state(), Screen()
    fold(now, TurnStarted(turn_id="t", prompt_id="p", model_id="m"))
    printer = RunPrinter("text", io.StringIO(), screen, Report())
    printer.begin(now)
    await asyncio.sleep(0)
    await printer.stop_status()
    assert ("working" in screen.getvalue()) == moves
    assert ("\x1b[K" in screen.getvalue()) == moves


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("rm -rf build", 3),  # a rule would allow just this
        ('eval "touch $PWD/out"', 3),  # none can
        ("rm -rf /", 0),  # denied by a rule: whoever is there
    ],
)
def test_what_was_denied_for_lack_of_a_person_is_an_exit_code(
    shop: Path, inside: InProcessCli, command: str, code: int
) -> None:
    model = script(shop.parent, {"calls": [call("run_shell_command", command=command)]}, {"text": "A pity."})
    assert inside.run(main, "do it", "--model", model, cwd=shop).returncode == code


@pytest.mark.parametrize(("mends", "code"), [(False, 3), (True, 0)])
def test_a_change_that_could_not_be_applied_is_no_success(
    shop: Path, inside: InProcessCli, mends: bool, code: int
) -> None:
    """Unless the model found another way."""
    (shop / "a.txt").write_text("old\n")
    (shop / "a.txt").chmod(0o444)
    mend = [call("run_shell_command", command="chmod u+w a.txt"), WRITE]
    steps = [{"calls": [WRITE]}, *({"calls": [each]} for each in (mend if mends else []))]
    model = script(shop.parent, *steps, {"text": "Done."})
    options = ["--model", model, "--mode", "auto", "--output-format", "json", "--allow", "run_shell_command(chmod *)"]
    done = inside.run(main, "do it", *options, cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exitCode"], found["reason"]) == (code, code, "completed")
    assert (shop / "a.txt").read_text() == ("one\n" if mends else "old\n")


def test_a_draft_that_is_left_is_no_success(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"calls": [WRITE]}, {"text": "Written."}, {"text": "Still there."})
    done = inside.run(main, "do it", "--model", model, "--mode", "draft", "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exitCode"], found["reason"], found["error"]) == (3, 3, "completed", None)
    assert found["draft"]["files"] == [str(shop / "a.txt")]
    said = f"The draft has not been applied (1 file). `amanu sessions diff {found['sessionId'][:8]}` shows it"
    assert found["draft"]["message"].startswith(said)
    assert not (shop / "a.txt").exists()
    text = inside.run(main, "again", "--model", model, "--continue", cwd=shop)
    assert (text.returncode, text.stdout.strip()) == (3, "Still there.")
    assert "The draft has not been applied" in text.stderr


@pytest.mark.parametrize(
    ("mode", "told"),
    [("plan", "Mode: plan. You are planning."), ("auto", "Mode: auto."), ("ask", "Nobody is watching:")],
)
def test_the_model_is_told_the_mode_and_that_nobody_is_there(
    mode: str, told: str, shop: Path, inside: InProcessCli
) -> None:
    model = script(shop.parent, {"expect": told, "text": "I know."})
    done = inside.run(main, "do it", "--model", model, "--mode", mode, cwd=shop)
    assert done.stdout.strip() == "I know."


def test_json(shop: Path, inside: InProcessCli) -> None:
    model = script(
        shop.parent,
        {"text": "One.", "calls": [WRITE], "usage": {"input": 10, "output": 5}},
        {"text": "Two.", "usage": {"input": 20, "output": 5}},
    )
    done = inside.run(main, "x", "--model", model, "--mode", "acceptEdits", "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (found["reason"], found["result"], found["answers"]) == ("completed", "Two.", ["One.", "Two."])
    assert (found["steps"], found["exitCode"], found["error"], found["draft"]) == (2, 0, None, None)
    assert (found["usage"]["inputTokens"], found["usage"]["outputTokens"]) == (30, 10)
    (used,) = found["toolCalls"]
    assert (used["tool"], used["state"]) == ("write_file", "succeeded")
    assert used["decision"]["rule"] == "mode acceptEdits: allow @write"
    (file,) = found["files"]
    assert (file["path"], file["change"], file["hunks"]) == (str(shop / "a.txt"), "create", ["applied"])


def test_what_the_daemon_answers_itself_is_the_result(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"text": "Not asked."})
    done = inside.run(main, "/memory", "--model", model, "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert found["result"].startswith("Nothing is remembered yet")
    assert (found["reason"], found["answers"], found["steps"], found["exitCode"]) == (None, [], 0, 0)


def test_stream_json_is_the_protocol(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"text": "One.", "calls": [WRITE]}, {"text": "Two\u202e."})
    arguments = ("x", "--model", model, "--mode", "acceptEdits", "--output-format", "stream-json")
    done = inside.run(main, *arguments, cwd=shop)
    assert done.stdout.isascii()
    first, *lines, last = map(json.loads, done.stdout.splitlines())
    assert (first["kind"], first["protocol"], first["mode"]) == ("init", 4, "acceptEdits")
    assert (last["kind"], last["result"], last["sessionId"]) == ("result", "Two\u202e.", first["sessionId"])
    events = [EventMessage.model_validate(line) for line in lines]
    assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))
    state = SessionState(
        session_id=first["sessionId"],
        title="",
        roots=first["roots"],
        mode=first["mode"],
        model_id=first["modelId"],
        trusted=first["trusted"],
        read_only=False,
    )
    for event in events:
        fold(state, event.event)
    assert state.last_turn is not None and state.last_turn.reason == "completed"
    assert [item.kind for item in state.items] == ["userMessage", "answer", "toolCall", "answer"]


def test_a_retried_attempt_is_not_printed_twice(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"text": "Once only.", "error": "streamBroken"})
    done = inside.run(main, "x", "--model", model, cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Once only.\n\n")
    assert "discarded" in done.stderr


def test_going_on_with_a_session(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"text": "First."}, {"text": "Second."})
    first = json.loads(inside.run(main, "x", "--model", model, "--output-format", "json", cwd=shop).stdout)
    done = inside.run(main, "y", "--session", first["sessionId"], cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Second.\n\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["x", "--model", "nope:x"], 4, "Unknown model 'nope:x'."),
        (["x", "--model", "openai:gpt-6.2-sol"], 4, "amanu auth set openai"),
        (["x"], 4, "no API key is set"),
        (["x", "--session", "nope"], 2, "There is no session nope."),
        (["x", "--workspace", "nowhere"], 2, "nowhere is not a folder on"),
        (["x", "--workspace", "no\x1b[31mred"], 2, "no␛[31mred is not a folder on"),
        (["x", "--workspace", "C:\\shop"], 2, "where Amanu runs: it is a Windows path."),
        (["x", "--model", "scripted:demo", "--allow", "((("], 2, "is not a rule"),
        (["x", "--max-steps", "0"], 2, "invalid positive number value: '0'"),
        (["x", "--mode", "wild"], 2, "invalid choice"),
        (["  "], 2, "The prompt is empty."),
        (["/bogus now", "--model", "scripted:demo"], 2, "There is no command /bogus here. Nothing was sent."),
    ],
)
def test_what_cannot_start(shop: Path, inside: InProcessCli, arguments: list[str], code: int, said: str) -> None:
    fails(inside.run(main, *arguments, cwd=shop), code, said)


REFUSED: dict[str, tuple[Fault, str]] = {
    # what a service answers to a model that it has not, or to a key → the last words of the turn
    "no such model": (
        Fault("status", status=404, message="The model `gpt-9-sol` does not exist.", code="model_not_found"),
        "OpenAI has openai:test-model. To see all of them, run: amanu models",
    ),
    "bad key": (
        Fault("status", status=401, message="Incorrect API key."),
        "You also have a key for gemini:gemini-3.8-flash.",
    ),
    "forbidden": (
        Fault("status", status=403, message="Not in your plan."),
        "You also have a key for gemini:gemini-3.8-flash.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_cannot_be_had_names_others(
    case: str, shop: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, said = REFUSED[case]
    with serving(Responses([fault])) as url:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        done = inside.run(main, "x", "--model", "openai:gpt-9-sol", cwd=shop)
    assert (done.returncode, done.stdout) == (4, "")
    assert said in done.stderr and done.stderr.count(said) == 1


def test_what_claude_says_between_calls_is_printed(
    shop: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Say(thought="I should look.", progress="Looking around.", calls=[ToolUse("list_directory", {"path": "."})])
    with serving(Anthropic([look, Say(text="Nothing here.")])) as url:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        done = inside.run(main, "x", "--model", "anthropic:claude-sonnet-5-5", "--mode", "auto", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Looking around.\n\nNothing here.\n\n")


def test_an_error_in_json(shop: Path, inside: InProcessCli) -> None:
    done = inside.run(main, "x", "--model", "nope:x", "--output-format", "json", cwd=shop)
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["kind"] == "modelNotFound"


@pytest.mark.parametrize(
    ("limit", "reason"), [(("--max-steps", "1"), "stepLimit"), (("--timeout", "0.5"), "timeLimit")]
)
def test_limits(shop: Path, inside: InProcessCli, limit: tuple[str, str], reason: str) -> None:
    model = script(shop.parent, {"calls": [call("list_directory", path=".")]}, SLOW)
    done = inside.run(main, "x", "--model", model, *limit, "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["reason"], found["exitCode"]) == (5, reason, 5)


@pytest.mark.parametrize(
    ("event", "says", "message"),
    [
        (
            "BeforeModel",
            answer(decision="deny", reason="not today"),
            "A hook stopped the request to the model: not today",
        ),
        ("PostToolUse", answer(**{"continue": False, "stopReason": "enough"}), "A hook ended the turn: enough"),
        (
            "UserPromptSubmit",
            answer(decision="block", reason="no"),
            "A hook refused this prompt, so it was not sent: no.",
        ),
    ],
)
def test_what_a_hook_ended_has_failed(shop: Path, inside: InProcessCli, event: str, says: str, message: str) -> None:
    configure_user(**{event: [handler(says)]})
    model = script(shop.parent, {"calls": [call("list_directory", path=".")]}, {"text": "Done."})
    done = inside.run(main, "x", "--model", model, "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    refused = event == "UserPromptSubmit"
    assert (done.returncode, found["exitCode"], found["reason"]) == (1, 1, None if refused else "hook")
    assert found["error"]["message"] == message
    assert refused or (found["error"]["kind"], found["message"]) == ("hook", message)
    words = inside.run(main, "x", "--model", model, cwd=shop)
    assert (words.returncode, words.stdout) == (1, "")
    assert message in words.stderr


def test_a_loop_ends_it_with_its_own_reason_unless_nobody_looks(shop: Path, inside: InProcessCli) -> None:
    again = {"calls": [call("list_directory", path=".")]}
    model = script(shop.parent, *[again] * 12, {"text": "Empty."})
    arguments = ("x", "--model", model, "--output-format", "json")
    done = inside.run(main, *arguments, cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["reason"], found["steps"], found["exitCode"]) == (5, "loop", 10, 5)
    assert "kept going in circles after it was told to stop" in found["message"]
    done = inside.run(main, *arguments, "--no-loop-check", cwd=shop)
    assert (done.returncode, json.loads(done.stdout)["result"]) == (0, "Empty.")
    (find_home().make().config / "config.toml").write_text("loops = false\n")
    assert inside.run(main, *arguments, cwd=shop).returncode == 0


@pytest.mark.parametrize(
    ("policy", "expected"), [("judge", "Read it."), ("rules", "Read it."), ("off", "I'll now read it.")]
)
def test_a_model_that_announces_a_step_and_stops_goes_on_unless_that_is_off(
    shop: Path, inside: InProcessCli, policy: str, expected: str
) -> None:
    model = script(shop.parent, {"text": "I'll now read it."}, {"text": "Read it."})
    (find_home().make().config / "config.toml").write_text(f'next_speaker = "{policy}"\n')
    done = inside.run(main, "x", "--model", model, "--output-format", "json", cwd=shop)
    assert json.loads(done.stdout)["result"].endswith(expected)


def test_trust_is_for_this_run_only(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, {"text": "x"})
    arguments = ("x", "--model", model, "--output-format", "stream-json")
    ran = [inside.run(main, *arguments, *more, cwd=shop) for more in (["--trust"], [])]
    trusted = [json.loads(each.stdout.splitlines()[0])["trusted"] for each in ran]
    assert trusted == [True, False]


def test_every_call_completed_once(shop: Path, inside: InProcessCli) -> None:
    reads = [call("list_directory", path="."), call("glob", pattern="*")]
    model = script(shop.parent, {"calls": reads}, {"text": "x"})
    done = inside.run(main, "x", "--model", model, "--output-format", "stream-json", cwd=shop)
    events = [EventMessage.model_validate_json(line).event for line in done.stdout.splitlines()[1:-1]]
    ended = [event.item.item_id for event in events if isinstance(event, ItemCompleted)]
    assert len(ended) == len(set(ended)) == 4


def test_what_happens_is_logged_where_amanu_logs_looks(shop: Path, inside: InProcessCli) -> None:
    from amanu.home import find_home

    inside.run(main, "x", "--model", script(shop.parent, {"text": "x"}), cwd=shop)
    assert (find_home().logs / "daemon.log").exists()


def test_until_done_goes_on_until_the_model_says_so(shop: Path, inside: InProcessCli) -> None:
    finish = call("finish_task", summary="All of it is done.")
    model = script(
        shop.parent,
        {"text": "One."},
        {"expect": "If the task is done, call finish_task", "calls": [WRITE]},
        {"text": "What now?"},
        {"expect": "Nobody is available", "calls": [finish]},
    )
    arguments = ("x", "--model", model, "--mode", "auto", "--until-done")
    done = inside.run(main, *arguments, "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["reason"], found["result"]) == (0, "completed", "All of it is done.")
    assert (found["answers"], found["steps"]) == (["One.", "What now?", "All of it is done."], 4)
    assert (shop / "a.txt").exists()


def test_until_done_gives_up_in_the_end(shop: Path, inside: InProcessCli) -> None:
    model = script(shop.parent, *[{"text": "Well."}] * 11)
    done = inside.run(main, "x", "--model", model, "--mode", "auto", "--until-done", cwd=shop)
    assert done.returncode == 0
    assert "! The model stopped 11 times without calling finish_task." in done.stderr
    assert done.stdout.split() == ["Well."] * 11


def test_without_until_done_there_is_no_such_tool(shop: Path, inside: InProcessCli) -> None:
    finish = call("finish_task", summary="All of it is done.")
    model = script(shop.parent, {"calls": [finish]}, {"expect": "Unknown tool 'finish_task'", "text": "Well."})
    done = inside.run(main, "x", "--model", model, "--mode", "auto", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Well.\n\n")


@pytest.mark.parametrize("mode", [(), ("--mode", "ask"), ("--mode", "plan"), ("--mode", "acceptEdits")])
def test_until_done_is_for_runs_that_need_nobody(shop: Path, inside: InProcessCli, mode: tuple[str, ...]) -> None:
    model = script(shop.parent, {"text": "Never."})
    done = inside.run(main, "x", "--model", model, "--until-done", *mode, cwd=shop)
    fails(done, 2, ["--until-done continues without asking", "Add --mode auto."])


def test_each_retry_is_told_on_standard_error(
    shop: Path, inside: InProcessCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    model = script(shop.parent, {"text": "Half an answer.", "error": "streamBroken"})
    done = inside.run(main, "x", "--model", model, cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Half an answer.\n\n")  # of the second attempt alone
    assert "↻ The script asked for this failure. What it wrote is discarded. Attempt 2 follows." in done.stderr
    assert done.stderr.count("The script asked") == 1


def test_where_it_was_sent_and_what_it_took(shop: Path, inside: InProcessCli) -> None:
    from amanu.home import find_home

    mine = script(shop.parent, {"error": "quotaExhausted", "failures": 9})
    (shop.parent / "other.json").write_text('[{"text": "Other.", "usage": {"input": 10, "output": 5}}]')
    other = f"scripted:{shop.parent / 'other.json'}"
    (find_home().make().config / "config.toml").write_text(f'[routing]\nfallback = ["{other}"]\n')
    done = inside.run(main, "x", "--model", mine, "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["result"], found["modelId"]) == (0, "Other.", other)
    assert [each["modelId"] for each in found["routed"]] == [other]
    assert "is used instead" in found["routed"][0]["reason"]
    assert (found["turnUsage"]["inputTokens"], found["turnUsage"]["costUsd"]) == (10, 0.0)
    text = inside.run(main, "x", "--model", mine, cwd=shop)
    assert (text.returncode, text.stdout) == (0, "Other.\n\n")
    assert text.stderr.count("is used instead") == 1
    assert "10 in · 5 out · $0.0000" in text.stderr


def test_auto_is_chosen_by_name_and_says_so(shop: Path, inside: InProcessCli) -> None:
    from amanu.home import find_home

    planner = script(shop.parent, {"text": "Planned."})
    (find_home().make().config / "config.toml").write_text(f'model = "{planner}"\n[routing]\nplan = "{planner}"\n')
    done = inside.run(main, "x", "--model", "amanu:auto", "--mode", "plan", cwd=shop)
    assert (done.returncode, done.stdout) == (0, "Planned.\n\n")
    assert "Automatic (amanu:auto) · model and price are chosen for each turn" in done.stderr
    assert f"→ {planner}: Turns in plan mode go to" in done.stderr


def test_what_runs_in_the_background_ends_with_the_run(shop: Path, inside: InProcessCli) -> None:
    number = str(time.monotonic_ns())
    start = {"command": f"echo up; sleep 77.{number}", "background": True, "until": "up"}
    steps = (
        {"text": "", "calls": [{"tool": "run_shell_command", "arguments": start}]},
        {"text": "", "calls": [{"tool": "read_command", "arguments": {"job": "job-1"}}]},
        {"text": "Started."},
    )
    done = inside.run(main, "x", "--model", script(shop.parent, *steps), "--mode", "auto", cwd=shop)
    assert (done.returncode, done.stdout.strip()) == (0, "Started.")
    assert running(number) == []


def test_what_sub_agents_did_is_in_the_report_and_what_they_said_is_not_the_answer(
    shop: Path, inside: InProcessCli
) -> None:
    writer = [{"text": "I write.", "calls": [WRITE]}, {"text": "", "calls": [call("complete_task", result="Written.")]}]
    user_agent(shop.parent, "writer", writer)
    model = script(shop.parent, {"text": "", "calls": [ask_agent("writer")]}, {"text": "Done."})
    done = inside.run(main, "do it", "--model", model, "--mode", "acceptEdits", "--output-format", "json", cwd=shop)
    found = json.loads(done.stdout)
    assert (done.returncode, found["result"], found["answers"]) == (0, "Done.", ["Done."])
    by_agent = {used["tool"]: used["agentId"] for used in found["toolCalls"]}
    assert by_agent == {"run_agent": None, "write_file": "agent-1"}
    (shown,) = found["agents"]
    assert (shown["name"], shown["state"], shown["steps"]) == ("writer", "completed", 2)
    as_text = inside.run(main, "do it", "--model", model, "--mode", "acceptEdits", cwd=shop)
    assert as_text.stdout.strip() == "Done."
    assert "▸ writer 1: the task of writer\n  writer 1 │ I write.\n" in as_text.stderr
    assert "✓ writer 1: the task of writer  Completed: 2 steps\n" in as_text.stderr
