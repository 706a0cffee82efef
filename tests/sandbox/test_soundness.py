"""What is judged to have no effect has none: lines are run for real, in a sandbox, and watched (`bench/soundness`)."""

import asyncio
import json
import subprocess

import pytest
from bench.soundness.sandbox import TOP, within
from bench.soundness.sweep import SAMPLE, run

from support.required_programs import needs
from support.sweeps import examples

SEEN = {
    "touch pwned": f"made '{TOP}/hostile/pwned'",
    "touch /tmp/pwned": "made '/tmp/pwned'",
    "touch /var/tmp/pwned": "made '/var/tmp/pwned'",
    "touch /dev/shm/pwned": "made '/dev/shm/pwned'",
    "touch ~/pwned": f"made '{TOP}/home/pwned'",
    "touch a.txt": f"changed '{TOP}/hostile/a.txt' (mtime, status)",
    "touch -r a.txt a.txt": f"changed '{TOP}/hostile/a.txt' (status)",
    "printf x >> a.txt": f"changed '{TOP}/hostile/a.txt' (size, mtime, status)",
    "chmod 700 a.txt": f"changed '{TOP}/hostile/a.txt' (mode, status)",
    "rm a.txt": f"removed '{TOP}/hostile/a.txt'",
    "mkdir src/new": f"made '{TOP}/hostile/src/new'",
    "mkfifo new": f"made '{TOP}/hostile/new'",
    "touch x; rm x": f"changed '{TOP}/hostile' (mtime, status)",
    "ln a.txt new": f"changed '{TOP}/hostile/a.txt' (status, links)",
    "git add a.txt": f"changed '{TOP}/hostile/.git/index' (size, mtime, status, inode)",
    "GIT_CONFIG_COUNT=0 GIT_OPTIONAL_LOCKS=1 git status": f"changed '{TOP}/hostile/.git/index'",
    "echo >/dev/tcp/127.0.0.1/9": "used the network",
    "echo >/dev/tcp/192.0.2.1/9": "used the network",
    "echo >/dev/udp/192.0.2.1/9": "used the network",
    "getent ahosts example.org": "used the network",
    "cat .env": f"read {TOP}/hostile/.env",
    "wc -l < .env": f"read {TOP}/hostile/.env",
    "cat .git/config": "showed a secret",
    "env": "showed a secret",
    "setsid -f sh -c 'sleep 0.1; cat .git/config'": "showed a secret",
    "setsid -f tail -f /dev/null": "left tail running",
    "cat a.txt": "",
    "ls -laR . | sort | head -3; git log -p": "",
    "cat <<< x; sleep 0.1 &": "",
    "tail -f /dev/null &": "",
}


@pytest.mark.place
def test_what_a_line_does_is_seen() -> None:
    needs("bwrap")
    lines = "\n".join(json.dumps(each) for each in SEEN)
    words = within("-m", "bench.soundness.inside", "--given")
    told = subprocess.run(words, input=lines, text=True, capture_output=True, check=True, timeout=60).stdout
    found = dict(zip(SEEN, map(json.loads, told.splitlines()), strict=True))
    wrong = {
        line: effects
        for line, effects in found.items()
        if (not any(each.startswith(SEEN[line]) for each in effects) if SEEN[line] else effects)
    }
    assert wrong == {}


@pytest.mark.place
def test_lines_judged_to_have_no_effect_have_none() -> None:
    needs("bwrap")
    lines = examples(SAMPLE, 150)
    found = asyncio.run(run(lines, seed=6, seconds=60, workers=2))
    assert [str(each) for each in found.effects] == []
    assert found.counts["automatic"] == lines
