"""A release: a commit, its names, and the copy of its tree from which everything is built."""

import io
import json
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pages
from version import version


@dataclass(frozen=True)
class Release:
    version: str
    commit: str
    epoch: int
    """Seconds: when the commit was made. No file in the release is younger, so that two builds of it are equal."""
    package: str
    extension: str
    """Its id at the marketplaces: publisher and name."""
    repository: str
    """https address without a slash at its end, or nothing (publisher.toml)."""

    @property
    def tag(self) -> str:
        return f"v{self.version}"

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.epoch, UTC)

    @property
    def date(self) -> str:
        return self.time.date().isoformat()


class Refused(Exception):
    """Why nothing is released or published, in sentences that say what to do."""


def release_of_head(root: Path) -> Release:
    """Raises `Refused` where the tree is not what the commit says."""
    if changed := git(root, "status", "--porcelain"):
        raise Refused(f"Only what is committed can be released. Commit or remove these first:\n{changed}")
    commit, epoch = git(root, "log", "-1", "--format=%H %ct").split()
    project = _project(root)
    extension = json.loads((root / "vscode-extension/package.json").read_text("utf-8"))
    publisher = tomllib.loads((root / ".ci/release/publisher.toml").read_text("utf-8"))
    return Release(
        version=version(root),
        commit=commit,
        epoch=int(epoch),
        package=project["name"],
        extension=f"{extension['publisher']}.{extension['name']}",
        repository=publisher["repository"].rstrip("/"),
    )


def stage(root: Path, release: Release, folder: Path) -> str:
    """Fill the folder with the commit's files as they are released. Returns the patch that makes the repository's pages
    and changelog so, too."""
    archive = subprocess.run(["git", "archive", release.commit], cwd=root, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    texts = pages.published(folder, release.package, release.extension)
    changes: list[tuple[str, str, str]] = []
    for path in [*pages.pages(folder), folder / "CHANGELOG.md"]:
        old = path.read_text("utf-8")
        is_changelog = path.name == "CHANGELOG.md"
        new = pages.dated(old, release.version, release.date) if is_changelog else texts.page(old)
        path.write_text(new, "utf-8")
        changes.append((str(path.relative_to(folder)), old, new))
    if release.repository:
        _name_repository(folder, release)
    return pages.patch(changes)


def git(root: Path, *arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def _name_repository(folder: Path, release: Release) -> None:
    """Only in what is released: in the repository itself, publisher.toml is the one place that names it."""
    readme = folder / "README.md"
    readme.write_text(pages.absolute(readme.read_text("utf-8"), release.repository, release.tag), "utf-8")
    project = folder / "pyproject.toml"
    urls = {
        "Repository": release.repository,
        "Documentation": f"{release.repository}/tree/{release.tag}/docs",
        "Changelog": f"{release.repository}/blob/{release.tag}/CHANGELOG.md",
        "Issues": f"{release.repository}/issues",
    }
    table = "".join(f"{name} = {json.dumps(url)}\n" for name, url in urls.items())
    text = project.read_text("utf-8")
    project.write_text(text + f"\n[project.urls]\n{table}", "utf-8")
    manifest = folder / "vscode-extension/package.json"
    extension: dict[str, Any] = json.loads(manifest.read_text("utf-8"))
    extension["repository"] = {"type": "git", "url": release.repository, "directory": "vscode-extension"}
    extension["bugs"] = {"url": urls["Issues"]}
    extension["homepage"] = release.repository
    manifest.write_text(json.dumps(extension, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
