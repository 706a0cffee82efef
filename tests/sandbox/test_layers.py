"""Commands in a layer: what they see, that the host sees nothing, and what is read back, as root and as an ordinary
user. What they cannot do is in the table of `test_escape_attempts.py`."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bench.soundness import world
from bench.soundness.calls import call

from amanu.config import SandboxSettings as Settings
from amanu.core.place import MACHINE, SCRATCH, Place, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.home import Home, find_home
from amanu.sandbox.layers import mount, trial
from amanu.sandbox.layers.changes import read_changes
from amanu.sandbox.layers.layer import Layer, LayerError, clean
from amanu.sandbox.sandbox import Sandbox, SandboxedCommand, SandboxError
from support.layer_runner import LIMIT, Case, Result, described
from support.ordinary_user import USERS, started_as
from support.required_programs import needs
from support.sandboxed_process import start

CASES = {
    "nothing": Case("cat a d/x", said="one\nx\n"),
    "its own writes": Case("echo two > a; cat a", said="two\n", changes=["a: file 644, was file"]),
    "a new file": Case("echo > new", changes=["new: file 644"]),
    "in a folder": Case("echo > d/sub/new", changes=["d/sub/new: file 644"]),
    "open for writing": Case(": >> a"),
    "the same content": Case("echo one > a"),
    "the same mode": Case("chmod 644 a; touch a d"),
    "mode": Case("chmod 755 a; chmod 700 d", changes=["a: file 755, was file", "d: folder 700, was folder"]),
    "mode of the root": Case("chmod 700 .", changes=[".: folder 700, was folder"]),
    "delete": Case("rm a; ls", said="d\nh1\nh2\nlink\nrun\n", changes=["a: deleted, was file"]),
    "delete a folder": Case("rm -r d", changes=["d: deleted, was folder"]),
    "new and deleted": Case("echo > new; rm new; mkdir f; rmdir f"),
    "folder": Case("mkdir -p n/m", changes=["n: folder 755", "n/m: folder 755"]),
    "rename a file": Case("mv a b", changes=["a: deleted, was file", "b: file 644"]),
    "rename a folder": Case(
        "mv d e",
        changes=["d: deleted, was folder", "e: folder 755", "e/sub: folder 755", "e/sub/y: file 644", "e/x: file 644"],
    ),
    "a folder for a file": Case("rm a; mkdir a; echo > a/b", changes=["a: folder 755, was file", "a/b: file 644"]),
    "a file for a folder": Case("rm -r d; echo > d", changes=["d: file 644, was folder"]),
    "a link for a folder": Case("rm -r d; ln -s /etc d", changes=["d: symlink, was folder"]),
    "symlink": Case("ln -s /etc/passwd out; ln -sf d link", changes=["link: symlink, was symlink", "out: symlink"]),
    "the same symlink": Case("ln -sfn a link; chown -h $(id -u) link"),
    "a new folder of that name": Case(
        "rm -r d; mkdir d; echo x > d/x; echo > d/new; ls d",
        said="new\nx\n",
        changes=["d/sub: deleted, was folder", "d/new: file 644"],
    ),
    "and in it": Case(
        "rm -r d; mkdir -p d/sub; echo > d/sub/z",
        changes=["d/x: deleted, was file", "d/sub/y: deleted, was file", "d/sub/z: file 644"],
    ),
    "fifo": Case("mkfifo f; rm a; mkfifo a", changes=["a: special 644, was file", "f: special 644"]),
    "socket": Case(
        "python3 -ISc 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", changes=["s: special 755"]
    ),
    "devices": Case(
        "for kind in 'b 7 0' 'c 1 3' 'c 0 0'; do mknod dev $kind || mknod a2 $kind; done 2>&1 | grep -c permitted",
        said="6\n",
    ),
    "sparse": Case("truncate -s 10G big; stat -c %s big", said="10737418240\n", changes=["big: file 644"]),
    "names": Case(
        "echo > 'new\nline'; echo > \"$(printf 'b\\377')\"; echo > '#c'",
        changes=["#c: file 644", "b\udcff: file 644", "new\nline: file 644"],
    ),
    "hard link": Case("ln a b; echo > h1; cat h2", said="h\n", changes=["b: file 644", "h1: file 644, was file"]),
    "closed to oneself": Case(
        "mkdir -p y; echo > y/f; chmod 0 y/f y; chmod 0 d a",
        changes=["a: file 0, was file", "d: folder 0, was folder", "y: folder 0", "y/f: file 0"],
    ),
    "pruned": Case(
        "mkdir node_modules; echo > node_modules/x; mkdir -p d/node_modules; echo > d/node_modules/y",
        changes=["d/node_modules: folder 755", "d/node_modules/y: file 644", "node_modules: pruned"],
    ),
    "pruned and deleted": Case(
        "rm -r node_modules", before="mkdir node_modules", changes=["node_modules: pruned, was folder"]
    ),
    "too many": Case(
        "for n in $(seq 100 300); do : > $n; done",
        changes=[f"{n}: file 644" for n in range(100, 100 + LIMIT)],
        complete=False,
    ),
    "too deep": Case(
        "for n in $(seq 150); do mkdir f; cd f; done",
        changes=[f"{'/'.join(['f'] * n)}: folder 755" for n in range(1, 101)],
        complete=False,
    ),
    "git": Case(
        "echo > .git/hooks/pre-commit; git init -q sub; cat .git/hooks/pre-commit sub/HEAD 2>&1 | head -1; rm -r sub",
        before="git init -q; rm .git/hooks/*",
        said="\n",
        changes=[".git/hooks/pre-commit: file 644"],
    ),
    "protected files": Case("echo > AGENTS.md; mkdir .vscode", changes=[".vscode: folder 755", "AGENTS.md: file 644"]),
    "read only": Case(
        "echo > a || cat a",
        looks=True,
        said="/bin/sh: 1: cannot create a: Read-only file system\none\n",
    ),
    "a secret": Case(
        "cat .env; rm .env", said="cat: .env: Permission denied\nrm: cannot remove '.env': Device or resource busy\n"
    ),
    "a secret in a folder": Case(
        "mv c e 2>/dev/null; ls e",
        before="mkdir c; echo > c/.env; echo > c/x",
        said="x\n",
        changes=["e: folder 755", "e/x: file 644"],
    ),
    "a secret that was asked for": Case("cat .env", secrets=True, said="secret\n"),
    "pinned": Case(
        "./run; cat run", pinned={"run": "#!/bin/sh\necho pinned\n"}, said="pinned\n#!/bin/sh\necho pinned\n"
    ),
    "rights": Case("id -u; grep -c '^Cap.*0000000000000000$' /proc/self/status", said="{user}\n5\n"),
    "left behind": Case("(sleep 60; echo > late) & echo started", said="started\n"),
}


@pytest.mark.parametrize("user", USERS)
def test_commands(user: int) -> None:
    """One program runs all of them, since its start takes as long as many commands."""
    needs("bwrap")
    with started_as(user, "layer_runner.py", takes_input=True) as process:
        output, _ = process.communicate(json.dumps({name: asdict(case) for name, case in CASES.items()}), timeout=50)
    assert {name: Result(**each) for name, each in json.loads(output).items()} == {
        name: Result(case.said.replace("{user}", str(user)), case.changes, case.complete, untouched=True, removed=True)
        for name, case in CASES.items()
    }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home({"AMANU_HOME": str(tmp_path / "amanu")}).make()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True, mode=0o750)
    (root / "a").write_text("one\n")
    (root / "d" / "x").write_text("x\n")
    return root


WITH_SECRETS = replace(SCRATCH, reach=Reach(secrets=True))


@asynccontextmanager
async def launched(
    home: Home, layer: Layer, command: str, roots: Sequence[Path], place: Place = SCRATCH
) -> AsyncGenerator[SandboxedCommand]:
    needs("bwrap")
    sandbox = Sandbox(Settings(), home)
    handle = os.open(roots[0], os.O_RDONLY)
    requirements = SandboxRequirements(place, layer=layer.folder)
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    try:
        async with sandbox.launch(
            ["/bin/sh", "-c", command], requirements, roots, roots[0], handle, environment
        ) as started:
            yield started
    finally:
        os.close(handle)
        await sandbox.close()


async def said(home: Home, layer: Layer, command: str, *roots: Path, place: Place = SCRATCH) -> str:
    """What a command in the layer prints."""
    async with launched(home, layer, command, roots, place) as started:
        process = await start(started, stderr=asyncio.subprocess.STDOUT)
        return (await process.communicate())[0].decode()


def changes(layer: Layer, at: int = 0) -> list[str]:
    return [described(change) for change in read_changes(layer.roots[at], limit=100).found]


async def test_the_next_command_sees_what_the_last_one_changed(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    await said(home, layer, "echo two > a; rm -r d; mkdir d; echo > d/y", root)
    assert await said(home, layer, "cat a; ls d", root) == "two\ny\n"
    assert "a" in [each.path for each in read_changes(layer.roots[0], limit=9).found]
    assert (layer.roots[0].upper / "a").read_bytes() == b"two\n"


async def test_what_is_laid_in(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    layer.write(root / "d" / "x", b"laid in\n", 0o600)
    layer.write(root / "new" / "deep" / "y", b"y\n", 0o755)
    layer.delete(root / "a")
    layer.delete(root / "is not there" / "x")
    assert await said(home, layer, "cat d/x new/deep/y; ls; stat -c %a d d/x new new/deep/y", root) == (
        "laid in\ny\nd\nnew\n750\n600\n755\n755\n"
    )
    assert changes(layer) == [
        *("a: deleted, was file", "d/x: file 600, was file"),
        *("new: folder 755", "new/deep: folder 755", "new/deep/y: file 755"),
    ]
    for path in ("a", "new", "d/x", "is not there/x", "d/no"):
        layer.drop(root / path)
    assert changes(layer) == []
    assert await said(home, layer, "cat a d/x", root) == "one\nx\n"
    assert (root / "a").read_text() == "one\n" and not (root / "new").exists()


async def test_what_is_dropped_of_a_folder_that_was_made_again(home: Home, root: Path) -> None:
    """It shows again, and the rest stays deleted."""
    layer = Layer.create(home.layers, [root])
    (root / "d" / "in").mkdir()
    for name in ("d/y", "d/in/x", "d/in/y"):
        (root / name).write_text("old\n")
    await said(home, layer, "rm -r d; mkdir -m 750 d; mkdir d/in; echo new > d/x; echo new > d/in/x", root)
    shown: list[str] = []
    for path in ("d/x", "d/in/x", "d/y", "d/in/y"):
        layer.drop(root / path)
        shown.append(await said(home, layer, "find d -type f | sort | xargs grep .", root))
    assert shown == [
        "d/in/x:new\nd/x:x\n",
        "d/in/x:old\nd/x:x\n",
        "d/in/x:old\nd/x:x\nd/y:old\n",
        "d/in/x:old\nd/in/y:old\nd/x:x\nd/y:old\n",
    ]
    assert changes(layer) == []


async def test_what_is_laid_in_over_what_commands_did(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    await said(home, layer, "rm -r d; ln -s /etc link; rm a; mkdir a; echo > a/in", root)
    with pytest.raises(LayerError, match="something else"):
        layer.write(root / "link" / "passwd", b"", 0o644)
    layer.write(root / "d" / "y", b"", 0o644)
    layer.write(root / "a", b"", 0o644)
    assert await said(home, layer, "ls d; test -f a && echo file", root) == "y\nfile\n", "what was deleted stays so"
    layer.delete(root / "d")
    assert changes(layer) == ["a: file 644, was file", "d: deleted, was folder", "link: symlink"]


def test_what_a_command_would_see(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    layer.delete(root / "d")
    layer.write(root / "d" / "y", b"12", 0o644)
    found = {name: layer.visible(root / name) for name in ("a", "d/x", "d/y", "d/y/z", "no")}
    sizes = {name: status and status.st_size for name, status in found.items()}
    assert sizes == {"a": 4, "d/x": None, "d/y": 2, "d/y/z": None, "no": None}
    with pytest.raises(LayerError, match="not in a folder of the layer"):
        layer.visible(root.parent)


async def test_only_one_command_at_a_time(home: Home, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.sandbox.layers.layer._WAIT", 0.05)
    layer = Layer.create(home.layers, [root])
    async with launched(home, layer, "echo; read line < /dev/zero", [root]) as started:
        process = await start(started)
        assert process.stdout is not None
        await process.stdout.readline()
        with pytest.raises(SandboxError, match="Another command is running"):
            await said(home, layer, "true", root)
        for change in (lambda: layer.write(root / "a", b"", 0o644), layer.remove):
            with pytest.raises(LayerError, match="Another command is running"):
                await asyncio.to_thread(change)
    with pytest.raises(LayerError, match="Another command is running"):
        layer.drop(root / "a")  # it still runs, although nobody follows it
    process.kill()
    await process.wait()
    monkeypatch.undo()
    layer.remove()
    assert not layer.folder.exists()


async def test_the_processes_around_a_command_are_those_of_bubblewrap(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    async with launched(home, layer, "echo; read line < /dev/zero", [root]) as started:
        process = await start(started)
        assert process.stdout is not None
        await process.stdout.readline()
        names, pid = list[str](), str(process.pid)
        while pid:
            names.append(Path(f"/proc/{pid}/comm").read_text().strip())
            pid = Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()
        process.kill()
        await process.wait()
    assert names == [*["bwrap"] * started.holders, "sh"]


@pytest.mark.parametrize("killed", ["command", "bubblewrap", "mount"])
async def test_a_kill_in_the_middle_leaves_no_mount(
    home: Home, root: Path, killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing in the workspace; what was written until then is in the layer."""
    layer, programs = Layer.create(home.layers, [root]), mount.mount_programs()
    assert programs is not None
    if killed == "mount":
        slow = root.parent / "mount"
        slow.write_text("#!/bin/sh\necho\nexec sleep 60\n")
        slow.chmod(0o755)
        monkeypatch.setattr(mount, "mount_programs", lambda: replace(programs, mount=str(slow)))
    async with launched(home, layer, "echo half > a; rm d/x; echo; read line < /dev/zero", [root]) as started:
        process = await start(started, stderr=asyncio.subprocess.STDOUT)
        assert process.stdout is not None
        await process.stdout.readline()
        os.kill(process.pid if killed == "bubblewrap" else innermost(process.pid), signal.SIGKILL)
        await process.communicate()
        assert process.returncode not in (0, None)
    monkeypatch.undo()
    with layer.locked():
        assert not [line for line in all_mounts() if str(layer.folder) in line]
    assert ((root / "a").read_text(), (root / "d" / "x").read_text()) == ("one\n", "x\n")
    assert changes(layer) == ([] if killed == "mount" else ["a: file 644, was file", "d/x: deleted, was file"])
    assert await said(home, layer, "echo more > a; cat a", root) == "more\n"
    layer.remove()
    assert not layer.folder.exists()


def innermost(pid: int) -> int:
    """The last process of a chain of which each has one child."""
    while child := Path(f"/proc/{pid}/task/{pid}/children").read_text().strip():
        pid = int(child)
    return pid


def all_mounts() -> list[str]:
    """Those that any process sees."""
    found: list[str] = []
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            found += table.read_text().splitlines()
    return found


def test_a_root_that_has_just_been_replaced_is_not_mounted(home: Home, root: Path) -> None:
    layer, programs = Layer.create(home.layers, [root]), mount.mount_programs()
    assert programs is not None
    checked = os.open(root, os.O_RDONLY)
    root.rename(root.parent / "former")
    root.symlink_to("/etc")
    prefix = mount.prefix(programs, mount.mount_way(), [(root, checked, layer.roots[0].folder)])
    ran = subprocess.run([*prefix, "/bin/echo", "it ran"], pass_fds=[checked], capture_output=True, text=True)
    os.close(checked)
    assert (ran.stdout, ran.returncode) == ("", 126) and "has been replaced" in ran.stderr


async def test_two_roots_and_one_in_another(home: Home, root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    layer = Layer.create(home.layers, [root / "d", root, other])
    assert [each.path for each in layer.roots] == [root, other]
    assert await said(home, layer, f"echo > y; echo > {other}/z; ls", root, root / "d", other) == "a\nd\ny\n"
    assert (changes(layer), changes(layer, 1)) == (["y: file 644"], ["z: file 644"])
    with pytest.raises(SandboxError, match="not of the folder"):
        await said(home, layer, "true", root / "d")


async def test_secrets_that_are_in_the_layer_only(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    (root / ".env").write_text("secret\n")
    (root / "d" / ".env").write_text("secret\n")
    line = "cp .env .env.local; mkdir .aws; cp .env .aws/credentials; mkdir .ssh; cp .env .ssh/key; rm d/.env"
    await said(home, layer, line, root, place=WITH_SECRETS)
    line = "cat .env .env.local .aws/credentials .ssh/key 2>/dev/null; ls -A . d"
    assert await said(home, layer, line, root) == ".:\n.aws\n.env\n.env.local\n.ssh\na\nd\n\nd:\nx\n"
    assert "d/.env: deleted, was file" in changes(layer), "what is hidden is not created to hide it"
    assert (await said(home, layer, "cat .ssh/key", root, place=WITH_SECRETS)) == "secret\n"


async def test_whatever_runs_in_a_layer_changes_nothing_outside_it(home: Home, tmp_path: Path) -> None:
    """Generated calls, of programs that only print and others, in a workspace that means harm."""
    top = tmp_path / "world"
    world.build(top)
    random, root = Random(6), top / "hostile"
    lines = [shlex.join(call(random)) for _ in range(150)] + ["echo > pwned", "echo > ../pwned", "rm -rf ../plain"]
    (root / "lines").write_text("\n".join(lines))
    (root / "run").write_text(
        'while read -r line; do timeout 1 bash -c "$line" </dev/null >/dev/null 2>&1; done <lines'
    )
    before = world.signatures([str(top)])
    layer = Layer.create(home.layers, [root])
    await said(home, layer, "bash run", root)
    assert world.signatures([str(top)]) == before
    assert "pwned: file 644" in changes(layer)


async def test_a_secret_is_not_hidden_where_git_shows_it(home: Home, root: Path) -> None:
    """Exactly as it is: what was added to it since is in no commit. A private key is hidden all the same."""
    for name in (".env", "d/.env", "other/.env", "id_rsa"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"secret of {name}\n")
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", ".env", "d/.env", "id_rsa"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    (root / "d" / ".env").write_text("a new secret\n")
    layer = Layer.create(home.layers, [root])
    line = "cat .env d/.env other/.env id_rsa 2>/dev/null"
    assert await said(home, layer, line, root) == "secret of .env\n"
    layer.write(root / ".env", b"unsaved\n", 0o600)
    assert await said(home, layer, line, root) == ""
    assert await said(home, layer, "cat d/.env", root, place=WITH_SECRETS) == "a new secret\n"


def test_what_is_mounted_below_a_root_is_seen() -> None:
    """Read only. Where an ordinary user would mount the layer, the kernel refuses such a root."""
    needs("bwrap")
    if mount.mount_way().own_user_namespace:
        pytest.skip("only root can mount a layer there")
    case = Case(
        "cat vol/x; echo > vol/y || echo > y",
        said="x\n/bin/sh: 1: cannot create vol/y: Read-only file system\n",
        changes=["y: file 644"],
        before="mkdir vol; mount -t tmpfs none vol; echo x > vol/x",
        after="umount vol",
    )
    runner = [sys.executable, str(Path(__file__).parents[1] / "support" / "layer_runner.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        ["unshare", "-m", *runner], input=json.dumps({"it": asdict(case)}), env=environment, stdout=-1, text=True
    )
    assert Result(**json.loads(ran.stdout)["it"]) == Result(case.said, case.changes, True, True, True)


def test_mounts_below_a_folder() -> None:
    assert Path("/proc") in mount.mounts_below(Path("/"))
    assert mount.mounts_below(Path("/proc/self/task")) == []


@pytest.mark.parametrize("where", ["/", "{amanu}", "{tmp}", "{layers}/x", "{missing}"])
def test_no_layer_over(home: Home, tmp_path: Path, where: str) -> None:
    place = where.format(amanu=tmp_path / "amanu", tmp=tmp_path, layers=home.layers, missing=tmp_path / "none")
    with pytest.raises(LayerError):
        Layer.create(home.layers, [Path(place)])


def test_no_layer_in_a_folder_with_an_odd_name(tmp_path: Path, root: Path) -> None:
    with pytest.raises(LayerError, match="comma"):
        Layer.create(tmp_path / "a,b", [root])


async def test_another_folder_of_that_name(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    root.rename(root.parent / "former")
    root.mkdir()
    with pytest.raises(SandboxError, match="not of the folder"):
        await said(home, layer, "true", root)
    with pytest.raises(LayerError, match="no longer"):
        read_changes(layer.roots[0], limit=1)


@pytest.mark.parametrize("unsandboxed", [True, False])
async def test_without_bubblewrap_no_command_runs(home: Home, root: Path, unsandboxed: bool) -> None:
    layer = Layer.create(home.layers, [root])
    sandbox = Sandbox(Settings(), home, best="bubblewrap" if unsandboxed else "none")
    need = SandboxRequirements(MACHINE if unsandboxed else SCRATCH, layer=layer.folder)
    with pytest.raises(SandboxError, match="Without bubblewrap"):
        async with sandbox.launch(["/bin/true"], need, [root], root, -1, {}):
            pass
    if not unsandboxed:
        assert "bubblewrap" in await sandbox.layer_fault([root])


def test_left_over_layers_are_removed(home: Home, root: Path) -> None:
    ours, left = Layer.create(home.layers, [root]), Layer.create(home.layers, [root])
    left.close()
    (home.layers / "damaged").mkdir()
    clean(home.layers)
    assert {path.name for path in home.layers.iterdir()} == {ours.folder.name, "lock"}
    with pytest.raises(LayerError, match="no layer"):
        Layer.open(left.folder)
    assert [each.path for each in Layer.open(ours.folder).roots] == [root]


def test_a_hundred_thousand_files_are_given_up_at_once(root: Path) -> None:
    """Put there without an overlay, through which it takes twenty seconds."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as layers:
        layer = Layer.create(Path(layers), [root])
        upper = os.open(layer.roots[0].upper, os.O_RDONLY)
        for number in range(100_000):
            os.mknod(f"{number:06}", dir_fd=upper)
        os.close(upper)
        found = read_changes(layer.roots[0], limit=200)
        assert [change.path for change in found.found] == [f"{number:06}" for number in range(200)]
        assert not found.complete
        layer.remove()
        assert not layer.folder.exists()


def test_what_is_very_deep_is_removed(home: Home, root: Path) -> None:
    layer = Layer.create(home.layers, [root])
    folder = os.open(layer.roots[0].upper, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("deep", dir_fd=folder)
        below = os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    assert not read_changes(layer.roots[0], limit=1_000).complete
    layer.remove()
    assert not layer.folder.exists()


async def test_whether_a_layer_works_is_found_by_trying(
    home: Home, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    sandbox = Sandbox(Settings(), home)
    assert await sandbox.layer_fault([root]) == ""
    assert "thrown away" in sandbox.describe(SCRATCH).summary
    assert {path.name for path in root.iterdir()} == {"a", "d"}
    assert [path.name for path in home.layers.iterdir()] == ["lock"]
    assert "whole machine" in await sandbox.layer_fault([Path("/")])
    monkeypatch.setattr(mount, "_OPTIONS", "index=maybe")
    assert await sandbox.layer_fault([root]) == "", "known"
    fault = await Sandbox(Settings(), home).layer_fault([root])
    assert fault.startswith("Commands cannot run in a layer here: mount: "), fault
    await sandbox.close()


async def test_whoever_is_cancelled_while_a_layer_is_tried_ends_and_the_trial_goes_on(
    home: Home, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    sandbox = Sandbox(Settings(), home)
    begun, goes_on, tried = asyncio.Event(), asyncio.Event(), 0
    run = trial._run  # pyright: ignore[reportPrivateUsage]

    async def waiting(*arguments: Any) -> str:
        nonlocal tried
        tried += 1
        begun.set()
        await goes_on.wait()
        return await run(*arguments)

    monkeypatch.setattr(trial, "_run", waiting)
    first = asyncio.create_task(sandbox.layer_fault([root]))
    await begun.wait()
    second = asyncio.create_task(sandbox.layer_fault([root]))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    goes_on.set()
    assert (await second, await sandbox.layer_fault([root]), tried) == ("", "", 1)
    await sandbox.close()
