"""What can be done in each tier, tried for real, as root and as an ordinary user: the table is the promise."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from amanu.sandbox.layers.layer import clean as clean_layers
from amanu.sandbox.temp_folders import TemporaryFolders
from support.ordinary_user import NOBODY, USERS, started_as
from support.required_programs import needs
from support.sweeps import sample_pairs

LEAVES = """
setsid -f sleep {n}
(env -i setsid sleep {n} &)
sleep {n} &
while [ $(pgrep -cxf "sleep {n}") -lt 3 ]; do :; done
echo 3
wait
"""
"""Leaves processes behind in every way."""

TABLE = """
                                          bubblewrap  layer  landlock  none
spawn                                     yes         yes    yes       yes
change the workspace                      yes         yes    yes       yes
new file in a folder of it                yes         yes    yes       yes
new file at its top                       yes         yes    yes       yes
read .env                                 yes         yes    yes       yes
read a tool in home                       yes         yes    yes       yes
own server                                yes         yes    -         yes
change outside                            -           -      -         yes
change a file of the system               -           -      -         -
change a tool in home                     -           -      -         yes
truncate outside                          -           -      -         yes
chmod outside                             -           -      yes       yes
read a file in home                       -           -      -         yes
read a secret in home                     -           -      -         yes
read our state                            -           -      -         yes
read /etc/shadow                          -           -      -         -
new git hook                              -           after  after     yes
change git config                         -           after  after     yes
rename .git                               -           -      after     yes
link to git config                        -           after  -         -
absent .vscode                            after       after  after     yes
absent .mcp.json                          after       after  after     yes
present .idea                             -           after  after     yes
present AGENTS.md                         -           after  after     yes
replace AGENTS.md                         -           after  after     yes
nested .vscode                            -           after  after     yes
nested .git                               -           after  after     yes
new nested .git                           yes         yes    yes       yes
tcp                                       -           -      -         yes
local socket                              -           -      -         yes
abstract socket                           -           -      -         yes
socket in the workspace                   -           -      -         yes
socket deep in the workspace              -           -      -         yes
own socket in the workspace               yes         yes    -         yes
own socket where a dead one was           yes         yes    -         yes
datagram                                  -           -      -         yes
abstract datagram                         -           -      -         yes
udp                                       -           -      -         yes
vsock                                     -           -      -         any
odd sockets                               -           -      -         any
signal                                    -           -      -         yes
see processes                             -           -      yes       yes
read environments                         -           -      -         yes
read memory                               -           -      -         any
read open files                           -           -      -         yes
set limits                                -           -      -         yes
shared memory                             -           -      -         yes
file of shared memory                     -           -      -         yes
queue                                     -           -      -         yes
read a terminal                           -           -      -         yes
read the disk                             -           -      -         any
ptrace                                    -           -      -         any
remount                                   -           -      -         -
mount                                     -           -      -         -
mount anew                                -           -      -         any
chroot                                    -           -      -         -
user namespace                            -           -      -         any
kernel programs                           -           -      -         any
rights of another user                    -           -      -         any
kernel setting                            -           -      -         -
io_uring                                  -           -      -         any
keyring                                   -           -      -         any
type ahead                                -           -      -         any
handles of the host                       -           -      -         -
outlive                                   -           -      -         yes
plant a checker                           yes         yes    yes       yes
planted checker                           -           -      -         -
planted .venv/bin/python                  -           -      -         -
unasked: read .env                        -           -      -         yes
unasked: change the workspace             yes         yes    yes       yes
unasked: new file at its top              yes         yes    -         yes
nothing: change the workspace             -           -      -         yes
nothing: new file in a folder of it       -           -      -         yes
nothing: read the workspace               yes         yes    yes       yes
nothing: read .env                        -           -      -         yes
nothing: socket in the workspace          -           -      -         yes
nothing: git status                       yes         yes    yes       any
git: git commit                           yes         yes    yes       any
git: git branch                           yes         yes    yes       any
git: new git hook                         -           after  after     any
git: change git config                    -           after  after     any
git: replace git config                   -           after  -         any
git: rename .git                          -           -      after     any
network: tcp                              yes         yes    yes       yes
network: local socket                     -           -      -         yes
network: abstract socket                  -           -      -         yes
network: socket in the workspace          -           -      -         yes
network: datagram                         -           -      -         yes
network: abstract datagram                -           -      -         yes
"""
"""`any`: for the machine to say. `none` is tried as an ordinary user only, to show that the acts are real: as root some
of them would do harm. *Unasked*: what no rule of the user's names, which sees no secrets; where a file at the top is
hidden, Landlock lets nothing come to be beside it. `after`: done, and when the command has ended all is as before. *New
nested .git*: a repository in which nothing runs. *Planted*: in the workspace by the command, and started afterwards as
checkers are, which is never without a sandbox. `layer`: bubblewrap over a layer; what is done in the workspace is done
in the layer, and all is as before."""

_ROWS = [line for line in TABLE.splitlines() if line]
TIERS: list[str] = _ROWS[0].split()
LINES: list[list[str]] = [line.rsplit(maxsplit=len(TIERS)) for line in _ROWS[1:]]


@pytest.mark.parametrize("name", ["root", "an ordinary user"])
@pytest.mark.parametrize("tier", TIERS)
def test_what_can_be_done(tier: str, name: str) -> None:
    user = 0 if name == "root" else NOBODY if os.geteuid() == 0 else os.geteuid()
    if user not in USERS:
        pytest.skip("only root can try what root can do")
    if (tier, user) == ("none", 0):
        pytest.skip("as root some acts would do harm without a sandbox")
    if tier in ("bubblewrap", "layer"):
        needs("bwrap")
    process = started_as(user, "escape_attempt_runner.py", tier)
    said = json.loads(process.communicate(timeout=60)[0])
    left = said.pop("left in the workspace")
    at = TIERS.index(tier) + 1
    expected = {line[0].strip(): line[at] for line in LINES}
    found = {act: {"done": "yes", "undone": "after"}.get(how, "-") for act, how in said.items()}
    found |= {act: "any" for act, wanted in expected.items() if wanted == "any"}
    wrong = [f"{act}: {how} ({said[act]})" for act, how in found.items() if how != expected[act]]
    assert not wrong, "\n".join(wrong)
    assert found.keys() == expected.keys()
    assert tier == "none" or left == ""


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", ["bubblewrap", "layer", "landlock"])
async def test_nothing_outlives_a_killed_daemon(tier: str, user: int) -> None:
    if tier in ("bubblewrap", "layer"):
        needs("bwrap")
    number = f"77{time.monotonic_ns()}"
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="dying-")))
    os.chown(base, user, user)
    with started_as(user, "killed_daemon.py", tier, LEAVES.replace("{n}", number), str(base)) as daemon:
        assert daemon.stdout is not None
        assert [daemon.stdout.readline() for _ in range(2)] == ["started\n", "3\n"], "with all it leaves behind"
        assert len(sleeping(number)) == 3
        daemon.send_signal(signal.SIGKILL)
    async with asyncio.timeout(50):
        while sleeping(number):
            await asyncio.sleep(0.01)
    TemporaryFolders(base / "ours" / "run" / "temporary").clean()
    clean_layers(base / "ours" / "state" / "layers")
    assert tier != "layer" or left_layers(base) == [], "not mounted, and locked by nobody"
    assert sorted(each.name for each in base.iterdir()) == ["ours", "work"]
    assert [*(base / "work").iterdir()] == []
    shutil.rmtree(base)


@pytest.mark.parametrize(("tier", "milliseconds"), sample_pairs(["bubblewrap", "layer", "landlock"], [2, 5, 8]))
async def test_a_daemon_killed_while_the_walls_are_made_leaves_nothing(tier: str, milliseconds: int) -> None:
    if tier in ("bubblewrap", "layer"):
        needs("bwrap")
    number = f"78{time.monotonic_ns()}"
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="dying-")))
    with started_as(os.geteuid(), "killed_daemon.py", tier, LEAVES.replace("{n}", number), str(base)) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == "started\n"
        await asyncio.sleep(milliseconds / 1000)
        daemon.send_signal(signal.SIGKILL)
    await asyncio.sleep(0.5)
    assert sleeping(number) == []
    TemporaryFolders(base / "ours" / "run" / "temporary").clean()
    clean_layers(base / "ours" / "state" / "layers")
    assert tier != "layer" or left_layers(base) == []
    shutil.rmtree(base)


def left_layers(base: Path) -> list[str]:
    """Layers that are there, and mounts of them that any process sees."""
    found = [path.name for path in (base / "ours" / "state" / "layers").iterdir() if path.is_dir()]
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            found += [line for line in table.read_text().splitlines() if str(base) in line]
        except OSError:
            continue
    return found


def sleeping(number: str) -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if line[0] == b"sleep" and line[1] == number.encode():
            found.append(folder.name)
    return found
