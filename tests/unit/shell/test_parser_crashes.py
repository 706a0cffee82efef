"""The parser is native code: what goes wrong in it ends the process, and with it all sessions."""

import subprocess
import sys
from pathlib import Path

import pytest

from support import command_fuzzer
from support.sweeps import examples

BEGIN = f"""
import sys, threading
sys.path[:0] = {[str(Path(__file__).parents[3] / each) for each in ("server", "protocol")]!r}
from pathlib import Path
from amanu.shell.analyze import read
from amanu.core.command import CommandContext

here = CommandContext(Path("/"), (Path("/"),), {{"PATH": "/usr/bin:/bin"}}, lambda path: True)
"""

MANY = """
sys.setswitchinterval(1e-6)
line = " && ".join(f"echo é{'x' * 40} word{n} | grep -n w{n}" for n in range(5))
expected = read(line, here)
mixed = []

def work():
    for _ in range(25):
        reading = read(line, here)
        # On a busy machine a line may take longer than it is given: that is said, and no mixture.
        if reading != expected and "too long" not in (reading.unclear or ""):
            mixed.append(reading)

threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(len(expected.commands), mixed)
"""

EVERY_PLANE = """
before = ["{", "$", "${", "${x", "${x[", "$((", "[[ a =~ ", "cat <<", "cat <<-", "a", "", "{1..", "x=", "x+", "!", "@("]
characters = [chr(plane * 0x10000 + each) for plane in range(1, 17) for each in (0x35, 0x4DEA, 0xA1E9, 0xFFF0)]
for character in [*characters, "é", "\\u0561", "\\u3042", "\\uac00", "\\uffee"]:
    for each in before:
        read(f"echo a; {each}{character} b }} ) ]] ]\\n{character}\\n", here)
print("alive")
"""


def _printed(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", BEGIN + script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_many_at_once_do_not_end_the_process() -> None:
    assert _printed(MANY) == "10 []"


def test_no_character_ends_the_process() -> None:
    """tree-sitter-bash looks characters up in a table of 256: most above are far outside of it."""
    assert _printed(EVERY_PLANE) == "alive"


@pytest.mark.parametrize("seed", [1, 2])
def test_no_changed_line_ends_the_process(seed: int) -> None:
    """A sample of `make soak`'s sweep `lines`."""
    command_fuzzer.survive(seed, examples(2_000, 500))
