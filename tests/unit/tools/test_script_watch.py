"""What is swapped while a command starts ends it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.tools.shell.file_identity import identity
from amanu.tools.shell.script_watch import ScriptWatch


def _written(script: Path) -> None:
    script.write_text("echo swapped")


def _renamed(script: Path) -> None:
    new = script.with_name("new")
    new.write_text(script.read_text())
    new.replace(script)


def _relinked(script: Path) -> None:
    new = script.with_name("new")
    new.symlink_to("other")
    new.replace(script)


def _nothing(script: Path) -> None:
    script.with_name("beside").touch()


@pytest.mark.parametrize(
    ("swap", "ended"), [(_written, True), (_renamed, True), (_relinked, True), (Path.unlink, True), (_nothing, False)]
)
def test_ends_it(tmp_path: Path, swap: Callable[[Path], None], ended: bool) -> None:
    script = tmp_path / "x.sh"
    script.write_text("exit 0")
    known = identity(script)
    process = subprocess.Popen(["sleep", "0.3" if not ended else "60"], start_new_session=True)
    with ScriptWatch([str(script)], [known], process.pid) as vigil:
        swap(script)
        code = process.wait(30)
    assert (vigil.swapped, code != 0) == (ended, ended)


def test_what_has_ended_by_itself_is_let_be(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    with ScriptWatch([str(tmp_path / "gone")], ["what it was"], process.pid):
        pass
    with ScriptWatch([], [], process.pid) as vigil:
        assert not vigil.swapped
