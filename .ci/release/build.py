"""`make release`: everything that is published, built from the last commit into one folder.

Wheel, sdist, the extension (for every platform, and for one with what it installs), release notes, bill of materials,
the entry for the registry of ACP agents, the patch for the pages of the repository, checksums.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pages
from release import Refused, Release, release_of_head, stage
from sbom import sbom_of_tree

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "dist" / "release"
SUMS = "SHA256SUMS"
ABOUT = "release.json"
PATCH = "published.patch"


def main() -> int:
    try:
        release = release_of_head(ROOT)
        with tempfile.TemporaryDirectory(prefix="amanu-release-") as folder:
            tree, made = Path(folder, "tree"), Path(folder, "made")
            tree.mkdir()
            made.mkdir()
            build(release, tree, made)
            shutil.rmtree(OUT, ignore_errors=True)
            shutil.copytree(made, OUT)
    except (Refused, LookupError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(OUT.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>11,}  {path.relative_to(ROOT)}")
    if not release.repository:
        print("It names no repository, so it cannot be published yet (.ci/release/publisher.toml).")
    return 0


def build(release: Release, tree: Path, made: Path) -> None:
    patch = stage(ROOT, release, tree)
    notes = pages.notes((tree / "CHANGELOG.md").read_text("utf-8"), release.version)
    python = _extensions(release, tree, made)
    packages(tree, made, release.epoch, python)
    _same_wheel(made)
    _write(made / "RELEASE_NOTES.md", notes)
    _write(made / PATCH, patch)
    _write_json(made / f"amanu-{release.version}.cdx.json", sbom_of_tree(release, tree))
    _valid(made / f"amanu-{release.version}.cdx.json")
    entry = made / "acp-registry" / release.package
    entry.mkdir(parents=True)
    _write_json(entry / "agent.json", acp_entry(release, tree))
    shutil.copy(tree / ".ci/release/icon.svg", entry)
    _write_json(made / ABOUT, {"version": release.version, "commit": release.commit})
    _write(made / SUMS, sums(made))


def packages(tree: Path, folder: Path, epoch: int, python: Path) -> None:
    """Build wheel and sdist of that tree. Two builds with the same epoch are equal to the byte."""
    command = [str(python), "-m", "hatchling", "build", "--target", "wheel", "--target", "sdist", "-d", str(folder)]
    _run(command, tree, epoch)


def acp_entry(release: Release, tree: Path) -> dict[str, Any]:
    """The registry's agent.json. It is in no file of the repository: until the package is published, its name may be
    anybody's."""
    extension = json.loads((tree / "vscode-extension/package.json").read_text("utf-8"))
    return {
        "id": "amanu",
        "name": extension["displayName"],
        "version": release.version,
        "description": extension["description"],
        **({"repository": release.repository} if release.repository else {}),
        "authors": ["The Amanu authors"],
        "license": extension["license"],
        "distribution": {"uvx": {"package": f"{release.package}=={release.version}", "args": ["acp"]}},
    }


def sums(folder: Path) -> str:
    """The text that `sha256sum --check` reads, about all files but itself."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n" for path in paths
    )


def _extensions(release: Release, tree: Path, made: Path) -> Path:
    """Build the extensions as `make` does for everybody, with the tools that the commit pins. Returns its Python."""
    wheels = ROOT / ".tools/wheels"  # by the hashes of the lock, and not fetched again
    wheels.mkdir(parents=True, exist_ok=True)
    (tree / ".tools").mkdir()
    (tree / ".tools/wheels").symlink_to(wheels)
    _run(["make", "--no-print-directory", "setup", "vsix", "vsix-platforms"], tree, release.epoch)
    for path in sorted((tree / "dist").glob("*.vsix")):
        shutil.copy(path, made / f"{path.stem}-{release.version}.vsix")
    return tree / ".venv/bin/python"


def _same_wheel(made: Path) -> None:
    """Each extension installs the very wheel that is released."""
    (wheel,) = made.glob("*.whl")
    for path in made.glob("*.vsix"):
        with zipfile.ZipFile(path) as vsix:
            (name,) = (each for each in vsix.namelist() if each.endswith(f"/{wheel.name}"))
            if vsix.read(name) != wheel.read_bytes():
                raise Refused(f"The wheel in {path.name} is another than {wheel.name}: the build is not reproducible.")


def _valid(path: Path) -> None:
    check = (
        "import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import"
        " JsonStrictValidator as V; sys.exit(V(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))"
    )
    _run([str(ROOT / ".tools/release/bin/python"), "-c", check, str(path)], ROOT, 0)


def _run(command: list[str], folder: Path, epoch: int) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    for name in [name for name in environment if name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH")]:
        del environment[name]
    run = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise Refused(f"{' '.join(command)} failed:\n{run.stdout[-4000:]}{run.stderr[-4000:]}")


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
