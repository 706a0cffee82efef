"""Command lines changed at random are read in a process of their own: none may fail, take long, or end the process.

`python tests/support/command_fuzzer.py SEED COUNT`: reads as many of them, and says `read COUNT`.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SPECIAL = [*"(){}[]<>|&;$`\"'\\ \n\t#!*?~=%^,./:-+@01abEO_é€", "$(", "${", "<<E\n", "\nE\n", "$((", "[[", "]]", "<<-"]
_LONGEST = 0.1  # seconds for a verdict on any input


def survive(seed: int, count: int) -> None:
    """Raises AssertionError with what the process said, or how it ended."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, f"{seed}", f"{count}"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"read {count}\n"), f"seed {seed}: {done.stdout}\n{done.stderr}"


def changed(line: str, chance: random.Random) -> str:
    """The line with a few characters put in, or in place of others."""
    instead = chance.random() < 0.5
    for _ in range(chance.choice((1, 1, 1, 2, 4, 12))):
        at = chance.randint(0, min(200, len(line) + 3))
        piece = "".join(_character(chance) for _ in range(chance.randint(0, 3)))
        line = line[:at] + piece + line[at + (len(piece) if instead else 0) :]
    return line


def _character(chance: random.Random) -> str:
    if chance.random() < 0.8:
        return chance.choice(_SPECIAL)
    return chr(chance.randint(0, chance.choice((0xFF, 0x2FFF, 0x10FFFF))))


def _main() -> None:
    seed, count = (int(each) for each in sys.argv[1:])
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / each) for each in ("server", "protocol", "tests")]
    from amanu.shell.analyze import read
    from support.command_workspace import workspace
    from unit.shell.test_analyze import LINES

    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        here = workspace(Path(folder))
        for _ in range(count):
            line = changed(chance.choice(LINES), chance)
            began = time.thread_time()
            try:
                read(line, here)
            except Exception:
                print(f"{line!a}", flush=True)
                raise
            if time.thread_time() - began > _LONGEST:
                print(f"{line!a} took {time.thread_time() - began:.3f} s", flush=True)
    print(f"read {count}")


if __name__ == "__main__":
    _main()
