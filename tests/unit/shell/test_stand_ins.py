"""A program that stands for another: which that is, the workspace must not say."""

from pathlib import Path

import pytest

from amanu.core.rules import Rule, parse_rule
from amanu.core.tool import Subject
from amanu.permissions.policy import decide_all
from amanu.shell.analyze import read
from support.command_workspace import PATH, with_environment, workspace


@pytest.mark.parametrize("place", [".asdf/shims", ".local/share/mise/shims", ".volta/bin", "bin"])
def test_a_version_manager_may_run_what_the_folder_names(place: str, tmp_path: Path) -> None:
    here = workspace(tmp_path)
    folder = Path(here.environment["HOME"]) / place
    made(folder / "volta-shim")
    if place == ".volta/bin":
        (folder / "node").symlink_to("volta-shim")
    else:
        made(folder / "node")
    here = with_environment(here, PATH=f"{folder}:{PATH}")
    assert read("node --version", here).effect == ("none" if place == "bin" else "some")


@pytest.mark.parametrize(
    ("line", "words", "prefix"),
    [
        ("./run.sh", ("./run.sh",), ("./run.sh",)),
        ("cd sub && ./run.sh x", ("sub/run.sh", "x"), ("sub/run.sh",)),
        ("cd sub && ../run.sh", ("./run.sh",), ("./run.sh",)),
        ("cd sub && python3 -u make.py", ("python3", "-u", "sub/make.py"), ("python3", "sub/make.py")),
        ("python3 sub/make.py", ("python3", "sub/make.py"), ("python3", "sub/make.py")),
        ("cd sub && bash run.sh", ("bash", "sub/run.sh"), ("bash", "sub/run.sh")),
        ("cd sub && python3 --version x", ("python3", "--version", "x"), ("python3", "--version")),
        ("cd sub && pytest", ("pytest",), ("pytest",)),
    ],
)
def test_a_script_is_remembered_by_its_place(
    line: str, words: tuple[str, ...], prefix: tuple[str, ...], tmp_path: Path
) -> None:
    """So that a rule for it is for no other of that name, wherever the line goes first."""
    here = workspace(tmp_path)
    for name in ("sub/run.sh", "sub/make.py"):
        made(here.folder / name)
    made(Path(here.environment["HOME"]) / "bin" / "pytest")
    here = with_environment(here, PATH=f"{PATH}:{here.environment['HOME']}/bin")
    command = read(line, here).commands[-1]
    assert (command.words, command.prefix) == (words, prefix)


def test_a_script_is_denied_by_either_name(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    made(here.folder / "sub" / "make.py")
    made(here.folder / "make.py")

    def decided(line: str, *rules: Rule) -> str:
        commands = read(line, here).commands
        return decide_all(rules, [Subject("run_shell_command", "run", each.text, command=each) for each in commands])[
            0
        ].decision

    denied = parse_rule("deny", "run_shell_command(python3 make.py *)", "user")
    below = parse_rule("deny", "run_shell_command(python3 sub/make.py)", "user")
    kept = parse_rule("allow", "run_shell_command(python3 make.py *)", "user")
    looks = parse_rule("allow", "run_shell_command(cd *)", "user")
    assert decided("python3 make.py", denied) == "deny"
    assert decided("cd sub && python3 make.py", denied) == "deny"
    assert decided("cd sub && python3 ../make.py", denied) == "deny"
    assert decided("cd sub && python3 make.py", below) == "deny"
    assert decided("python3 make.py", kept) == "allow"
    assert decided("cd sub && python3 ../make.py", kept, looks) == "allow"
    assert decided("cd sub && python3 make.py", kept, looks) == "ask"


def made(program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
