"""What holds for every test: no network beyond loopback, no key, a home of its own."""

import gc
import itertools
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from amanu.sandbox.self_test import Tier

_KEYS = ("API_KEY", "AUTH_TOKEN", "ACCESS_TOKEN", "CREDENTIALS", "_BASE_URL")
_HOMES = ("CONFIG", "DATA", "STATE", "CACHE", "RUNTIME")
_LOOPBACK = re.compile(r"127(\.\d+){3}|::1|::ffff:127(\.\d+){3}|localhost|0\.0\.0\.0|::|")

# Pytest keeps each test file as it compiled it, whatever PYTHONDONTWRITEBYTECODE says: to compile all of them takes ten
# seconds of the processor, in each run and each worker.
sys.dont_write_bytecode = False

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def pytest_configure(config: pytest.Config) -> None:
    # Who runs the tests in the background of a shell has it ignored, and so would every command that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "behaviour(*needs): a line of the table in docs/models.md (support/vendor_matrix.py)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each report of a behaviour's test says which cell it fills: in a run with workers, reports are all there is."""
    for item in items:
        if item.get_closest_marker("behaviour") is not None and isinstance(item, pytest.Function):
            column = cast(Any, item.callspec.params["vendor"]).column
            item.user_properties.append(("behaviour", (item.originalname, column)))


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: no collector of a test looks through it again."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """To report a failure pytest parses the file it is in. A collection in the midst of that can run a finalizer that
    shows a traceback, which parses too, and CPython before 3.12 then takes itself to be broken ("AST constructor
    recursion depth mismatch", python/cpython#106905): pytest would end, and all other results with it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if enabled:
            gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from support import vendor_matrix

    if lines := vendor_matrix.summary(terminalreporter.stats):
        terminalreporter.section("behaviours")
        for line in lines:
            terminalreporter.write_line(line)


class NetworkForbidden(AssertionError):
    """A test tried to leave the machine."""


_number = itertools.count()
_ODD = re.compile(r"\W")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own. That one lists all folders there are to number the next: seconds of a minute for thousands."""
    path = tmp_path_factory.getbasetemp() / f"{_ODD.sub('_', request.node.name)[:30]}{next(_number)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(autouse=True)
def _own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """A scratch home (short: unix sockets must fit in 108 bytes), and no key or address from outside."""
    home = tmp_path_factory.getbasetemp() / f"u{next(_number)}"  # not h: test_neovim.py names its own so
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AMANU_HOME", str(home / "amanu"))
    if request.node.get_closest_marker("layers") is None:  # what commands change is a proposal, then
        monkeypatch.setenv("AMANU_SANDBOX_LAYERS", "false")
    monkeypatch.setenv("AMANU_CATALOGUE_REFRESH", "false")  # of daemons that run longer than a moment
    for name in _HOMES:
        monkeypatch.setenv(f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}", str(home / name.lower()))
    for name in list(os.environ):
        if name.upper().endswith(_KEYS) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    yield


@pytest.fixture(params=["bubblewrap", "landlock"])
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Tier":
    """The sandbox that commands run in."""
    from amanu.sandbox import landlock
    from amanu.sandbox.sandbox import Sandbox
    from support.required_programs import needs

    tier: Tier = request.param
    if tier == "bubblewrap":
        needs("bwrap")
    elif not landlock.version():
        pytest.skip("this kernel has no Landlock")
    made = Sandbox.__init__

    def make(self: Sandbox, *args: Any, **more: Any) -> None:
        made(self, *args, **{"best": tier, **more})

    monkeypatch.setattr(Sandbox, "__init__", make)
    return tier


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """What a test makes of logging (`amanu.logs`) ends with it."""
    loggers = {name: logging.getLogger(name) for name in ("", "amanu", "pygls", "watchfiles")}
    levels = {name: logger.level for name, logger in loggers.items()}
    handlers = loggers[""].handlers[:]
    yield
    for handler in set(loggers[""].handlers) - set(handlers):
        handler.close()
    loggers[""].handlers[:] = handlers
    for name, logger in loggers.items():
        logger.setLevel(levels[name])
    logging.captureWarnings(False)


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Sockets of this process reach loopback and unix sockets, and names are not looked up elsewhere."""

    def connect(self: socket.socket, address: Any) -> None:
        _check(self.family, address)
        _connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        _check(self.family, address)
        return _connect_ex(self, address)

    def getaddrinfo(host: Any, *rest: Any, **named: Any) -> Any:
        _check(socket.AF_INET, (host, 0))
        return _getaddrinfo(host, *rest, **named)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def _check(family: int, address: Any) -> None:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return
    host = address[0].decode() if isinstance(address[0], bytes) else address[0]
    if host is not None and not _LOOPBACK.fullmatch(str(host)):
        raise NetworkForbidden(f"no test needs the network, but one asked for {host}")
