"""Whatever way the process speaks outside its log, no key is in it."""

import subprocess
import sys

import pytest

from amanu.home import find_home
from amanu.text.redaction import MASK

SHAPED, KNOWN = "sk-abcdefghijklmnop", "an odd key"
_BEGIN = f"""
import os, sys, threading
from amanu.daemon import stdio; from amanu.system import logs
from amanu.text.redaction import Secrets
known = Secrets()
known.learn([{KNOWN!r}, "two lines\\nof a key"])
logs.use_secrets(known)
stdio.mask("stdout", "stderr")
KEYS = "{SHAPED} and {KNOWN}"
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print(KEYS)", "and"),
        ("print(KEYS, file=sys.stderr)", "and"),
        ("print(KEYS, end='', flush=True)", "and"),
        ("print(KEYS, end='')", "and"),
        ("[sys.stderr.write(each) for each in KEYS]", "and"),
        ("print('two lines\\nof a key')", MASK),
        ("raise ValueError(KEYS)", "ValueError: "),
        ("raise ValueError('two lines\\nof a key')", "ValueError: "),
        ("raise type(KEYS, (Exception,), {})", "Traceback"),
        ("os.environ[KEYS]", "KeyError"),
        ("threading.Thread(target=lambda: os.environ[KEYS], name='worker').start()", "In the thread worker:"),
        ("class Odd:\n    def __del__(self): raise OSError(KEYS)\nOdd()\nprint('on')", "OSError"),
        ("keep = [type('Late', (), {'__del__': lambda self: os.environ[KEYS]})()]", "KeyError"),
        ("import asyncio\nasync def work(): os.environ[KEYS]\nasyncio.run(work())", "KeyError"),
        ("sys.exit(KEYS)", "and"),
        ("import warnings; warnings.warn(KEYS)", "UserWarning"),
        ("print('\\ud834 half')", "\\ud834 half"),
        ("os.close(2); print('nobody hears', file=sys.stderr); print('but here')", "but here"),
        ("threading.Thread(target=sys.exit).start()", ""),
    ],
)
def test_no_key_is_said(code: str, says: str) -> None:
    command = [sys.executable, "-c", _BEGIN + code]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    for secret in (SHAPED, KNOWN, "of a key"):
        assert secret not in done.stdout
    assert says in done.stdout and bool(says) == bool(done.stdout)


def test_what_a_daemon_says_as_it_falls_is_masked() -> None:
    """As its relay starts it: what it says is the file `daemon.out`."""
    home = find_home().make()
    code = f"""
import sys
from amanu.daemon import main as daemon
def fall(): raise RuntimeError("{SHAPED}")
sys.exit(daemon.main([], fall))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and f"RuntimeError: {MASK}" in done.stderr
    assert SHAPED not in (home.logs / "daemon.log").read_text()
