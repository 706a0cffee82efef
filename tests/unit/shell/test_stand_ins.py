"""A program of the system that starts another by its name, or stands for one: which that is, the workspace must not
say."""

from pathlib import Path

import pytest

from amanu.core.rules import Rule, parse_rule
from amanu.core.tool import Subject
from amanu.permissions.policy import decide_all
from amanu.shell.analyze import read
from support.command_workspace import PATH, with_environment, workspace


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
