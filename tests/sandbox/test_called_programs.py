"""Programs called by their absolute paths, as the sandbox shows them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.sandbox.toolchains import find_programs

CASES: Sequence[tuple[str, str, Sequence[str]]] = [
    # the program, what there is besides, what is shown
    ("bin/shout", "bin/other notes/todo.txt", ["bin/shout"]),
    ("notes/run.sh", "notes/todo.txt", ["notes/run.sh"]),
    ("shop/bin/tool", "shop/pyvenv.cfg shop/lib/module.py", ["shop/bin", "shop", "shop/bin/tool"]),
    ("opt/bin/tool", "opt/lib/library.so opt/secret.txt", ["opt/bin", "opt/lib", "opt/bin/tool"]),
    (
        "web/node_modules/eslint/bin/eslint.js",
        "web/node_modules/eslint/lib/rules.js web/app.js",
        ["web/node_modules/eslint/bin", "web/node_modules/eslint/lib", "web/node_modules", "…/bin/eslint.js"],
    ),
    (".ssh/bin/tool", ".ssh/pyvenv.cfg", []),
    (".ssh/id_test", "", []),
]


@pytest.mark.parametrize(("program", "besides", "shown"), CASES, ids=[program for program, _, _ in CASES])
def test_shown(tmp_path: Path, program: str, besides: str, shown: Sequence[str]) -> None:
    home = tmp_path.resolve()
    for name in (program, *besides.split()):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\n")
    (home / program).chmod(0o755)
    found = find_programs([str(home / program)], (home,))
    expected = [home / (program if name.startswith("…") else name) for name in shown]
    assert list(found.readable) == expected and not found.links


def test_an_interpreter_is_shown_with_its_installation_and_links_are_followed(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    for folder in ("shop/bin", "notes", "links"):
        (home / folder).mkdir(parents=True)
    (home / "shop" / "pyvenv.cfg").touch()
    (home / "shop" / "bin" / "python").touch()
    (home / "notes" / "run.py").write_text(f"#!{home}/shop/bin/python -I\n")
    (home / "links" / "notes").symlink_to(home / "notes")
    found = find_programs([f"{home}/links/notes/run.py"], (home,))
    assert {home / "shop", home / "notes" / "run.py"} <= set(found.readable)
    assert found.links == ((home / "links" / "notes", home / "notes"),)
