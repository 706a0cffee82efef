import io
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from amanu.cli.client import Client
from amanu.cli.decide import TOO_SOON, Decider
from amanu.cli.paper import PlainPaper
from amanu.cli.render import Renderer
from amanu.cli.view import SessionView, create
from amanu_protocol import requests as r
from amanu_protocol.events import ApprovalResolved, ProposalChanged
from amanu_protocol.items import Approval, Decision, Hunk
from unit.cli.fake_daemon import SESSION, FakeDaemon, Refusal, connected, state
from unit.cli.stories import approval, hunk, proposed

EDIT = approval(title="Edit a.txt", effect="write", detail="a.txt", proposal_id="p")
TWO = (hunk(1), hunk(2, old_start=3, new_start=3, old_text="three\n", new_text="drei\n"))


class Scripted:
    """Answers in order; fails the test when it is asked more than that."""

    def __init__(self, *answers: str | None, edited: str | None = None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.edited = edited
        self.defaults: list[str] = []

    async def ask(self, question: str, *, default: str = "", valid: Callable[[], bool]) -> str | None:
        assert valid()
        self.asked.append(question)
        self.defaults.append(default)
        return self.answers.pop(0)

    async def edit(self, text: str, suffix: str) -> str | None:
        return self.edited


class Stage:
    """A daemon with one pending approval; it settles it with the first answer that counts."""

    def __init__(self, client: Client, daemon: FakeDaemon, approval: Approval, hunks: tuple[Hunk, ...]) -> None:
        self.client, self.daemon, self.approval = client, daemon, approval
        self.hunks = list(hunks)
        self.version = 1
        self.statuses = ["resolved"]
        self.hunk_statuses: list[str] = []
        self.out = io.StringIO()
        daemon.answers["amanu/session/create"] = lambda _: r.SessionResult(
            state=state(approvals=[approval], proposals=[proposed(*hunks)] if hunks else []), epoch=1, from_seq=1
        ).model_dump(mode="json")
        daemon.answers["amanu/approval/resolve"] = self._resolve
        daemon.answers["amanu/proposal/resolve"] = self._resolve_hunks
        daemon.answers["amanu/rule/preview"] = lambda p: {"valid": "(" in p["rule"], "explanation": "Allows that."}

    async def decide(self, person: Scripted) -> SessionView:
        view = await create(self.client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
        await Decider(view, Renderer(PlainPaper(self.out)), person).decide(self.approval)
        assert person.answers == [], "every answer was asked for"
        return view

    @property
    def answers(self) -> list[dict[str, Any]]:
        """What was sent, without what is always the same."""
        sent = self.daemon.said("amanu/approval/resolve")
        return [
            {k: v for k, v in each.items() if v is not None and k not in ("sessionId", "toolCallId")} for each in sent
        ]

    def _resolve(self, params: dict[str, Any]) -> dict[str, Any]:
        status = self.statuses.pop(0)
        if status != "tooSoon":
            decision = Decision(outcome="allowed", by="person", client="Neovim")
            self.daemon.event(ApprovalResolved(tool_call_id="c", decision=decision))
        return {"status": status, "outcome": "allowed", "client": "Neovim"}

    def _resolve_hunks(self, params: dict[str, Any]) -> dict[str, Any]:
        status = self.hunk_statuses.pop(0) if self.hunk_statuses else "resolved"
        if params["version"] != self.version:
            self.daemon.event(ProposalChanged(proposal=proposed(*self.hunks, version=self.version)))
            raise Refusal("proposalConflict", "The proposal has changed since you saw it.")
        if status == "resolved":
            (decision,) = params["hunks"]
            at = next(at for at, each in enumerate(self.hunks) if each.hunk_id == decision["hunkId"])
            done = "applied" if decision["decision"] == "accept" else "rejected"
            self.hunks[at] = self.hunks[at].model_copy(update={"state": done})
            self.version += 1
            changed = proposed(*self.hunks, version=self.version)
            if all(each.state != "pending" for each in self.hunks):
                self.daemon.event(
                    ApprovalResolved(tool_call_id="c", decision=Decision(outcome="reviewed", by="person"))
                )
            result = {"status": status, "proposal": changed.model_dump(mode="json")}
            self.daemon.event(ProposalChanged(proposal=changed))
            return result
        return {"status": status, "proposal": proposed(*self.hunks, version=self.version).model_dump(mode="json")}


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Client, FakeDaemon]]:
    client, daemon = await connected()
    yield client, daemon
    await client.close()
    await daemon.close()


OTHER = "run_shell_command(make)"
RULE = "run_shell_command(make test)"
ALLOW = {"decision": "allow", "scope": "once"}


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        (["y"], ALLOW),
        (["", "what?", "yes"], ALLOW),
        (["n", "use make check"], {"decision": "reject", "scope": "once", "reason": "use make check"}),
        (["n use make check"], {"decision": "reject", "scope": "once", "reason": "use make check"}),
        (["n", ""], {"decision": "reject", "scope": "once"}),
        (["s", "y"], {"decision": "allow", "scope": "session", "rule": RULE}),
        (["u", "b", "y"], ALLOW),
        (["u", "e", OTHER, "y"], {"decision": "allow", "scope": "user", "rule": OTHER}),
        (["u", "e", "nonsense", "y"], {"decision": "allow", "scope": "user", "rule": RULE}),
        (["t", "w", "a", "y"], ALLOW),  # not offered for this question
    ],
)  # fmt: skip
async def test_a_command(pair: tuple[Client, FakeDaemon], answers: list[str], sent: dict[str, Any]) -> None:
    stage = Stage(*pair, approval(), ())
    await stage.decide(Scripted(*answers))
    assert stage.answers == [sent]


async def test_the_whole_command_is_shown_with_the_reason_and_the_rule_before_it_is_saved(
    pair: tuple[Client, FakeDaemon],
) -> None:
    stage = Stage(*pair, approval(detail="make test; \x1b[8mrm -rf ~"), ())
    person = Scripted("u", "e", "", "y")
    await stage.decide(person)
    shown = stage.out.getvalue()
    assert "    make test; ␛[8mrm -rf ~\n" in shown
    assert "asked because: no rule allows it" in shown
    assert f"allow for every workspace of yours, from now on: {RULE}" in shown
    assert person.asked[0] == "[y] once · [s] session · [u] user · [n] no › "
    assert person.defaults[2] == RULE, "the rule is edited, not typed anew"


async def test_an_answer_that_came_too_soon_is_asked_for_again(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    stage.statuses = ["tooSoon", "resolved"]
    await stage.decide(Scripted("y", "y"))
    assert stage.answers == [ALLOW, ALLOW]
    assert TOO_SOON in stage.out.getvalue()


async def test_somebody_else_was_first(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    stage.statuses = ["alreadyResolved"]
    await stage.decide(Scripted("n no"))
    assert "already allowed by Neovim" in stage.out.getvalue()


async def test_settled_while_the_person_reads(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    view = await create(stage.client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))

    class Slow(Scripted):
        async def ask(self, question: str, *, default: str = "", valid: Callable[[], bool]) -> str | None:
            stage.daemon.event(ApprovalResolved(tool_call_id="c", decision=Decision(outcome="cancelled", by="rule")))
            await view.wait(lambda _: not valid())
            return None

    await Decider(view, Renderer(PlainPaper(stage.out)), Slow()).decide(stage.approval)
    assert stage.answers == []
    assert "settled meanwhile" in stage.out.getvalue()


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        (["a"], ALLOW),
        (["f"], {"decision": "finish", "scope": "once"}),
        (["r", "not this way"], {"decision": "reject", "scope": "once", "reason": "not this way"}),
        (["h", "q", "a"], ALLOW),
        (["h", "y", "q", "f"], {"decision": "finish", "scope": "once"}),
    ],
)
async def test_a_proposal(pair: tuple[Client, FakeDaemon], answers: list[str], sent: dict[str, Any]) -> None:
    stage = Stage(*pair, EDIT, TWO)
    person = Scripted(*answers)
    await stage.decide(person)
    assert stage.answers == [sent]
    assert "-two\n+zwei\n" in stage.out.getvalue(), "the diff is shown before the question"
    assert person.asked[0].startswith("[a] accept all · [h] hunk by hunk")


async def test_hunk_by_hunk(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, TWO)
    await stage.decide(Scripted("h", "y", "n keep it"))
    sent = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert [(each["hunkId"], each["decision"], each["reason"]) for each in sent] == [
        ("h1", "accept", None),
        ("h2", "reject", "keep it"),
    ]
    assert stage.answers == [], "deciding every hunk ends the review"
    assert "@@ -1,3 +1,3 @@ · 1 of 2\n" in stage.out.getvalue()


async def test_a_hunk_in_the_persons_own_words(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    await stage.decide(Scripted("h", "e", edited="deux\n"))
    (sent,) = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert (sent["decision"], sent["newText"]) == ("accept", "deux\n")


async def test_leaving_the_editor_without_a_change_decides_nothing(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    await stage.decide(Scripted("h", "e", "n", edited="zwei\n"))
    (sent,) = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert sent["decision"] == "reject"


async def test_a_hunk_answered_too_soon(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    stage.hunk_statuses = ["tooSoon", "resolved"]
    await stage.decide(Scripted("h", "y", "y"))
    assert TOO_SOON in stage.out.getvalue()
    assert len(stage.daemon.said("amanu/proposal/resolve")) == 2


async def test_a_proposal_that_moved_is_shown_again(pair: tuple[Client, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    stage.hunks, stage.version = [hunk(new_text="neu\n")], 2
    await stage.decide(Scripted("h", "y", "y"))
    shown = stage.out.getvalue()
    assert "The proposal has changed since you saw it." in shown
    assert shown.index("+zwei") < shown.index("has changed") < shown.index("+neu")
    assert [params["version"] for params in stage.daemon.said("amanu/proposal/resolve")] == [1, 2]
