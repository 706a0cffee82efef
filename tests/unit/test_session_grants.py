"""Commands that need the network or the outside of the sandbox: asked once, kept with what was granted, never a dead
end; and a formatter whose changes are one proposal."""

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.items import Mode, Scope, ToolCall
from amanu_protocol.requests import HunkDecision, ProposalResolveParams
from support.required_programs import needs
from support.scripted_session import scripted_session, step
from support.ssh_server import ssh_agent, ssh_server
from support.sweeps import WHOLE, sample_pairs
from unit.test_session_layer import git, repository, shell

pytestmark = pytest.mark.layers

DONE = step("Done.")
# What these print where they cannot reach what they need, and what they do where they can.
STAND_IN = """#!/bin/sh
if [ -e {reached} ]; then echo reached; else echo '{says}' >&2; exit 1; fi
"""


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


ASKED: Sequence[tuple[str, str, str]] = [
    ("git push", "git push -q origin main", "unsandboxed"),
    ("docker", "docker ps", "unsandboxed"),
    ("gh", "gh pr list", "unsandboxed"),
    ("npm", "npm install left-pad", "network"),
]


@pytest.mark.parametrize(
    ("name", "line", "grant", "scope"), [(*asked, scope) for asked, scope in sample_pairs(ASKED, ["session", "user"])]
)
async def test_it_is_asked_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, line: str, grant: str, scope: str
) -> None:
    """`git push` is git's own, to a repository outside the workspace; docker, gh and npm are stand-ins, which find out
    whether they are in the sandbox by a file that it hides."""
    programs = tmp_path / "bin"
    programs.mkdir()
    outside = tmp_path / "outside"
    outside.touch()
    for program, says in (
        ("docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."),
        ("gh", "To get started with GitHub CLI, please run:  gh auth login"),
        ("npm", "npm error code ENOTFOUND"),
    ):
        (programs / program).write_text(STAND_IN.format(reached=outside, says=says))
        (programs / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    steps = [step("", shell(line)), DONE, step("", shell(line)), DONE]
    async with scripted_session(tmp_path, *steps) as d:
        repository(d.root)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", tmp_path / "remote"], check=True)
        git(d.root, "remote", "add", "origin", str(tmp_path / "remote"))
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.likely_grants == [grant]
        await d.answer("allow", scope=cast("Scope", scope), grants=asked.likely_grants)
        await d.over("p1")
        await d.prompt("again", "p2")
        state = await d.until(
            lambda state: state.approvals or (state.last_turn and state.last_turn.turn_id == "turn-p2")
        )
        assert not state.approvals
        again = [item for item in state.items if isinstance(item, ToolCall)][-1]
        assert again.decision is not None and again.decision.grants == [grant]
        if name == "git push":
            assert git(tmp_path / "remote", "log", "--format=%s", "main") == "first\n"


PUSHES: Sequence[tuple[str, Mode, bool, dict[str, Any]]] = [
    # where the key is, mode, whether the folder is trusted, the call
    ("file", "ask", False, shell("git push -q origin main")),
    ("agent", "auto", True, shell("git push -q origin main")),
    ("agent", "ask", True, shell("git push -q origin main", network=True)),
    ("agent", "ask", True, shell("git push origin main 2>&1 | tail -5")),
    ("agent", "acceptEdits", True, shell("git push origin main || echo failed")),
]
MORE_PUSHES: Sequence[tuple[str, Mode, bool, dict[str, Any]]] = [
    ("file", "ask", True, shell("git push -q origin main")),
    ("file", "auto", True, shell("git push -q origin main")),
    ("agent", "ask", True, shell("git push -q origin main")),
    ("agent", "auto", False, shell("git push -q origin main")),
]
"""The same in other company."""


@pytest.mark.parametrize(("key", "mode", "trusted", "push"), [*PUSHES, *(MORE_PUSHES if WHOLE else [])])
async def test_a_push_over_ssh_is_asked_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, mode: Mode, trusted: bool, push: dict[str, Any]
) -> None:
    """To a real server, with a key that the user's `GIT_SSH_COMMAND` names or an agent holds. The second push brings a
    second commit."""
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(ssh_server(tmp_path / "ssh"))
        login = f"ssh -F {server.settings}"
        if key == "agent":
            await stack.enter_async_context(ssh_agent(tmp_path / "agent", server.key))
            monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        else:
            login += f" -i {server.key}"
        monkeypatch.setenv("GIT_SSH_COMMAND", login)
        steps = [step("", push), DONE, step("", push), DONE]
        d = await stack.enter_async_context(scripted_session(tmp_path, *steps, mode=mode))
        repository(d.root)
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", tmp_path / "remote"], check=True)
        git(d.root, "remote", "add", "origin", f"{server.address}{tmp_path / 'remote'}")
        if trusted:
            await d.trust()
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.likely_grants == ["unsandboxed"]
        await d.answer("allow", scope="user", grants=asked.likely_grants)
        await d.over("p1")
        assert git(tmp_path / "remote", "log", "--format=%s", "main") == "first\n"
        git(d.root, "commit", "-q", "--allow-empty", "-m", "second")
        await d.prompt("again", "p2")
        state = await d.until(
            lambda state: state.approvals or (state.last_turn and state.last_turn.turn_id == "turn-p2")
        )
        assert not state.approvals
        assert git(tmp_path / "remote", "log", "--format=%s", "main") == "second\nfirst\n"


@pytest.mark.place
async def test_what_a_formatter_changed_is_one_proposal(tmp_path: Path) -> None:
    """`ruff format .` over twenty files, two hunks of them refused."""
    ruff = Path(sys.executable).with_name("ruff")
    assert ruff.exists()
    ugly = "x = {  'a':1 }\n\n\ndef keep():\n    return 1\n\n\ny = [  1,2 ]\n"
    async with scripted_session(tmp_path, step("", shell(f"{ruff} format --no-cache .")), DONE) as d:
        for number in range(20):
            (d.root / f"module{number:02}.py").write_text(ugly)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "20 files changed" in asked.title
        (proposal,) = d.session.state.proposals
        refused = [proposal.files[3].hunks[0].hunk_id, proposal.files[7].hunks[1].hunk_id]
        hunks = [
            HunkDecision(hunk_id=hunk.hunk_id, decision="reject" if hunk.hunk_id in refused else "accept")
            for file in proposal.files
            for hunk in file.hunks
        ]
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=hunks
        )
        assert (await d.session.edits.resolve(params)).status == "resolved"
        await d.over("p1")
        tidy = 'x = {"a": 1}\n\n\ndef keep():\n    return 1\n\n\ny = [1, 2]\n'
        for number in range(20):
            expected = tidy
            if number == 3:
                expected = tidy.replace('x = {"a": 1}', "x = {  'a':1 }")
            if number == 7:
                expected = tidy.replace("y = [1, 2]", "y = [  1,2 ]")
            assert (d.root / f"module{number:02}.py").read_text() == expected
