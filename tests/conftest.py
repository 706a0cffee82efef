"""What holds for every test: no network beyond loopback, no key, a home of its own."""

import functools
import gc
import itertools
import logging
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from support import loopback
from support.sweeps import WHOLE

if TYPE_CHECKING:
    from amanu.sandbox.self_test import Tier

_KEYS = ("API_KEY", "AUTH_TOKEN", "ACCESS_TOKEN", "CREDENTIALS", "_BASE_URL")
_HOMES = {
    "HOME": "",
    "AMANU_HOME": "amanu",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "XDG_RUNTIME_DIR": "runtime",
}

# Pytest keeps each test file as it compiled it, whatever PYTHONDONTWRITEBYTECODE says: to compile all of them takes ten
# seconds of the processor, in each run and each worker.
sys.dont_write_bytecode = False

_NEVER_SYNC = "PRAGMA synchronous = OFF"


def pytest_configure(config: pytest.Config) -> None:
    loopback.only()
    # Who runs the tests in the background of a shell has it ignored, and so would every command that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "behaviour(*needs): a line of the table in docs/models.md (support/vendor_matrix.py)"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the garbage collector away from modules and tests, which stay until the end: looking through them again and
    again takes a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each report of a behaviour's test says which cell it fills: in a run with workers, reports are all there is."""
    if (providers := sys.modules.get("hypothesis.internal.conjecture.providers")) is not None and not WHOLE:
        # Hypothesis also tries constants that stand in our code, and parses all of it for them, in each worker.
        vars(providers)["is_local_module_file"] = lambda path: False  # pyright: ignore[reportUnknownLambdaType]
    for item in items:
        if item.get_closest_marker("behaviour") is not None and isinstance(item, pytest.Function):
            column = cast(Any, item.callspec.params["vendor"]).column
            item.user_properties.append(("behaviour", (item.originalname, column)))


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
    reports: list[Any] = terminalreporter.stats.get("passed", [])
    if any(name == "behaviour" for report in reports for name, _ in report.user_properties):
        from support import vendor_matrix  # it imports half of what there is

        if lines := vendor_matrix.summary(terminalreporter.stats):
            terminalreporter.section("behaviours")
            for line in lines:
                terminalreporter.write_line(line)


_number = itertools.count()
_ODD = re.compile(r"\W")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest) -> Path:
    """As pytest's own. That one lists all folders there are to number the next: seconds of a minute for thousands."""
    path = Path(_scratch(request), f"{_ODD.sub('_', request.node.name)[:30]}{next(_number)}")
    path.mkdir(mode=0o700)
    return path


_base = pytest.StashKey[str]()


def _scratch(request: pytest.FixtureRequest) -> str:
    """The folder of this run. Not a fixture: to ask for one costs more than to make a folder."""
    stash = request.config.stash
    if _base not in stash:
        stash[_base] = str(request.getfixturevalue("tmp_path_factory").getbasetemp())
    return stash[_base]


@pytest.fixture(autouse=True)
def _as_alone(request: pytest.FixtureRequest) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """A scratch home (short: unix sockets must fit in 108 bytes), no key or address from outside, and logging as it was
    before. One fixture: ten thousand tests each pay for every fixture there is."""
    home = f"{_scratch(request)}/u{next(_number)}"  # not h: test_neovim.py names its own so
    os.mkdir(home, mode=0o700)  # noqa: PTH102
    ours: dict[str, str | None] = {name: f"{home}/{path}" if path else home for name, path in _HOMES.items()}
    # What commands change is a proposal, then.
    ours["AMANU_SANDBOX_LAYERS"] = "false" if request.node.get_closest_marker("layers") is None else None
    ours["AMANU_CATALOGUE_REFRESH"] = "false"  # of daemons that run longer than a moment
    ours.update(dict.fromkeys(name for name in os.environ if _from_outside(name)))
    before = {name: os.environ.get(name) for name in ours}
    loggers = [(logger, logger.level) for logger in map(logging.getLogger, ("", "amanu", "pygls", "watchfiles"))]
    handlers = logging.root.handlers[:]
    _set(ours)
    yield
    _set(before)
    for handler in set(logging.root.handlers) - set(handlers):
        handler.close()
    logging.root.handlers[:] = handlers
    for logger, level in loggers:
        if logger.level != level:
            logger.setLevel(level)
    logging.captureWarnings(False)


@functools.cache
def _from_outside(name: str) -> bool:
    return name.upper().endswith((*_KEYS, "_PROXY"))


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is not None:
            os.environ[name] = value
        elif name in os.environ:
            del os.environ[name]


class _Unsynced(sqlite3.Connection):
    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql.startswith("PRAGMA journal_mode"):  # which syncs, too
            super().execute(_NEVER_SYNC)
        return super().execute(_NEVER_SYNC if sql.startswith("PRAGMA synchronous") else sql, parameters)


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(  # pyright: ignore[reportUnusedFunction]
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that this process writes is synced to the disk, which takes most of the time of a small session: no test
    cuts the power. Those marked `synced` look at what is synced."""
    if request.node.get_closest_marker("synced") is None:
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=_Unsynced))
        monkeypatch.setattr(os, "fsync", lambda _: None)  # pyright: ignore[reportUnknownLambdaType]


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
