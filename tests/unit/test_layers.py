"""Who may import whom: invariants 1 and 2, and the direction of the main path (docs/architecture.md).

Imports are read from the source, those inside functions too. `if TYPE_CHECKING:` is left out: it is no dependency
at run time.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"amanu": ROOT / "server" / "amanu", "amanu_protocol": ROOT / "protocol" / "amanu_protocol"}

MAY_IMPORT: dict[str, str] = {
    # The part (longest name wins) → the parts of ours it may import; itself always, `*` is everything.
    "amanu": "",  # its __init__; every other module has a line of its own
    "amanu.__main__": "*",
    "amanu.serve": "*",
    # fronts
    "amanu.cli": "asked sessions session home config auth audit logs sockets relay daemon tools workspace lsp.server "
    "storage agent.policy models.registry models.families models.routing models.recording models.replay "
    "sandbox trust",
    "amanu.cli.tool": "sandbox cli agent auth consent trust conversation journal secrets audit audited tools workspace "
    "home config logs",  # one call, no session
    "amanu.cli.policy": "cli agent consent trust rules tools workspace home config",
    "amanu.lsp": "sessions session editor_context workspace.overlay relay imports heap last_words",
    "amanu.lsp.standard": "asked lsp sessions session stream editor_context workspace tools.visible storage.files",
    "amanu.asked": "",  # words for what the protocol says
    "amanu.lsp.early": "lsp.frames",
    "amanu.lsp.frames": "",
    "amanu.relay": "home sockets lsp.early lsp.frames",
    "amanu.daemon": "home sockets config logs last_words leaving lsp sessions relay imports heap stalls "
    "tools.kernel_limits",
    "amanu.sockets": "home",
    "amanu.logs": "home secrets",
    "amanu.last_words": "logs",
    "amanu.audit": "secrets storage",
    "amanu.audited": "audit tools.base workspace",
    # sessions
    "amanu.retention": "config storage",
    "amanu.sessions": "unbroken sandbox retention session summaries services checkers commands inbox stream restore "
    "journal index home config logs audit secrets auth consent trust agent models.registry models.routing workspace",
    "amanu.session": "services audited prompts turns edits checkpoints verdicts hearing notices session_trust "
    "session_line paging inbox stream restore earlier journal pictures agent workspace models.routing models.line",
    "amanu.prompts": "secrets session_trust session_line hearing notices turns running inbox commands mentions "
    "pictures stream agent",
    "amanu.hearing": "services notices turns inbox commands mentions pictures editor_context memory conversation agent "
    "workspace tools.base models.pictures",
    "amanu.notices": "stream agent.turn",
    "amanu.edits": "agent workspace",
    "amanu.checkpoints": "edits inbox restore earlier journal conversation agent.emit",
    "amanu.verdicts": "checkers workspace tools.base",
    "amanu.checkers": "unbroken config lsp.frames sandbox tools.kernel_limits tools.processes workspace.findings "
    "workspace.files workspace.hunks",
    "amanu.services": "sandbox audit checkers config consent trust models.availability secrets workspace.overlay",
    "amanu.turns": "services session_status choosing memory memory_files outdated inbox journal conversation agent "
    "tools workspace models.families",
    "amanu.session_trust": "trust stream agent.emit",
    "amanu.session_line": "models.line models.recording",
    "amanu.choosing": "config agent models.registry models.routing models.availability",
    "amanu.running": "agent",
    "amanu.paging": "earlier journal",
    "amanu.heap": "",
    "amanu.leaving": "",
    "amanu.stalls": "",
    "amanu.inbox": "restore unheard pictures editor_context conversation agent.emit",
    "amanu.pictures": "journal conversation imagefile",
    "amanu.imagefile": "",
    "amanu.stream": "partial_text journal conversation editor_context",
    "amanu.partial_text": "",
    "amanu.restore": "journal conversation unheard earlier agent.context",
    "amanu.summaries": "",
    "amanu.unheard": "",
    "amanu.earlier": "journal",
    "amanu.framing": "tools.visible",
    "amanu.mentions": "framing commands pictures imagefile conversation workspace tools.base",
    "amanu.editor_context": "framing workspace tools.base tools.visible",
    "amanu.session_status": "agent.policy conversation framing",
    "amanu.outdated": "workspace tools.base tools.visible conversation agent.masking",
    "amanu.memory": "memory_files memory_text conversation agent.prompt",
    "amanu.memory_files": "memory_text workspace tools.base tools.visible",
    "amanu.memory_text": "",
    "amanu.commands": "workspace tools.base",
    "amanu.consent": "config rules agent.policy storage.files storage.failure",
    "amanu.trust": "commands memory_files storage.files storage.failure workspace tools.base tools.visible",
    # the loop: no editor, disk, process, socket or vendor
    "amanu.agent": "rules protected shell.destroying shell.reading conversation models.base models.retry "
    "models.families models.availability tools.arguments tools.base tools.visible",
    # what the loop sees as Model and Tool
    "amanu.models": "conversation config auth imports secrets",
    "amanu.models.base": "conversation models.families",
    "amanu.models.families": "",
    "amanu.tools": "unbroken workspace models.base config secrets shell sandbox protected",
    "amanu.tools.base": "models.base shell.reading sandbox.need",
    "amanu.shell": "tools.visible secrets imports protected",
    "amanu.shell.reading": "",
    "amanu.shell.destroying": "",
    "amanu.sandbox": "unbroken config home protected storage.files storage.failure",
    "amanu.sandbox.launcher": "",  # runs alone, without our package
    "amanu.sandbox.acts": "",
    "amanu.sandbox.need": "",
    "amanu.workspace": "unbroken tools.base imagefile",
    "amanu.workspace.overlay": "",
    "amanu.workspace.watching": "",
    # the ground
    "amanu.journal": "storage",
    "amanu.index": "storage",
    "amanu.storage": "",
    "amanu.conversation": "",
    "amanu.config": "home rules",
    "amanu.rules": "",
    "amanu.auth": "home config secrets storage.files",
    "amanu.home": "",
    "amanu.imports": "",
    "amanu.protected": "",
    "amanu.unbroken": "",
    "amanu.secrets": "",
    "amanu_protocol": "",
}

ONLY_IN: dict[str, tuple[str, ...]] = {
    # A package of others → the parts that may import it.
    "pygls": ("amanu.lsp",),
    "lsprotocol": ("amanu.lsp",),
    "acp": ("amanu.acp",),
    "anthropic": ("amanu.models.anthropic",),
    "google": ("amanu.models.gemini", "amanu.models.gemini_contents", "amanu.models.gemini_reply"),
    "openai": (),
    "httpx2": ("amanu.models", "amanu.cli.doctor"),
    "rich": ("amanu.cli",),
    "prompt_toolkit": ("amanu.cli",),
    "sqlite3": ("amanu.storage", "amanu.journal", "amanu.index"),
    "watchfiles": ("amanu.workspace",),
    "pathspec": ("amanu.workspace",),
    "tree_sitter": ("amanu.shell",),
    "tree_sitter_bash": ("amanu.shell",),
}
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
    "rapidfuzz",
    "watchfiles",
    "tree_sitter",
)
"""Not imported by merely importing anything of ours but the files that need them."""
BEFORE_INITIALIZE = (*HEAVY, "pydantic", "asyncio", "logging", "sqlite3", "subprocess", "amanu_protocol")
"""Nor these by what answers `initialize`: each costs a good part of the 50 ms there are."""


def modules() -> Iterator[tuple[str, Path]]:
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([package, *(part for part in parts if part != "__init__")]), path


def imports(source: str) -> Iterator[str]:
    """The modules a source imports, anywhere in it. `from a import b` gives `a.b`: it may be a module."""
    todo: list[ast.AST] = [ast.parse(source)]
    while todo:
        node = todo.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                todo += node.orelse
                continue
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from (f"{'.' * level}{module or ''}.{name.name}" for name in names)
            case _:
                pass
        todo += ast.iter_child_nodes(node)


def inside(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


def part_of(module: str) -> str:
    return max((part for part in MAY_IMPORT if inside(module, part)), key=len, default="")


def violations(module: str, source: str) -> list[str]:
    """What a module imports and may not."""
    return [f"{module} imports {name}" for name in imports(source) if not allowed(module, name)]


def allowed(module: str, name: str) -> bool:
    part = part_of(module)
    parts = MAY_IMPORT[part].split()
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


def test_imports_point_downwards() -> None:
    unplaced = [name for name, _ in modules() if part_of(name) == "amanu" and name != "amanu"]
    assert unplaced == [], "a new part: give it a line in MAY_IMPORT"
    found = [line for name, path in modules() for line in violations(name, path.read_text("utf-8"))]
    assert found == [], "\n".join(["imports against MAY_IMPORT or ONLY_IN:", *found])


def test_every_line_of_the_table_is_about_something() -> None:
    names = [name for name, _ in modules()]
    gone = [part for part in MAY_IMPORT if not any(inside(name, part) for name in names)]
    assert gone == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amanu.agent.turn", "import os"),
        ("amanu.agent.turn", "def f():\n    from pathlib import Path"),
        ("amanu.agent.turn", "from amanu.workspace import overlay"),
        ("amanu.agent.turn", "from amanu import session"),
        ("amanu.agent.turn", "from .. import journal"),
        ("amanu.agent.turn", "from amanu.models.anthropic import Anthropic"),
        ("amanu.session", "async def f():\n    import anthropic"),
        ("amanu.session", "import lsprotocol.types"),
        ("amanu.session", "from amanu.lsp.server import Server"),
        ("amanu.models.registry", "import google.genai"),
        ("amanu.models.gemini_and_more", "import google.genai"),
        ("amanu.tools.base", "from amanu.workspace.overlay import Overlay"),
        ("amanu.journal", "from amanu.conversation import Entry"),
        ("amanu_protocol.items", "import orjson"),
        ("amanu_protocol.items", "import amanu.session"),
        ("amanu.lsp.early", "from amanu.lsp.server import Server"),
    ],
)
def test_what_is_forbidden_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amanu.agent.turn", "from amanu.agent.calls import run\nimport asyncio"),
        ("amanu.agent.turn", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os"),
        ("amanu.models.gemini", "def f():\n    from google import genai"),
        ("amanu.__main__", "from amanu.cli import chat"),
        ("amanu_protocol.items", "from pydantic import Field\nfrom amanu_protocol.base import Wire"),
    ],
)
def test_what_is_allowed_is_not_found(module: str, source: str) -> None:
    assert violations(module, source) == []


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("amanu.__main__", BEFORE_INITIALIZE),
        ("amanu.relay", BEFORE_INITIALIZE),
        ("amanu.lsp.alone", (*BEFORE_INITIALIZE, "asyncio", "socket")),
        ("amanu.lsp.early", BEFORE_INITIALIZE),
        ("amanu.sessions", HEAVY),
        ("amanu.models.registry", HEAVY),
    ],
)
def test_importing_is_light(module: str, absent: tuple[str, ...]) -> None:
    program = f"import {module}, sys; print(*sys.modules)"
    path = os.pathsep.join(str(folder.parent) for folder in SOURCES.values())
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(set(done.stdout.split()) & set(absent)) == []
