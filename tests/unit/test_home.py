"""The user's folders and memory are theirs alone."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from amanu.home import find_home

HIDDEN = """
import ctypes, sys
from amanu.__main__ import main
sys.argv = ["amanu", "logs", "--path"]
main()
print(ctypes.CDLL(None).prctl(3))
"""


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
