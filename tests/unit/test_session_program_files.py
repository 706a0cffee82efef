"""What the model may write and an extension runs later: the script of a server, of a hook. Writing it is asked about in
every mode, by whatever tool, and what runs it is off until the new content is approved."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.plugin import main as plugin
from amanu.core.tool import Subject
from amanu.mcp.model import ServerView
from amanu.permissions import approvals, session_rules
from amanu.permissions.policy import Verdict
from amanu.session.session import Session
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode
from amanu_protocol.requests import SessionCreateParams, TrustSetParams
from support.draft_session import edit
from support.hook_files import agree, configure, handler, script
from support.plugin_files import CLAUDE, write
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.session_client import Client
from support.sweeps import sample_pairs

pytestmark = pytest.mark.layers

PLAIN = Path(__file__).parents[1] / "support" / "plain_mcp_server.py"
MODES: list[Mode] = ["ask", "acceptEdits", "auto", "draft"]
WRITES: dict[str, dict[str, Any]] = {
    "edit": edit('"""An MCP', '"""Bad. An MCP', "srv.py"),
    "write": call("write_file", path="srv.py", content="import os\n"),
    "move": call("move_file", path="srv.py", new_path="other.py"),
    "command": call("run_shell_command", command="echo '# bad' >> srv.py"),
    "chmod": call("run_shell_command", command="chmod +x srv.py"),
    "link": call("run_shell_command", command="ln -sf notes.txt srv.py"),
}


WRITE_STEP = step("", call("run_shell_command", command="echo '# changed' >> srv.py"))


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


def configured(*, sandbox: bool, args: list[str] | None = None) -> None:
    """The user's own file: one server, whose script is in the workspace."""
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    lines = [f"command = {json.dumps(sys.executable)}", f"args = {json.dumps(args or ['-u', 'srv.py'])}"]
    (config / "mcp.toml").write_text("\n".join(["[servers.srv]", *lines, f"sandbox = {json.dumps(sandbox)}", ""]))
    read = json.dumps([sys.prefix, sys.base_prefix])  # what the sandbox hides of a home folder
    (config / "config.toml").write_text(f"[sandbox]\nread = {read}\n")


def prepare(tmp_path: Path, name: str = "srv.py") -> Path:
    (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PLAIN, tmp_path / "work" / name)
    return tmp_path / "work" / name


async def approved(d: ScriptedSession, name: str = "srv") -> None:
    """The user trusts the folder and approves the server, which then runs."""
    await d.trust()
    await d.session.core.services.sandbox.proved()
    await d.session.own_parts.mcp_decisions.approve(name, view(d, name).digest)
    await until_ready(d.session, name)


def view(d: ScriptedSession, name: str = "srv") -> ServerView:
    return named(d.session, name)


def named(session: Session, name: str) -> ServerView:
    return next(server.view for server in session.own_parts.mcp.servers() if server.name == name)


async def until_ready(session: Session, name: str = "srv") -> None:
    async with asyncio.timeout(50):
        while named(session, name).state != "ready":
            await asyncio.sleep(0.05)


async def second(d: ScriptedSession, root: Path) -> Session:
    """Another session, over another folder."""
    script = root.parent / "script.json"
    params = SessionCreateParams(session_id="s2", roots=[str(root)], mode="ask", model_id=f"scripted:{script}")
    await d.sessions.create(params, Client(os.environ))
    return await d.sessions.get("s2")


@pytest.mark.parametrize(("how", "mode"), sample_pairs([*WRITES], MODES, 2))
async def test_the_script_of_a_server_is_asked_about(tmp_path: Path, how: str, mode: Mode) -> None:
    file = prepare(tmp_path)
    configured(sandbox=False)
    async with scripted_session(tmp_path, step("", WRITES[how]), step("Done."), mode=mode) as d:
        d.session.allow("@write")
        await approved(d)
        before = file.read_text()
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert file.read_text() == before
        if how == "edit" and mode != "draft":
            assert "an MCP server runs this file" in str(state.approvals[0].lines)
        if state.approvals:
            await d.answer("reject")
        await d.over("p1")
        assert file.read_text() == before and not file.is_symlink()
        assert not os.access(file, os.X_OK)
        assert view(d).state == "ready"


@pytest.mark.parametrize("mode", MODES[:3])
async def test_git_brings_no_other_script_unasked(tmp_path: Path, mode: Mode) -> None:
    file = prepare(tmp_path)

    def git(*words: str) -> None:
        options = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *options, *words], cwd=tmp_path / "work", check=True, capture_output=True)

    git("init", "-qb", "main")
    git("add", ".")
    git("commit", "-qm", "1")
    git("checkout", "-qb", "other")
    before = file.read_text()
    file.write_text(before + "# other\n")
    git("commit", "-qam", "2")
    git("checkout", "-q", "main")
    configured(sandbox=False)
    steps = step("", call("run_shell_command", command="git checkout other -- srv.py")), step("Done.")
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        await approved(d)
        await d.prompt("go")
        await d.answer("reject")
        await d.over("p1")
        assert file.read_text() == before
        assert view(d).state == "ready"


async def test_no_decision_reads_what_hooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names alone count; nor is a file judged that nothing names, however many there are."""
    prepare(tmp_path)
    configured(sandbox=False)
    judged: list[int] = []
    opened: list[str] = []
    steps = step("", call("write_file", path="hooks/x.sh", content="#!/bin/bash\n")), step("Done.")
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        configure(d.root, SessionEnd=[handler(script(d.root, "x.sh", "exit 0"))])
        agree(d.root)
        await approved(d)
        rules = d.session.approvals
        real_open: Any = Path.open
        real_decide = session_rules.decide_each

        def counting_open(self: Path, *words: Any, **options: Any) -> Any:
            opened.append(self.name)
            return real_open(self, *words, **options)

        def counting_decide(rules: Any, subjects: Any, context: Any = None) -> list[Verdict]:
            judged.append(len(subjects))
            return real_decide(rules, subjects, context)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", counting_open)
            patch.setattr(session_rules, "decide_each", counting_decide)
            names = ["hooks/X.sh", "srv.py", *(f"target/{number}" for number in range(1000))]
            subjects = [Subject("write_file", "write", name) for name in names]
            assert [subject.text for subject in rules.guarded(subjects)] == names[:2]
            assert judged == [2]
            assert rules.verdict(subjects[:1]).decision == "ask"
            assert not {"x.sh", "srv.py"} & {*opened}
        await d.prompt("go")
        await d.answer("reject")
        await d.over("p1")


@pytest.mark.parametrize("sandbox", [False, True])
async def test_a_server_is_off_until_its_changed_content_is_approved(tmp_path: Path, *, sandbox: bool) -> None:
    file = prepare(tmp_path)
    configured(sandbox=sandbox)
    calls = [step("", call("mcp__srv__whoami"))] * 2
    async with scripted_session(tmp_path, WRITE_STEP, *calls, step("Done."), mode="acceptEdits") as d:
        d.session.allow("mcp__srv__*")
        await approved(d)
        assert "srv.py" in view(d).access
        shown = view(d).digest
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert file.read_text().endswith("# changed\n")
        assert view(d).state == "unapproved" and "srv.py" in view(d).reason
        assert "has changed since this turn began" in d.told()
        assert view(d).digest != shown
        await approved(d)
        assert view(d).state == "ready"


async def test_each_workspace_has_its_own_content_approved(tmp_path: Path) -> None:
    """One server of the user's, two folders: the approval in one does not take the other's away."""
    prepare(tmp_path)
    prepare(tmp_path, "../other/srv.py")
    configured(sandbox=True)
    async with scripted_session(tmp_path, step("Done.")) as d:
        await approved(d)
        await d.sessions.trust.set(TrustSetParams(root=str(tmp_path / "other"), trusted=True))
        other = await second(d, tmp_path / "other")
        assert named(other, "srv").state == "unapproved"
        await other.own_parts.mcp_decisions.approve("srv", named(other, "srv").digest)
        await until_ready(other)
        assert view(d).state == "ready"
        (tmp_path / "other" / "srv.py").write_text("import os\n")
        assert named(other, "srv").state == "unapproved"
        assert view(d).state == "ready"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["-m", "tools.srv"], "tools/srv.py"),
        (["-um", "tools.srv"], "tools/srv.py"),
        (["${workspaceFolder}/my dir/a.py"], "my dir/a.py"),
        (["my srv.py"], "my srv.py"),
        (["[id]/srv*.py"], "[id]/srv*.py"),
        (["tools"], "tools/__main__.py"),
    ],
)
async def test_however_the_script_is_named(tmp_path: Path, words: list[str], name: str) -> None:
    file = prepare(tmp_path, name)
    configured(sandbox=True, args=words)
    async with scripted_session(tmp_path, step("", call("write_file", path=name, content="x")), step("Done.")) as d:
        d.session.allow("@write")
        await approved(d)
        await d.prompt("go")
        await d.answer("reject")
        await d.over("p1")
        file.write_text("import os\n")
        assert view(d).state == "unapproved"


async def test_a_server_that_runs_nothing_of_the_workspace_stays_approved(tmp_path: Path) -> None:
    """Approvals of an earlier version count; the content of a data file is no part of an approval."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "data.sqlite").write_text("1")
    configured(sandbox=True, args=[str(PLAIN), "data.sqlite"])
    async with scripted_session(tmp_path, step("Done.")) as d:
        await approved(d)
        (d.root / "data.sqlite").write_text("2")
        assert view(d).state == "ready"
        pins = Path(os.environ["AMANU_HOME"]) / "state" / "mcp" / "pins.json"
        tree = json.loads(pins.read_text())
        opened = tree["servers"]["srv user"].pop("files")  # where this checkout is, its script may need a folder opened
        assert set(opened.values()) <= {"a folder"}
        pins.write_text(json.dumps(tree))
        assert view(d).state == ("unapproved" if opened else "ready")


@pytest.mark.parametrize("mode", MODES[1:3])
async def test_the_servers_and_hooks_of_a_workspace(tmp_path: Path, mode: Mode) -> None:
    prepare(tmp_path)
    configured(sandbox=True, args=[str(PLAIN)])
    (tmp_path / "work" / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"own": {"command": sys.executable, "args": ["srv.py"]}}})
    )
    steps = step("", WRITES["write"], call("write_file", path="hooks/x.sh", content="#!/bin/bash\n")), step("Done.")
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        command = script(d.root, "x.sh", "exit 0")
        configure(d.root, SessionEnd=[handler(command)])
        agree(d.root)
        await approved(d, "own")
        await d.prompt("go")
        state = await d.until(lambda state: len(state.approvals) == 2)
        asked = [str(approval.lines) for approval in state.approvals]
        assert "an MCP server runs this file" in asked[0]
        assert "a hook runs this file" in asked[1]
        await d.answer("reject")
        await d.answer("reject")
        await d.over("p1")
        assert "exit 0" in (d.root / "hooks/x.sh").read_text()


async def test_those_of_a_plugin_obey_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plug-in is reviewed; what it runs of a workspace is not part of that."""
    prepare(tmp_path)
    configured(sandbox=True, args=[str(PLAIN)])
    hook = handler('"$CLAUDE_PROJECT_DIR"/hooks/x.sh', matcher="Read")
    server = {"command": sys.executable, "args": ["${workspaceFolder}/srv.py"]}
    files = CLAUDE | {
        "hooks/hooks.json": json.dumps({"hooks": {"PreToolUse": [hook]}}),
        ".mcp.json": json.dumps({"mcpServers": {"db": server}}),
    }
    source = str(write(tmp_path / "plugin", files))
    plugin(["add", source])
    digest = capsys.readouterr().out.partition("--digest ")[2].split()[0]
    assert plugin(["add", "--yes", "--digest", digest, source]) == 0
    name = "plugin_code-helper_db"
    reads = step("", call("read_file", path="notes.txt"))
    writes = step("", WRITES["write"], call("write_file", path="hooks/x.sh", content="#!/bin/bash\n"))
    steps = [reads, step("One."), reads, writes, step("Two."), reads, step("Three.")]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        script(d.root, "x.sh", "echo by-hook >&2; exit 2")
        agree(d.root)
        assert "not trusted" in view(d, name).reason
        with pytest.raises(AmanuError, match="not trusted"):
            await d.session.own_parts.mcp_decisions.approve(name, view(d, name).digest)
        await d.prompt("go")
        await d.over("p1")
        assert "by-hook" not in d.told()
        await approved(d, name)
        await d.prompt("go", "p2")
        for reason in ("an MCP server runs this file", "a hook runs this file"):
            state = await d.until(lambda state: state.approvals)
            assert reason in str(state.approvals[0].lines)
            await d.answer("allow")
        await d.over("p2")
        assert d.told().count("by-hook") == 1
        assert view(d, name).state == "unapproved" and "srv.py" in view(d, name).reason
        await d.prompt("go", "p3")
        await d.over("p3")
        assert d.told().count("by-hook") == 1
