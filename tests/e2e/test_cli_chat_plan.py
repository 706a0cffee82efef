"""Plan mode in `amanu chat` on a small screen: proposed by the model, sent back, edited, approved into `acceptEdits`,
its to-dos ticked, with a compaction in the middle."""

import time
from pathlib import Path

import pytest

from e2e.test_cli_chat import Screen, daemon
from support.planner import Planner
from support.service_thread import serving
from support.strict_services.anthropic import Anthropic

__all__ = ["daemon"]  # a fixture: pytest finds it by name

EDITOR = """#!/bin/sh
sed -i 's/^2. Read it again$/&\\n3. Tell everybody/' "$1"
"""
LAST_OPTION = "or say what to change"


@pytest.mark.usefixtures("daemon")
def test_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.txt").write_text("hi\n")
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    planner = Planner()
    service = Anthropic(planner.answer)
    with serving(service) as url:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        screen = Screen(cwd=folder, size=(90, 26))

        def answers(text: str) -> None:
            time.sleep(0.6)  # sooner does not count
            screen.types(f"{text}\r")

        try:
            screen.sees("2. Trust this folder")
            screen.types("n\r")
            screen.takes_prompts()
            screen.types("Greet politely\r")

            # the model proposes to plan, and the user agrees
            screen.sees("? Plan before changing anything")
            screen.sees("several ways to greet.")
            screen.sees("Allow once")
            answers("y")

            # the plan is shown once, whole; what the user types sends it back
            screen.sees("? Carry out this plan")
            screen.sees("None that I know of.")
            assert screen.shown.count("None that I know of.") == 1, "not as a diff, too"
            screen.sees(LAST_OPTION)
            answers("think of those who like the old one")
            screen.sees("⊘ Carry out this plan  rejected by you: “think of those who like the old one”")
            screen.sees("- None that I know of.")  # what was revised is shown
            screen.sees(LAST_OPTION)
            assert "They said: think of those who like the old one" in planner.last

            # the user adds a step of their own and approves what they see
            answers("e")
            screen.sees("3. Tell everybody")
            screen.sees("1. approve, in acceptEdits mode")
            screen.sees(LAST_OPTION)
            assert "has changed since" not in screen.shown, "they know: they did it"
            answers("1")
            screen.sees("mode: acceptEdits")
            screen.sees("☐ Tell everybody")
            screen.sees("▸ Read it again")
            screen.sees("Half of it is done.")
            assert (folder / "hello.txt").read_text() == "Good morning\n"

            # after a compaction the model has the plan and the list from the daemon
            screen.types("/compact\r")
            screen.sees("Compacted")
            screen.types("Go on\r")
            screen.sees("The plan is carried out.")
            assert planner.last.count("3. Tell everybody") == 1
            assert "Mode: acceptEdits" in planner.last
            screen.takes_prompts()
            screen.types("\x04")
            assert screen.leaves() == 0
        finally:
            screen.close()
    assert not service.refused
    assert not service.lint
