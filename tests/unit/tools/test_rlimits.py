"""What the kernel holds a command to."""

import os
import subprocess
import sys

import pytest

from amanu.sandbox.rlimits import LEAST_MEMORY, KernelLimits, limited_entry_shell, limits, raise_file_limit
from support.required_programs import needs

BASH = "/bin/bash"
ROOMY = KernelLimits(file_bytes=1 << 20, processes=20_000, open_files=512)
pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX limits")


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        (["echo", "a b", "$(id)", "*", ""], 0, "a b $(id) * \n"),
        (["sh", "-c", "ulimit -c; ulimit -Hc"], 0, "0\n0\n"),
        ([BASH, "-p", "-c", "ulimit -f; ulimit -Hf"], 0, "1024\n1024\n"),
        ([BASH, "-p", "-c", "ulimit -Sn"], 0, "512\n"),
        ([BASH, "-p", "-c", "ulimit -u"], 0, "20000\n"),
        ([BASH, "-p", "-c", "ulimit -f unlimited 2>/dev/null; ulimit -f"], 0, None),
        (["sh", "-c", "head -c 2000000 /dev/zero > big; stat -c %s big"], 0, "1048576\n"),
        (["sh", "-c", "exit 7"], 7, ""),
        (["no-such-program"], 127, ""),
    ],
)
def test_held_to_limits(tmp_path: object, command: list[str], code: int, output: str | None) -> None:
    environment = {**os.environ, "BASH_ENV": "/dev/stdin", "ENV": "/dev/stdin"}
    done = subprocess.run(
        limited_entry_shell(BASH, ROOMY).wrap(command),
        input="echo hijacked",
        capture_output=True,
        text=True,
        cwd=str(tmp_path),
        env=environment,
    )
    assert done.returncode == code, done.stderr
    assert output is None or done.stdout == output


@pytest.mark.parametrize(
    "program", [["python3", "-c", "bytearray(150_000_000)"], ["node", "-e", "Buffer.alloc(150e6, 1)"]]
)
def test_what_nobody_was_asked_about_cannot_take_all_memory(program: list[str]) -> None:
    needs(program[0])

    def run(memory: int | None) -> int:
        words = limited_entry_shell(BASH, ROOMY._replace(memory=memory)).wrap(program)
        return subprocess.run(words, capture_output=True).returncode

    assert [run(None), run(1 << 30)] == [0, 0], "node and others reserve far more than that, and do not use it"
    assert run(100 << 20) != 0


def test_memory_of_this_machine() -> None:
    assert limits().memory is None
    quarter, half = limits(4).memory, limits(2).memory
    assert quarter is not None and half is not None and LEAST_MEMORY <= quarter <= half


def test_it_becomes_the_command() -> None:
    process = subprocess.Popen(
        limited_entry_shell(BASH).wrap(["sh", "-c", "echo $$"]), stdout=subprocess.PIPE, text=True
    )
    assert process.communicate()[0].strip() == str(process.pid)


def test_a_limit_that_cannot_be_set_does_not_keep_a_command_from_running() -> None:
    done = subprocess.run(
        limited_entry_shell(BASH, KernelLimits(file_bytes=1 << 60, processes=1 << 62, open_files=1 << 40)).wrap(
            ["echo", "ran"]
        ),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_the_daemon_raises_its_own_and_commands_get_the_old() -> None:
    program = (
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (100, 300));"
        "from amanu.sandbox.rlimits import limits, raise_file_limit; print(raise_file_limit(), limits().open_files)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "300 100\n"
    assert raise_file_limit(1) is not None  # never lowers
    assert (limits().processes or 5000) > 4000
