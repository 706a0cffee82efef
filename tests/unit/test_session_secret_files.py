"""Files that hold secrets: read by nobody the user was not asked about, whatever reads them."""

import itertools
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Mode
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample_pairs

KEY = "canary-48151623"
SECRETS = (
    *(".env", "api/.env.local", ".ssh/id_rsa", "deploy/id_ed25519", ".aws/credentials", ".netrc", ".npmrc", ".pypirc"),
    *(".docker/config.json", "server.pem", "certs/private.key", "credentials.json"),
)


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def lay(d: ScriptedSession) -> None:
    for name in SECRETS:
        path = d.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"//host/:_authToken={KEY}\n")
    for name in ("id_generator.py", "credentials.py", ".env.example", "tests/server.pem", "deploy/id_ed25519.pub"):
        path = d.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("harmless\n")


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_file_tools_ask_before_they_read_a_secret(tmp_path: Path, mode: Mode, trusted: bool) -> None:
    reads = [call("read_file", path=name) for name in SECRETS]
    plain = [call("read_file", path=name) for name in ("id_generator.py", "credentials.py", ".env.example")]
    plain += [call("read_file", path=name) for name in ("tests/server.pem", "deploy/id_ed25519.pub")]
    search = call("grep", pattern="authToken|harmless")
    async with scripted_session(tmp_path, step("", *plain, search), step("", *reads), step("Done."), mode=mode) as d:
        lay(d)
        if trusted:
            await d.trust()
        await d.prompt("go")
        for _ in SECRETS:
            await d.answer("reject")
        await d.over("p1")
        told = d.told()
    assert KEY not in told and told.count("harmless") >= 5
    assert "12 files with secrets not searched: .aws/credentials, .docker/config.json, .env" in told


LINES = {
    "cp": "cp .env x.txt; cat x.txt",
    "open": "python3 -c 'print(open(\".env\").read())'",
    "move": 'python3 -c \'import shutil; shutil.move(".env", "x"); print(open("x").read())\'',
    "link": 'ln .env x; ln -s .env y; python3 -c \'print(open("x").read(), open("y").read())\'',
    "walk": 'python3 -c \'import os; [print(open(os.path.join(d, f), errors="replace").read()) for d, _, fs in '
    'os.walk(".") for f in fs if os.access(os.path.join(d, f), os.R_OK)]\'',
}
TRIES = list(itertools.product(["bubblewrap", "landlock"], LINES))


@pytest.mark.parametrize(
    ("tier", "name", "trusted"),
    [(*each, trusted) for each, trusted in sample_pairs(TRIES, [False, True])],
    indirect=["tier"],
)
async def test_a_command_nobody_was_asked_about_reads_no_secret(
    tmp_path: Path, tier: Tier, name: str, trusted: bool
) -> None:
    run = call("run_shell_command", command=LINES[name])
    look = call("run_shell_command", command="cat x.txt x 2>/dev/null; python3 -c 'print(open(\"x\").read())'")
    async with scripted_session(tmp_path, step("", run), step("", look), step("Done."), mode="auto") as d:
        lay(d)
        if trusted:
            await d.trust()
        await d.prompt("go")
        while (state := await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            assert "needs files that hold secrets" in state.approvals[0].blocked
            await d.answer("reject")
        told = d.told()
    decisions = [each.decision for each in state.items if each.kind == "toolCall"]
    assert all(each is not None and (each.outcome != "allowed" or each.by == "rule") for each in decisions)
    assert KEY not in told
    assert (d.root / ".env").read_text().strip().endswith(KEY), "and they stay where they are"


async def test_a_secret_is_not_brought_under_a_harmless_name_with_its_folder(tmp_path: Path, tier: Tier) -> None:
    move = call("run_shell_command", command="mkdir tests; mv certs tests/; mv .aws api/plain; mv deploy moved; ls")
    look = call("run_shell_command", command="python3 -c 'print(open(\"tests/certs/private.key\").read())'")
    also = call("run_shell_command", command="python3 -c 'print(open(\"api/plain/credentials\").read())'")
    async with scripted_session(tmp_path, step("", move), step("", look, also), step("Done."), mode="auto") as d:
        lay(d)
        (d.root / "certs" / "a.txt").write_text("harmless\n")
        await d.prompt("go")
        await d.over("p1")
        told = d.told()
    assert KEY not in told
    for name in ("certs/private.key", ".aws/credentials"):
        assert KEY in (d.root / name).read_text()
    if tier == "bubblewrap":
        assert "Moved back to where they were" in told and (d.root / "tests" / "certs" / "a.txt").exists()
        assert KEY in (d.root / "moved" / "id_ed25519").read_text(), "there it is hidden as well"


async def test_what_needs_secrets_asks_for_them_and_the_answer_is_kept(tmp_path: Path, tier: Tier) -> None:
    line = "./show.py"
    plain, asking = (call("run_shell_command", command=line, **more) for more in ({}, {"secrets": True, "reason": "?"}))
    async with scripted_session(
        tmp_path, step("", plain), step("", asking), step("", plain), step("Done."), mode="auto"
    ) as d:
        lay(d)
        (d.root / "show.py").write_text('#!/usr/bin/env python3\nprint(open(".env").read()[-5:])\n')
        (d.root / "show.py").chmod(0o755)
        await d.trust()
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        assert "needs files that hold secrets" in state.approvals[0].blocked
        await d.answer("reject")
        state = await d.until(lambda state: state.approvals)
        asked = [line.text for line in state.approvals[0].lines]
        assert "It asks for the workspace's files that hold secrets: ?" in asked
        await d.answer("allow", scope="session")
        await d.over("p1")
        shown = [each.output or "" for each in d.session.state.items if each.kind == "toolCall"]
    assert [KEY[-4:] in each for each in shown] == [False, True, True]
