"""What checkers say of an applied edit: each as soon as it knows, none held back by a slower one."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from amanu.checks.applied_checks import AppliedChecks
from amanu.core.tool import Outcome
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.workspace.diagnostics import FindingsChange
from amanu_protocol.base import LineRange
from amanu_protocol.items import Finding
from support.tool_harness import ToolHarness

FILE = Path("/w/a.py")


def finds(message: str) -> FindingsChange:
    return FindingsChange((Finding(lines=LineRange.numbered(1, 1), severity="error", message=message, source=message),))


class Checkers:
    """A quick one, and one that waits for its gate."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.ended = False

    async def check(self, path: Path, old_text: str | None, new_text: str) -> AsyncGenerator[FindingsChange]:
        try:
            yield finds("quick")
            await self.gate.wait()
            yield finds("slow")
        finally:
            self.ended = True


def taken(checks: AppliedChecks) -> list[str]:
    found = checks.take(FILE)
    return [] if found is None else [finding.message for finding in found[1].added]


async def edited(held: ToolHarness) -> Outcome:
    context, rules = held.context(), (*built_in(), *of_mode("acceptEdits"))
    context.allowed = lambda subjects: [each for each in subjects if decide(rules, each).decision == "allow"]
    return await held.run("edit_file", {"path": "a.py", "old_text": "one", "new_text": "two"}, call=context)


async def test_the_result_of_an_edit_has_the_quick_ones_verdict_and_the_slow_ones_comes_later(tmp_path: Path) -> None:
    checkers = Checkers()
    held = ToolHarness(tmp_path, {"a.py": "one\n"}, check=checkers.check, wait=0.05)
    outcome = await edited(held)
    assert "- 1: error: quick (quick)" in outcome.for_model and "slow" not in outcome.for_model
    assert await held.aftermath.collect_late(lambda _: True) is None
    checkers.gate.set()
    late = None
    while late is None:
        await asyncio.sleep(0)
        late = await held.aftermath.collect_late(lambda _: True)
    assert "- 1: error: slow (slow)" in late[0] and "quick" not in late[0]
    noted = held.versions[-1].files[0].checks
    assert [[finding.message for finding in check.added] for check in noted] == [["quick", "slow"]]
    await held.aftermath.close()


@pytest.mark.parametrize(
    ("all_ended", "told"),
    [(True, "this change fixes 1 and adds nothing new."), (False, "this change fixes 1.")],
)
async def test_that_nothing_is_new_is_said_when_all_have_looked(tmp_path: Path, all_ended: bool, told: str) -> None:
    gate, ended = asyncio.Event(), asyncio.Event()
    if all_ended:
        gate.set()

    async def check(path: Path, old_text: str | None, new_text: str) -> AsyncGenerator[FindingsChange]:
        yield FindingsChange((), 1)
        await gate.wait()
        yield FindingsChange()
        ended.set()

    held = ToolHarness(tmp_path, {"a.py": "one\n"}, check=check, wait=0.05)
    outcome = await edited(held)
    assert outcome.for_model.endswith(told)
    noted = len(held.versions)
    gate.set()
    await ended.wait()
    assert len(held.versions) == noted, "who finds nothing changes no proposal"
    await held.aftermath.close()


async def test_each_is_taken_once_as_soon_as_it_is_known() -> None:
    checks, checkers = AppliedChecks(), Checkers()
    checks.start(FILE, lambda: "text", checkers.check(FILE, None, "text"))
    assert (checks.known, taken(checks)) == ([], [])
    await asyncio.sleep(0)
    assert (checks.known, taken(checks), taken(checks)) == ([FILE], ["quick"], [])
    running = checks.pending(FILE)
    assert running is not None
    checkers.gate.set()
    await running
    assert (checks.known, taken(checks), checks.known) == ([FILE], ["slow"], [])


@pytest.mark.parametrize("closed", [False, True])
async def test_what_is_dropped_ends(closed: bool) -> None:
    checks, checkers = AppliedChecks(), Checkers()
    checks.start(FILE, lambda: "text", checkers.check(FILE, None, "text"))
    running = checks.pending(FILE)
    await asyncio.sleep(0)
    if closed:
        await checks.close()
    else:
        checks.forget(FILE)
        assert running is not None
        await asyncio.wait([running])
    assert checkers.ended
