"""A user's folders with settings, rules and one session, as `tests/unit/states/` keeps them of each version.

python -m support.keep_state FOLDER    makes FOLDER; states/README.md has the whole command
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path

from amanu.config import load_settings
from amanu.core.rules import parse_rule
from amanu.home import find_home
from amanu.permissions import approvals
from amanu.permissions.rule_store import RuleStore
from amanu_protocol.requests import CheckpointRestoreParams
from support.draft_session import edit, finish, is_over
from support.scripted_session import ScriptedSession, call, scripted_session, step

PLACE = Path("/mnt")
SETTINGS = """\
mode = "draft"  # of new sessions

[limits]
steps = 40
cost_usd = 2.0

[rules]
allow = ["run_shell_command(make *)"]
must_ask = ["@write(pyproject.toml)"]
deny = ["@read(secrets/**)"]
"""
STEPS = (
    step("The second line first.", edit("line 2\n", "line two\n")),
    step("It is a word now."),
    step("A picture, too.", call("run_shell_command", command="printf 'a\\0b' > new.bin"), edit("line 9\n", "nine\n")),
    step("Both are in a draft."),
    step("One more.", edit("line 5\n", "line five\n")),
    step("That was too much."),
)


async def play(d: ScriptedSession) -> None:
    """One turn whose draft is accepted, one whose draft stays open, one that is taken back."""
    await d.prompt("Number two as a word, please.", "p1")
    while not is_over(await d.until(lambda state: state.approvals or is_over(state, "p1")), "p1"):
        await d.decide("accept")
    await d.prompt("Now nine, and a picture.", "p2")
    await finish(d, "p2")
    await d.prompt("And five.", "p3")
    await finish(d, "p3")
    await d.session.checkpoints.restore(CheckpointRestoreParams(session_id="s", turn_id="turn-p3", conversation=True))


async def main(target: Path) -> None:
    approvals.GUARD_SECONDS = 0.0
    home = find_home().make()
    home.settings.write_text(SETTINGS)
    async with scripted_session(PLACE, *STEPS, mode="draft") as d:
        await play(d)
        rules = RuleStore(home.config, load_settings(home, os.environ))
        rules.remember("user", parse_rule("allow", "run_shell_command(git fetch *)", ""), [])
        rules.remember("workspace", parse_rule("allow", "run_shell_command(npm test *)", ""), [str(d.root)])
    shutil.copytree(home.config, target / "config")
    shutil.copytree(home.state, target / "state", ignore=shutil.ignore_patterns("lock", "lease"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
