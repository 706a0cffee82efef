import pytest

from support.cli_in_process import InProcessCli


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcessCli:
    return InProcessCli(monkeypatch, capsys)
