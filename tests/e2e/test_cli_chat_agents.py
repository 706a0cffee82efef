"""Sub-agents in `amanu chat` on a small screen: two at once that both ask, one that is stopped, one that is opened."""

import re
import time
from pathlib import Path

import pytest

from amanu.cli.question_input import WHILE_WAITING
from e2e.test_cli_chat import Screen, daemon
from support.agent_session import ask_agent, complete, user_agent
from support.cli_process import call, script
from support.scripted_session import step

__all__ = ["daemon"]  # a fixture: pytest finds it by name

SIZE = (90, 26)


def begin(folder: Path, *steps: object) -> Screen:
    """The chat in that folder, which is not trusted."""
    screen = Screen("--model", script(folder.parent, *steps), cwd=folder, size=SIZE)  # pyright: ignore
    screen.sees("2. Trust this folder")
    screen.types("n\r")
    screen.takes_prompts()
    return screen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def answers(screen: Screen, text: str) -> None:
    time.sleep(0.6)  # sooner does not count
    screen.types(f"{text}\r")


@pytest.mark.usefixtures("daemon")
def test_two_ask_and_each_question_says_whose_it_is(folder: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        edit = call("write_file", path=f"{name}.txt", content=f"{name}\n")
        user_agent(tmp_path, name, [step("", edit), step("", complete())])
    screen = begin(folder, step("", ask_agent("one"), ask_agent("two")), step("Both are done."))
    try:
        screen.types("go\r")
        for answer in ("a", "r"):
            screen.sees("Requested by the sub-agent")
            screen.sees("Accept all")
            if answer == "a":
                screen.types("/running\r")  # at a question, too
                screen.sees("/agents stop ID")
                assert "the task of one · " in screen.shown and "the task of two · " in screen.shown
            answers(screen, answer)
        screen.sees("Both are done.")
        screen.takes_prompts()
        wanted = re.findall(r"Requested by the sub-agent (\w+) \(agent-(\d)\)", screen.shown)
        asked = [(f"{name} {number}", name) for name, number in wanted]
        assert sorted(name for _, name in asked) == ["one", "two"]  # who is the first to begin, nobody knows
        accepted, rejected = (Path(folder, f"{name}.txt").exists() for _, name in asked)
        assert accepted and not rejected
        assert f"{asked[0][0]} │ ✓ Create {asked[0][1]}.txt" in screen.shown
        assert f"{asked[1][0]} │ ⊘ Create {asked[1][1]}.txt" in screen.shown
        for label, name in asked:
            assert f"? {label}: Create {name}.txt" in screen.shown
            assert f"▸ {label}: the task of {name}" in screen.shown
            assert f"✓ {label}: the task of {name}  Completed: 2 steps" in screen.shown
        screen.types("/agents open 1\r")
        screen.sees("Task: the task of ")
        screen.sees("/sessions agent-")
        screen.types("\x04")
        assert screen.leaves() == 0
    finally:
        screen.close()
    again = Screen("--continue", cwd=folder, size=SIZE)  # the session, not that of its agent, which is newer
    try:
        again.sees("› go")
        again.sees(f"▸ {asked[0][0]}: the task of ")
        again.sees(f"{asked[0][0]} │ ")
        again.sees("Both are done.")
        again.types("\x04")
        assert again.leaves() == 0
    finally:
        again.close()


@pytest.mark.usefixtures("daemon")
def test_one_is_stopped_and_the_turn_goes_on(folder: Path, tmp_path: Path) -> None:
    user_agent(tmp_path, "slow", [step("x", delay_ms=60_000)])
    background = step("", ask_agent("slow", background=True))
    screen = begin(folder, step("", ask_agent("slow")), step("Without it."), background, step("It works."))
    try:
        screen.types("go\r")
        screen.sees("▸ slow 1: the task of slow")
        screen.sees("1 agent")  # below the prompt
        screen.types("/agents stop 2\r")
        screen.sees("There is no agent 2 in this session.")
        screen.types("/agents stop 1\r")
        screen.sees("■ slow 1: the task of slow  Cancelled: ")
        screen.sees("Without it.")
        screen.takes_prompts()
        screen.types("again\r")
        screen.sees("▸ slow 2: the task of slow  in the background")
        screen.sees("It works.")
        screen.types("\x04")
        screen.sees("1 agent at work; amanu chat --continue returns to the session.")
        assert screen.leaves() == 0
    finally:
        screen.close()


def test_agents_are_listed_while_a_question_waits() -> None:
    assert {"/agents", "/running", "/jobs"} <= {*WHILE_WAITING}
