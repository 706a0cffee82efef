"""A command that tried the network and had none says so in its result, however it ended and whatever it printed."""

from pathlib import Path

import pytest

from amanu.config import SandboxSettings
from amanu.core.tool import Outcome
from amanu.home import find_home
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Grant, Mode, ToolCall
from support.draft_session import DONE, results
from support.required_programs import needs
from support.scripted_session import scripted_session, step
from support.tool_harness import ToolHarness
from unit.test_session_layer import shell

LINE = (
    "[The command tried to use the network, which its sandbox does not have. If the command needs this, call again "
    "with network=true and a reason; the user is asked.]"
)
IN_PLAN = "does not have. No command has it in this mode.]"
SWALLOWED = """python3 -c '
import urllib.request
try:
    urllib.request.urlopen("{url}", timeout=5)
except Exception:
    pass
'"""
SERVER = """python3 -c '
import http.server, threading, urllib.request
server = http.server.HTTPServer(("", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/").status)
server.shutdown()
'"""
NAMES = """python3 -c '
import socket
print(socket.getfqdn(), socket.gethostbyname(socket.gethostname()), socket.gethostbyname("localhost"))
'"""
DATAGRAM = """python3 -c '
import socket
socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 8125))
'"""
TRIED = {
    "curl into a shell": "curl -s http://example.com/install.sh | sh",
    "an error thrown away": "curl -s http://example.com/ >/dev/null 2>&1 || true; echo done",
    "an exception passed over": SWALLOWED.replace("{url}", "http://192.0.2.1/"),
    "a name": "getent ahosts example.com; true",
    "a name, passed over": SWALLOWED.replace("{url}", "http://example.com/"),
    "an address": "(exec 3<>/dev/tcp/192.0.2.1/9) 2>/dev/null; echo done",
    "an IPv6 address": "(exec 3<>/dev/tcp/2001:db8::1/9) 2>/dev/null; echo done",
    "a datagram": "(echo >/dev/udp/192.0.2.1/9) 2>/dev/null; echo done",
    "a failure that says so": "curl http://192.0.2.1/",
    "binary output": "(exec 3<>/dev/tcp/192.0.2.1/9) 2>/dev/null; printf '\\1\\0\\2'",
}
NOT_TRIED = {
    "nothing of the kind": "echo done",
    "talk of it": "echo 'curl: (6) Could not resolve host: example.com'",
    "a failure": "exit 3",
    "a server on loopback": SERVER,
    "no server on loopback": "curl -s http://127.0.0.1:1/ || true",
    "a datagram to loopback": DATAGRAM,
    "the machine's own names": NAMES,
}


async def outcome_of(folder: Path, command: str, tier: Tier, *, network: bool = False) -> Outcome:
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(folder / "h")}).make(), best=tier)
    try:
        if (await sandbox.proved()).tier != tier:
            pytest.skip(f"{tier} does not work here")
        (folder / "w").mkdir()
        harness = ToolHarness(folder / "w", sandbox=sandbox)
        tool, call = harness.tools["run_shell_command"], harness.context()
        params = tool.params.model_validate({"command": command})
        call.preview = await tool.preview(params, call)
        assert call.preview.command is not None
        grants: list[Grant] = ["network"] if network else []
        call.preview = call.preview.at(call.preview.command.placing.granted(grants, secrets=False))
        return await tool.run(params, call)
    finally:
        await sandbox.close()


def check(outcome: Outcome, *, tried: bool) -> None:
    for text in (outcome.for_model, outcome.for_user):
        assert text.count(LINE) == tried, text
        assert text.count("network=true") == tried, text


@pytest.mark.parametrize("command", TRIED.values(), ids=TRIED)
async def test_who_tried_the_network_says_so(tmp_path: Path, command: str) -> None:
    needs("bwrap")
    check(await outcome_of(tmp_path, command, "bubblewrap"), tried=True)


@pytest.mark.parametrize("command", NOT_TRIED.values(), ids=NOT_TRIED)
async def test_who_did_not_try_it_says_nothing(tmp_path: Path, command: str) -> None:
    needs("bwrap")
    check(await outcome_of(tmp_path, command, "bubblewrap"), tried=False)


@pytest.mark.layers
@pytest.mark.parametrize(
    ("mode", "command", "line"),
    [
        ("ask", TRIED["curl into a shell"], LINE),
        ("ask", NOT_TRIED["a server on loopback"], ""),
        ("plan", TRIED["an exception passed over"], IN_PLAN),
    ],
)
async def test_in_a_session_nobody_is_asked(tmp_path: Path, mode: Mode, command: str, line: str) -> None:
    needs("bwrap")
    async with scripted_session(tmp_path, step("", shell(command)), DONE, mode=mode) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert not state.approvals
        (result,) = results(d)
        assert (line in result) if line else ("tried to use the network" not in result)
        (shown,) = [item.output for item in state.items if isinstance(item, ToolCall)]
        assert line in shown


@pytest.mark.parametrize("tier", ["bubblewrap", "landlock"])
async def test_who_may_use_it_says_nothing(tmp_path: Path, tier: Tier) -> None:
    check(await outcome_of(tmp_path, "curl -s http://127.0.0.1:1/ || true", tier, network=True), tried=False)


@pytest.mark.parametrize(
    ("command", "tried"),
    [(TRIED["curl into a shell"], True), (TRIED["an error thrown away"], True), (NOT_TRIED["talk of it"], False)],
)
async def test_where_nothing_is_counted_the_programs_named_tell(tmp_path: Path, command: str, tried: bool) -> None:
    check(await outcome_of(tmp_path, command, "landlock"), tried=tried)


async def test_the_question_about_what_was_blocked_stays(tmp_path: Path) -> None:
    outcome = await outcome_of(tmp_path, "curl http://example.com/", "bubblewrap")
    assert outcome.blocked is not None and outcome.blocked.needs == {"network"}


async def test_a_command_of_the_background_says_so(tmp_path: Path) -> None:
    needs("bwrap")
    sandbox = Sandbox(SandboxSettings(), find_home({"AMANU_HOME": str(tmp_path / "h")}).make())
    (tmp_path / "w").mkdir()
    harness = ToolHarness(tmp_path / "w", sandbox=sandbox)
    command = "(exec 3<>/dev/tcp/192.0.2.1/9) 2>/dev/null; echo done"
    arguments = {"command": command, "background": True, "wait_s": 50, "until": "never"}
    try:
        check(await harness.run("run_shell_command", arguments), tried=True)
    finally:
        await sandbox.close()
