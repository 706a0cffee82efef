"""Whether `make demo-vscode` opens a browser, and which way."""

import sys
from pathlib import Path

import pytest

from support.browser_demo import opener


@pytest.mark.parametrize(
    ("platform", "screen", "programs", "opened"),
    [
        ("linux", {"DISPLAY": ":0"}, ["xdg-open"], "xdg-open"),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, ["xdg-open", "open"], "xdg-open"),
        ("linux", {"DISPLAY": ":0"}, ["open"], None),  # there it is another program's name
        ("linux", {}, ["xdg-open"], None),  # it would open a browser for terminals, in this one
        ("darwin", {}, ["open"], "open"),
        ("darwin", {}, [], None),
    ],
)
def test_opener(
    platform: str,
    screen: dict[str, str],
    programs: list[str],
    opened: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in programs:
        (tmp_path / name).touch(0o755)
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**screen, "PATH": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert opener() == (opened and str(tmp_path / opened))
