"""What a plug-in that is on brings to a session: its agents, its hooks, its servers, as its files say."""

import json
import shutil
from pathlib import Path

import pytest

from amanu.cli.plugin import main
from support.agent_session import agent, ask_agent, complete, nested, results, session_with_agents
from support.hook_files import hook_entries
from support.plugin_files import CLAUDE, write
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step

GUARD = {
    "hooks": {
        "PreToolUse": [
            {"matcher": "Read", "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/scripts/check.sh"}]}
        ]
    }
}
FILES = CLAUDE | {
    "hooks/hooks.json": json.dumps(GUARD),
    "scripts/check.sh": '#!/bin/sh\necho "checked by ${0##*/}" >&2\nexit 2\n',
}


def add(tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str]) -> None:
    """Add the plug-in, having reviewed it."""
    source = str(write(tmp_path / "plugin", files))
    main(["add", source])
    shown = capsys.readouterr().out
    digest = shown.partition("--digest ")[2].split()[0]
    assert main(["add", "--yes", "--digest", digest, source]) == 0


def server_names(d: ScriptedSession) -> list[str]:
    return [server.view.name for server in d.session.own_parts.mcp.servers()]


async def test_its_agent_hook_and_server_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(tmp_path, capsys, FILES)
    steps = [step("", call("read_file", path="notes.txt")), step("Done.")]
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("go")
        await d.ended()
        assert "checked by check.sh" in results(d)[0]
        assert [entry["answer"] for entry in await hook_entries(d)] == ["deny"]
        factory = d.session.composer.turn_factory
        assert "tester" in factory.tools["run_agent"].spec().description
        (server,) = d.session.own_parts.mcp.servers()
        assert (server.view.name, server.view.state) == ("plugin_code-helper_db", "unapproved")
        assert server.view.source == "the plug-in code-helper"
        assert "code-helper/server.js" in server.view.target


async def test_removed_it_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(tmp_path, capsys, FILES)
    shutil.rmtree(tmp_path / "plugin")  # only the copy counts
    reads = step("", call("read_file", path="notes.txt"))
    async with scripted_session(tmp_path, reads, step("One."), reads, step("Two.")) as d:
        await d.prompt("go", "p1")
        await d.ended()
        assert main(["remove", "code-helper"]) == 0
        await d.prompt("again", "p2")
        await d.ended()
        assert "checked by" in results(d)[0]
        assert "checked by" not in results(d)[1]
        assert server_names(d) == []
        assert "tester" not in d.session.composer.turn_factory.tools["run_agent"].spec().description


async def test_it_is_the_users_in_a_folder_that_nobody_trusts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nobody's, if the folder itself says that it is one."""
    add(tmp_path, capsys, FILES)
    steps = [step("", call("read_file", path="notes.txt")), step("Done.")]
    async with scripted_session(tmp_path, *steps) as d:
        theirs = {name: text.replace("code-helper", "theirs").replace("tester", "spy") for name, text in FILES.items()}
        for folder in (d.root, d.root / ".amanu" / "plugins" / "theirs", d.root / ".claude" / "plugins" / "theirs"):
            write(folder, theirs)
        await d.prompt("go")
        state = await d.ended()
        assert not state.trusted
        assert "checked by check.sh" in results(d)[0] and len(await hook_entries(d)) == 1
        described = d.session.composer.turn_factory.tools["run_agent"].spec().description
        assert "tester" in described and "spy" not in described
        assert server_names(d) == ["plugin_code-helper_db"]


async def test_its_agent_works_and_its_hook_holds_for_agents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(tmp_path, capsys, FILES)
    script = tmp_path / "tester.json"
    script.write_text(
        json.dumps([step("", call("read_file", path="notes.txt")), step("", complete("It is forbidden."))])
    )
    settings = f'[routing]\nsubagent = "scripted:{script}"'
    steps = [step("", ask_agent("tester")), step("Done.")]
    async with session_with_agents(tmp_path, {}, *steps, settings=settings) as d:
        await d.prompt("go")
        await d.ended()
        assert "It is forbidden." in results(d)[0]
        assert [item.state for item in nested(d)] == ["rejected"]
        child = await d.sessions.get(agent(d).session_id)
        told = "\n".join(message.model_dump_json() for message in conversation(child))
        assert "checked by check.sh" in told and "line 12" not in told
        assert child.own_parts.mcp.servers()[0].view.name == "plugin_code-helper_db"
