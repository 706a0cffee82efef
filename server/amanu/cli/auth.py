"""`amanu auth`: shows and stores the keys of model services, and signs in. A key is typed or piped in, never passed as
an argument."""

import argparse
import asyncio
import getpass
import os
import sys
from typing import TYPE_CHECKING

from amanu.cli import exits
from amanu.cli.text import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import AuthStatus

if TYPE_CHECKING:
    from amanu.home import Home
    from amanu.models.credentials import Credentials


_SIGN_INS = ("openai",)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu auth",
        description="Manage the API keys of model services and the sign-in with ChatGPT, stored in your configuration "
        "folder, readable only by you.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("status", help="which vendors have a key, and where it comes from")
    keep = commands.add_parser("set", help="store a key: typed without echo, or read from standard input")
    keep.add_argument("vendor", metavar="VENDOR", help="anthropic, gemini, openai …")
    forget = commands.add_parser("forget", help="remove a stored key")
    forget.add_argument("vendor", metavar="VENDOR")
    login = commands.add_parser("login", help="sign in with ChatGPT in the browser, to use your plan instead of a key")
    login.add_argument("vendor", metavar="VENDOR", choices=_SIGN_INS, help="openai")
    login.add_argument("--no-browser", action="store_true", help="only print the address to open")
    logout = commands.add_parser("logout", help="remove the tokens of a sign-in")
    logout.add_argument("vendor", metavar="VENDOR", choices=_SIGN_INS, help="openai")
    local = commands.add_parser("local", help="allow a model server on this machine, permanently")
    local.add_argument("vendor", metavar="VENDOR", help="ollama, llamacpp …")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        if arguments.command in ("login", "logout"):
            from amanu.cli import sign_in

            return sign_in.login(browse=not arguments.no_browser) if arguments.command == "login" else sign_in.logout()
        return _run(arguments.command, getattr(arguments, "vendor", ""))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)


def _run(command: str, vendor: str) -> int:
    from amanu.home import find_home
    from amanu.models.credentials import Credentials

    home = find_home().make()
    auth = Credentials(home.auth)
    match command:
        case "local":
            print(visible(asyncio.run(_allow_local(home, auth, vendor))))
        case "status":
            for status in auth.status(os.environ):
                print(f"{one_line(status.vendor):16}{source(status)}")
        case "set" if vendor not in (vendors := _vendors(home)):
            print(f"Unknown vendor {visible(vendor)!r}. Available: {', '.join(vendors)}.", file=sys.stderr)
            return exits.USAGE
        case "set":
            key = _read_key(vendor)
            if not key:
                print("The input contains no key; nothing was changed.", file=sys.stderr)
                return exits.USAGE
            auth.set(vendor, key)
            print(f"{vendor}: key stored")
        case _:
            is_kept = auth.keeps(vendor)
            auth.set(vendor, None)
            print(
                f"{vendor}: key removed" if is_kept else f"{vendor}: no key was stored",
                file=None if is_kept else sys.stderr,
            )
    return exits.OK


def _vendors(home: "Home") -> list[str]:
    """The vendors that take a key, including the user's own endpoints and the search services."""
    from amanu.config import load_settings
    from amanu.models.registry import VENDORS
    from amanu.web.search import SEARCH_KEYS

    mine = [
        name
        for name, endpoint in load_settings(home, os.environ).endpoints.items()
        if endpoint.key_variable is not None
    ]
    return [vendor.name for vendor in VENDORS if vendor.needs_key] + mine + list(SEARCH_KEYS)


async def _allow_local(home: "Home", auth: "Credentials", vendor: str) -> str:
    """A sentence on what was allowed, and which model new sessions use. Raises `AmanuError`."""
    from amanu.config import load_settings
    from amanu.models.catalogue import Catalogue
    from amanu.models.registry import ModelRegistry

    settings = load_settings(home, os.environ)
    registry = ModelRegistry(settings, auth, home.local_models, Catalogue(home.catalogue))
    address = await registry.allow_local(vendor, os.environ)
    said = f"{vendor}: the server at {address} may be used."
    if settings.model is None and registry.default(os.environ) is None:
        model_id = await registry.local_default(os.environ)
        said += f" New sessions use {model_id}." if model_id else " It has no model yet."
    return said


def source(status: AuthStatus) -> str:
    """Where a key comes from, in words."""
    match status.source:
        case "environment":
            unused = f"; takes precedence over the sign-in as {one_line(status.account)}" if status.account else ""
            return f"from the environment ({status.variable}){unused}"
        case "signIn":
            return f"signed in as {one_line(status.account or '')}"
        case "endedSignIn":
            return f"the sign-in as {one_line(status.account or '')} has ended; run: amanu auth login {status.vendor}"
        case "file":
            return "stored by amanu auth"
        case "none":
            if not status.variable:
                return "no key"
            sign_in = f", or: amanu auth login {status.vendor}" if status.vendor in _SIGN_INS else ""
            return f"no key; set {status.variable}, or: amanu auth set {status.vendor}{sign_in}"


def _read_key(vendor: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"Key for {vendor} (not echoed): ").strip()
    return sys.stdin.readline().strip()
