"""What the sandbox blocked, told from what a command printed."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from amanu.core.tool import Need
from amanu.sandbox.self_test import Tier
from amanu.tools.shell.blocked import Attempt, find_blocked
from amanu_protocol.items import CommandSandbox

COMMAND = "git push; docker ps; gh pr list; psql; cp x /usr/local/bin/x; touch /opt/x /usr/x"
ROOTS = [Path("/srv/shop"), Path("/tmp"), Path("/dev")]
PYTEST = "PytestCacheWarning: could not create cache path /srv/shop/.pytest_cache: [Errno 30] Read-only file system"


@pytest.fixture
def served() -> Iterator[int]:
    """A port on which this machine listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def check(
    output: str,
    expected: Need | None,
    *,
    trial: bool = True,
    failed: bool = True,
    tier: Tier = "bubblewrap",
    connects: bool = False,
) -> None:
    sandbox = CommandSandbox(tier=tier, writes="nothing" if trial else "workspace", network=False, summary="")
    found = find_blocked(
        Attempt(output, failed, sandbox, trial, COMMAND, connects, [".env", "/srv/shop/deploy/id_rsa"], ROOTS)
    )
    assert (None if found is None else {*found.needs}) == (None if expected is None else {expected})
    assert found is None or found.evidence in output


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("touch: cannot touch 'x': Read-only file system", "write"),
        ("/usr/bin/mkdir: cannot create directory 'x': Read-only file system", "write"),
        ("bash: line 1: out.txt: Read-only file system", "write"),
        ("fatal: Unable to create '/srv/shop/.git/index.lock': Read-only file system", "write"),
        ("npm error EROFS: read-only file system, open '/srv/shop/node_modules/a.js'", "write"),
        ("OSError: [Errno 30] Read-only file system: '/srv/shop/a'\nmake: *** Error 1", "write"),
        ("cp: cannot create regular file '/usr/local/bin/x': Read-only file system", "unsandboxed"),
        ("OSError: [Errno 30] Read-only file system: '/opt/x'", "unsandboxed"),
        ("curl: (6) Could not resolve host: example.org", "network"),
        ("npm error code EAI_AGAIN", "network"),
        ("connect: network is unreachable", "network"),
        ("ssh: Could not resolve hostname github.com: Temporary failure in name resolution", "unsandboxed"),
        ("fatal: '/srv/shop.git' does not appear to be a git repository\nfatal: Could not read from remote repository.",
         "unsandboxed"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "unsandboxed"),
        ("To get started with GitHub CLI, please run:  gh auth login", "unsandboxed"),
        ("psql: error: connection to server on socket \"/run/postgresql/.s.PGSQL.5432\" failed", "unsandboxed"),
        ("cat: .env: Permission denied", "secrets"),
        ("PermissionError: [Errno 13] Permission denied: 'deploy/id_rsa'", "secrets"),
        ("connect ECONNREFUSED 127.0.0.1:1", None),
        ("AssertionError: 2 != 3", None),
        ("./run.sh: Permission denied", None),
        ("chown: changing ownership of 'x': Operation not permitted", None),
        (f"FAILED test_a.py\n{PYTEST}", "write"),
        ("", None),
    ],
)  # fmt: skip
def test_what_a_failed_trial_lacks(output: str, expected: Need | None) -> None:
    check(output, expected)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("touch: cannot touch 'x': Read-only file system\ndone", "write"),
        (f"3 passed\n{PYTEST}", None),
        ("warning: unable to access /srv/shop/x: Read-only file system", None),
        ("it says: network is unreachable", None),
        ("cat: .env: Permission denied", None),
    ],
)
def test_a_trial_that_succeeded_lacks_only_what_it_did_not_warn_of(output: str, expected: Need | None) -> None:
    check(output, expected, failed=False)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("fatal: Could not read from remote repository.", "unsandboxed"),
        ("curl: (6) Could not resolve host: example.org", "network"),
        ("npm warn audit ENOTFOUND", None),
        ("cat: .env: Permission denied", None),
        ("Everything up-to-date", None),
    ],
)
def test_what_connects_may_fail_behind_a_pipe(output: str, expected: Need | None) -> None:
    check(output, expected, failed=False, connects=True)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("touch: cannot touch '/usr/x': Read-only file system", "unsandboxed"),
        ("touch: cannot touch '.git/hooks/x': Read-only file system", None),
        ("curl: (6) Could not resolve host: example.org", "network"),
    ],
)
def test_once_the_workspace_could_be_written_only_the_outside_is_blocked(output: str, expected: Need | None) -> None:
    check(output, expected, trial=False)


def test_landlock_denies_where_bubblewrap_is_read_only() -> None:
    check("touch: cannot touch 'x': Permission denied", "write", tier="landlock")
    check("touch: cannot touch '/usr/x': Permission denied", None, tier="landlock")
    check("touch: cannot touch 'x': Permission denied", None, tier="landlock", trial=False)


def test_a_refused_connection_is_the_sandbox_s_doing_where_the_port_is_served(served: int) -> None:
    check(f"connect ECONNREFUSED 127.0.0.1:{served}", "network")
    check(f"curl: (7) Failed to connect to localhost port {served} after 0 ms: Couldn't connect to server", "network")
    check("curl: (7) Failed to connect to localhost port 1 after 0 ms: Couldn't connect to server", None)
    check(f'connection to server at "localhost" (127.0.0.1), port {served} failed: Connection refused', "network")


def test_without_a_sandbox_nothing_is_blocked() -> None:
    check("touch: cannot touch 'x': Read-only file system", None, tier="none")
