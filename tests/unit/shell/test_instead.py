"""A program of the system that starts another by its name, or stands for one: which that is, the workspace must not
say."""

from pathlib import Path

import pytest

from amanu.shell.read import read
from unit.shell.surroundings import PATH, with_environment, workspace


@pytest.mark.parametrize(
    ("line", "other"), [("egrep x a.txt", "grep"), ("tar tzf a.tgz", "gzip"), ("cat a.txt", "gzip")]
)
def test_a_program_that_starts_one_of_the_workspace(line: str, other: str, tmp_path: Path) -> None:
    here = workspace(tmp_path)
    folder = here.folder / "bin"
    folder.mkdir()
    here = with_environment(here, PATH=f"{folder}:{PATH}")
    assert read(line, here).effect == "none"
    made(folder / other)
    assert read(line, here).effect == ("none" if line.startswith("cat") else "some")


@pytest.mark.parametrize(
    ("place", "file", "effect"),
    [
        (".asdf/shims", ".tool-versions", "some"),
        (".local/share/mise/shims", "mise.toml", "some"),
        (".asdf/shims", "other", "none"),
        ("bin", ".tool-versions", "none"),
        (".pyenv/shims", ".tool-versions", "none"),
    ],
)
def test_a_file_that_says_which_program_runs(place: str, file: str, effect: str, tmp_path: Path) -> None:
    here = workspace(tmp_path)
    shim = Path(here.environment["HOME"]) / place / "node"
    made(shim)
    (here.folder / file).write_text("nodejs path:./evil\n")
    here = with_environment(here, PATH=f"{shim.parent}:{PATH}")
    assert read("node --version", here).effect == effect
    assert read("cd sub && node --version", here).effect == effect


def test_what_volta_puts_in_the_place_of_node(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    folder = Path(here.environment["HOME"]) / ".volta" / "bin"
    made(folder / "volta-shim")
    (folder / "node").symlink_to("volta-shim")
    here = with_environment(here, PATH=f"{folder}:{PATH}")
    assert read("node --version", here).effect == "none"
    (here.folder / "package.json").write_text('{"volta": {"node": "1.2.3"}}')
    assert read("node --version", here).effect == "some"


def made(program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
