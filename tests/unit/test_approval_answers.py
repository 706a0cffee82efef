"""The ready answers to an approval: each is taken by the daemon as it stands, and does what its label says."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amanu.session import plan as session_plan
from amanu_protocol.items import Approval, ApprovalAnswer, Decision, Mode, ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState
from support.agent_session import ask_agent, complete, session_with_agents
from support.hook_files import answer as hook_answer
from support.hook_files import configure_user, handler
from support.mcp_in_memory import Server, ServersInMemory
from support.sample_events import approval
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample
from unit.test_session_plan import EXIT, writes

DONE = step("Done.")
SCOPES = {
    "once": "once",
    "for this turn": "turn",
    "for this session": "session",
    "always in this workspace": "workspace",
    "always in every workspace": "user",
}
KEPT = [words for words in SCOPES if words != "once"]
GRANTS = {"with network access": "network", "without the sandbox": "unsandboxed"}
NETWORK, OUTSIDE = GRANTS
MODES = {"accept edits": "acceptEdits", "ask about each edit": "ask", "ask only when required": "auto"}
REFUSALS = ["Reject", "Reject with a reason"]
EDIT = "Edit the command"
OWN_COMMAND = "touch other.txt"
"""The user's, where they edit the model's."""


@dataclass(frozen=True)
class Asked:
    """A call that is asked about, and the labels of the answers; `further` are those of which few are wanted."""

    name: str
    call: dict[str, Any]
    labels: Sequence[str]
    further: Sequence[str] = ()
    mode: Mode = "ask"
    by_agent: bool = False
    again: dict[str, Any] | None = None
    """The call that follows, where it is another one; what is kept covers it, too."""
    hook: dict[str, Any] = field(default_factory=dict[str, Any])


def shell(command: str) -> dict[str, Any]:
    return call("run_shell_command", command=command)


def once(*grants: str) -> list[str]:
    return [f"Allow once {grant}".rstrip() for grant in grants]


def kept(grant: str = "", verb: str = "Allow") -> list[str]:
    return [f"{verb} {words} {grant}".rstrip() for words in KEPT]


def edits(*grants: str) -> list[str]:
    return [f"{EDIT}, to run {grant}" for grant in grants]


WRITE = call("write_file", path="new.txt", content="a\n")
REWRITE = call("write_file", path="new.txt", content="b\n")
EDITED = ["Accept all", "Review hunk by hunk", *kept(verb="Accept all"), *REFUSALS, "Decide later"]
ASKED = [
    Asked("an edit", WRITE, EDITED, again=REWRITE),
    Asked("an edit by a sub-agent", WRITE, EDITED, again=REWRITE, by_agent=True),
    Asked(
        "an edit in a draft",
        WRITE,
        ["Accept all", "Review hunk by hunk", *REFUSALS, "Decide later"],
        mode="draft",
    ),
    Asked(
        "a command",
        shell("touch new.txt"),
        [*once("", NETWORK, OUTSIDE), *kept(), EDIT, *REFUSALS],
        [*kept(NETWORK), *kept(OUTSIDE), *edits(NETWORK, OUTSIDE)],
    ),
    Asked(
        "a command that cannot be kept",
        shell("rm -rf notes.txt"),
        [*once("", NETWORK, OUTSIDE), EDIT, *REFUSALS],
        edits(NETWORK, OUTSIDE),
    ),
    Asked(
        "a command that the sandbox blocked",
        shell('eval "echo a > new.txt"'),
        [*once("", NETWORK, OUTSIDE), EDIT, *REFUSALS],
        edits(NETWORK, OUTSIDE),
    ),
    Asked(
        "a command that needs the network",
        shell("npm ci"),
        [*once(NETWORK, "without network access", OUTSIDE), *kept(NETWORK), EDIT, *REFUSALS],
        [*kept(OUTSIDE), *edits("without network access", OUTSIDE)],
    ),
    Asked(
        "a command that needs to be outside of the sandbox",
        shell("docker ps"),
        [*once(OUTSIDE, "in the sandbox", NETWORK), *kept(OUTSIDE), EDIT, *REFUSALS],
        edits("in the sandbox", NETWORK),
    ),
    Asked("a tool of an MCP server", call("mcp__demo__echo", text="hi"), [*once(""), *kept(), *REFUSALS]),
    Asked(
        "a plan",
        EXIT,
        [
            *(f"Approve: {how}" for how in MODES),
            *(f"Approve: {how}, with a fresh context" for how in MODES),
            "Keep planning",
        ],
        mode="plan",
    ),
    Asked(
        "a hook's question",
        call("read_file", path="notes.txt"),
        [*once(""), *REFUSALS],
        hook={"permissionDecision": "ask", "permissionDecisionReason": "hm"},
    ),
]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)
    monkeypatch.setattr(session_plan, "QUIET", 0.0)


@asynccontextmanager
async def asked_about(tmp_path: Path, asked: Asked) -> AsyncGenerator[tuple[ScriptedSession, Approval]]:
    """A session whose model makes that call, twice, as it stands when the first is asked about."""
    if asked.hook:
        configure_user(PreToolUse=[handler(hook_answer({"hookEventName": "PreToolUse", **asked.hook}))])
    one = step("", *([writes()] if asked.mode == "plan" else []), asked.call)
    steps = [one, step("", asked.again or asked.call)] if asked.mode == "ask" else [one]
    if asked.by_agent:
        doer = {"doer": [*steps, step("", complete())]}
        opened = session_with_agents(tmp_path, doer, step("", ask_agent("doer")), DONE)
    else:
        opened = scripted_session(tmp_path, *steps, DONE, mode=asked.mode, mcp=ServersInMemory(Server("demo")))
    async with opened as d:
        await d.prompt("go")
        yield d, (await d.until(lambda state: state.approvals)).approvals[0]


async def send(d: ScriptedSession, approval: Approval, answer: ApprovalAnswer) -> Decision:
    """Send it as any client does, and say what became of it."""
    command = OWN_COMMAND if answer.asks == "command" else None
    params = ApprovalResolveParams(
        session_id="s",
        tool_call_id=approval.tool_call_id,
        digest=approval.digest,
        decision="allow" if answer.action == "editCommand" else answer.action,
        command=command,
        reason="why" if answer.asks == "reason" else None,
        scope=answer.scope,
        grants=answer.grants,
        rule=answer.rule,
        mode=answer.mode,
        fresh_context=answer.fresh_context,
    )
    result = await d.session.resolve_approval(params, d.client)
    assert result.status == "resolved"

    def settled(state: SessionState) -> Decision | None:
        calls = [item for item in state.items if isinstance(item, ToolCall)]
        found = [item.decision for item in calls if item.item_id == approval.tool_call_id and item.decision]
        return found[0] if found and found[0].outcome != "edited" else None

    decision = settled(await d.until(settled))
    assert decision is not None
    return decision


async def asked_again(d: ScriptedSession, call_id: str) -> bool:
    """Whether the second call, which is the same, is asked about, too. The user says no then."""

    def another(state: SessionState) -> bool:
        return bool(state.approvals) and state.approvals[0].tool_call_id != call_id

    state = await d.until(lambda state: another(state) or state.last_turn)
    again = another(state)
    if again:
        await d.answer("reject")
    await d.ended()
    return again


@pytest.mark.parametrize("asked", ASKED, ids=[each.name for each in ASKED])
async def test_every_way_to_answer_is_there_the_likeliest_first(tmp_path: Path, asked: Asked) -> None:
    async with asked_about(tmp_path, asked) as (d, approval):
        assert [each.label for each in approval.answers if not each.further] == [*asked.labels]
        assert [each.label for each in approval.answers if each.further] == [*asked.further]
        # what could be composed can be chosen
        offered = {(each.scope, *sorted(each.grants)) for each in approval.answers if each.action == "allow"}
        assert {(offer.scope, *sorted(approval.likely_grants)) for offer in approval.scopes} <= offered
        await d.answer("reject")


@pytest.mark.parametrize(
    ("grants", "wants", "expected"),
    [
        ([], [], [("", [])]),
        (["network"], [], [("", []), ("with network access", ["network"])]),
        (["network"], ["network"], [("with network access", ["network"]), ("without network access", [])]),
        (["unsandboxed"], ["unsandboxed"], [("without the sandbox", ["unsandboxed"]), ("in the sandbox", [])]),
        ([], ["network"], [("without network access", [])]),
    ],
)
def test_ways_to_allow_it(grants: list[Any], wants: list[Any], expected: list[tuple[str, list[str]]]) -> None:
    once = [
        each for each in approval(grants=grants, likely_grants=wants).answers if each.label.startswith("Allow once")
    ]
    assert [(each.label.removeprefix("Allow once").strip(), each.grants) for each in once] == expected


LABELS = [(asked, label) for asked in ASKED for label in sample((*asked.labels, *asked.further), 6)]


@pytest.mark.parametrize(("asked", "label"), LABELS, ids=[f"{asked.name}: {label}" for asked, label in LABELS])
async def test_an_answer_does_what_its_label_says(tmp_path: Path, asked: Asked, label: str) -> None:
    async with asked_about(tmp_path, asked) as (d, approval):
        answer = next(each for each in approval.answers if each.label == label)
        if answer.action == "review":  # the client's own: it shows the proposal
            assert label == "Review hunk by hunk" and approval.proposal_id is not None
            return
        decision = await send(d, approval, answer)
        check(label, answer, decision)
        if asked.mode == "ask":
            assert await asked_again(d, approval.tool_call_id) == (answer.rule == "")
        await d.ended()
        if "new.txt" in str(asked.call):
            assert (d.root / "new.txt").exists() == label.startswith(("Allow", "Accept"))
        assert (d.root / "other.txt").exists() == label.startswith(EDIT)


def check(label: str, answer: ApprovalAnswer, decision: Decision) -> None:
    """`label` says it all: the decision, for how long, with what."""
    assert decision.by == "user"
    assert (answer.rule != "") == (decision.rule is not None) == any(words in label for words in KEPT)
    if label in (*REFUSALS, "Keep planning"):
        assert decision.outcome == "rejected"
        assert decision.reason == (None if label == "Reject" else "why")
        return
    if label == "Decide later":
        assert decision.outcome == "reviewed"
        return
    assert decision.outcome == "allowed"
    assert decision.scope == next((scope for words, scope in SCOPES.items() if words in label), "once")
    said = answer.explanation.removesuffix(".") if label == EDIT else label
    assert decision.grants == [grant for words, grant in GRANTS.items() if said.endswith(words)]
    assert decision.command == (OWN_COMMAND if label.startswith(EDIT) else None)
    if label.startswith("Approve"):
        assert decision.mode == MODES[re.sub(r"Approve: |, with a fresh context", "", label)]
        assert decision.fresh_context == ("fresh" in label)
