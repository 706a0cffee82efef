"""From a session to that of its sub-agent, and back."""

import re
from pathlib import Path

from support.agent_session import ask_agent, complete, user_agent
from support.cli_process import call
from support.scripted_session import step
from unit.cli.test_chat import ENTER, Desk, desk, started

__all__ = ["desk"]  # a fixture: pytest finds it by name


async def test_who_goes_to_the_session_of_an_agent_sees_it_work_and_goes_on_there(desk: Desk, tmp_path: Path) -> None:
    wait = call("run_shell_command", command="while [ ! -e go ]; do sleep 0.05; done")
    user_agent(tmp_path, "slow", [step("I wait.", wait), step("", complete()), step("Still here.")])
    await started(desk, tmp_path, step("", ask_agent("slow")), step("Both are done."))
    desk.types("/mode auto" + ENTER)
    await desk.sees("mode: auto")
    desk.types("go" + ENTER)
    await desk.sees("slow 1 │ I wait.")
    desk.types("/agents open 1" + ENTER)
    await desk.sees("goes to its session.")
    (child,) = re.findall(r"/sessions (\S+) goes to its session", desk.out.getvalue())
    desk.types(f"/sessions {child}" + ENTER)
    await desk.sees(
        "This is the session of the sub-agent slow. Its questions are asked in the session it works for: /sessions "
    )
    desk.types("/mode plan" + ENTER)
    await desk.sees("mode auto. A sub-agent works in the mode of the session it works for: change it there.")
    (desk.root / "go").touch()
    await desk.sees("✓ Complete the task")
    await desk.sees("The sub-agent has ended.")
    desk.types("are you there?" + ENTER)
    await desk.sees("› are you there?")
    await desk.sees("Still here.")
    parent = re.findall(r"it works for: /sessions (\w+)\.", desk.out.getvalue())[-1]
    desk.types(f"/sessions {parent[:8]}" + ENTER)
    await desk.sees("✓ slow 1: the task of slow  Completed: 2 steps")
    await desk.sees("Both are done.")
    desk.types("/quit" + ENTER)
    assert await desk.left() == 0
