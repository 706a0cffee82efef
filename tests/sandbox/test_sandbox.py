"""Roots, pins, fallen tiers, what is left behind, and what is said: the parts of the sandbox one can look at alone."""

import asyncio
import errno
import os
import socket
import struct
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from amanu.config import SandboxSettings as Settings
from amanu.core.place import MACHINE, Place, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.home import Home, find_home
from amanu.sandbox import escape_attempts, landlock, seatbelt, seccomp, self_test
from amanu.sandbox import folder_scan as folders
from amanu.sandbox.filesystem_view import filesystem_view
from amanu.sandbox.git_dirs import repository
from amanu.sandbox.sandbox import Sandbox, SandboxError
from amanu.sandbox.self_test import Launch, Proof, Tier, TierFinding, prove
from amanu.sandbox.temp_folders import TemporaryFolders
from amanu.sandbox.toolchains import find_toolchains
from amanu.system.process_tree import start_time
from amanu.tools.shell.denial_hints import denial_hint, missing_program_hint
from amanu_protocol.items import CommandSandbox
from support.required_programs import needs
from support.sandboxed_process import start


def home_at(base: Path) -> Home:
    return find_home({"HOME": str(base / "user"), "XDG_RUNTIME_DIR": str(base / "run")}).make()


async def said(
    base: Path,
    command: str,
    need: SandboxRequirements | None = None,
    *,
    root: Path | None = None,
    settings: Settings | None = None,
    best: Tier = "bubblewrap",
    variables: Mapping[str, str] | None = None,
) -> str:
    """What a shell command prints in the best sandbox."""
    if best == "bubblewrap":
        needs("bwrap")
    root = root or base / "home" / "work"
    root.mkdir(parents=True, exist_ok=True)
    sandbox = Sandbox(settings or Settings(), home_at(base), best=best)
    environment = {"HOME": str(base / "home"), "PATH": "/usr/bin:/bin", "GREETING": "hello", **(variables or {})}
    handle = os.open(root, os.O_RDONLY)
    try:
        async with sandbox.launch(["/bin/sh", "-c", command], need, [root], root, handle, environment) as started:
            assert "hello" not in " ".join(started.argv), "values of the environment are no one else's business"
            process = await start(started, stderr=asyncio.subprocess.STDOUT)
            return (await process.communicate())[0].decode()
    finally:
        os.close(handle)
        await sandbox.close()


@pytest.mark.parametrize(
    ("command", "need", "expected"),
    [
        ("pwd; echo $GREETING", SandboxRequirements(), "{root}\nhello\n"),
        ("echo x > $TMPDIR/y && echo $TMPDIR", SandboxRequirements(), "/tmp\n"),
        ("./run", SandboxRequirements(pinned={"{root}/run": b"#!/bin/sh\necho as approved\n"}), "as approved\n"),
        ("ls -a $HOME", SandboxRequirements(), ".\n..\n.gitconfig\nbin\nwork\n"),
        ("cat $HOME/.gitconfig", SandboxRequirements(), "[user]\n"),
        ("cat $HOME/bin/tool 2>&1 | grep -c tool", SandboxRequirements(), "1\n"),
        ("cat /proc/1/environ 2>/dev/null | grep -c SECRET", SandboxRequirements(), "0\n"),
        ("echo x 2>/dev/null > $HOME/.gitconfig || echo refused", SandboxRequirements(), "refused\n"),
        ("exit 3 || true; echo $?", SandboxRequirements(MACHINE), ""),
    ],
)
async def test_a_command_sees(tmp_path: Path, command: str, need: SandboxRequirements, expected: str) -> None:
    root = tmp_path / "home" / "work"
    root.mkdir(parents=True)
    (root / "run").write_text("#!/bin/sh\necho swapped\n")
    (root / "run").chmod(0o755)
    for name, text in ((".gitconfig", "[user]\n"), ("bin/tool", "a tool\n"), (".ssh/id", "key"), ("notes", "")):
        (root.parent / name).parent.mkdir(exist_ok=True)
        (root.parent / name).write_text(text)
    pinned = {path.replace("{root}", str(root)): data for path, data in need.pinned.items()}
    need = SandboxRequirements(need.place, pinned=pinned)
    settings = Settings(read=("~/bin",))
    assert await said(tmp_path, command, need, settings=settings) == expected.replace("{root}", str(root))


async def test_the_home_folder_as_workspace_shows_no_secret(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in (".ssh/id", ".aws/credentials", ".netrc", ".bashrc", "code"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("here\n")
    command = "cat .ssh/id .aws/credentials .netrc 2>/dev/null; cat code; for f in .bashrc .profile code; do "
    command += "echo x 2>/dev/null >> $f && echo $f; done"
    assert await said(tmp_path, command, root=home) == "here\n.profile\ncode\n", "that was not there is put aside"
    assert {each.name for each in home.iterdir()} == {".ssh", ".aws", ".netrc", ".bashrc", "code"}


def test_what_the_user_hides_is_hidden_whatever_home_a_program_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path.resolve() / "home"
    for name in (".aws", "private", "other"):
        (home / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for given in (home, home / "other"):
        view = filesystem_view(
            SandboxRequirements(), [home], {"HOME": str(given)}, Settings(hide=("~/private",)), home_at(tmp_path)
        )
        assert {home / ".aws", home / "private"} <= {*view.secret}


async def test_a_root_that_became_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").symlink_to("elsewhere")
    with pytest.raises(SandboxError, match="no longer leads to the same folder"):
        await said(tmp_path, "true", root=tmp_path / "work")


@pytest.mark.parametrize(
    ("back", "genuine"), [("{git}", True), ("/somewhere/.git", False), ("", False)], ids=["worktree", "forged", "none"]
)
def test_a_git_file_counts_when_its_folder_names_it(tmp_path: Path, back: str, genuine: bool) -> None:
    git, folder = tmp_path / "tree" / ".git", tmp_path / "main" / ".git" / "worktrees" / "tree"
    git.parent.mkdir()
    folder.mkdir(parents=True)
    (tmp_path / "main" / ".git" / "HEAD").touch()
    git.write_text(f"gitdir: {folder}\n")
    if back:
        (folder / "gitdir").write_text(back.replace("{git}", str(git)))
    assert (repository(git) is not None) == genuine


def test_what_is_protected_is_found_whatever_its_case_and_behind_links(tmp_path: Path) -> None:
    root = tmp_path / "work"
    for folder in (".VSCode", "real", "a/b/.git", "node_modules/x/.idea"):
        (root / folder).mkdir(parents=True)
    (root / ".claude").symlink_to("real")
    (root / ".zed").symlink_to(tmp_path)  # leads out: never shown because of that
    (root / "x.code-workspace").touch()
    seen = filesystem_view(SandboxRequirements(), [root], {"HOME": str(tmp_path / "no")}, Settings(), home_at(tmp_path))
    kept = {str(each.relative_to(root)) for each in seen.read_only}
    assert kept == {".VSCode", "real", "a/b/.git", "x.code-workspace"}
    assert {root / ".claude", root / "real", root / ".VSCode"} <= {*seen.guarded}


async def test_sockets_in_places_that_are_not_hidden_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a database has its own in `/var/lib`. One of a container is in no table here, but maybe in the environment."""
    told, silent = tmp_path / "told.sock", tmp_path / "silent.sock"
    (tmp_path / "work").mkdir()
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        for server, path in ((first, told), (second, silent)):
            server.bind(str(path))
            server.listen()
        table = [os.fsencode(told), b"@abstract", b"/gone.sock", b"/run/no.sock"]
        monkeypatch.setattr("amanu.sandbox.filesystem_view.bound_names", lambda: table)
        environment = {"HOME": str(tmp_path / "no"), "BUS": f"unix:path={silent},guid=1"}
        args = (SandboxRequirements(), [tmp_path / "work"], environment, Settings(), home_at(tmp_path))
        assert filesystem_view(*args).sockets == (), "nothing of /tmp is seen"
        monkeypatch.setattr("amanu.sandbox.filesystem_view._EMPTY", ("/run",))
        assert filesystem_view(*args).sockets == (told, silent)
        shown = Settings(read=(str(told),))
        line = f"/usr/bin/python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{told}\")' 2>&1"
        assert "Connection refused" in await said(tmp_path, line, settings=shown)
        table.clear()
        assert await said(tmp_path, line, settings=shown) == "", "else this proves nothing"


def test_what_comes_to_be_in_a_folder_that_is_known_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_SETTLED", 0.0)
    (tmp_path / "a").mkdir()
    for name in (".vscode", "mise.toml", ".idea"):
        assert not (tmp_path / "a" / name).exists()
        (tmp_path / "a" / name).touch()
        assert str(tmp_path / "a" / name) in folders.scan_folder(str(tmp_path / "a")).protected
    (tmp_path / "a" / ".idea").unlink()
    assert len(folders.scan_folder(str(tmp_path / "a")).protected) == 2
    assert folders.scan_folder(str(tmp_path / "none")) == folders.FolderScan()


@pytest.mark.parametrize(("settled", "reads"), [(0.0, 1), (60.0, 3)], ids=["settled", "may have the same stamp"])
def test_a_folder_is_read_again_until_its_stamp_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: float, reads: int
) -> None:
    monkeypatch.setattr(folders, "_SETTLED", settled)
    with mock.patch.object(os, "scandir", wraps=os.scandir) as scandir:
        for _ in range(3):
            folders.scan_folder(str(tmp_path))
    assert scandir.call_count == reads


def test_of_what_a_folder_of_programs_lies_in_only_their_parts_are_seen(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    for name in ("tool/bin/x", "tool/lib/x.js", "tool/share/x", "tool/.env", "venv/pyvenv.cfg", "venv/bin/y"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    (home / "tool" / "include").symlink_to(home)
    found = find_toolchains(f"{home}/tool/bin:{home}/venv/bin:/usr/bin", home, (home,), 0).readable
    assert {str(each.relative_to(home)) for each in found if home in each.parents} == {
        *("tool/bin", "tool/lib", "tool/share", "venv/bin", "venv")
    }


def test_temporary_files_a_killed_daemon_left_are_removed(tmp_path: Path) -> None:
    records, temporary = tmp_path / "records", tmp_path / "tmp"
    for folder in (records, temporary / "deep"):
        folder.mkdir(parents=True)
    (records / "1-1").write_text(str(temporary))
    with TemporaryFolders(records).make(lambda: tempfile.mkdtemp(dir=tmp_path)) as ours:
        TemporaryFolders(records).clean()
        assert ours.exists() and not temporary.exists()
    assert not ours.exists() and list(records.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("echo '{{}}'", "this failed: spawn, write root"),
        ("echo oh dear >&2; exit 1", "could not be set up: oh dear"),
        ("exec {python} {acts}", "did not prevent: write outside"),
    ],
)
async def test_a_tier_that_does_not_hold_is_not_used(tmp_path: Path, program: str, fault: str) -> None:
    @asynccontextmanager
    async def in_tier(tier: Tier, argv: Sequence[str], root: Path, reads: Sequence[Path]) -> AsyncGenerator[Launch]:
        line = ["/bin/sh", "-c", program.format(python='"$0"', acts='"$@"'), *argv]
        yield Launch(line, {"PATH": os.defpath}, str(root), ())

    proof = await prove({"bubblewrap": "", "landlock": "There is none."}, in_tier)
    assert proof.tier == "none" and fault in proof.findings[0].fault
    assert proof.findings[1].fault == "There is none." and fault in proof.summary


@pytest.mark.parametrize("attempt", [escape_attempts.signal_, escape_attempts.see])
def test_another_process_with_the_same_id_is_not_the_daemon(attempt: Callable[[int, int | None], None]) -> None:
    started = start_time(os.getpid())
    assert started is not None
    attempt(os.getpid(), started)
    attempt(os.getpid(), None)
    with pytest.raises(ProcessLookupError):
        attempt(os.getpid(), started + 1)


def test_in_a_container_the_advice_is_about_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof("landlock", (TierFinding("bubblewrap", "It could not be set up."), TierFinding("landlock")))
    monkeypatch.setattr(self_test, "_CONTAINER", (tmp_path / "mark",))
    assert "container" not in proof.advice
    (tmp_path / "mark").touch()
    assert "seccomp=unconfined" in proof.advice


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_ends_in_a_return_wherever_it_jumps(machine: str) -> None:
    code = seccomp.filter_program((1, 2), machine)
    lines = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    assert lines[-1][0] == 6
    for at, (kind, true, false, _) in enumerate(lines):
        if kind & 7 == 5:
            assert at + 1 + max(true, false) < len(lines)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("cuts", [True, False])
@pytest.mark.parametrize("owners", [True, False])
@pytest.mark.parametrize("local", [True, False])
def test_the_filter_says(machine: str, *, alone: bool, cuts: bool, local: bool, owners: bool) -> None:
    """What the kernel would, of calls and their arguments."""
    of, shared = seccomp._MACHINES[machine].numbers, not alone  # pyright: ignore[reportPrivateUsage]
    code = seccomp.filter_program((1,) if local else (), machine, alone=alone, cuts=cuts, owners=owners)
    pointer = 0x7F00_0000_0000  # whose lower half is nothing
    for call, arguments, refused in (
        ("prlimit64", (0, 7, pointer, 0), False),
        ("prlimit64", (99, 7, 0, pointer), False),
        ("prlimit64", (99, 7, pointer, 0), shared),
        ("prlimit64", (99, 7, 5, 0), shared),
        ("shmget", (1, 0, 0), shared),
        ("mq_open", (), shared),
        ("socketpair", (1, 1 | 0o2000000), False),
        ("socketpair", (1, 5), False),
        ("socketpair", (1, 2 | 0o4000), not local),
        ("socketpair", (1, 3), not local),
        ("socket", (1, 1), not local),
        ("fchmod", (3, 0o755), not owners),
        ("fchmod", (3, 0o4755), True),
        ("fchmodat", (0, pointer, 0o644), not owners),
        ("fchmodat", (0, pointer, 0o2755), True),
        ("fchmodat2", (0, pointer, 0o6777), True),
        ("fchownat", (0, pointer, 0, 0), not owners),
        ("mknodat", (0, pointer, 0o104755), True),
        ("openat", (0, pointer, os.O_CREAT | os.O_WRONLY, 0o4755), True),
        ("openat", (0, pointer, os.O_CREAT | os.O_WRONLY, 0o666), False),
        ("openat", (0, pointer, os.O_RDONLY, 0o4755), False),  # no file is made, whatever stands there
        ("truncate", (pointer, 0), not cuts),
        ("openat", (0, pointer, os.O_TRUNC), not cuts),
        ("openat", (0, pointer, os.O_TRUNC | 3), not cuts),
        ("openat", (0, pointer, os.O_TRUNC | os.O_WRONLY | os.O_CREAT), False),
        ("openat", (0, pointer, os.O_RDONLY), False),
        ("openat2", (), not cuts),
        ("ptrace", (), True),
        ("ioctl", (0, 0x5412), True),
        ("ioctl", (0, 0x5413), False),
    ):
        answer = filtered(code, seccomp._MACHINES[machine].arch, of[call], arguments)  # pyright: ignore[reportPrivateUsage]
        assert (answer != 0x7FFF0000) == refused, (call, arguments)


def filtered(code: bytes, arch: int, number: int, arguments: Sequence[int]) -> int:
    """What the filter answers."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    at = value = 0
    while True:
        kind, true, false, constant = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        match kind:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, constant)
            case 0x54:
                value &= constant
            case 0x15:
                at += true if value == constant else false
            case 0x35:
                at += true if value >= constant else false
            case _:
                return constant


async def test_an_old_landlock_lets_no_file_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before version 3 it had no word for that (Linux 6.1 and older)."""
    if not landlock.version():
        pytest.skip("there is no Landlock")
    monkeypatch.setattr(landlock, "version", lambda: 2)
    monkeypatch.setattr("amanu.sandbox.sandbox._proofs", {})
    root, outside = tmp_path / "work", tmp_path / "outside"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "it").write_text("long text\n")
    outside.write_text("here\n")
    line = "import os,sys\nfor how in (lambda p: os.truncate(p, 0), lambda p: os.open(p, os.O_RDONLY | os.O_TRUNC)):\n"
    line += " try: how(sys.argv[1]); print('cut')\n except OSError as error: print(error.errno)\n"
    line += "open('lib/it', 'w').write('short')"
    sandbox = Sandbox(Settings(), home_at(tmp_path), best="landlock")
    handle = os.open(root, os.O_RDONLY)
    argv = ["/usr/bin/python3", "-I", "-S", "-c", line, str(outside)]
    assert (await sandbox.proved()).tier == "landlock"
    try:
        # as a file of the system that root may write, it can be seen
        monkeypatch.setattr("amanu.sandbox.filesystem_view._EMPTY", ())
        async with sandbox.launch(argv, None, [root], root, handle, {"PATH": "/usr/bin:/bin"}) as started:
            process = await start(started, stderr=asyncio.subprocess.STDOUT)
            said = (await process.communicate())[0].decode()
    finally:
        os.close(handle)
        await sandbox.close()
    assert said == f"{errno.EPERM}\n{errno.EPERM}\n"
    assert (outside.read_text(), (root / "lib" / "it").read_text()) == ("here\n", "short")


@pytest.mark.parametrize(("best", "inside"), [("bubblewrap", 2), ("landlock", 1)])
async def test_settings_of_the_loader_are_for_the_command_alone(tmp_path: Path, best: Tier, inside: int) -> None:
    """Each program that starts with this one complains, so the programs of the sandbox do not."""
    if best == "landlock" and not landlock.version():
        pytest.skip("there is no Landlock")
    seen = await said(tmp_path, "echo $LD_PRELOAD", best=best, variables={"LD_PRELOAD": "/no/library.so"})
    *complaints, last = seen.splitlines()
    assert last == "/no/library.so"
    assert len(complaints) == inside and all("ld.so" in line for line in complaints), "of sh, and the entry shell"


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -A", ".env\n.ssh\na\nsub\n"),
        ("ls -A sub .ssh", ".ssh:\nid_rsa\n\nsub:\n.env\nb\n"),
        ("cat a sub/b", "here\nhere\n"),
        ("cat .env sub/.env .ssh/id_rsa 2>/dev/null; echo $?", "1\n"),
        ("grep -rsh . . | sort -u", "here\n"),
        ("echo x 2>/dev/null >> .env || echo refused", "refused\n"),
        ("ls .. 2>/dev/null || echo refused", "refused\n"),
    ],
)
async def test_landlock_hides_the_content_of_secrets_and_not_their_names(
    tmp_path: Path, command: str, expected: str, writes: bool
) -> None:
    if not landlock.version():
        pytest.skip("there is no Landlock")
    root = tmp_path / "home" / "work"
    for name, text in (("a", "here"), (".env", "K=canary"), ("sub/b", "here"), ("sub/.env", "K=canary")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    (root / ".ssh").mkdir()
    (root / ".ssh" / "id_rsa").write_text("canary\n")
    need = SandboxRequirements(Place(writes=writes))
    assert await said(tmp_path, f"({command}) 2>&1", need, best="landlock") == expected


def test_no_filter_for_an_unknown_machine() -> None:
    with pytest.raises(seccomp.FilterUnavailable, match="sparc"):
        seccomp.filter_program((), "sparc")


def test_the_profile_for_macos(tmp_path: Path) -> None:
    root = tmp_path / 'a "quoted" folder'
    (root / ".git").mkdir(parents=True)
    seen = filesystem_view(SandboxRequirements(), [root], {"HOME": str(tmp_path)}, Settings(), home_at(tmp_path))
    lines = seatbelt.profile(SandboxRequirements(), seen, tmp_path / "t").splitlines()
    quoted = str(root).replace('"', '\\"')
    order = [
        next(at for at, line in enumerate(lines) if line.startswith(start) and path in line)
        for start, path in (
            ("(deny file-read* (subpath", "/tmp"),
            ("(allow file-read* ", quoted),
            ("(deny file-write*)", ""),
            ("(allow file-write* (subpath", quoted),
            ("(deny file-write* (subpath", f"{quoted}/.git"),
            ("(deny network*)", ""),
        )
    ]
    assert order == sorted(order), "the last rule that matches wins"
    assert "(deny network*)" not in seatbelt.profile(
        SandboxRequirements(Place(reach=Reach(network=True))), seen, tmp_path
    )


@pytest.mark.parametrize(
    ("output", "network", "writes", "told"),
    [
        ("curl: (6) Could not resolve host: x", False, "workspace", "no network"),
        ("curl: (6) Could not resolve host: x", True, "workspace", None),
        ("touch: .git/x: Read-only file system", False, "workspace", "settings of git, editors and agents"),
        ("touch: a: Read-only file system", False, "nothing", "nothing can be written"),
        ("bwrap: Can't mkdir", False, "workspace", "could not be set up"),
        ("strace: ptrace: Operation not permitted", False, "workspace", "system calls"),
        ("1 failed, 2 passed", False, "workspace", None),
        ("npm error code ENOTFOUND", False, "workspace", "call again with network=true"),
        ("connect ECONNREFUSED 127.0.0.1:5432", False, "workspace", "call again with network=true"),
        ("connect ECONNREFUSED 127.0.0.1:5432", True, "workspace", None),
        ("Cannot connect to the Docker daemon at unix:///x", True, "workspace", "call again with outside=true"),
        ("git@host: Permission denied (publickey).", True, "workspace", "call again with outside=true"),
        ("To get started, please run: gh auth login", True, "workspace", "call again with outside=true"),
        ("touch: /opt/x: Read-only file system", False, "workspace", "call again with outside=true"),
        ("cat: .env: Permission denied", False, "workspace", "call again with secrets=true"),
        ("error: .env: can only add regular files, symbolic links", False, "workspace", "call again with secrets=true"),
        ("ModuleNotFoundError: No module named 'x'", False, "workspace", None),
    ],
)
def test_a_failure_of_the_sandbox_is_named(output: str, network: bool, writes: Any, told: str | None) -> None:
    sandbox = CommandSandbox(tier="bubblewrap", writes=writes, network=network, summary="")
    found = denial_hint(output, sandbox, unseen=[".env"])
    assert found is None if told is None else found is not None and told in found
    assert denial_hint(output, CommandSandbox(tier="none", writes="everything", network=True, summary="")) is None


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("/bin/bash: line 1: .venv/bin/python: No such file or directory\n", "{odd}/python3"),
        ("/usr/bin/env: ‘.venv/bin/python’: No such file or directory\n", "{odd}/python3"),
        ("sh: 1: .venv/bin/python: not found\n", "{odd}/python3"),
        ("/bin/bash: line 1: .venv/bin/pytest: cannot execute: required file not found\n", "{odd}/python3"),
        ("bash: ./own: No such file or directory", None),  # leads nowhere else
        ("bash: nothing: No such file or directory", None),
        ("bash: {odd}/python3: No such file or directory", None),  # not of the workspace: no way to ask what is there
        ("bash: ../odd/python3: No such file or directory", None),
        ("bash: .venv/bin/broken: No such file or directory", None),
    ],
)
def test_a_program_that_leads_out_of_the_sandbox_is_said(tmp_path: Path, output: str, told: str | None) -> None:
    odd, root = tmp_path / "odd", tmp_path / "w"
    (root / ".venv" / "bin").mkdir(parents=True)
    odd.mkdir()
    (odd / "python3").touch()
    (root / "own").write_text("#!/bin/sh\n")
    (root / ".venv" / "bin" / "python").symlink_to(odd / "python3")
    (root / ".venv" / "bin" / "broken").symlink_to(odd / "none")
    (root / ".venv" / "bin" / "pytest").write_text(f"#!{root}/.venv/bin/python -I\n")
    found = missing_program_hint(output.format(odd=odd), [root], root)
    assert found is None if told is None else found is not None and told.format(odd=odd) in found


def test_the_launcher_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    """Each command behind Landlock pays for it."""
    if not landlock.version():
        pytest.skip("This kernel has no Landlock")
    root = tmp_path / "work"
    root.mkdir()
    seen = filesystem_view(SandboxRequirements(), [root], {"HOME": str(tmp_path)}, Settings(), home_at(tmp_path))
    orders = landlock.launcher_orders(
        SandboxRequirements(), seen, tmp_path, seccomp.filter_program(()), landlock.version()
    )
    with tempfile.TemporaryFile() as file:
        file.write(orders)
        file.seek(0)
        argv = landlock.command(["/bin/echo", "it ran"], file.fileno())
        argv[1:1] = ["-X", "importtime"]
        ended = subprocess.run(argv, pass_fds=[file.fileno()], capture_output=True, text=True)
    assert ended.stdout == "it ran\n"
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "ctypes" in loaded and loaded.isdisjoint({"enum", "signal", "json", "typing", "contextlib", "tokenize"})
