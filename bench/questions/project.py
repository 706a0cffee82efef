"""The project as a repository with a history and a remote, and the machine around it; made as they were before each
command."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from bench.questions import sample
from bench.questions.machine import Machine, make_environment
from bench.questions.services import INSTALLED, Services
from bench.subjects.environment import ROOT

_DATE = "2026-03-0{day}T10:00:00+00:00"
_CACHES = ("__pycache__", ".pytest_cache", ".ruff_cache", ".tsbuildinfo", "node_modules/.cache", ".egg-info")
"""What a program writes only to be faster the next time: that it is not there is no loss."""


@dataclass(frozen=True)
class Project:
    """`root` is where commands run, `remote` what its `origin` leads to. Of them and of the machine's folders,
    `pristine` holds copies."""

    machine: Machine
    root: Path
    remote: Path
    pristine: Path
    made: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The stamps it had when it was as it was made."""

    @property
    def environment(self) -> Mapping[str, str]:
        return self.machine.environment

    def reset(self) -> None:
        """As it was made, at the same paths: virtual environments hold their own. What is as it was stays."""
        place = self.pristine.parent
        found = _stamps(place)
        for name in found.keys() - self.made.keys():
            _remove(place / name)
        for name in sorted(self.made):  # a folder before what is in it
            if found.get(name) != self.made[name]:
                _restore(self.pristine / name, place / name)
        self.made.update(_stamps(place))

    def left(self) -> str:
        """A digest of what a command has left in the project, at its remote and among the installed packages, but for
        caches."""
        parts = [
            self._git("status", "--porcelain=v1", "--branch", "--untracked-files=all"),
            self._git("log", "-5", "--format=%s%d"),
            self._git("for-each-ref", "--format=%(refname)"),
            self._git("stash", "list"),
            self._git("diff", "HEAD"),
            self._ignored(),
            self._git("--git-dir", str(self.remote), "log", "--all", "--format=%s"),
            *sorted(path.name for path in self.machine.packages.iterdir() if path.name != "__pycache__"),
        ]
        for name in self._git("ls-files", "--others", "--exclude-standard").splitlines():
            path = self.root / name
            text = path.read_bytes() if path.is_file() else b""
            parts.append(sha256(text.replace(bytes(self.pristine.parent), b"")).hexdigest())
        return sha256("\0".join(parts).encode()).hexdigest()

    def _ignored(self) -> str:
        listed = self._git("ls-files", "--others", "--ignored", "--exclude-standard", "--directory").splitlines()
        return "\n".join(name for name in listed if not any(cache in name for cache in _CACHES))

    def _git(self, *words: str) -> str:
        found = subprocess.run(["git", *words], cwd=self.root, env=self.environment, capture_output=True, check=False)
        return found.stdout.decode(errors="replace")


def make(place: Path, services: Services) -> Project:
    place.mkdir()
    project = Project(Machine(place, services), place / "shop", place / "shop.git", place / "pristine")
    root = project.root
    root.mkdir()

    def run(*words: str, day: int = 1) -> None:
        dates = {name: _DATE.format(day=day) for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")}
        subprocess.run(["git", *words], cwd=root, check=True, env={**project.environment, **dates}, capture_output=True)

    def commit(files: Mapping[str, str], message: str, day: int) -> None:
        _write(root, files)
        run("add", ".")
        run("commit", "-qm", message, day=day)

    run("init", "-q", "--bare", str(project.remote))
    run("init", "-q")
    commit(sample.FIRST, "A cart", 1)
    run("tag", "v0.1.0")
    commit(sample.NATIVE, "Scales and an engine", 2)
    run("switch", "-qc", "discount")
    commit(sample.DISCOUNT, "Discounts", 3)
    run("switch", "-q", "main")
    run("remote", "add", "origin", str(project.remote))
    run("push", "-q", "-u", "origin", "main", "discount", "discount:review")
    run("update-ref", "-d", "refs/remotes/origin/review")  # a colleague's, to be fetched
    run("remote", "set-url", "origin", services.address(project.remote))
    commit({**sample.WEB, **sample.packages(_install_packages(root))}, "A page", 4)
    _write(root, sample.UNCOMMITTED)
    make_environment(root / ".venv")
    made = [folder for folder in place.iterdir() if folder.is_dir()]
    project.pristine.mkdir()
    for folder in made:
        shutil.copytree(folder, project.pristine / folder.name, symlinks=True)
    project.made.update(_stamps(place))
    return project


def _write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(0o755)


def _install_packages(root: Path) -> dict[str, str]:
    """What `npm install` would have put there: TypeScript and Prettier, as far as this checkout has them. Returns their
    versions."""
    programs = root / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    unused = shutil.ignore_patterns("typescript.js", "tsserver*", "_tsserver.js", "??", "??-??")
    versions: dict[str, str] = {}
    for source, name, program, ignore in (
        (ROOT / ".tools/typescript/node_modules/typescript", "tsc", "bin/tsc", unused),
        (ROOT / "vscode-extension/node_modules/prettier", "prettier", "bin/prettier.cjs", None),
    ):
        if source.is_dir():
            shutil.copytree(source, root / "node_modules" / source.name, ignore=ignore)
            (programs / name).symlink_to(f"../{source.name}/{program}")
            versions[source.name] = json.loads((source / "package.json").read_text())["version"]
    INSTALLED.update({name: (version,) for name, version in versions.items()})
    return versions


def _stamps(place: Path) -> dict[str, tuple[int, int]]:
    """Path below the place → which file it is, and when it was last changed, of everything but the copies."""
    found: dict[str, tuple[int, int]] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(place / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if name == "pristine":
                    continue
                status = entry.stat(follow_symlinks=False)
                found[name] = status.st_ino, status.st_ctime_ns
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
    return found


def _restore(copy: Path, path: Path) -> None:
    if copy.is_dir() and not copy.is_symlink():
        if not path.is_dir() or path.is_symlink():
            _remove(path)
            path.mkdir()
        shutil.copystat(copy, path)
        return
    _remove(path)
    shutil.copy2(copy, path, follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
