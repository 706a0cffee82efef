"""Runs commands in layers, and prints what each said and changed: `python layer_runner.py < CASES`, JSON of name →
`Case` as a mapping; JSON of name → `Result` as a mapping comes back.

A program of its own, so that it can be run as another user.
"""

import asyncio
import json
import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from amanu.config import SandboxSettings as Settings
from amanu.core.place import LOOK, SCRATCH, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.home import Home, find_home
from amanu.sandbox.layers.changes import Change, read_changes
from amanu.sandbox.layers.layer import Layer, LayerError
from amanu.sandbox.rlimits import limited_entry_shell
from amanu.sandbox.sandbox import Sandbox
from amanu.system.process_tree import end_all
from support.sandboxed_process import start

LIMIT = 120
_BASE = """
echo one > a; mkdir -p d/sub; echo x > d/x; echo y > d/sub/y; ln -s a link; echo h > h1; ln h1 h2
echo secret > .env; printf '#!/bin/sh\\necho swapped\\n' > run; chmod 755 run
"""


@dataclass
class Case:
    command: str
    """For sh."""
    said: str = ""
    changes: list[str] = field(default_factory=list[str])
    """As `described`."""
    before: str = ""
    """For sh, in the workspace."""
    after: str = ""
    looks: bool = False
    """It runs with nothing writable."""
    secrets: bool = False
    """It may read files that hold secrets."""
    pinned: dict[str, str] = field(default_factory=dict[str, str])
    """File → the text that it sees there."""
    complete: bool = True


@dataclass
class Result:
    said: str
    changes: list[str]
    complete: bool
    untouched: bool
    """The workspace is as it was."""
    removed: bool
    """The layer could be locked, and removed entirely."""


def described(change: Change) -> str:
    mode = "" if change.kind in ("deleted", "symlink", "pruned") else f" {change.mode:o}"
    below = change.below
    return f"{change.path}: {change.kind}{mode}" + ("" if below is None else f", was {_kind(below.st_mode)}")


def _kind(mode: int) -> str:
    return "folder" if stat.S_ISDIR(mode) else "symlink" if stat.S_ISLNK(mode) else "file"


def pruned(path: str, is_folder: bool) -> bool:
    return path == "node_modules" and is_folder


def contents(root: Path) -> list[Any]:
    found: list[Any] = []
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        text = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found.append((path, status.st_mode, status.st_ino, status.st_nlink, status.st_mtime_ns, text))
    return found


async def result(case: Case, sandbox: Sandbox, home: Home, base: Path) -> Result:
    root = base / "home" / 'work, "it": \\ \n'
    root.mkdir(parents=True)
    subprocess.run(["sh", "-ec", _BASE + case.before], cwd=root, check=True)
    before = contents(root)
    layer = Layer.create(home.layers, [root])
    place = LOOK if case.looks else replace(SCRATCH, reach=Reach(secrets=case.secrets))
    pinned = {str(root / name): text.encode() for name, text in case.pinned.items()}
    need = SandboxRequirements(place, layer=layer.folder, pinned=pinned)
    handle, argv = os.open(root, os.O_RDONLY), ["/bin/sh", "-c", case.command]
    environment = {"HOME": str(base / "home"), "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    shell = limited_entry_shell("/bin/bash")
    async with sandbox.launch(argv, need, [root], root, handle, environment, shell) as started:
        process = await start(started, stderr=asyncio.subprocess.STDOUT)
        said = (await process.communicate())[0].decode()
        await end_all(process.pid, "no=mark", started.holders)
    os.close(handle)
    with layer.locked():
        changes = read_changes(layer.roots[0], limit=LIMIT, prune=pruned)
    try:
        layer.remove()
        removed = not layer.folder.exists()
    except (OSError, LayerError):
        removed = False
    untouched = contents(root) == before
    subprocess.run(["sh", "-ec", case.after], cwd=root, check=True)
    return Result(said, [described(each) for each in changes.found], changes.complete, untouched, removed)


async def main(cases: dict[str, Case]) -> dict[str, Result]:
    os.umask(0o022)
    results: dict[str, Result] = {}
    with tempfile.TemporaryDirectory(prefix="layers-") as name:
        base = Path(os.path.realpath(name))
        home = find_home({"AMANU_HOME": str(base / "amanu")}).make()
        sandbox = Sandbox(Settings(), home)
        for at, (name, case) in enumerate(cases.items()):
            (base / str(at)).mkdir()
            results[name] = await result(case, sandbox, home, base / str(at))
        await sandbox.close()
    return results


if __name__ == "__main__":
    given = {name: Case(**case) for name, case in json.load(sys.stdin).items()}
    print(json.dumps({name: asdict(each) for name, each in asyncio.run(main(given)).items()}))
