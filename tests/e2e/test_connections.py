"""A whole run connects to what `docs/privacy.md` says and to nothing else. Python itself tells what it connects to and
looks up (`sys.addaudithook`)."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.test_prompt_to_edit import VENDORS
from support.cli_process import script
from support.service_thread import serving
from support.strict_services.http import Say, ToolUse

WATCHED = """
import json, sys

seen = sys.argv.pop(1)

def hook(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        target = arguments[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        target = arguments[:2]
    else:
        return
    if isinstance(target, tuple):  # else it is a unix socket
        with open(seen, "a") as file:
            file.write(json.dumps([str(target[0]), target[1] if len(target) > 1 else None]) + "\\n")

sys.addaudithook(hook)
from amanu.__main__ import main
sys.exit(main())
"""
CALLS: Sequence[tuple[str, dict[str, str]]] = (
    ("read_file", {"path": "a.txt"}),
    ("grep", {"pattern": "one"}),
    ("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"}),
    ("run_shell_command", {"command": "cat a.txt"}),
)


def connections(folder: Path, *arguments: str, **variables: str) -> set[tuple[str, int]]:
    """The hosts and ports that a run with these calls connected to or looked up."""
    seen, work = folder / "seen", folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    ran = subprocess.run(
        [sys.executable, "-P", "-c", WATCHED, str(seen), "run", "--allow", "@write(**)", *arguments, "do it"],
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "AMANU_CATALOGUE_REFRESH": "true", **variables},
    )
    assert ran.returncode == 0 and (work / "a.txt").read_text() == "two\n", ran.stdout + ran.stderr
    return {(host, port) for host, port in map(json.loads, seen.read_text().splitlines())} if seen.exists() else set()


def test_a_run_without_a_key_connects_to_nothing(tmp_path: Path) -> None:
    steps = [{"calls": [{"tool": tool, "arguments": arguments}]} for tool, arguments in CALLS]
    assert connections(tmp_path, "--model", script(tmp_path, *steps, {"text": "Done."})) == set()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_run_connects_to_the_service_of_its_model_alone(vendor: str, tmp_path: Path) -> None:
    make, model_id, variables = VENDORS[vendor]
    says = [Say(text="I try.", calls=[ToolUse(tool, arguments)]) for tool, arguments in CALLS]
    with serving(make([*says, Say(text="Done.")])) as url:
        own = {name: value.format(url=url) for name, value in variables.items()}
        found = connections(tmp_path, "--model", model_id, **own)
    host, _, port = url.removeprefix("http://").partition(":")
    assert found == {(host, int(port))}


def test_the_watch_sees_other_places(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    other = "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass\n"
    program = WATCHED.partition("from amanu")[0] + other
    subprocess.run([sys.executable, "-c", program, str(seen)], check=True, timeout=50)
    assert json.loads(seen.read_text().splitlines()[-1]) == ["127.0.0.1", 9]
