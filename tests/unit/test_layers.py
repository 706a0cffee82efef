"""Who may import whom: invariants 1 and 2, and the direction of the main path (docs/architecture.md).

Imports are read from the source, those inside functions and `if TYPE_CHECKING:` too: a type is a dependency.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"amanu": ROOT / "server" / "amanu", "amanu_protocol": ROOT / "protocol" / "amanu_protocol"}
EXTENSION = ROOT / "vscode-extension" / "src"

MAY_IMPORT: dict[str, str] = {
    # A room → the rooms it may use, all of them above it in this table; itself always, `*` is everything.
    "amanu": "",  # its __init__; every other module is in a room, or has a line of its own
    "amanu.core": "",
    "amanu.home": "",
    "amanu.parts": "",
    "amanu.config": "core home",
    "amanu.text": "",
    "amanu.system": "home text",
    "amanu.models": "core config text system",
    "amanu.web": "core models.http text system",
    "amanu.shell": "core text system",
    "amanu.storage": "config text system",
    "amanu.sandbox": "core home config text system storage",
    "amanu.mcp": "core home config text system models.http models.oauth_callback web.addresses storage sandbox",
    "amanu.workspace": "core text system",
    "amanu.workspace.git": "core text system storage workspace",
    "amanu.context": "core text system storage workspace",
    "amanu.proposals": "core text system workspace storage.errors storage.file_store sandbox.layers.copying",
    "amanu.checks": "core config text system sandbox workspace proposals",
    "amanu.permissions": "core config text system storage workspace context checks",
    "amanu.tools": "core config text system web shell storage.errors storage.file_store sandbox mcp workspace context "
    "proposals checks permissions.policy permissions.placing",
    "amanu.agent": "core text system models.availability models.retry permissions",  # no vendor, disk, process, editor
    "amanu.session": "core home config text system models web storage sandbox mcp workspace context proposals checks "
    "permissions tools agent parts",
    "amanu.hooks": "core config home system text sandbox workspace context session",
    "amanu.agents": "core config home models text workspace context permissions session",
    "amanu.frontends": "core text system storage workspace context session",
    "amanu.daemon": "core home config text system sandbox session frontends",
    "amanu.client": "home session frontends.lsp daemon",
    "amanu.frontends.acp": "text system workspace client frontends.row_text",
    "amanu.cli": "core home config text system models web storage sandbox mcp workspace context proposals permissions "
    "tools agent session parts frontends daemon client",
    "amanu.hooks.verb": "core config home text system sandbox workspace permissions hooks cli.exits cli.text",
    "amanu.__main__": "*",
}
ALONE: dict[str, str] = {
    # Programs of their own, and what must be quick to import → all they may use of ours.
    "amanu.sandbox.launcher": "",
    "amanu.sandbox.escape_attempts": "",
    "amanu.workspace.grep_worker": "",
    "amanu.system.pdf_worker": "",
    "amanu.web.page_text": "web.html_markdown web.html_reader",
    "amanu.frontends.lsp.handshake": "system.frames",
    "amanu.frontends.acp.handshake": "",
    "amanu.frontends.row_text": "text",
    "amanu.daemon.relay": "home daemon.sockets frontends.lsp.handshake system.descriptors system.frames",
    "amanu_protocol": "",
}

ONLY_IN: dict[str, tuple[str, ...]] = {
    # A package of others → the parts that may import it.
    "pygls": ("amanu.frontends.lsp",),
    "lsprotocol": ("amanu.frontends.lsp",),
    "acp": ("amanu.frontends.acp",),
    "anthropic": ("amanu.models.anthropic", "amanu.models.anthropic_clouds"),
    "google": (
        "amanu.models.gemini",
        "amanu.models.gemini_contents",
        "amanu.models.gemini_reply",
        "amanu.models.google_credentials",
        "amanu.models.vertex",
    ),
    "openai": (),
    "httpx2": ("amanu.models", "amanu.web", "amanu.mcp", "amanu.cli.doctor"),
    "mcp": ("amanu.mcp",),
    "mcp_types": ("amanu.mcp",),
    "jsonschema": ("amanu.agents.definitions", "amanu.agents.complete_task", "amanu.tools.mcp.arguments"),
    "yaml": ("amanu.text.front_matter",),
    "rich": ("amanu.cli",),
    "prompt_toolkit": ("amanu.cli",),
    "sqlite3": ("amanu.storage",),
    "watchfiles": ("amanu.workspace",),
    "pathspec": ("amanu.workspace",),
    "puremagic": ("amanu.system.file_kind",),
    "pypdf": ("amanu.system.pdf_worker",),
    "tree_sitter": ("amanu.shell",),
    "tree_sitter_bash": ("amanu.shell",),
}
CIRCLES = [
    # Files that import each other: to be opened.
]
PROTOCOL = "amanu_protocol"
LOOP = "amanu.agent"
OUT_OF_THE_LOOP = {
    "os",
    "pathlib",
    "subprocess",
    "socket",
    "shutil",
    "tempfile",
    "signal",
    "ssl",
    "http",
    "urllib",
    "io",
}

HEAVY = (
    "pygls",
    "lsprotocol",
    "anthropic",
    "google.genai",
    "rich",
    "prompt_toolkit",
    "httpx2",
    "html.parser",
    "pypdf",
    "rapidfuzz",
    "watchfiles",
    "tree_sitter",
    "mcp",
    "jsonschema",
    "yaml",
)
"""Not imported by merely importing anything of ours but the files that need them."""
BEFORE_INITIALIZE = (*HEAVY, "pydantic", "asyncio", "logging", "sqlite3", "subprocess", "amanu_protocol")
"""Nor these by what answers `initialize`: each costs a good part of the 50 ms there are."""


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


@cache
def imports(source: str) -> tuple[str, ...]:
    """The modules a source imports, anywhere in it. `from a import b` gives `a.b`: it may be a module."""
    found: list[str] = []
    todo: list[ast.AST] = [*ast.parse(source).body]
    while todo:
        node = todo.pop()
        match node:
            case ast.Import(names=names):
                found += (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                found += (f"{'.' * level}{module or ''}.{name.name}" for name in names)
            case _:  # what is in a statement's expressions imports nothing
                for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                    todo += getattr(node, part, ())
    return tuple(found)


def typescript_imports(source: str) -> list[str]:
    """The files beside a TypeScript source that it imports, if only their types, as it names them."""
    return re.findall(r'\b(?:from|import)\s*\(?\s*"(\.[^"]*/[^"./]+)"', source)


def inside(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


@cache
def part_of(module: str) -> str:
    return max((part for part in (*MAY_IMPORT, *ALONE) if inside(module, part)), key=len, default="")


def violations(module: str, source: str) -> list[str]:
    """What a module imports and may not."""
    return [f"{module} imports {name}" for name in imports(source) if not allowed(module, name)]


def allowed(module: str, name: str) -> bool:
    part = part_of(module)
    parts = (MAY_IMPORT | ALONE)[part].split()
    match name.split(".")[0]:
        case "":  # relative: one way to say it is enough
            return False
        case "amanu_protocol":
            return True
        case "amanu":
            known = (part, "amanu.__version__", *(f"amanu.{each}" for each in parts))
            return "*" in parts or any(inside(name, each) for each in known)
        case top if part == PROTOCOL:
            return top == "pydantic" or top in sys.stdlib_module_names
        case top if top in ONLY_IN:
            return any(inside(module, each) for each in ONLY_IN[top])
        case top:
            return part != LOOP or top not in OUT_OF_THE_LOOP


def file_of(name: str, names: set[str]) -> str | None:
    """The module that an import of `name`, a module or something in one, reaches."""
    return next((part for part in (name, name.rpartition(".")[0]) if part in names), None)


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Groups of files that reach each other: strongly connected components of more than one (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for next_name in arrows[name]:
            if next_name not in order:
                visit(next_name)
                low[name] = min(low[name], low[next_name])
            elif next_name in stack:
                low[name] = min(low[name], order[next_name])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[-len(group) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for name in arrows:
        if name not in order:
            visit(name)
    return groups


def test_imports_point_downwards() -> None:
    unplaced = [name for name, _ in modules() if part_of(name) == "amanu" and name != "amanu"]
    assert unplaced == [], "a new part: give it a line in MAY_IMPORT"
    found = [line for name, path in modules() for line in violations(name, path.read_text("utf-8"))]
    assert found == [], "\n".join(["imports against MAY_IMPORT or ONLY_IN:", *found])


def test_every_line_of_the_table_is_about_something() -> None:
    names = [name for name, _ in modules()]
    gone = [part for part in (*MAY_IMPORT, *ALONE) if not any(inside(name, part) for name in names)]
    assert gone == []


def test_the_table_runs_down() -> None:
    rooms = list(MAY_IMPORT)
    for room, below in MAY_IMPORT.items():
        for name in below.replace("*", "").split():
            assert f"amanu.{name.split('.')[0]}" in rooms[: rooms.index(room)], (
                f"{room} may use {name}, which is above it"
            )


def test_no_circle_between_files() -> None:
    names = {name for name, _ in modules()}
    arrows = {
        name: {file for each in imports(path.read_text("utf-8")) if (file := file_of(each, names))}
        for name, path in modules()
    }
    assert [each for each in circles(arrows) if each not in CIRCLES] == []


def test_no_circle_between_files_of_the_extension() -> None:
    arrows = {
        str(name): {os.path.normpath(name.parent / each) for each in typescript_imports(path.read_text("utf-8"))}
        for path in EXTENSION.rglob("*.ts")
        for name in [path.relative_to(EXTENSION).with_suffix("")]
    }
    assert circles(arrows) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('import { a } from "./a";\nexport * from "../b/c";', ["./a", "../b/c"]),
        ('import type {\n  A,\n  B,\n} from "./a";', ["./a"]),
        ('import "./a";', ["./a"]),
        ('const { a } = await import("./a");', ["./a"]),
        ('let a: import("./a").A;', ["./a"]),
        ('import * as vscode from "vscode";\nimport words from "./words.json";', []),
    ],
)
def test_imports_of_typescript_are_found(source: str, found: list[str]) -> None:
    assert typescript_imports(source) == found


def test_the_root_is_small() -> None:
    assert sorted(path.name for path in SOURCES["amanu"].glob("*.py")) == [
        "__init__.py",
        "__main__.py",
        "config.py",
        "home.py",
        "parts.py",
    ]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amanu.agent.turn", "import os"),
        ("amanu.agent.turn", "def f():\n    from pathlib import Path"),
        ("amanu.agent.turn", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os"),
        ("amanu.agent.turn", "from amanu.workspace import overlay"),
        ("amanu.agent.turn", "from amanu.session import session"),
        ("amanu.agent.turn", "from .. import journal"),
        ("amanu.agent.turn", "from amanu.models.anthropic import Anthropic"),
        ("amanu.session.session", "async def f():\n    import anthropic"),
        ("amanu.session.session", "import lsprotocol.types"),
        ("amanu.session.session", "from amanu.frontends.lsp.connection import Connection"),
        ("amanu.models.registry", "import google.genai"),
        ("amanu.models.gemini_and_more", "import google.genai"),
        ("amanu.core.tool", "from amanu.workspace.overlay import Overlay"),
        ("amanu.storage.journal", "from amanu.agent.turn import Entry"),
        ("amanu_protocol.items", "import orjson"),
        ("amanu_protocol.items", "import amanu.session.session"),
        ("amanu.frontends.lsp.handshake", "from amanu.frontends.lsp.connection import Connection"),
    ],
)
def test_what_is_forbidden_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amanu.agent.turn", "from amanu.agent.calls import run\nimport asyncio"),
        ("amanu.models.gemini", "def f():\n    from google import genai"),
        ("amanu.__main__", "from amanu.cli import chat"),
        ("amanu_protocol.items", "from pydantic import Field\nfrom amanu_protocol.base import Wire"),
    ],
)
def test_what_is_allowed_is_not_found(module: str, source: str) -> None:
    assert violations(module, source) == []


# In one process, whose start costs most: what is imported first may import least.
@pytest.mark.parametrize(
    "absent_of",
    [
        {
            "amanu.daemon.standalone": (*BEFORE_INITIALIZE, "socket"),
            "amanu.__main__": BEFORE_INITIALIZE,
            "amanu.daemon.relay": BEFORE_INITIALIZE,
            "amanu.cli.acp": BEFORE_INITIALIZE,
            "amanu.frontends.acp.serve": BEFORE_INITIALIZE,
            "amanu.frontends.lsp.handshake": BEFORE_INITIALIZE,
        },
        {
            "amanu.session.sessions": HEAVY,
            "amanu.frontends.lsp.connection": HEAVY,
            "amanu.models.registry": HEAVY,
        },
    ],
    ids=["before initialize", "heavy"],
)
def test_importing_is_light(absent_of: dict[str, tuple[str, ...]]) -> None:
    program = "import importlib, sys\n" + "".join(
        f"importlib.import_module({module!r})\nprint({module!r}, *({absent!r} & sys.modules.keys()))\n"
        for module, absent in ((module, set(absent)) for module, absent in absent_of.items())
    )
    path = os.pathsep.join(str(folder.parent) for folder in SOURCES.values())
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == list(absent_of), "each is named with what it imported and may not"
