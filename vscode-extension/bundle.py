"""The files that the extension installs: the daemon's wheel and the hash-locked list of its packages, in one folder.

bundle.py FOLDER [PLATFORM]    with these packages as wheels, if a platform is named (wheels.py)
bundle.py --list               prints the list
bundle.py --platforms          prints the platforms

Run by `make vsix` and `make vsix-platforms`. The requirements are those of requirements.lock that the daemon reaches
without its `dev` extra, as the lock itself says (`# via`), so that what a user gets is what was tested, to the byte.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import wheels

REPOSITORY = Path(__file__).resolve().parents[1]
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def main(argument: str, platform: str = "") -> None:
    if argument == "--platforms":
        print("\n".join(wheels.PLATFORMS))
        return
    lock = (REPOSITORY / "requirements.lock").read_text()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    packages = runtime(lock, project["dependencies"])
    if argument == "--list":
        print("\n".join(packages))
        return
    folder = Path(argument)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(packages) + "\n")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    version = wheel.name.split("-")[1]
    content = hashlib.sha256(wheel.read_bytes() + requirements.read_bytes()).hexdigest()
    bundle: dict[str, object] = {
        "version": version,
        "id": f"{version}-{content[:12]}",
        "wheel": wheel.name,
        "packages": len({_name(package) for package in packages}),
    }
    if platform:
        _carry(packages, platform, folder / "wheels")
        bundle["pythons"] = wheels.PYTHONS
    (folder / "bundle.json").write_text(json.dumps(bundle, indent=2) + "\n")


def runtime(lock: str, dependencies: list[str]) -> list[str]:
    """The entries of the lock, with their hashes, that these dependencies lead to."""
    entries: dict[str, list[str]] = {}  # several of a package whose version depends on the platform
    wanted_by: dict[str, set[str]] = {}
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if entry.startswith("#"):
            continue
        pinned, _, via = entry.partition("    # via")
        name = _name(pinned)
        entries.setdefault(name, []).append(pinned.rstrip())
        wanted_by.setdefault(name, set()).update({line.strip("# \n") for line in via.splitlines()} - {""})
    reached = {_name(each) for each in dependencies}
    while more := {name for name, by in wanted_by.items() if by & reached} - reached:
        reached |= more
    return [entry for name in sorted(reached) for entry in entries[name]]


def _carry(packages: list[str], platform: str, folder: Path) -> None:
    found = wheels.Wheels(REPOSITORY / ".tools" / "wheels" / platform, wheels.PLATFORMS[platform])
    found.fetch(packages)
    folder.mkdir()
    for wheel in found.choose(packages):
        shutil.copy(wheel, folder)


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


if __name__ == "__main__":
    main(*sys.argv[1:])
