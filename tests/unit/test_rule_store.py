"""Rules as they are in their files now, whatever was read of them before."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.config import Settings
from amanu.permissions import rule_store
from amanu.permissions.rule_store import RuleStore

BEFORE, AFTER = '[rules]\ndeny = ["grep(a)"]\n', '[rules]\ndeny = ["grep(b)"]\n'  # of one length
Change = Callable[[Path, Path], object]
"""What happens to the workspace's own file and to the file of remembered rules."""


def replaced(own: Path, remembered: Path) -> None:
    new = own.with_name("new")
    new.write_text(AFTER)
    new.rename(own)


def made_a_link(own: Path, remembered: Path) -> None:
    """To a file whose rules are not the workspace's."""
    other = own.parent.parent.parent / "other.toml"
    own.rename(other)
    own.symlink_to(other)


def link_moved(own: Path, remembered: Path) -> None:
    folder = own.parent.with_name("folder")
    own.parent.rename(folder)
    own.parent.symlink_to(folder)
    (folder / own.name).write_text(AFTER)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda own, remembered: None, ["grep(a)"]),
        (lambda own, remembered: own.write_text(AFTER), ["grep(b)"]),
        (lambda own, remembered: own.unlink(), []),
        (lambda own, remembered: shutil.rmtree(own.parent), []),
        (lambda own, remembered: remembered.write_text('[user]\nallow = ["glob"]\n'), ["glob", "grep(a)"]),
        (replaced, ["grep(b)"]),
        (lambda own, remembered: remembered.with_name("config.toml").write_text(BEFORE), ["grep(a)", "grep(a)"]),
        (made_a_link, []),
        (link_moved, ["grep(b)"]),
    ],
)
@pytest.mark.parametrize("age", [0.0, 60.0])
def test_a_change_on_disk_counts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, change: Change, expected: list[str]
) -> None:
    """`age`: seconds since the files were written that the rules were read from."""
    root = tmp_path / "root"
    own = root / ".amanu" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(BEFORE)
    now = time.time_ns()
    monkeypatch.setattr(rule_store.time, "time_ns", lambda: now + int(age * 1e9))
    store = RuleStore(tmp_path, Settings())

    def rules() -> list[str]:
        return [rule.text for rule in store.rules([str(root)], trusted=True)]

    assert rules() == rules() == ["grep(a)"]
    change(own, tmp_path / "rules.toml")
    assert rules() == expected


def test_files_that_stay_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules.toml").write_text('[user]\nallow = ["glob"]\n')
    monkeypatch.setattr(rule_store.time, "time_ns", lambda: 10**19)
    store, reads = RuleStore(tmp_path, Settings()), list[str]()
    loads = rule_store.tomllib.loads
    monkeypatch.setattr(rule_store.tomllib, "loads", lambda text: reads.append(text) or loads(text))
    for _ in range(3):
        assert [rule.text for rule in store.rules([str(tmp_path)], trusted=True)] == ["glob"]
    assert len(reads) == 1
