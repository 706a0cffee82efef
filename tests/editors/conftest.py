"""The window of a real VS Code that tests share."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from amanu.home import find_home
from support.vscode import SHARED
from support.vscode_stage import Stage, empty


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stage]:
    folder = tmp_path_factory.getbasetemp() / "vs"  # short: unix sockets must fit in 108 bytes
    folder.mkdir()
    SHARED.append(Stage(folder))
    yield SHARED[0]
    await SHARED.pop().close()


@pytest.fixture
def window(stage: Stage) -> Path:
    """The folder of the window that tests share. The home is the test's own, and so is the daemon."""
    return stage.settle()


@pytest.fixture
def lived_in(request: pytest.FixtureRequest, window: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the window that tests share, with a daemon that runs already; no session is left, and nothing
    configured."""
    layers = request.node.get_closest_marker("layers") is not None  # a daemon has them from its start, or not
    home = window.with_name(f"{window.name}{'l' if layers else 'h'}")
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AMANU_HOME", str(home / "amanu"))
    empty(find_home(os.environ).config)
    return window


@pytest_asyncio.fixture(loop_scope="session")
async def new_window(stage: Stage) -> Path:
    """The folder of a window that no test has used: what VS Code remembers of others for a window that is loaded again
    would come back, for it writes what it remembers with delay."""
    await stage.leave()
    return stage.settle()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a window are neighbours, and so are those among them that share its daemon."""
    order = ["", "window", "new_window", "lived_in"]

    def shared(item: pytest.Item) -> tuple[int, bool]:
        names = getattr(item, "fixturenames", ())
        rank = max(order.index(name) for name in order if name in ("", *names))
        return rank, rank > 0 and item.get_closest_marker("layers") is not None

    items.sort(key=shared)
