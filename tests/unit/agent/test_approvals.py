"""Calls about several things: the strictest rule decides, and no answer covers more than what was shown."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from amanu.core.command import Command
from amanu.core.rules import parse_rule
from amanu.core.tool import Preview, Subject
from amanu.permissions.approvals import Approvals
from amanu.permissions.ceilings import Ceilings
from amanu.permissions.policy import PolicyContext
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested
from amanu_protocol.items import Decision, Grant, Mode, Proposal
from amanu_protocol.requests import ApprovalResolveParams
from support.fake_policy import FakePolicy


class Heard(list[Any]):
    def __call__(self, event: Any, entry: Any = None) -> None:
        self.append(event)

    def delta(self, item_id: str, text: str) -> None: ...

    def redact(self, text: str) -> str:
        return text

    async def durable(self) -> None: ...


def writes(*paths: str) -> list[Subject]:
    return [Subject("apply_patch", "write", path) for path in paths]


def preview(subjects: Sequence[Subject]) -> Preview:
    return Preview("Change files", subjects[0], "a diff", extra_subjects=tuple(subjects[1:]), digest="of the call")


PLAN = Subject("write_file", "write", "plan.md", plan=True)


def approvals(heard: Heard, *, mode: Mode = "ask", headless: bool = False, allow: Sequence[str] = ()) -> Approvals:
    rules = [parse_rule("allow", text, "test") for text in allow]
    return Approvals(heard, FakePolicy(lambda: PolicyContext(mode), lambda: rules), headless=headless)


@pytest.mark.parametrize(
    ("mode", "subjects", "decision", "rule", "rememberable"),
    [
        ("ask", writes("a.py", ".vscode/tasks.json"), "ask", "@write(**/.vscode/**)", False),
        ("ask", writes(".git/hooks/x", "a.py"), "ask", "@write(**/.git/**)", False),
        ("acceptEdits", writes("a.py", "sub/AGENTS.MD"), "ask", "@write(**/AGENTS.md)", False),
        ("acceptEdits", writes("a.py", "b.py"), "allow", "@write", True),
        ("ask", writes("a.py", "b.py"), "ask", "no rule", True),
        ("plan", [PLAN, *writes("src/a.py")], "deny", "@write, other files than the plan", True),
        ("plan", [PLAN, *writes(".vscode/x")], "deny", "@write", True),
        ("plan", writes("plan.md"), "deny", "@write", True),
        ("plan", [PLAN], "allow", "@write, the plan", True),
        ("ask", [PLAN], "ask", "no rule", True),
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


async def test_a_rule_is_credited_with_what_no_other_rule_answers() -> None:
    heard = Heard()
    asked = approvals(heard)
    for call, path in (("c1", "a.py"), ("c2", "b.py")):
        task = asyncio.ensure_future(asked.decide(call, preview(writes(path)), lambda: None))
        while asked.pending(call) is None:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asked.allow_in_session(parse_rule("allow", "@write(a.py)", "session"))
    assert len(asked.would_cover("@write(*.py)", None)[1]) == 1
    assert asked.would_cover("@write(a.py)", None) == (None, [])


def runs(*lines: str, network: Sequence[str] = (), effectless: Sequence[str] = ()) -> list[Subject]:
    return [
        Subject(
            "run_shell_command",
            "run",
            line,
            command=Command(
                line,
                tuple(line.split()),
                "none" if line in effectless else "some",
                "",
                tuple(line.split()[:2]),
                network=line in network,
            ),
        )
        for line in lines
    ]


def unprefixed(subjects: Sequence[Subject]) -> list[Subject]:
    """The same, but nothing is remembered of them."""
    return [replace(each, command=each.command and replace(each.command, prefix=None)) for each in subjects]


@pytest.mark.parametrize(
    ("subjects", "allow", "permitted"),
    [
        (writes("a.py"), [], ["@write(a.py)"]),
        (writes("a.py", "b.py", "a.py"), [], ["@write(a.py)", "@write(b.py)"]),
        (writes("a.py", "b.py"), ["@write(a.py)"], ["@write(b.py)"]),
        (writes("a.py", ".mcp.json"), [], []),
        (runs("make all"), [], ["run_shell_command(make all *)"]),
        # an answer saves no rule for these, but one that says just this is one
        (unprefixed(runs("rm -rf build")), [], ["run_shell_command(rm -rf build)"]),
        (runs("git reset --hard"), ["@run(git *)"], ["run_shell_command(git reset --hard)"]),
        (unprefixed(runs("python3 -m http.server")), [], ["run_shell_command(python3 -m http.server)"]),
        (
            unprefixed(runs("python3 -m http.server", network=["python3 -m http.server"])),
            ["@run(python3 *)"],
            ["run_shell_command+network(python3 -m http.server)"],
        ),
        (
            [*runs("git fetch x", network=["git fetch x"]), *unprefixed(runs("rm -rf b"))],
            ["@run(rm -rf b)"],
            ["run_shell_command+network(git fetch *)", "run_shell_command+network(rm -rf b)"],
        ),
        ([Subject("run_shell_command", "run", "a $(", unclear=True)], [], []),
        ([Subject("run_shell_command", "run", "$x")], [], []),
    ],
)
async def test_where_nobody_can_be_asked_it_says_all_that_would_help_and_that_does(
    subjects: list[Subject], allow: list[str], permitted: list[str]
) -> None:
    def asking() -> None:
        raise AssertionError("nobody is there")

    decision: Decision = await approvals(Heard(), headless=True, allow=allow).decide("c1", preview(subjects), asking)
    assert decision.outcome == "denied" and decision.reason is not None
    assert decision.permitted_by == (permitted[0] if permitted else "")
    options = " ".join(f"--allow '{text}'" for text in permitted)
    assert decision.reason.startswith(
        f"Nobody is there to approve it. Permit it with {options}."
        if permitted
        else "Nobody is there to approve it. No rule can allow it, only the user"
    )
    helped = await approvals(Heard(), headless=True, allow=[*allow, *permitted]).decide("c1", preview(subjects), asking)
    assert (helped.outcome == "allowed") == bool(permitted)


async def test_where_nobody_can_be_asked_planning_does_without_what_a_server_says_only_reads() -> None:
    log = Subject("mcp__git__log", "run", "log", server="git", read_only=True)
    planning = approvals(Heard(), mode="plan", headless=True)
    decision = await planning.decide("c1", preview([log]), lambda: None)
    assert (decision.outcome, decision.permitted_by) == ("denied", "mcp__git__log")


async def test_beyond_a_ceiling_no_rule_is_promised_to_help() -> None:
    rules = [parse_rule("allow", "@run(make *)", "test")]
    ours = Approvals(
        Heard(), FakePolicy(lambda: PolicyContext("ask"), lambda: rules), ceilings=Ceilings(commands=0), headless=True
    )
    decision = await ours.decide("c1", preview(runs("make all")), lambda: None)
    assert decision.permitted_by == "" and "limits.unasked_commands" in (decision.reason or "")


FETCH, BUILD, LOOK = "git fetch origin", "make all", "cat notes"
WITH_NETWORK = "@run+network(git fetch *)"


@pytest.mark.parametrize(
    ("subjects", "allow", "decision", "network"),
    [
        (runs(FETCH, network=[FETCH]), [WITH_NETWORK], "allow", True),
        (runs(FETCH, LOOK, network=[FETCH], effectless=[LOOK]), [WITH_NETWORK], "allow", True),
        # what the rule for `make` says, "without the network", holds beside another command, too
        (runs(FETCH, BUILD, network=[FETCH]), [WITH_NETWORK, "@run(make *)"], "ask", False),
        (runs(BUILD, FETCH, network=[FETCH]), ["@run(make *)", WITH_NETWORK], "ask", False),
        (runs(FETCH, BUILD, network=[FETCH]), [WITH_NETWORK, "@run+network(make *)"], "allow", True),
        (runs(BUILD, FETCH), ["@run(make *)", WITH_NETWORK], "allow", False),  # neither needs it
        (runs(BUILD), ["@run", "@run+network(make *)"], "allow", True),  # whichever rule comes first
        (runs(LOOK, effectless=[LOOK]), ["@run+network"], "allow", False),
    ],
)
def test_the_network_is_for_the_commands_whose_rules_say_so(
    subjects: list[Subject], allow: list[str], decision: str, network: bool
) -> None:
    verdict = approvals(Heard(), allow=allow).verdict(subjects)
    assert (verdict.decision, bool(verdict.grants)) == (decision, network)


def test_the_rule_that_is_named_is_the_one_it_took() -> None:
    """What only looks is allowed anyway."""
    verdict = approvals(Heard(), allow=["@run(make *)"]).verdict(runs(LOOK, BUILD, effectless=[LOOK]))
    assert verdict.decision == "allow" and "@run(make *)" in verdict.rule


async def test_a_saved_rule_answers_no_question_that_a_ceiling_asks() -> None:
    heard, rules = Heard(), [parse_rule("allow", "@run(make *)", "test")]
    ours = Approvals(heard, FakePolicy(lambda: PolicyContext("ask"), lambda: rules), ceilings=Ceilings(commands=0))
    beyond = asyncio.ensure_future(ours.decide("beyond", preview(runs(BUILD)), lambda: None))
    other = asyncio.ensure_future(ours.decide("other", preview(runs(FETCH)), lambda: None))
    while len(heard) < 2:
        await asyncio.sleep(0)
    for call in ("beyond", "other"):
        pending = ours.pending(call)
        assert pending is not None
        pending.asked_at -= 1
    asked = ours.pending("other")
    assert asked is not None
    answer = ApprovalResolveParams(
        session_id="s",
        tool_call_id="other",
        decision="allow",
        scope="session",
        digest=asked.approval.digest,
        rule="@run(git fetch *)",
    )
    try:
        ours.resolve(answer, "test")
    except Exception:
        beyond.cancel()
        other.cancel()
        raise
    assert (await other).outcome == "allowed"
    assert ours.pending("beyond") is not None
    beyond.cancel()


@pytest.mark.parametrize(
    ("by", "grants", "allow", "deny", "holds"),
    [
        ("rule", [], ["@run(make *)"], [], True),
        ("rule", [], [], [], False),
        ("rule", ["network"], ["@run(make *)"], [], False),
        ("rule", [], ["@run(make *)"], ["@run(make *)"], False),
        ("user", ["network"], [], [], True),
        ("user", [], [], ["@run(make *)"], False),
    ],
)
def test_a_yes_ends_with_what_it_came_from(
    by: Any, grants: list[Grant], allow: list[str], deny: list[str], holds: bool
) -> None:
    rules = [
        *(parse_rule("allow", each, "test") for each in allow),
        *(parse_rule("deny", each, "test") for each in deny),
    ]
    ours = Approvals(Heard(), FakePolicy(lambda: PolicyContext("ask"), lambda: rules))
    assert ours.still_allowed(preview(runs(BUILD)), Decision(outcome="allowed", by=by, grants=grants)) is holds


PLACE = {"start": 0, "end": 1}
HUNK = {"hunkId": "h", "lines": PLACE, "proposedLines": PLACE, "oldText": "a\n", "newText": "b\n"}
FILE = {
    **{"path": "/w/a.py", "change": "edit", "baseSha256": "1", "added": 1, "removed": 1, "encoding": "utf-8"},
    **{"finalNewline": True, "unsaved": False, "hunks": [{**HUNK, "state": "pending", "editedByUser": False}]},
}
PROPOSAL = {"proposalId": "p", "turnId": "t", "toolCallIds": ["c1"], "version": 1, "state": "pending", "files": [FILE]}


async def test_a_yes_to_what_an_edit_was_before_is_forgotten_when_it_is_decided_on_again() -> None:
    now = [Proposal.model_validate(PROPOSAL)]
    heard, rules = Heard(), [parse_rule("mustAsk", "@write", "test")]
    ours = Approvals(heard, FakePolicy(lambda: PolicyContext("ask"), lambda: rules, lambda: now[0]))
    edit = replace(preview(writes("a.py")), proposal_id="p")
    asking = asyncio.ensure_future(ours.decide("c1", edit, lambda: None))
    while (pending := ours.pending("c1")) is None:
        await asyncio.sleep(0)
    pending.asked_at -= 1
    yes = ApprovalResolveParams(
        session_id="s", tool_call_id="c1", decision="allow", scope="once", digest=pending.approval.digest
    )
    ours.resolve(yes, "test")
    assert (await asking).outcome == "allowed" and ours.same_bases("c1", "p")
    now[0] = Proposal.model_validate({**PROPOSAL, "files": [{**FILE, "baseSha256": "2"}]})
    assert not ours.same_bases("c1", "p")
    rules[:] = [parse_rule("allow", "@write", "test")]
    assert (await ours.decide("c1", edit, lambda: None)).by == "rule"
    assert ours.same_bases("c1", "p")


@pytest.mark.parametrize("digest", [None, "", "of another call", "\ud800", "of the call"])
async def test_a_yes_counts_only_with_the_digest_of_what_is_asked(digest: str | None) -> None:
    for asked in ("", "of the call"):  # none there is of a proposal that is gone
        ours = approvals(Heard())
        call = replace(preview(runs(BUILD)), digest=asked)
        asking = asyncio.ensure_future(ours.decide("c1", call, lambda: None))
        while (pending := ours.pending("c1")) is None:
            await asyncio.sleep(0)
        pending.asked_at -= 1
        answer = ApprovalResolveParams(session_id="s", tool_call_id="c1", decision="allow", scope="once")
        answer = answer.model_copy(update={"digest": digest})  # as a client may send what the model would refuse
        expected = "resolved" if asked and asked == digest else "stale"
        assert ours.resolve(answer, "test").status == expected
        asking.cancel()


ALLOWED, DENIED = "allowed", "denied"


@pytest.mark.parametrize(
    ("before", "subjects", "after", "outcome", "says"),
    [
        ("ask", writes("a.py"), "acceptEdits", ALLOWED, "mode acceptEdits: allow @write"),
        ("ask", writes("a.py", "b.py"), "acceptEdits", ALLOWED, "@write"),
        ("ask", writes("a.py", ".mcp.json"), "acceptEdits", None, "**/.mcp.json"),
        ("ask", writes("a.py"), "auto", ALLOWED, "mode auto"),
        ("ask", writes("a.py"), "plan", DENIED, "mode plan: deny @write"),
        ("ask", [PLAN], "plan", ALLOWED, "the plan"),
        ("ask", runs(BUILD), "auto", ALLOWED, "mode auto: allow @run"),
        ("ask", runs(BUILD), "acceptEdits", None, "no rule allows it"),
        ("ask", runs(BUILD), "plan", ALLOWED, "mode plan: allow @run"),
        ("auto", runs(FETCH, network=[FETCH]), "plan", None, "no rule allows it"),
        ("ask", runs(BUILD, FETCH, network=[FETCH]), "auto", None, "no rule allows it"),
        ("acceptEdits", writes(".env"), "ask", None, "@write, files that hold secrets"),
        ("acceptEdits", writes(".env"), "plan", DENIED, "@write"),
    ],
)
async def test_a_standing_question_is_decided_again_with_another_mode(
    before: Mode, subjects: list[Subject], after: Mode, outcome: str | None, says: str
) -> None:
    heard = Heard()
    mode: list[Mode] = [before]
    ours = Approvals(heard, FakePolicy(lambda: PolicyContext(mode[0]), list))
    asking = asyncio.ensure_future(ours.decide("c1", preview(subjects), lambda: None))
    while not heard:
        await asyncio.sleep(0)
    ours.reconsider()
    assert len(heard) == 1, "nothing changed, so nothing is said"
    mode[0] = after
    ours.reconsider()
    pending = ours.pending("c1")
    if outcome is None:
        assert pending is not None and says in pending.approval.rule
        ours.reconsider()
        assert len(heard) <= 2
        asking.cancel()
        return
    assert pending is None
    decision = await asking
    assert (decision.outcome, decision.by) == (outcome, "rule") and says in (decision.rule or "")
    assert outcome != DENIED or "Denied by a rule: " in (decision.reason or "")
    late = ApprovalResolveParams(session_id="s", tool_call_id="c1", decision="allow", digest="")
    assert ours.resolve(late, "test").status == "alreadyResolved"


async def test_what_is_still_asked_says_why_it_is_asked_now() -> None:
    """The ways to answer are those of now, and so is what is thought of each command."""
    heard, rules = Heard(), [parse_rule("allow", "@run(make *)", "test")]
    ours = Approvals(heard, FakePolicy(PolicyContext, lambda: rules))
    asking = asyncio.ensure_future(ours.decide("c1", preview(runs(BUILD, FETCH)), lambda: None))
    while not heard:
        await asyncio.sleep(0)
    rules[:] = [parse_rule("mustAsk", "@run(git *)", "test")]
    ours.reconsider()
    first, last = (each.approval for each in heard)
    assert [each.decision for each in first.parts] == ["allow", "ask"] and len(first.scopes) == 5
    assert [each.decision for each in last.parts] == ["ask", "ask"] and len(last.scopes) == 1
    assert "@run(git *)" in last.rule and last.digest == first.digest
    asking.cancel()


async def test_rules_that_cannot_be_read_settle_nothing() -> None:
    heard, broken = Heard(), False

    def stored() -> list[Any]:
        if broken:
            raise AmanuError("storageError", "rules.toml is not valid TOML.")
        return []

    def when() -> PolicyContext:
        return PolicyContext("auto") if broken else PolicyContext("ask")

    ours = Approvals(heard, FakePolicy(when, stored))
    asking = asyncio.ensure_future(ours.decide("c1", preview(writes("a.py")), lambda: None))
    while not heard:
        await asyncio.sleep(0)
    broken = True
    ours.reconsider()
    assert ours.pending("c1") is not None and len(heard) == 1
    asking.cancel()


@pytest.mark.parametrize(("after", "outcome"), [("plan", DENIED), ("acceptEdits", ALLOWED)])
async def test_a_mode_that_changes_just_before_the_question_counts(after: Mode, outcome: str) -> None:
    mode: list[Mode] = ["ask"]

    class Slow(Heard):
        async def durable(self) -> None:
            mode[0] = after

    heard = Slow()
    ours = Approvals(heard, FakePolicy(lambda: PolicyContext(mode[0]), list))
    async with asyncio.timeout(50):
        decision = await ours.decide("c1", preview(writes("a.py")), lambda: None)
    assert decision.outcome == outcome and heard == []
