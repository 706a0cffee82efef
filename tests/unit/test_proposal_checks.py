"""What checkers say of a proposal comes to its question, which waits for none of them."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.checks import proposal_checks as verdicts
from amanu.home import find_home
from amanu.permissions import approvals as approval
from amanu_protocol.items import Check, Proposal
from amanu_protocol.state import SessionState
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step

LINTER = """#!{python} -P
import json, os, sys, time
from pathlib import Path
Path({canary!r}).open("a").write("ran\\n")
text = sys.stdin.read()
while not Path({gate!r}).exists():
    time.sleep(0.01)
print(json.dumps([{{"line": n, "level": "error", "code": 1, "message": line}}
    for n, line in enumerate(text.splitlines(), 1) if "wrong" in line]))
"""
TEXT = "one\nwrong 1\nwrong 2\nfour\n"
EDIT = call("write_file", path="a.sh", content="one\nright\nwrong 2\nwrong new\n")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(verdicts, "PAUSE", 0.0)
    yield


class Linter:
    """A `shellcheck` first on PATH: every line with `wrong` is an error. It answers when its gate is open."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.canary, self.gate = folder / "log" / "canary", folder / "log" / "gate"
        self.canary.parent.mkdir()
        (folder / "bin").mkdir()
        shown = [str(folder / "bin"), sys.prefix, sys.base_prefix]
        sandbox = f"[sandbox]\nread = {json.dumps(shown)}\nwrite = {json.dumps([str(self.canary.parent)])}\n"
        (find_home().make().config / "config.toml").write_text(sandbox)
        path = folder / "bin" / "shellcheck"
        path.write_text(LINTER.format(python=sys.executable, canary=str(self.canary), gate=str(self.gate)))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def open(self) -> None:
        self.gate.touch()


@pytest.fixture
def linter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Linter:
    return Linter(tmp_path, monkeypatch)


async def prepare(d: ScriptedSession, *, trusted: bool = True) -> None:
    (d.root / "a.sh").write_text(TEXT)
    if trusted:
        await d.trust()


def checks(state: SessionState) -> list[Check]:
    return [check for proposal in state.proposals for file in proposal.files for check in file.checks]


def said(state: SessionState) -> list[str]:
    return [f"{each.checker} {each.state} +{len(each.added)} -{each.fixed}" for each in checks(state)]


async def test_the_question_comes_first_then_the_verdict(
    tmp_path: Path, linter: Linter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "SHOWN", 0.0)
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d)
        await d.prompt("write")
        state = await d.until(lambda state: state.approvals)
        await d.until(checks)
        assert said(state) == ["shellcheck running +0 -0"]
        seen = state.proposals[0].version
        linter.open()
        await d.until(lambda state: said(state) == ["shellcheck done +1 -1"])
        assert (checks(state)[0].added[0].message, checks(state)[0].added[0].lines.first) == ("wrong new", 4)
        assert state.proposals[0].version == seen, "whoever is deciding decides on what they saw"
        assert await d.decide("accept", "accept") == "resolved"
        await d.ended()
        assert (d.root / "a.sh").read_text() == "one\nright\nwrong 2\nwrong new\n"
        assert said(d.session.state) == ["shellcheck done +1 -1"]


async def test_nobody_waits_for_a_verdict(tmp_path: Path, linter: Linter) -> None:
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d)
        await d.prompt("write")
        await d.answer("allow")
        await d.ended()
        assert (d.root / "a.sh").read_text().endswith("wrong new\n")
        await d.until(lambda state: "running" not in str(said(state)))


@pytest.mark.parametrize(
    ("how", "runs"), [("trusted", True), ("untrusted", False), ("a rule allows it", True), ("off", False)]
)
async def test_what_may_run(tmp_path: Path, linter: Linter, how: str, runs: bool) -> None:
    linter.open()
    if how == "off":
        with (find_home().config / "config.toml").open("a") as file:
            file.write("[checks]\nenabled = false\n")
    mode: Any = "acceptEdits" if how == "a rule allows it" else "ask"
    async with scripted_session(tmp_path, step("", EDIT), step("Done."), mode=mode) as d:
        await prepare(d, trusted=how != "untrusted")
        await d.prompt("write")
        if mode == "ask":
            await d.until(lambda state: state.approvals)
            if runs:
                await d.until(lambda state: any(check.state != "running" for check in checks(state)))
            await d.answer("allow")
        await d.ended()
        await d.reopen()  # whatever was begun has ended
        assert linter.canary.exists() == runs
        assert [each.about for each in checks(d.session.state)] == ["proposed" if mode == "ask" else "applied"] * runs
        assert ("Checked a.sh: this change adds 1 error, fixes 1 (" in d.told()) == runs
        assert d.told().count("wrong new") == 1 + runs, "in the edit, and in what was found"
        assert linter.canary.read_text().count("ran") == 2 if runs else True, "once for each text"


async def test_no_check_goes_on_when_a_session_is_put_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that another check took the place of: it may just be ending what it started."""
    begun: list[str] = []
    ended: list[str] = []

    async def run(self: verdicts.ProposalChecks, proposal: Proposal, texts: object, pause: float) -> None:
        begun.append(proposal.proposal_id)
        takes = 99 if len(begun) == 1 else 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(takes):
                await asyncio.sleep(0)
            ended.append(proposal.proposal_id)

    monkeypatch.setattr(verdicts.ProposalChecks, "_run", run)
    async with scripted_session(tmp_path, step("", EDIT)) as d:
        await prepare(d)
        await d.prompt("write")
        state = await d.until(lambda state: state.proposals and begun)
        d.session._work.checks._start(state.proposals[0], {})  # pyright: ignore[reportPrivateUsage]
        while len(begun) < 2:
            await asyncio.sleep(0)
        await d.session._work.checks.close()  # pyright: ignore[reportPrivateUsage]
        assert len(ended) == 2


async def test_an_executable_of_an_untrusted_workspace_is_never_started(tmp_path: Path, linter: Linter) -> None:
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d, trusted=False)
        own = d.root / "node_modules" / ".bin"
        own.mkdir(parents=True)
        (tmp_path / "bin" / "shellcheck").rename(own / "shellcheck")
        await d.prompt("write")
        await d.answer("allow")
        await d.ended()
        await d.reopen()  # whatever was begun has ended
        assert not linter.canary.exists()


async def test_trust_taken_back_ends_the_check(tmp_path: Path, linter: Linter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "SHOWN", 0.0)
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d)
        await d.prompt("write")
        await d.until(checks)
        await d.trust(False)
        await d.until(lambda state: said(state) == [])
        linter.open()
        await d.answer("allow")
        await d.ended()
        assert checks(d.session.state) == []


async def test_what_is_left_is_checked_anew(tmp_path: Path, linter: Linter) -> None:
    """The user refuses the hunk that adds an error: the verdict is about the rest."""
    linter.open()
    text = TWELVE.replace("line 2\n", "wrong\n").replace("line 11\n", "wrong too\n")
    edit = call("write_file", path="a.sh", content=text)
    async with scripted_session(tmp_path, step("", edit), step("Done.")) as d:
        await prepare(d)
        (d.root / "a.sh").write_text(TWELVE)
        await d.prompt("write")
        await d.until(lambda state: said(state) == ["shellcheck done +2 -0"])
        await d.decide("reject no")
        await d.until(lambda state: said(state) == ["shellcheck done +1 -0"])
        assert checks(d.session.state)[0].added[0].message == "wrong too"
        await d.decide("", "accept")
        await d.ended()


async def test_a_failure_is_said(tmp_path: Path, linter: Linter) -> None:
    (tmp_path / "bin" / "shellcheck").write_text("#!/bin/sh\necho 'Error: no luck' >&2\nexit 3\n")
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d)
        await d.prompt("write")
        state = await d.until(lambda state: "failed" in str(said(state)))
        assert checks(state)[0].message == "It ended with code 3: Error: no luck."
        await d.answer("allow")
        await d.ended()


async def test_a_check_ends_with_its_daemon(tmp_path: Path, linter: Linter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "SHOWN", 0.0)
    async with scripted_session(tmp_path, step("", EDIT), step("Done.")) as d:
        await prepare(d)
        await d.prompt("write")
        await d.until(checks)
        await d.reopen()
        assert "running" not in str(said(d.session.state))
