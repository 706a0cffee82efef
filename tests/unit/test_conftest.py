"""What tests/conftest.py promises for every test."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "localhost.example.com", "example.com"])
def test_nothing_beyond_loopback_is_reached(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as ours:
        ours.settimeout(1)
        with pytest.raises(AssertionError, match="no test needs the network"):
            ours.connect((address, 9))
    with pytest.raises(AssertionError, match="no test needs the network"):
        socket.getaddrinfo(address, 9)


def test_loopback_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()


def test_home_is_scratch_and_no_key_is_there() -> None:
    scratch = Path(os.environ["HOME"])
    assert Path(os.environ["AMANU_HOME"]).is_relative_to(scratch)
    assert Path.home() == scratch
    assert not [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]


FAILING = """
import ast, gc, pytest

def parse(phase, info):
    "As a finalizer that shows a traceback does."
    ast.parse("a + b * (c + d)")

@pytest.fixture(autouse=True, scope="session")
def collecting():
    gc.callbacks.append(parse)
    yield
    gc.callbacks.remove(parse)

def test_it():
    assert not "well"
""" + "\n".join(f"x{at} = [1 + 2 * (3 + {at}), (1, 2, 3)]" for at in range(300))


def test_a_failing_test_never_takes_pytest_down(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_runtest_makereport\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}", "PYTEST_ADDOPTS": ""}
    found = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1].startswith("1 failed"), found.stdout[-2000:] + found.stderr
