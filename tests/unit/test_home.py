"""The user's folders and memory are theirs alone."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import amanu.__main__
from amanu.home import find_home
from amanu.system.frames import frame
from support.required_programs import needs
from support.sweeps import sample_pairs

HIDDEN = """
import ctypes, sys
from amanu.__main__ import main
sys.argv = ["amanu", "logs", "--path"]
main()
print(ctypes.CDLL(None).prctl(3))
"""


INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'
)

FOLDERS = ["config", "state", "logs", "run"]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("mode", [0o775, 0o755, 0o711, 0o700])
def test_the_folders_are_private(tmp_path: Path, folder: str, mode: int) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder).chmod(mode)
    home = find_home({"AMANU_HOME": str(tmp_path)}).make()
    folders = (home.config, home.state, home.logs, home.runtime)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_strangers_could_write_to_is_not_used(tmp_path: Path, folder: str, mode: int) -> None:
    """What is in it (rules, a socket, a token) may be somebody else's; making it private now would hide that."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder).chmod(mode)
    with pytest.raises(PermissionError, match=f"chmod 700 .*{folder}"):
        find_home({"AMANU_HOME": str(tmp_path)}).make()
    assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == mode


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where we could use it (root, or by an access list): who owns it can replace what is in it."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / folder).symlink_to("theirs")
    real = Path.stat

    def stat_of(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = real(self, follow_symlinks=follow_symlinks)
        owned = list(found)
        owned[stat.ST_UID] = found.st_uid + (self == tmp_path / folder)
        return os.stat_result(owned)

    monkeypatch.setattr(Path, "stat", stat_of)
    with pytest.raises(PermissionError, match="another user"):
        find_home({"AMANU_HOME": str(tmp_path)}).make()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_GET_DUMPABLE is Linux's")
def test_no_other_process_reads_the_keys_in_our_memory() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", HIDDEN], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def a_file(home: Path) -> str:
    home.write_text("")
    return "is not a folder"


def below_a_file(home: Path) -> str:
    home.parent.rmdir()
    home.parent.write_text("")
    return "is not a folder; set AMANU_HOME"


def a_link(home: Path) -> str:
    (home.parent / "real").mkdir()
    home.symlink_to("real")
    return "is a symbolic link"


def open_to_all(home: Path) -> str:
    home.mkdir()
    home.chmod(0o777)
    return "everybody may write"


COMMANDS = [["sessions", "list"], ["run", "hi"], ["tool", "list_directory"], ["serve"]]


@pytest.mark.parametrize("make", [a_file, below_a_file, a_link, open_to_all])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_home_that_cannot_be_used_is_a_sentence(
    tmp_path: Path,
    make: Callable[[Path], str],
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = tmp_path / "x" / "home"
    home.parent.mkdir()
    expected = make(home)
    if command == ["serve"]:  # it imports little, and a process of it costs as little
        assert expected in said(command, home)
        return
    monkeypatch.setenv("AMANU_HOME", str(home))
    monkeypatch.setattr(amanu.__main__, "hide_memory", lambda: None)
    monkeypatch.setattr(sys, "argv", ["amanu", *command])
    assert amanu.__main__.main() == 1
    assert expected in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(("used", "command"), sample_pairs([False, True], COMMANDS))
def test_a_home_that_is_read_only_is_a_sentence(tmp_path: Path, used: bool, command: list[str]) -> None:
    home = tmp_path / "home"
    home.mkdir()
    if used:
        find_home({"AMANU_HOME": str(home)}).make()
    bwrap = [needs("bwrap"), "--dev-bind", "/", "/", "--ro-bind", str(home), str(home)]
    assert re.search(r"Read-only file system|is not allowed to write in", said(command, home, bwrap))


def said(command: list[str], home: Path, prefix: Sequence[str] = ()) -> str:
    """The words of a process of that command as it fails."""
    environment = {**os.environ, "AMANU_HOME": str(home)}
    argv = [*prefix, sys.executable, "-P", "-m", "amanu", *command]
    typed = frame(INITIALIZE).decode() if command == ["serve"] else ""
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, input=typed)
    assert done.returncode == 1
    return one_line(done.stderr)


def one_line(said: str) -> str:
    """It, no traceback and nothing besides."""
    assert "Traceback" not in said and said.count("\n") == 1, said
    return said
