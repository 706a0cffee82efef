import pytest

from unit.cli.inside import Inside


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    return Inside(monkeypatch, capsys)
