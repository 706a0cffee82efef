"""`amanu demo` ends green, or says so."""

import os
import pty
import subprocess
import time
from pathlib import Path

from support.cli_process import AMANU, amanu
from support.warm_process import warm


def test_straight_through_without_a_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    xdg = dict.fromkeys(("AMANU_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), "")
    began = time.monotonic()
    done = amanu("demo", cwd=tmp_path, HOME=str(home), PYTHONWARNINGS="error", **xdg)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = (
        "the model is scripted",
        "FAILED (failures=3)",
        "plays a script, no real model",
        "› The tests of this little shop fail.",
        "✓ Read cart.py",
        "? Edit cart.py",
        "+    return sum(item.price * item.quantity for item in items)",
        "answered automatically",
        "2 applied",
        "All three tests pass.",
        "    OK",
        "All tests pass",
    )
    at = 0
    for step in steps:
        at = done.stdout.find(step, at)
        assert at >= 0, f"{step!r} is missing or out of order:\n{done.stdout}"
    assert "\x1b" not in done.stdout
    assert time.monotonic() - began < 40, "pleasant to watch, also on a busy machine"
    assert list(home.rglob("*")) == [], "it leaves nothing behind"


def test_the_sample_goes_into_a_new_folder_and_nowhere_else(tmp_path: Path) -> None:
    made, again, lost = (amanu("demo", "--sample", name, cwd=tmp_path) for name in ("shop", "shop", "no/shop"))
    assert (made.returncode, made.stdout, made.stderr) == (0, "shop: cart.py, test_cart.py\n", "")
    assert (again.returncode, again.stdout, again.stderr) == (1, "", "shop cannot be made: File exists\n")
    assert (lost.returncode, lost.stdout, lost.stderr) == (1, "", "no/shop cannot be made: No such file or directory\n")


def test_a_user_who_rejects_is_obeyed(tmp_path: Path) -> None:
    screen, keyboard = pty.openpty()
    process = subprocess.Popen(
        warm([*AMANU, "demo"]),
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(keyboard)
    shown = b""
    sent = {b"or why not": b"I like it red\r"}
    try:
        while True:
            data = os.read(screen, 65536)
            if not data:
                break
            shown += data
            if b"\x1b[6n" in data:  # prompt_toolkit asks where the cursor is
                os.write(screen, b"\x1b[1;1R")
            for question in list(sent):
                if question in shown:
                    time.sleep(0.6)  # sooner does not count
                    os.write(screen, sent.pop(question))
    except OSError:  # Linux says EIO at the end of a pseudo terminal
        pass
    finally:
        os.close(screen)
    assert process.wait(timeout=50) == 0, shown.decode(errors="replace")
    assert sent == {}
    assert b"tests still fail" in shown
    assert b"I like it red" in shown
    assert b"\x1b[" in shown, "with colours"
