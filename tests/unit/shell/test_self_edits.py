"""Lines that change the very files they run."""

import pytest

from amanu.core.command import Command
from amanu.shell.self_edits import rewritten

ALL = ("/w/.pre-commit-config.yaml", "/w/Cargo.toml", "/w/Makefile", "/w/package.json")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("npm install ms", "package.json"),
        ("npm i", "package.json"),
        ("npm version patch", "package.json"),
        ("npm", "package.json"),
        ("/usr/bin/npm install ms", "package.json"),
        ("yarn add x", "package.json"),
        ("npm test", ""),
        ("npm run build", ""),
        ("pnpm run-script lint", ""),
        ("cargo add serde", "Cargo.toml"),
        ("cargo --locked add serde", "Cargo.toml"),
        ("cargo test", ""),
        ("git checkout main", "everything"),
        ("git -C sub stash", "everything"),
        ("git commit -m x", ""),
        ("git log --oneline", ""),
        ("pre-commit autoupdate", ".pre-commit-config.yaml"),
        ("pre-commit run", ""),
        ("make test", ""),
        ("", ""),
    ],
)
def test_what_the_line_changes_of_what_it_runs(line: str, expected: str) -> None:
    changing = Command(line, tuple(line.split()), "some", "")
    running = Command("make", ("make",), "some", "", runs=ALL)
    found = rewritten([running, changing])
    assert found == {each for each in ALL if expected == "everything" or each.endswith(f"/{expected}")}
