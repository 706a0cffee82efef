"""Calls about several things: the strictest rule decides, and no answer covers more than what was shown."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from amanu.agent.approval import Approvals
from amanu.agent.policy import Rule
from amanu.tools.base import Preview, Subject
from amanu_protocol.events import ApprovalRequested
from amanu_protocol.items import Decision, Mode


class Heard(list[Any]):
    def __call__(self, event: Any, entry: Any = None) -> None:
        self.append(event)

    def delta(self, item_id: str, text: str) -> None: ...

    async def durable(self) -> None: ...


def writes(*paths: str) -> list[Subject]:
    return [Subject("apply_patch", "write", path) for path in paths]


def preview(subjects: Sequence[Subject]) -> Preview:
    return Preview("Change files", subjects[0], "a diff", also=tuple(subjects[1:]))


def approvals(heard: Heard, *, mode: Mode = "ask", headless: bool = False, allow: Sequence[str] = ()) -> Approvals:
    rules = [Rule("allow", text, "test") for text in allow]
    return Approvals(heard, lambda: mode, lambda: rules, lambda scope, rule: None, headless=headless)


@pytest.mark.parametrize(
    ("mode", "subjects", "decision", "rule", "rememberable"),
    [
        ("ask", writes("a.py", ".vscode/tasks.json"), "ask", "@write(**/.vscode/**)", False),
        ("ask", writes(".git/hooks/x", "a.py"), "ask", "@write(**/.git/**)", False),
        ("acceptEdits", writes("a.py", "sub/AGENTS.MD"), "ask", "@write(**/AGENTS.md)", False),
        ("acceptEdits", writes("a.py", "b.py"), "allow", "@write", True),
        ("ask", writes("a.py", "b.py"), "ask", "no rule", True),
        ("plan", writes(".amanu/plans/a.md", "src/a.py"), "deny", "@write", True),
        ("plan", writes(".amanu/plans/a.md", ".vscode/x"), "deny", "@write", True),
        ("plan", writes(".amanu/plans/a.md", ".amanu/plans/b.md"), "allow", ".amanu/plans", True),
        ("plan", writes(".amanu/plans/a.md", ".amanu/plans/sub/b.md"), "deny", "@write", True),
    ],
)
def test_the_strictest_rule_decides(
    mode: Mode, subjects: list[Subject], decision: str, rule: str, rememberable: bool
) -> None:
    verdict = approvals(Heard(), mode=mode).verdict(subjects)
    assert (verdict.decision, verdict.rememberable) == (decision, rememberable)
    assert rule in verdict.rule


@pytest.mark.parametrize(
    ("subjects", "scopes"),
    [
        (writes("a.py"), 5),
        (writes("a.py", "a.py"), 5),
        (writes("a.py", "b.py"), 1),  # a rule for a.py would not be what was agreed to
        (writes("a.py", "b.py\u202e"), 1),
        (writes("a.py", ".vscode/x"), 1),
    ],
)
async def test_what_is_about_several_files_is_answered_once(subjects: list[Subject], scopes: int) -> None:
    heard = Heard()
    asking = asyncio.ensure_future(approvals(heard).decide("c1", preview(subjects), lambda: None))
    while not heard:
        await asyncio.sleep(0)
    (asked,) = heard
    assert isinstance(asked, ApprovalRequested) and len(asked.approval.scopes) == scopes
    asking.cancel()


@pytest.mark.parametrize(
    ("subjects", "allow", "says", "never"),
    [
        (writes("a.py"), (), ["--allow '@write(a.py)'"], "always"),
        (writes("a.py", "b.py", "a.py"), (), ["--allow '@write(a.py)' --allow '@write(b.py)'."], "always"),
        (writes("a.py", "b.py"), ["@write(a.py)"], ["--allow '@write(b.py)'."], "a.py"),
        (writes("a.py", ".mcp.json"), (), ["always asked", "**/.mcp.json"], "--allow"),
    ],
)
async def test_where_nobody_can_be_asked_it_says_all_that_would_help(
    subjects: list[Subject], allow: list[str], says: list[str], never: str
) -> None:
    def asking() -> None:
        raise AssertionError("nobody is there")

    decision: Decision = await approvals(Heard(), headless=True, allow=allow).decide("c1", preview(subjects), asking)
    assert decision.outcome == "denied" and decision.reason is not None
    assert all(each in decision.reason for each in says) and never not in decision.reason
