"""Wheel and sdist of this tree: what is in them, what they say of themselves, and that they are the same each time."""

import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from build import ROOT, packages

import amanu

EPOCH = 1_790_000_000


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path

    @classmethod
    def of(cls, tree: Path, folder: Path) -> "Built":
        packages(tree, folder, EPOCH, Path(sys.executable))
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        return cls(wheel, sdist)

    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as wheel:
            return Parser().parsestr(wheel.read(f"amanu-{amanu.__version__}.dist-info/METADATA").decode())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built.of(ROOT, tmp_path_factory.mktemp("built"))


def test_a_wheel_built_from_the_sdist_is_the_same_to_the_byte(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    again = Built.of(tree, tmp_path)
    assert again.wheel.name == built.wheel.name == f"amanu-{amanu.__version__}-py3-none-any.whl"
    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.sdist.read_bytes() == built.sdist.read_bytes()


def test_the_wheel_has_the_packages_and_what_they_read(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
    for package in (ROOT / "server/amanu", ROOT / "protocol/amanu_protocol"):
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{package.name}/{path.relative_to(package).as_posix()}" in names
    folders = {name.split("/")[0] for name in names}
    assert {each for each in folders if not each.startswith("amanu-")} == {"amanu", "amanu_protocol"}
    assert not any("test" in name.split("/")[0] or name.endswith(".pyc") for name in names)


def test_the_sdist_has_no_more_than_it_names(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        top = {name.split("/")[1] for name in sdist.getnames()}
    assert {"server", "protocol", "tests", "bench", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO"} <= top
    assert not top & {"vscode-extension", "docs", ".ci", "dist", ".tools", ".venv"}


def test_what_an_index_shows(built: Built) -> None:
    metadata = built.metadata()
    assert metadata["Version"] == amanu.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Amanu authors"
    assert {"LICENSE", "NOTICE"} <= set(metadata.get_all("License-File", []))
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Keywords"] and metadata["Summary"]
    assert str(metadata.get_payload()).startswith("# Amanu")
    wanted = metadata.get_all("Requires-Dist", [])
    assert len(wanted) == len(set(wanted))
