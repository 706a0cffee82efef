"""All that can change a user's workspace, and why it may: the one road of a proposal, and what goes beside it.

The calls that change files, start programs, or ask an editor for a change are read from the source; which of them are
given a path of the workspace is written here by hand. A module that is new to one of these lists fails until it has a
line that says what it writes.
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[2] / "server" / "amanu"

ROAD: dict[str, str] = {
    # What was proposed, and accepted by the user or a rule.
    "workspace.disk_changes": "folders and executable bits",
    "workspace.replacement": "files and links: made, replaced, renamed, deleted",
    "workspace.path_guard": "folders above a new file",
    "workspace.git.folder": "git's files",
    "workspace.git.apply": "the same, in their order",
    "workspace.git.objects": "the same: new objects",
    "proposals.tree_move": "new folders with all that is in them",
    "proposals.row_plan": "contents under temporary names",
    "system.untrusted_files": "what is removed from layers, from the store, and of temporary folders",
}
BESIDE: dict[str, str] = {
    "sandbox.layers.transfer": "files that git ignores",
    "sandbox.layers.old_notes": "what an older daemon left half done",
    "sandbox.quarantine": "what a command left that others would obey is moved aside, what it changed of that put back",
    "sandbox.file_tree": "the same: files put back from a record",
    "sandbox.secret_files": "secret files that a command moved are moved back",
    "cli.doctor": "a report, in a new file that the user named",
    "cli.ui.conversation": "the conversation, in a new file, by `/export`",
}
OWN: dict[str, str] = {
    # Where → modules that write nowhere else.
    "the configuration, state, data and runtime folders, and caches that the user named": """
        cli.review_prompt cli.tool context.plugin_store daemon.main daemon.relay daemon.sockets
        frontends.lsp.plain.documents home mcp.pins mcp.process mcp.server_log models.chatgpt_tokens
        models.recording permissions.trust_store sandbox.command_records sandbox.process_records
        session.sessions storage.audit_chain storage.file_store storage.files storage.journal
        storage.journal_sqlite storage.lease storage.preimages storage.session_index storage.index_file
        storage.toml_file system.logs system.private_file
        """,
    "a layer, which is below the state folder": """
        sandbox.layers.copying sandbox.layers.layer sandbox.layers.redo
        sandbox.layers.upper system.folder_list tools.shell.taken_files
        tools.shell.layer_contents tools.shell.row_changes
        """,
    "a temporary folder of its own": """
        cli.demo cli.ui.programs sandbox.escape_attempts sandbox.self_test sandbox.temp_folders
        workspace.git_patch
        """,
    "nowhere: the null device, or standard error": "__main__ cli.run",
    "nowhere: what is renamed is a session, or a symbol by a language server, which answers with edits": """
        checks.proposal_checks checks.runner session.requests tools.code.rename_symbol
        """,
}
CALLERS: dict[str, str] = {
    # What changes a workspace → modules that call it.
    "make_all": "proposals.transaction proposals.recovery",
    "remove_empty_folders": "proposals.transaction workspace.disk_changes",
    "TreeMove": "proposals.row_plan",
    "prepared": "proposals.row_plan proposals.transaction proposals.recovery tools.shell.layer_review",
    "transfer": "tools.shell.session_layer sandbox.layers.redo",
    "finish_old": "sandbox.layers.redo",
    "restore_secrets": "sandbox.sandbox",
}
EDITORS: dict[str, str] = {
    "frontends.lsp.edit_request": "`amanu/editor/apply`",
    "frontends.lsp.buffers": "`workspace/applyEdit`",
    "frontends.acp.files": "`fs/write_text_file`",
}
"""They write through an editor: the road's changes to a text that it has open, or serves."""
PROGRAMS: dict[str, str] = {
    # What starts programs → what these may write.
    "tools.shell.command_process": "commands: in place where they were approved so, else in a layer",
    "tools.shell.job": "commands in the background: the same",
    "sandbox.sandboxed_process": "checkers and hooks: nothing; MCP servers: only if approved with `writes`",
    "sandbox.launcher": "the command that it holds, within its rules",
    "sandbox.escape_attempts": "nothing but in a temporary folder",
    "sandbox.self_test": "nothing but in a temporary folder",
    "sandbox.layers.trial": "nothing but in a temporary folder",
    "workspace.git_patch": "nothing but in a temporary folder",
    "cli.demo": "the sample's tests, in a copy",
    "cli.ui.clipboard": "the system's reader of the clipboard, which prints",
    "cli.ui.programs": "the user's editor, on a temporary file",
    "workspace.search": "ripgrep, which reads",
    "web.fetch": "a reader of pages, in the sandbox",
    "system.pdf_text": "a reader of PDF files",
    "system.tasks": "`start_process` itself",
    "daemon.main": "the daemon",
    "daemon.relay": "the daemon",
}

_OF_OS = {
    *(
        "rename",
        "renames",
        "replace",
        "unlink",
        "remove",
        "rmdir",
        "removedirs",
        "mkdir",
        "makedirs",
        "link",
        "symlink",
    ),
    *("chmod", "lchmod", "fchmod", "chown", "lchown", "fchown", "truncate", "ftruncate", "setxattr", "removexattr"),
    *("utime", "mknod", "mkfifo", "pwrite"),
}
_OF_SHUTIL = {"copy", "copy2", "copyfile", "copymode", "copystat", "copytree", "move", "rmtree", "chown"}
_OF_PATH = {
    *("write_text", "write_bytes", "unlink", "rename", "mkdir", "rmdir", "touch", "chmod", "lchmod", "symlink_to"),
    "hardlink_to",
}  # without `replace`, which strings have, too: what it puts in place was made before
_WRITING = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")
_STARTS = {"start_process", "create_subprocess_exec", "create_subprocess_shell", "stdio_client"}
_OF_OS_STARTS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "execv", "execve", "execvp", "execvpe"}
_PASSED_TO = {"to_thread", "run_in_executor", "partial", "callback", "submit", "register"}
_REQUESTS = {"amanu/editor/apply", "workspace/applyEdit", "fs/write_text_file"}

Sees = Callable[[ast.AST], bool]


def changes_files(node: ast.AST) -> bool:
    """Whether it is a call that makes, changes, renames or removes files, whatever the path."""
    return any(_changes_files(*name) for name in _used(node)) or (isinstance(node, ast.Call) and _opens_to_write(node))


def starts_programs(node: ast.AST) -> bool:
    return any(map(_starts_program, _used(node)))


def asks_editors(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in _REQUESTS


def calls(wanted: str, node: ast.AST) -> bool:
    owner, _, name = wanted.rpartition(".")
    return any(found == name and owner in ("", before.lstrip("_")) for before, found in _used(node))


def _starts_program(function: tuple[str, str]) -> bool:
    owner, name = function
    return owner == "subprocess" or name in _STARTS or (owner == "os" and name in _OF_OS_STARTS)


def _changes_files(owner: str, name: str) -> bool:
    match owner:
        case "os":
            return name in _OF_OS
        case "shutil":
            return name in _OF_SHUTIL
        case _:
            return name in _OF_PATH


def _opens_to_write(node: ast.Call) -> bool:
    """Whether it opens a file with such flags or such a mode."""
    if not any(name == "open" for _, name in _used(node)):
        return False
    arguments = [*node.args, *(word.value for word in node.keywords)]
    texts = [each.value for each in arguments if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    modes = [text for text in texts if set(text) <= set("rwaxbt+") and set(text) & set("wax+")]
    return bool(modes) or any(flag in ast.unparse(node) for flag in _WRITING)


def _used(node: ast.AST) -> list[tuple[str, str]]:
    """The functions that are called or, as in `to_thread(disk.replace, …)`, passed: the last word before the last dot
    and the one behind it."""
    if not isinstance(node, ast.Call):
        return []
    called = _name(node.func)
    return [called, *(map(_name, node.args) if called[1] in _PASSED_TO else ())]


def _name(node: ast.AST) -> tuple[str, str]:
    match node:
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            return owner, name
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return "", name
        case _:
            return "", ""


@cache
def _nodes() -> Mapping[str, Sequence[ast.AST]]:
    """Module → its calls and constants."""
    modules = {path: ".".join(path.relative_to(SERVER).with_suffix("").parts) for path in SERVER.rglob("*.py")}
    return {
        name: [each for each in ast.walk(ast.parse(path.read_bytes())) if isinstance(each, ast.Call | ast.Constant)]
        for path, name in modules.items()
    }


def _modules(sees: Sees) -> set[str]:
    return {name for name, nodes in _nodes().items() if any(map(sees, nodes))}


def _listed(texts: Iterable[str]) -> Iterator[str]:
    return (name for text in texts for name in text.split())


def check(sees: Sees, known: set[str], table: str) -> None:
    found = _modules(sees)
    assert not (new := sorted(found - known)), f"say in {table} what {new} may change, and why"
    assert not (gone := sorted(known - found)), f"{table} has {gone}, which change nothing any more"


def test_every_module_that_changes_files_says_where() -> None:
    own = [*_listed(OWN.values())]
    assert len(own) == len({*own}) and not {*own} & (ROAD.keys() | BESIDE.keys()), "a module is listed twice"
    check(changes_files, {*ROAD, *BESIDE, *own}, "ROAD, BESIDE or OWN")


def test_every_module_that_asks_an_editor_to_write_is_known() -> None:
    check(asks_editors, {*EDITORS}, "EDITORS")


def test_every_module_that_starts_programs_says_what_these_may_write() -> None:
    check(starts_programs, {*PROGRAMS}, "PROGRAMS")


@pytest.mark.parametrize("name", CALLERS)
def test_what_changes_a_workspace_is_called_only_from(name: str) -> None:
    check(partial(calls, name), {*CALLERS[name].split()}, f"CALLERS, {name},")


SEEN: list[tuple[str, Sees, bool]] = [
    ("path.write_text(text)", changes_files, True),
    ("self._path.unlink(missing_ok=True)", changes_files, True),
    ("await asyncio.to_thread(shutil.rmtree, folder)", changes_files, True),
    ("stack.callback(os.unlink, name)", changes_files, True),
    ("os.open(name, os.O_RDWR | os.O_CREAT, dir_fd=folder)", changes_files, True),
    ("path.open('ab')", changes_files, True),
    ("open(path, mode='w')", changes_files, True),
    ("open(path)", changes_files, False),
    ("os.open(path, os.O_RDONLY)", changes_files, False),
    ("text.replace('a', 'b')", changes_files, False),
    ("await asyncio.create_subprocess_exec('git')", starts_programs, True),
    ("await asyncio.to_thread(subprocess.run, line)", starts_programs, True),
    ("os.execvp(name, line)", starts_programs, True),
    ("await ask('workspace/applyEdit', params)", asks_editors, True),
    ("await asyncio.to_thread(disk.replace, guard, files)", partial(calls, "disk.replace"), True),
    ("await self._workspace.replace(files)", partial(calls, "workspace.replace"), True),
    ("dataclasses.replace(row)", partial(calls, "disk.replace"), False),
]


@pytest.mark.parametrize(("source", "sees", "expected"), SEEN, ids=[source for source, _, _ in SEEN])
def test_sees_such_a_call(source: str, sees: Sees, expected: bool) -> None:
    assert any(map(sees, ast.walk(ast.parse(source)))) == expected
