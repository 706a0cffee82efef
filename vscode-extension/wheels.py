"""The wheels that a .vsix for one platform carries, so that its daemon is installed without a network.

They are those of the lock, by its hashes, for each Python in `PYTHONS`, fetched once into .tools/wheels/PLATFORM.
"""

import hashlib
import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import canonicalize_name, parse_wheel_filename

PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Platform:
    system: str
    machine: str
    tags: tuple[str, ...]
    """The platforms of wheels that run there, best first."""

    def markers(self, python: str) -> dict[str, str]:
        return {
            "os_name": "posix",
            "sys_platform": self.system.lower(),
            "platform_system": self.system,
            "platform_machine": self.machine,
            "python_version": python,
            "python_full_version": f"{python}.0",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
        }


def _manylinux(machine: str) -> Platform:
    aliases = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    names = (name for minor in range(28, 4, -1) for name in (f"manylinux_2_{minor}", aliases.get(minor)) if name)
    return Platform("Linux", machine, tuple(f"{name}_{machine}" for name in names))


PLATFORMS = {
    "linux-x64": _manylinux("x86_64"),
    "linux-arm64": _manylinux("aarch64"),
    "alpine-x64": Platform("Linux", "x86_64", tuple(f"musllinux_1_{minor}_x86_64" for minor in (2, 1, 0))),
    "darwin-x64": Platform("Darwin", "x86_64", tuple(mac_platforms((14, 0), "x86_64"))),
    "darwin-arm64": Platform("Darwin", "arm64", tuple(mac_platforms((14, 0), "arm64"))),
}
"""VS Code's names of platforms. The oldest systems are those of .ci/platforms: glibc 2.28, musl 1.2, macOS 14."""


class Wheels:
    """The wheels of a platform in a folder, from which nothing is taken that does not have the lock's hash."""

    def __init__(self, folder: Path, platform: Platform) -> None:
        self._folder = folder
        self._platform = platform

    def fetch(self, packages: Sequence[str]) -> None:
        """Fetches missing wheels from the registry, in the order of `PYTHONS`: one for all Pythons is fetched once."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for python in PYTHONS:
            missing = [entry for entry in self._entries(packages, python) if self._best(entry, python) is None]
            if missing:
                self._download(missing, python)

    def choose(self, packages: Sequence[str]) -> list[Path]:
        """One of each package for each Python. Raises `LookupError` if one is missing."""
        chosen: set[Path] = set()
        for python in PYTHONS:
            for entry in self._entries(packages, python):
                wheel = self._best(entry, python)
                if wheel is None:
                    raise LookupError(f"no wheel for Python {python}: {entry.split()[0]}")
                chosen.add(wheel)
        return sorted(chosen)

    def _entries(self, packages: Sequence[str], python: str) -> Iterator[str]:
        """The entries of the lock that count there, without their conditions: pip would ask this machine."""
        for entry in packages:
            requirement, _, hashes = entry.partition(" \\\n")
            pinned, _, marker = requirement.partition(" ; ")
            if not marker or Marker(marker).evaluate(self._platform.markers(python)):
                yield f"{pinned} \\\n{hashes}"

    def _best(self, entry: str, python: str) -> Path | None:
        name, _, version = entry.split()[0].partition("==")
        ranks = {tag: rank for rank, tag in enumerate(self._tags(python))}
        found: list[tuple[int, Path]] = []
        for wheel in self._folder.glob("*.whl"):
            of, its_version, _, tags = parse_wheel_filename(wheel.name)
            if of == canonicalize_name(name) and str(its_version) == version and (fits := tags & ranks.keys()):
                found.append((min(ranks[tag] for tag in fits), wheel))
        locked = set(re.findall(r"sha256:(\w+)", entry))
        return next((wheel for _, wheel in sorted(found) if _sha256(wheel) in locked), None)

    def _tags(self, python: str) -> Iterator[Tag]:
        version = tuple(int(part) for part in python.split("."))
        abi = [f"cp{python.replace('.', '')}"]
        return itertools.chain(
            cpython_tags(version, abi, self._platform.tags),
            compatible_tags(version, abi[0], self._platform.tags),
        )

    def _download(self, entries: Sequence[str], python: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
            requirements.write("\n".join(entries) + "\n")
            requirements.flush()
            options = [
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
                "--no-deps",
                "--only-binary",
                ":all:",
            ]
            target = ["--implementation", "cp", "--python-version", python]
            platforms = itertools.chain.from_iterable(("--platform", tag) for tag in self._platform.tags)
            files = ["--requirement", requirements.name, "--dest", str(self._folder)]
            command = [sys.executable, "-m", "pip", "download", *options, *target, *platforms, *files]
            subprocess.run(command, check=True)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
