import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.render import Renderer
from amanu.cli.review_prompt import ReviewPrompt
from amanu.cli.ui.dialog import Dialog
from amanu.client.daemon_client import DaemonClient
from amanu.client.session_view import SessionView, create
from amanu.proposals.places import LiveHunk
from amanu.text import wording
from amanu_protocol import requests as r
from amanu_protocol.events import ApprovalRequested, ApprovalResolved, ProposalChanged
from amanu_protocol.items import Approval, Decision, Grant
from amanu_protocol.labels import IGNORED
from support.fake_daemon import SESSION, FakeDaemon, Refusal, connected, state
from support.sample_events import approval, hunk, proposed

_SAME = ("sessionId", "toolCallId", "digest", "grants", "freshContext")
EDIT = approval(title="Edit a.txt", effect="write", detail="a.txt", proposal_id="p")
TWO = (hunk(1), hunk(2, 2, old_text="three\n", new_text="drei\n"))


def drawn(dialog: Dialog) -> str:
    return " · ".join([f"[{each.value}] {each.label}" for each in dialog.choices] + [dialog.prompt])


class Scripted:
    """Answers in order; fails the test when it is asked more than that."""

    def __init__(self, *answers: str | None, edited: str | None = None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.edited = edited
        self.defaults: list[str] = []
        self.viewed: list[str] = []

    async def ask(self, dialog: Dialog) -> str | None:
        assert dialog.valid()
        self.asked.append(drawn(dialog))
        self.defaults.append(dialog.default)
        return self.answers.pop(0)

    async def edit(self, text: str, suffix: str) -> str | None:
        return self.edited

    async def view(self, text: str) -> None:
        self.viewed.append(text)


class Stage:
    """A daemon with one pending approval; it settles it with the first answer that counts."""

    def __init__(
        self,
        client: DaemonClient,
        daemon: FakeDaemon,
        approval: Approval,
        hunks: tuple[LiveHunk, ...],
        *beside: Approval,
    ) -> None:
        self.client, self.daemon, self.approval = client, daemon, approval
        self.hunks = list(hunks)
        self.version = 1
        self.statuses = ["resolved"]
        self.hunk_statuses: list[str] = []
        self.out = io.StringIO()
        daemon.answers["amanu/session/create"] = lambda _: r.SessionResult(
            state=state(
                approvals=[approval, *beside],
                proposals=[
                    *([proposed(*hunks)] if hunks else []),
                    *(
                        proposed(path=f"/w/{each.detail}").model_copy(update={"proposal_id": each.proposal_id})
                        for each in beside
                        if each.proposal_id not in (None, approval.proposal_id)
                    ),
                ],
            ),
            epoch=1,
            from_seq=1,
        ).model_dump(mode="json")
        daemon.answers["amanu/approval/resolve"] = self._resolve
        daemon.answers["amanu/proposal/resolve"] = self._resolve_hunks
        daemon.answers["amanu/rule/preview"] = _preview

    async def decide(self, person: Scripted) -> SessionView:
        view = await create(self.client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
        await ReviewPrompt(view, Renderer(PlainConsole(self.out)), person).decide(self.approval)
        assert person.answers == [], "every answer was asked for"
        return view

    @property
    def answers(self) -> list[dict[str, Any]]:
        """What was sent, without what is always the same."""
        sent = self.daemon.said("amanu/approval/resolve")
        return [{k: v for k, v in each.items() if v is not None and k not in _SAME} for each in sent]

    def _resolve(self, params: dict[str, Any]) -> dict[str, Any]:
        status = self.statuses.pop(0)
        if status == "stale":
            self.approval = self.approval.model_copy(update={"digest": "d2", "detail": "make clean"})
            self.daemon.event(ApprovalRequested(approval=self.approval))
            return {"status": status}
        if status != "tooSoon":
            decision = Decision(outcome="allowed", by="user", client="Neovim")
            self.daemon.event(ApprovalResolved(tool_call_id=params["toolCallId"], decision=decision))
        return {"status": status, "outcome": "allowed", "client": "Neovim", "summary": "Your answer came too late."}

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
            if any(each.state == "pending" for each in self.hunks):  # as the daemon does: what is asked about is less
                self.approval = self.approval.model_copy(update={"digest": f"d{self.version}"})
                self.daemon.event(ApprovalRequested(approval=self.approval))
            if all(each.state != "pending" for each in self.hunks):
                self.daemon.event(ApprovalResolved(tool_call_id="c", decision=Decision(outcome="reviewed", by="user")))
            result = {"status": status, "proposal": changed.model_dump(mode="json")}
            self.daemon.event(ProposalChanged(proposal=changed))
            return result
        return {"status": status, "proposal": proposed(*self.hunks, version=self.version).model_dump(mode="json")}


def _preview(params: dict[str, Any]) -> dict[str, Any]:
    assert (params["sessionId"], params["toolCallId"]) == (SESSION, "c"), "it is tried on this very question"
    covers = "make" in params["rule"]
    found = r.RulePreviewResult(
        valid="(" in params["rule"],
        explanation="Allows that.",
        covers=covers,
        covered=["Run make a", "Run make b"] if covers else [],
        covered_count=7 if covers else 0,
    )
    return wording.explain_rule_preview(found).model_dump(mode="json")


@pytest.fixture
async def pair() -> AsyncIterator[tuple[DaemonClient, FakeDaemon]]:
    client, daemon = await connected()
    yield client, daemon
    await client.close()
    await daemon.close()


OTHER = "run_shell_command(make)"
NARROW = "run_shell_command(git *)"
RULE = "run_shell_command(make test)"
ALLOW = {"decision": "allow", "scope": "once"}


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        (["y"], ALLOW),
        (["", "wh?", "yes"], ALLOW),
        (["use make check"], {"decision": "reject", "scope": "once", "reason": "use make check"}),
        (["stop"], {"decision": "reject", "scope": "once", "reason": "stop"}),
        (["No, use floats please"], {"decision": "reject", "scope": "once", "reason": "use floats please"}),
        (["yes but use floats"], {"decision": "reject", "scope": "once", "reason": "yes but use floats"}),
        (["n use make check"], {"decision": "reject", "scope": "once", "reason": "use make check"}),
        (["n use make check"], {"decision": "reject", "scope": "once", "reason": "use make check"}),
        (["n"], {"decision": "reject", "scope": "once"}),
        (["s", "y"], {"decision": "allow", "scope": "session", "rule": RULE}),
        (["u", "b", "y"], ALLOW),
        (["u", "e", OTHER, "y"], {"decision": "allow", "scope": "user", "rule": OTHER}),
        (["u", "e", "nonsense", "y", "y"], ALLOW),  # what is no rule cannot be saved
        (["u", "e", NARROW, "y", "y"], ALLOW),  # nor what does not cover the call
        (["u", "e", NARROW, "e", OTHER, "y"], {"decision": "allow", "scope": "user", "rule": OTHER}),
        (["t", "w", "a", "y"], ALLOW),  # not offered for this question
    ],
)  # fmt: skip
async def test_a_command(pair: tuple[DaemonClient, FakeDaemon], answers: list[str], sent: dict[str, Any]) -> None:
    stage = Stage(*pair, approval(), ())
    await stage.decide(Scripted(*answers))
    assert stage.answers == [sent]


@pytest.mark.parametrize(
    ("command", "answers", "sent"),
    [
        ("make test", ["e", "make check"], {**ALLOW, "command": "make check"}),
        ("make test", ["e", "make test", "y"], ALLOW),  # it stays as it was: nothing is answered
        ("make test", ["e", "", "y"], ALLOW),
        ("make a\nmake b", ["e"], {**ALLOW, "command": "make a"}),  # of several lines, in the user's editor
        (None, ["e", "y"], ALLOW),  # there is nothing to edit
    ],
)  # fmt: skip
async def test_a_command_is_edited(
    pair: tuple[DaemonClient, FakeDaemon], command: str | None, answers: list[str], sent: dict[str, Any]
) -> None:
    stage = Stage(*pair, approval(command=command), ())
    person = Scripted(*answers, edited="make a\n")
    await stage.decide(person)
    assert stage.answers == [sent]
    assert ("[e] Edit the command" in person.asked[0]) == (command is not None)
    if len(answers) > 1 and command:
        assert person.defaults[1] == command


async def test_the_whole_command_is_shown_with_the_reason_and_the_rule_before_it_is_saved(
    pair: tuple[DaemonClient, FakeDaemon],
) -> None:
    stage = Stage(*pair, approval(detail="make test; \x1b[8mrm -rf ~"), ())
    person = Scripted("u", "e", "", "y")
    await stage.decide(person)
    shown = stage.out.getvalue()
    assert "  │ make test; ␛[8mrm -rf ~\n" in shown
    assert "Needs approval: no rule allows it" in shown
    assert f"allow always in every workspace:\n    {RULE}\n" in shown
    assert person.asked[0] == (
        "[y] Allow once · [n] Reject · [s] Allow for this session · [u] Allow always in every workspace · or why not › "
    )
    assert person.defaults[2] == RULE, "the rule is edited, not typed anew"


async def test_an_answer_that_came_too_soon_is_asked_for_again(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    stage.statuses = ["tooSoon", "resolved"]
    await stage.decide(Scripted("y", "y"))
    assert stage.answers == [ALLOW, ALLOW]
    assert IGNORED["tooSoon"] in stage.out.getvalue()


async def test_a_yes_to_what_has_changed_shows_it_anew(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(digest="d1"), ())
    stage.statuses = ["stale", "resolved"]
    await stage.decide(Scripted("y", "y"))
    assert [each["digest"] for each in stage.daemon.said("amanu/approval/resolve")] == ["d1", "d2"]
    shown = stage.out.getvalue()
    assert shown.index("│ make test") < shown.index(IGNORED["stale"]) < shown.index("│ make clean")


async def test_what_changes_while_it_is_read_is_shown_anew(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(digest="d1"), ())

    class Slow(Scripted):
        async def ask(self, dialog: Dialog) -> str | None:
            if not self.asked:
                stage.daemon.event(ApprovalRequested(approval=approval(digest="d2", detail="make clean")))
                async with asyncio.timeout(50):
                    while dialog.valid():
                        await asyncio.sleep(0)
                self.asked.append(drawn(dialog))
                return None
            return await super().ask(dialog)

    await stage.decide(Slow("y"))
    assert [each["digest"] for each in stage.daemon.said("amanu/approval/resolve")] == ["d2"]
    assert "│ make clean" in stage.out.getvalue()


NETWORK: list[Grant] = ["network"]
BOTH: list[Grant] = ["network", "unsandboxed"]
ONLINE, OFFLINE = "with network access", "without network access"


@pytest.mark.parametrize(
    ("grants", "wants", "answer", "granted", "choices"),
    [
        ([], [], "y", [], "[y] Allow once · [n]"),
        (
            BOTH,
            [],
            "y",
            [],
            "[y] Allow once · [+] Allow once with network access · [!] Allow once without the sandbox · [n]",
        ),
        (BOTH, [], "+", ["network"], "[+]"),
        (BOTH, [], "!", ["unsandboxed"], "[!]"),
        (
            BOTH,
            NETWORK,
            "y",
            ["network"],
            f"[y] Allow once {ONLINE} · [-] Allow once {OFFLINE} · [!] Allow once without the sandbox · [n]",
        ),
        (BOTH, NETWORK, "-", [], "[-]"),
        (
            NETWORK,
            NETWORK,
            "y",
            ["network"],
            f"[y] Allow once {ONLINE} · [-] Allow once {OFFLINE} · [n]",
        ),
        ([], NETWORK, "y", [], "[y] Allow once without network access · [n]"),  # wanted, and not offered
    ],
)
async def test_a_yes_grants_what_it_says(
    pair: tuple[DaemonClient, FakeDaemon],
    grants: list[Grant],
    wants: list[Grant],
    answer: str,
    granted: list[str],
    choices: str,
) -> None:
    stage = Stage(*pair, approval(grants=grants, likely_grants=wants), ())
    person = Scripted(answer)
    await stage.decide(person)
    assert [each["grants"] for each in stage.daemon.said("amanu/approval/resolve")] == [granted]
    assert choices in person.asked[0]


@pytest.mark.parametrize("word", ["+", "!", "-", "t", "w"])
async def test_what_is_not_offered_is_no_answer(pair: tuple[DaemonClient, FakeDaemon], word: str) -> None:
    stage = Stage(*pair, approval(), ())
    await stage.decide(Scripted(word, "n no"))
    assert [each["decision"] for each in stage.daemon.said("amanu/approval/resolve")] == ["reject"]


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        (["1"], {"decision": "allow", "mode": "acceptEdits", "freshContext": False}),
        (["2"], {"decision": "allow", "mode": "ask", "freshContext": False}),
        (["6"], {"decision": "allow", "mode": "auto", "freshContext": True}),
        (["x", "use sqlite"], {"decision": "reject", "reason": "use sqlite", "freshContext": False}),
        (["too vague"], {"decision": "reject", "reason": "too vague", "freshContext": False}),
    ],
)
async def test_a_plan(pair: tuple[DaemonClient, FakeDaemon], answers: list[str], sent: dict[str, Any]) -> None:
    asks = approval(title="Carry out this plan", detail="# Goal\n", document="/state/plan.md", effect="read")
    stage = Stage(*pair, asks, ())
    person = Scripted(*answers)
    await stage.decide(person)
    (given,) = stage.daemon.said("amanu/approval/resolve")
    assert sent.items() <= given.items()
    assert "│ # Goal" in stage.out.getvalue()
    assert "[1] approve, in acceptEdits mode: edits files in the workspace without asking · " in person.asked[0]
    assert "[4] as 1, with a fresh context" in person.asked[0]
    assert "comment on its lines" not in stage.out.getvalue(), "a terminal has no comments"


async def test_a_plan_is_edited_before_it_is_approved(pair: tuple[DaemonClient, FakeDaemon], tmp_path: Path) -> None:
    plan = tmp_path / "plan.md"
    asks = approval(title="Carry out this plan", detail="# Goal\n", document=str(plan), effect="read")
    stage = Stage(*pair, asks, ())

    def edited() -> None:
        stage.approval = stage.approval.model_copy(update={"digest": "d2", "detail": "# Other\n"})
        stage.daemon.event(ApprovalRequested(approval=stage.approval))

    asyncio.get_running_loop().call_later(0.05, edited)
    await stage.decide(Scripted("e", "1", edited="# Other\n"))
    assert plan.read_text() == "# Other\n"
    assert [each["digest"] for each in stage.daemon.said("amanu/approval/resolve")] == ["d2"]


async def test_a_rule_is_saved_with_what_the_call_needs(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(grants=BOTH, likely_grants=NETWORK), ())
    person = Scripted("s", "y")
    await stage.decide(person)
    (sent,) = stage.daemon.said("amanu/approval/resolve")
    assert (sent["scope"], sent["rule"], sent["grants"]) == ("session", "run_shell_command+network(make test)", NETWORK)
    assert "[y] Save and allow with network access" in person.asked[1]


async def test_a_rule_is_tried_on_history_before_it_is_saved(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    person = Scripted("s", "e", NARROW, "b", "n no")
    await stage.decide(person)
    shown = stage.out.getvalue()
    assert "Would have answered 7 earlier questions:\n" in shown
    assert "      Run make a\n" in shown and "… and 5 more" in shown
    assert shown.index("7 earlier questions") < shown.index("so it cannot be saved")
    assert "[y]" in person.asked[1] and "[y]" not in person.asked[3]


async def test_somebody_else_was_first(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    stage.statuses = ["alreadyResolved"]
    await stage.decide(Scripted("n no"))
    assert "Your answer came too late." in stage.out.getvalue()


async def test_settled_while_the_person_reads(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, approval(), ())
    view = await create(stage.client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))

    class Slow(Scripted):
        async def ask(self, dialog: Dialog) -> str | None:
            stage.daemon.event(ApprovalResolved(tool_call_id="c", decision=Decision(outcome="cancelled", by="rule")))
            await view.wait(lambda _: not dialog.valid())
            return None

    await ReviewPrompt(view, Renderer(PlainConsole(stage.out)), Slow()).decide(stage.approval)
    assert stage.answers == []
    assert "This question is already settled." in stage.out.getvalue()


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        (["a"], ALLOW),
        (["f"], {"decision": "finish", "scope": "once"}),
        (["later"], {"decision": "finish", "scope": "once"}),
        (["finish"], {"decision": "finish", "scope": "once"}),
        (["yes", "a"], ALLOW),  # of three letters, and no word for it
        (["r not this way"], {"decision": "reject", "scope": "once", "reason": "not this way"}),
        (["h", "q", "a"], ALLOW),
        (["h", "y", "q", "f"], {"decision": "finish", "scope": "once"}),
    ],
)
async def test_a_proposal(pair: tuple[DaemonClient, FakeDaemon], answers: list[str], sent: dict[str, Any]) -> None:
    stage = Stage(*pair, EDIT, TWO)
    person = Scripted(*answers)
    await stage.decide(person)
    assert stage.answers == [sent]
    assert "-two\n+zwei\n" in stage.out.getvalue(), "the diff is shown before the question"
    assert person.asked[0].startswith("[a] Accept all · [h] Review hunk by hunk")


LONG = "".join(f"line {number}\n" for number in range(60))


@pytest.mark.parametrize(
    ("asked", "new_text", "answers", "head", "first"),
    [
        (EDIT, LONG, ["v", "a"], "── a.txt (edit) +1 −1\n", "── a.txt (edit) +1 −1\n"),
        (EDIT, LONG, ["h", "v", "y"], "── a.txt (edit) +1 −1\n", "@@ -"),
        (EDIT, "zwei\n", ["a"], None, ""),
        (approval(detail=LONG), "", ["v", "y"], "? Run make test?\n", "line 0\n"),
    ],
    ids=["a diff", "a hunk", "a short diff", "a command"],
)
async def test_what_is_longer_than_the_screen_is_named_again_and_can_be_viewed(
    pair: tuple[DaemonClient, FakeDaemon],
    monkeypatch: pytest.MonkeyPatch,
    asked: Approval,
    new_text: str,
    answers: list[str],
    head: str | None,
    first: str,
) -> None:
    monkeypatch.setenv("LINES", "26")
    monkeypatch.setenv("COLUMNS", "90")
    stage = Stage(*pair, asked, (hunk(1, new_text=new_text),))
    user = Scripted(*answers)
    await stage.decide(user)
    shown = stage.out.getvalue()
    if head is None:
        assert user.viewed == [] and "[v]" not in user.asked[0] and "off the screen" not in shown
    else:
        assert "[v] View all of it" in user.asked[answers.index("v")]
        assert user.viewed[0].startswith(first) and "line 59\n" in user.viewed[0]
        assert head in shown[shown.rindex("its beginning may have scrolled off the screen") :]


ALSO = EDIT.model_copy(update={"tool_call_id": "d", "proposal_id": "q", "detail": "b.txt", "digest": "d-q"})
RUNS = approval(tool_call_id="run")


@pytest.mark.parametrize(
    ("beside", "answers", "sent"),
    [
        ([RUNS, ALSO], ["e", "y"], [("c", ""), ("d", "d-q")]),
        ([ALSO], ["e", "n", "a"], [("c", "")]),
        ([RUNS], ["e", "a"], [("c", "")]),
        ([ALSO.model_copy(update={"proposal_id": "p"})], ["e", "a"], [("c", "")]),
    ],
    ids=["with a command that waits", "not after all", "beside a command", "of one proposal"],
)
async def test_every_edit_of_a_step(
    pair: tuple[DaemonClient, FakeDaemon], beside: list[Approval], answers: list[str], sent: list[tuple[str, str]]
) -> None:
    stage = Stage(*pair, EDIT, TWO, *beside)
    stage.statuses = ["resolved"] * len(sent)
    person = Scripted(*answers)
    await stage.decide(person)
    said = stage.daemon.said("amanu/approval/resolve")
    assert [(each["toolCallId"], each["digest"]) for each in said] == sent
    several = ALSO in beside
    assert ("[e] Accept all edits of this step (2 files)" in person.asked[0]) == several
    assert ("b.txt (edit)" in stage.out.getvalue()) == several, "it is shown before it is accepted"


async def test_hunk_by_hunk(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, TWO)
    await stage.decide(Scripted("h", "y", "n keep it"))
    sent = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert [(each["hunkId"], each["decision"], each["reason"]) for each in sent] == [
        ("h1", "accept", None),
        ("h2", "reject", "keep it"),
    ]
    assert stage.answers == [], "deciding every hunk ends the review"
    assert "@@ -1,3 +1,3 @@ · 1 of 2\n" in stage.out.getvalue()
    assert IGNORED["stale"] not in stage.out.getvalue()


async def test_what_is_left_of_a_review_is_accepted_as_it_is_now(
    pair: tuple[DaemonClient, FakeDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "40")  # else what is shown would be named again below it
    stage = Stage(*pair, EDIT, TWO)
    await stage.decide(Scripted("h", "y", "q", "a"))
    assert [each["digest"] for each in stage.daemon.said("amanu/approval/resolve")] == ["d2"]
    shown = stage.out.getvalue()
    assert IGNORED["stale"] not in shown and shown.count("? Edit a.txt") == 2, "what is left is shown again, as no news"


async def test_a_hunk_in_the_persons_own_words(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    await stage.decide(Scripted("h", "e", edited="deux\n"))
    (sent,) = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert (sent["decision"], sent["newText"]) == ("accept", "deux\n")


async def test_leaving_the_editor_without_a_change_decides_nothing(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    await stage.decide(Scripted("h", "e", "n", edited="zwei\n"))
    (sent,) = [params["hunks"][0] for params in stage.daemon.said("amanu/proposal/resolve")]
    assert sent["decision"] == "reject"


async def test_a_hunk_answered_too_soon(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    stage.hunk_statuses = ["tooSoon", "resolved"]
    await stage.decide(Scripted("h", "y", "y"))
    assert IGNORED["tooSoon"] in stage.out.getvalue()
    assert len(stage.daemon.said("amanu/proposal/resolve")) == 2


async def test_a_proposal_that_moved_is_shown_again(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    stage = Stage(*pair, EDIT, (hunk(),))
    stage.hunks, stage.version = [hunk(new_text="neu\n")], 2
    await stage.decide(Scripted("h", "y", "y"))
    shown = stage.out.getvalue()
    assert "The proposal has changed since you saw it." in shown
    assert shown.index("+zwei") < shown.index("has changed") < shown.index("+neu")
    assert [params["version"] for params in stage.daemon.said("amanu/proposal/resolve")] == [1, 2]
