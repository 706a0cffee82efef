"""What tests/conftest.py promises for every test."""

import os
import socket
from pathlib import Path

import pytest


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
