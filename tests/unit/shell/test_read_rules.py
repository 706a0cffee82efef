"""What is asked about before it is read is named, so that rules about reading it count for commands in every mode."""

from pathlib import Path

import pytest

from amanu.core.tool import Subject
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.shell.analyze import read
from support.command_workspace import workspace


@pytest.mark.parametrize(
    ("line", "named"),
    [("cat .env", True), ("head -1 sub/../.env | wc", True), ("grep x .env", True), ("cat a.txt", False)],
)
def test_what_is_asked_about_is_named(tmp_path: Path, line: str, named: bool) -> None:
    here = workspace(tmp_path)
    reads = [path for command in read(line, here).commands for path in command.reads]
    assert (str(here.folder / ".env") in reads) is named
    subjects = [Subject("run_shell_command", "read", Path(path).name) for path in reads]
    rules = (*built_in(), *of_mode("auto"))
    assert ("ask" in {decide(rules, each).decision for each in subjects}) is named
