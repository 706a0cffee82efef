"""The scripted model, and the demo it ships with."""

import difflib
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Assistant, Conversation, Native, Result, Results, Text, User
from amanu.core.model import (
    CallDelta,
    CallStarted,
    Delta,
    ModelError,
    Overloaded,
    RateLimited,
    ReplyCompleted,
    Request,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
)
from amanu.models.scripted import DECIDED_OTHERWISE, OVER, ScriptedModel, load

SAMPLE = Path(str(files("amanu.cli"))) / "sample"
DEMO: list[dict[str, Any]] = json.loads((files("amanu.models") / "scripts" / "demo.json").read_text("utf-8"))


def ask(model: ScriptedModel, conversation: Conversation) -> Request:
    return Request(model=model.info, system="", tools=(), conversation=conversation, session_id="s1")


async def play(model: ScriptedModel, conversation: Conversation) -> list[Delta]:
    return [delta async for delta in model.stream(ask(model, conversation))]


async def say(model: ScriptedModel, conversation: Conversation) -> ReplyCompleted:
    last = (await play(model, conversation))[-1]
    assert isinstance(last, ReplyCompleted)
    conversation.append(last.message)
    return last


async def test_a_call_can_name_the_plan_as_the_model_was_told_of_it() -> None:
    step = {"calls": [{"tool": "write_file", "arguments": {"path": "{plan}", "content": "the {plan}"}}]}
    told = "Mode: plan. The only file you may write is the plan, /home/a user/s1/plan.md. Phases: …"
    for said, path in ((told, "/home/a user/s1/plan.md"), ("Go.", "{plan}")):
        done = await say(ScriptedModel([step]), Conversation([User(text=said)]))
        assert [call.arguments for call in done.message.calls] == [{"path": path, "content": "the {plan}"}]


async def test_a_step_is_thought_text_and_calls() -> None:
    step = {
        "thought": "Hm, so.",
        "text": "Reading.",
        "calls": [{"tool": "read_file", "arguments": {"path": "ä"}}, {"tool": "odd", "arguments": "{broken"}],
        "chunk": 4,
        "usage": {"input": 3, "thoughts": 2},
    }
    *deltas, done = await play(ScriptedModel([step]), Conversation([User(text="Go.")]))
    assert isinstance(done, ReplyCompleted)
    assert [each.text for each in deltas if isinstance(each, ThoughtDelta)] == ["Hm, ", "so."]
    assert [each.text for each in deltas if isinstance(each, TextDelta)] == ["Read", "ing."]
    calls = done.message.calls
    assert [(each.tool, each.arguments) for each in calls] == [("read_file", {"path": "ä"}), ("odd", "{broken")]
    assert [each.call_id for each in deltas if isinstance(each, CallStarted)] == [each.call_id for each in calls]
    pieces = [each for each in deltas if isinstance(each, CallDelta)]
    assert max(len(each.text) for each in pieces) == 4
    written = ["".join(each.text for each in pieces if each.call_id == call.call_id) for call in calls]
    assert [json.loads(written[0]), written[1]] == [{"path": "ä"}, "{broken"]
    assert (done.stop, done.usage) == ("calls", TokenUsage(input=3, thoughts=2))


async def test_steps_follow_the_replies_and_the_end_is_said() -> None:
    model = ScriptedModel([{"text": "one"}, {"text": "two"}])
    conversation = Conversation()
    heard: list[str] = []
    for _ in range(4):
        conversation.append(User(text="Next."))
        heard.append((await say(model, conversation)).message.text)
    assert heard == ["one", "two", OVER, OVER]


async def test_replies_of_a_real_model_are_not_counted() -> None:
    native = Native(wire="gemini", model="m", blocks=[])
    before = Assistant(parts=(Text(text="Hello."),), native=native)
    conversation = Conversation([User(text="Hi."), before, User(text="Go.")])
    assert (await say(ScriptedModel([{"text": "one"}]), conversation)).message.text == "one"


@pytest.mark.parametrize(
    ("last", "met"),
    [
        (User(text="say blue"), True),
        (User(text="say red"), False),
        (Results(results=(Result(call_id="c", tool="t", text="blue!"),)), True),
        (Results(results=(Result(call_id="c", tool="t", text=""),), notes=("so blue",)), True),
        (Results(results=(Result(call_id="c", tool="t", text="grey"),)), False),
    ],
)
async def test_what_is_expected_must_be_heard(last: User | Results, met: bool) -> None:
    model = ScriptedModel([{"expect": "blue", "text": "Right."}])
    done = (await play(model, Conversation([last])))[-1]
    assert isinstance(done, ReplyCompleted)
    assert (done.message.text == "Right.") is met
    assert met or "'blue'" in done.message.text


async def test_a_shipped_script_ends_politely() -> None:
    """Another's says what it heard, in code: no Markdown may take `__pycache__` for emphasis."""
    for shipped, said in (
        (True, DECIDED_OTHERWISE),
        (False, "````text\n(scripted model: step 1 expected to hear 'OK', "),
    ):
        model = ScriptedModel([{"expect": "OK", "text": "Right."}], shipped=shipped)
        done = await say(model, Conversation([User(text="__pycache__")]))
        assert done.message.text.startswith(said) and ("__pycache__" in done.message.text) is not shipped


@pytest.mark.parametrize(("name", "error"), [("overloaded", Overloaded), ("rateLimited", RateLimited)])
async def test_an_error_comes_once_after_what_was_said(name: str, error: type[ModelError]) -> None:
    model = ScriptedModel([{"text": "Half", "error": name}])
    conversation = Conversation([User(text="Go.")])
    shown: list[Delta] = []
    with pytest.raises(error):
        async for delta in model.stream(ask(model, conversation)):
            shown.append(delta)
    assert shown == [TextDelta("Half")]
    assert (await say(model, conversation)).message.text == "Half"


def test_it_says_that_it_is_scripted() -> None:
    info = load("demo").info
    assert info.model_id == "scripted:demo"
    assert "no real model" in info.name


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        ("{", "is not valid at its top"),
        ('{"text": "a"}', "is not valid at its top"),
        ('[{"text": "a", "txet": "b"}]', "is not valid at 0.txet"),
        ('[{"error": "tired"}]', "is not valid at 0.error"),
    ],
)
def test_a_bad_script_is_refused_with_a_reason(tmp_path: Path, content: str | None, complaint: str) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match=complaint):
        load(str(path))
    with pytest.raises(ValueError, match="cannot be read"):
        load("nothing")


# The demo ----------------------------------------------------------------------------------------------


async def test_the_demo_plays_to_its_end() -> None:
    """With results as the tools would give them, no step complains."""
    model = ScriptedModel([{**step, "delay_ms": 0} for step in DEMO])
    conversation = Conversation([User(text="The tests are red. Please fix them.")])
    tools: list[list[str]] = []
    while (done := await say(model, conversation)).stop == "calls":
        calls = done.message.calls
        tools.append([call.tool for call in calls])
        texts = {"read_file": (SAMPLE / "cart.py").read_text("utf-8"), "run_shell_command": "Ran 3 tests\n\nOK"}
        conversation.append(
            Results(
                results=tuple(
                    Result(call_id=each.call_id, tool=each.tool, text=texts.get(each.tool, "")) for each in calls
                )
            )
        )
    assert tools == [["read_file", "read_file"], ["edit_file"], ["run_shell_command"]]
    assert "scripted model" not in done.message.text


def test_the_demo_turns_the_sample_from_red_to_green_in_two_hunks(tmp_path: Path) -> None:
    for name in ("cart.py", "test_cart.py"):
        (tmp_path / name).write_bytes((SAMPLE / name).read_bytes())
    edit = DEMO[1]["calls"][0]["arguments"]
    before = (tmp_path / edit["path"]).read_text("utf-8")
    assert before.count(edit["old_text"]) == 1
    after = before.replace(edit["old_text"], edit["new_text"])
    changes = difflib.SequenceMatcher(a=before.splitlines(), b=after.splitlines()).get_opcodes()
    assert [change[0] for change in changes if change[0] != "equal"] == ["replace", "replace"]
    assert run_tests(tmp_path) == 1
    (tmp_path / edit["path"]).write_text(after, "utf-8")
    assert run_tests(tmp_path) == 0


def run_tests(folder: Path) -> int:
    """Exit code of the sample's tests; the demo's own command, with this Python."""
    assert DEMO[2]["calls"][0]["arguments"]["command"] == "python3 -m unittest"
    return subprocess.run(
        [sys.executable, "-B", "-m", "unittest"], cwd=folder, capture_output=True, check=False
    ).returncode
