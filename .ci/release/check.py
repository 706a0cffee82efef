"""`make release-check`: each artefact of dist/release installed as a stranger would, each in a new home folder.

Amanu then says its version, plays its demo and examines itself, where possible without any network. Usage: check.py
[PYTHON ...]: with each Python the wheel is installed by pip, with the first one everything in every way.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from build import ABOUT, OUT, ROOT, SUMS, sums

UV = str(ROOT / ".venv/bin/uv")
PIPX = str(ROOT / ".tools/release/bin/pipx")


class Failed(Exception):
    """A command did not end well; its output."""


@dataclass(frozen=True)
class Home:
    """A new home folder, and how commands run in it."""

    folder: Path
    python: str
    cut_off: list[str]
    """Puts a command where there is no network; empty where this machine does not let us."""

    def run(self, *command: str, offline: bool = False) -> str:
        settings = {name: value for name, value in os.environ.items() if _is_of_an_index(name)}
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "UV_PYTHON_DOWNLOADS": "never",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **settings,
        }
        run = subprocess.run(
            [*(self.cut_off if offline else []), *command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode:
            raise Failed(f"{' '.join(command)} ended with {run.returncode}:\n{run.stdout[-3000:]}")
        return run.stdout

    def size(self) -> int:
        """Bytes of what was installed, without what the installers keep for the next time."""
        files = (path for path in self.folder.rglob("*") if ".cache" not in path.relative_to(self.folder).parts)
        return sum(path.lstat().st_size for path in files)


def pip(home: Home, artefact: Path) -> list[str]:
    home.run(home.python, "-m", "venv", "venv")
    home.run("venv/bin/python", "-m", "pip", "install", "--quiet", str(artefact))
    return ["venv/bin/amanu"]


def pipx(home: Home, artefact: Path) -> list[str]:
    home.run(PIPX, "install", "--quiet", "--python", home.python, str(artefact))
    return [".local/bin/amanu"]


def uv_tool(home: Home, artefact: Path) -> list[str]:
    home.run(UV, "tool", "install", "--quiet", "--python", home.python, str(artefact))
    return [".local/bin/amanu"]


def uvx(home: Home, artefact: Path) -> list[str]:
    command = [UV, "tool", "run", "--quiet", "--python", home.python, "--from", str(artefact)]
    home.run(*command, "amanu", "--version")
    return [*command, "--offline", "amanu"]  # from uv's cache


def extension(home: Home, artefact: Path) -> list[str]:
    """Installs it by the extension's own code, which also plays the demo; without network where it has the packages."""
    home.run(str(ROOT / ".ci/release/vsix-check"), str(artefact), home.python)
    return []


Installer = Callable[[Home, Path], list[str]]


def trials(pythons: list[str]) -> Iterator[tuple[Path, str, Installer, str]]:
    (wheel,) = OUT.glob("*.whl")
    (sdist,) = OUT.glob("*.tar.gz")
    first = pythons[0]
    yield wheel, "pip", pip, first
    yield wheel, "pipx", pipx, first
    yield wheel, "uv tool", uv_tool, first
    yield wheel, "uvx --from", uvx, first
    yield sdist, "pip", pip, first
    for vsix in sorted(OUT.glob("*.vsix")):
        if _is_for_this_machine(vsix):
            for python in pythons if vsix.name.startswith("amanu-linux") else [first]:
                yield vsix, "the extension", extension, python
    for python in pythons[1:]:
        yield wheel, "pip", pip, python


def main(pythons: list[str]) -> int:
    if not (OUT / SUMS).exists() or (OUT / SUMS).read_text("utf-8") != sums(OUT):
        print("release-check: dist/release is not a whole release. Run make release.", file=sys.stderr)
        return 1
    version = json.loads((OUT / ABOUT).read_text("utf-8"))["version"]
    cut_off = _without_network()
    print("| artefact | MB | installed by | Python | seconds | MB installed | result |")
    print("|---|---|---|---|---|---|---|")
    failures: list[str] = []
    for artefact, by, installer, python in trials(pythons):
        with tempfile.TemporaryDirectory(prefix="amanu-home-") as folder:
            home = Home(Path(folder).resolve(), python, cut_off)
            start = time.monotonic()
            program: list[str] = []
            try:
                program = installer(home, artefact)
                if program:
                    _works(home, program, version)
                result = "works"
            except Failed as error:
                failures.append(f"{artefact.name}, {by}, {python}: {error}")
                result = "**fails**"
            cells = [
                artefact.name,
                f"{artefact.stat().st_size / 1e6:.1f}",
                by,
                _version(python),
                f"{time.monotonic() - start:.0f}",
                f"{home.size() / 1e6:.0f}" if program and by != "uvx --from" else "",
                result,
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
    for vsix in sorted(OUT.glob("*.vsix")):
        if not _is_for_this_machine(vsix):
            print(f"| {vsix.name} | {vsix.stat().st_size / 1e6:.1f} | | | | | for another machine, not tried |")
    where = "ran without network" if cut_off else "ran with network: this machine cannot cut a program off from it"
    print(f"\nOnce installed, Amanu {where}.")
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    return 1 if failures else 0


def _works(home: Home, program: list[str], version: str) -> None:
    told = home.run(*program, "--version", offline=True).strip()
    if told != f"amanu {version}":
        raise Failed(f"--version says {told!r}")
    home.run(*program, "demo", offline=True)
    home.run(*program, "doctor", offline=True)


def _is_for_this_machine(vsix: Path) -> bool:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, "")
    platforms = ("linux-", "alpine-", "darwin-")
    return not any(f"amanu-{each}" in vsix.name for each in platforms) or f"amanu-linux-{machine}-" in vsix.name


def _is_of_an_index(name: str) -> bool:
    """The variables that say where packages come from, but no cache: each home is new."""
    return (
        name.startswith(("PIP_", "UV_INDEX", "UV_DEFAULT_INDEX", "SSL_CERT")) and "CACHE" not in name
    ) or name.lower().endswith("_proxy")


def _without_network() -> list[str]:
    for command in (["unshare", "--net"], ["unshare", "--map-current-user", "--net"]):
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
        ):
            return command
    return []


def _version(python: str) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))]))
