"""`amanu mcp`: which MCP servers are configured, and what you approved. A running daemon notices what this changes."""

import argparse
import asyncio
import json
import os
import shutil
import sys
import textwrap
import webbrowser
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amanu.cli import exits
from amanu.cli.text import one_line, stripped, visible
from amanu.home import find_home
from amanu_protocol.errors import AmanuError


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu mcp",
        description="Show, add and turn off MCP servers, whose tools the agent can use.",
        epilog="exit codes: 0 done · 1 failed, or the server does not run · 2 wrong usage, or no such server · "
        "3 not approved: nothing was changed",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("list", help="list the servers of this folder: state, source, what each may do")
    show.add_argument("--json", action="store_true", help="one JSON object")
    add = commands.add_parser(
        "add", help="add a server to your mcp.toml and approve it: add NAME [options] -- COMMAND …"
    )
    add.add_argument("name", metavar="NAME")
    add.add_argument("--url", metavar="URL", help="of a remote server, instead of a command")
    add.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="an environment variable it gets")
    add.add_argument(
        "--env-pass", metavar="NAME", action="append", default=[], help="one of your environment variables that it gets"
    )
    add.add_argument("--header", metavar="NAME=VALUE", action="append", default=[], help="sent with each request")
    add.add_argument("--network", action="store_true", help="it may use the network")
    add.add_argument("--writes", action="store_true", help="it may change files of the workspace")
    add.add_argument("--cache", metavar="FOLDER", action="append", default=[], help="a folder it may write")
    add.add_argument("--no-sandbox", action="store_true", help="it can do anything you can")
    approve = commands.add_parser("approve", help="approve a server as it is configured, and its tools")
    approve.add_argument("--yes", action="store_true", help="do not ask")
    imports = commands.add_parser("import", help="copy servers of another program into your mcp.toml")
    imports.add_argument("program", metavar="PROGRAM", nargs="?", help="claude, vscode, cursor, gemini, codex")
    imports.add_argument("names", metavar="NAME", nargs="*", help="only these")
    login = commands.add_parser("login", help="sign in to a server that asks for it")
    log = commands.add_parser("logs", help="print the end of what a server wrote to its log")
    log.add_argument("--lines", type=int, default=50, metavar="N", help="number of lines (default: 50)")
    off = commands.add_parser("off", help="turn a server off until it is approved again")
    remove = commands.add_parser("remove", help="remove a server from your mcp.toml")
    for subparser in (approve, login, log, off, remove):
        subparser.add_argument("name", metavar="NAME")
    return parser


def main(argv: list[str]) -> int:
    cut = argv.index("--") if "--" in argv else len(argv)  # argparse mixes up what follows it with NAME
    arguments = parser().parse_args(argv[:cut] or ["list"])
    arguments.start = argv[cut + 1 :]
    try:
        return asyncio.run(_VERBS[arguments.command](arguments))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.USAGE if error.kind == "mcpServerNotFound" else exits.of_error(error)


@dataclass(frozen=True)
class _Folder:
    roots: Sequence[Path]
    trusted: bool
    session_id: str = ""
    """There is none."""


@asynccontextmanager
async def _servers() -> AsyncGenerator[tuple[Any, _Folder]]:
    from amanu.config import load_settings
    from amanu.mcp.servers import Servers
    from amanu.permissions.policy import unasked
    from amanu.permissions.trust_store import TrustStore
    from amanu.sandbox.sandbox import Sandbox
    from amanu.session.plugins import plugin_servers

    home = find_home().make()
    settings = load_settings(home, os.environ)
    for warning in settings.warnings:
        print(visible(warning), file=sys.stderr)
    trust = TrustStore(home.config / "trust.json", home.state / "trust", unasked, home.private)
    folder = Path.cwd()
    sandbox = Sandbox(settings.sandbox, home)
    of_plugins = partial(plugin_servers, home.plugins)
    servers = Servers(home, sandbox, key_variables=settings.key_variables, of_plugins=of_plugins)
    try:
        await sandbox.proved()
        yield servers, _Folder([folder], await asyncio.to_thread(trust.standing, [str(folder)]) == "trusted")
    finally:
        await servers.close()
        await sandbox.close()


async def _list(arguments: argparse.Namespace) -> int:
    async with _servers() as (servers, folder):
        views = [server.view for server in servers.servers(folder)]
        problems: list[str] = servers.problems(folder)
    if arguments.json:
        rows = [
            {
                **{
                    key: getattr(view, key)
                    for key in ("name", "state", "reason", "source", "target", "access", "digest")
                },
                "tools": [tool.name for tool in view.tools],
                "changedTools": [tool.name for tool in view.changed_tools],
            }
            for view in views
        ]
        print(json.dumps({"servers": rows, "problems": problems}, indent=2))
        return exits.OK
    for view in views:
        _show(view)
    for problem in problems:
        print(f"! {visible(problem)}", file=sys.stderr)
    if not views:
        print("No MCP servers are configured here. Add one: amanu mcp add NAME -- COMMAND …", file=sys.stderr)
    if not folder.trusted:
        print("This folder's own servers are ignored: it is not trusted (amanu trust add).", file=sys.stderr)
    return exits.OK


async def _add(arguments: argparse.Namespace) -> int:
    from amanu.mcp.config import NAME
    from amanu.mcp.user_file import add_server, remove_server

    if not NAME.match(arguments.name):
        raise AmanuError("invalidParams", "A name may have up to 40 characters: letters, digits, _ and -.")
    if bool(arguments.start) == bool(arguments.url):
        raise AmanuError("invalidParams", "Give either --url URL, or the command after `--`.")
    table: dict[str, Any] = {"url": arguments.url} if arguments.url else {"command": arguments.start[0]}
    for key, value in (
        ("args", arguments.start[1:]),
        ("env", _assignments(arguments.env)),
        ("env_pass", arguments.env_pass),
        ("headers", _assignments(arguments.header)),
        ("network", arguments.network),
        ("writes", arguments.writes),
        ("caches", arguments.cache),
    ):
        if value:
            table[key] = value
    if arguments.no_sandbox:
        table["sandbox"] = False
    async with _servers() as (servers, folder):
        path = servers.home.config / "mcp.toml"
        add_server(path, arguments.name, table)
        view = _view(servers, folder, arguments.name)
        if view.state == "failed":
            remove_server(path, arguments.name)
            raise AmanuError("invalidParams", view.reason)
        return await _approved(servers, folder, view)


async def _approve(arguments: argparse.Namespace) -> int:
    async with _servers() as (servers, folder):
        view = _view(servers, folder, arguments.name)
        _show(view)
        for tool in view.changed_tools:
            print(f"\n{visible(tool.diff)}", end="")
        if not arguments.yes and not _confirmed("Approve this?"):
            print("Nothing was changed.", file=sys.stderr)
            return exits.DENIED
        if view.changed_tools:
            await servers.approve_tools(folder, view.name, view.tools_digest)
            return exits.OK
        return await _approved(servers, folder, view)


async def _approved(servers: Any, folder: _Folder, view: Any) -> int:
    """Approve it, start it, and show the tools it has."""
    changed = asyncio.Event()
    servers.listeners.append(changed.set)
    try:
        await servers.approve(folder, view.name, view.digest)
    except AmanuError as error:
        if error.kind != "permissionDenied":
            raise
        hint = f"Trust it, then approve: amanu trust add; amanu mcp approve {view.name}"
        raise AmanuError(error.kind, str(error), hint=hint) from error
    while (view := _view(servers, folder, view.name)).state in ("configured", "starting"):
        await changed.wait()
        changed.clear()
    _show(view)
    for tool in view.tools:
        print(f"    {one_line(tool.name)}: {one_line(tool.description)}")
    if view.state == "needsSignIn":
        print(f"Sign in: amanu mcp login {view.name}", file=sys.stderr)
    return exits.OK if view.state in ("ready", "needsSignIn") else exits.FAILED


async def _import(arguments: argparse.Namespace) -> int:
    from amanu.mcp.imports import PROGRAMS, find_files
    from amanu.mcp.user_file import add_server

    if arguments.program is not None and arguments.program not in PROGRAMS:
        raise AmanuError("invalidParams", f"Unknown program {arguments.program!r}. Available: {', '.join(PROGRAMS)}.")
    path = find_home().make().config / "mcp.toml"
    programs = PROGRAMS if arguments.program is None else [arguments.program]
    count = 0
    for program in programs:
        for file in find_files(program, Path.cwd(), Path.home()):
            print(f"{program}, {visible(str(file.path))}:{f' {visible(file.problem)}' if file.problem else ''}")
            for server in file.servers:
                if arguments.names and server.name not in arguments.names:
                    continue
                outcome = "can be imported" if server.table else "left out"
                if server.table and arguments.program is not None:
                    try:
                        add_server(path, server.name, server.table)
                        outcome = f"imported; to approve it: amanu mcp approve {server.name}"
                        count += 1
                    except AmanuError as error:
                        outcome = f"left out: {error}"
                print(f"  {one_line(server.name)}: {visible(outcome)}")
                for note in server.notes:
                    print(f"    {visible(note)}")
    if arguments.program is None:
        print("To import: amanu mcp import PROGRAM [NAME …]", file=sys.stderr)
    return exits.OK if count or arguments.program is None else exits.FAILED


async def _login(arguments: argparse.Namespace) -> int:
    def open_page(address: str) -> None:
        print(f"Open this page to sign in:\n{visible(address)}", flush=True)
        if sys.stdout.isatty():
            webbrowser.open(address)

    async with _servers() as (servers, folder):
        await servers.sign_in(folder, arguments.name, open_page)
    print(f"You are signed in to {arguments.name}.")
    return exits.OK


async def _logs(arguments: argparse.Namespace) -> int:
    from amanu.mcp.config import NAME
    from amanu.mcp.server_log import log_file

    if not NAME.match(arguments.name):
        raise AmanuError("invalidParams", "A name may have up to 40 characters: letters, digits, _ and -.")
    path = log_file(find_home(), arguments.name)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        print(f"{arguments.name} has written nothing to its log ({path}).", file=sys.stderr)
        return exits.OK
    print(stripped("\n".join(lines[-arguments.lines :])))
    return exits.OK


async def _off(arguments: argparse.Namespace) -> int:
    async with _servers() as (servers, folder):
        await servers.turn_off(folder, arguments.name)
    return exits.OK


async def _remove(arguments: argparse.Namespace) -> int:
    from amanu.mcp.user_file import remove_server

    async with _servers() as (servers, _):
        remove_server(servers.home.config / "mcp.toml", arguments.name)
        servers.forget(arguments.name)
    return exits.OK


def _view(servers: Any, folder: _Folder, name: str) -> Any:
    views = [server.view for server in servers.servers(folder)]
    for view in views:
        if view.name == name:
            return view
    names = ", ".join(view.name for view in views) or "none"
    raise AmanuError("mcpServerNotFound", f"There is no MCP server {name!r} here. Available: {names}.")


def _show(view: Any) -> None:
    state = {"unapproved": "needs your approval", "needsSignIn": "needs you to sign in"}.get(view.state, view.state)
    print(f"{view.name}: {state}{f' — {visible(view.reason)}' if view.reason else ''}")
    print(f"  {visible(view.source)}: {visible(view.target)}")
    access = f"  {visible(view.access)}"
    print(
        textwrap.fill(access, shutil.get_terminal_size().columns, subsequent_indent="  ")
        if sys.stdout.isatty()
        else access
    )
    if view.tools or view.changed_tools:
        changed = f", {len(view.changed_tools)} changed and off" if view.changed_tools else ""
        print(f"  tools: {len(view.tools)}{changed}")


def _confirmed(question: str) -> bool:
    if not sys.stdin.isatty():
        print("There is no terminal to ask in; use --yes.", file=sys.stderr)
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise AmanuError("invalidParams", f"{name!r} is not NAME=VALUE.")
    return {name: value for name, _, value in pairs}


_VERBS = {
    "list": _list,
    "add": _add,
    "approve": _approve,
    "import": _import,
    "login": _login,
    "logs": _logs,
    "off": _off,
    "remove": _remove,
}
