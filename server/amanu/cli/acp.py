"""`amanu acp`: an Agent Client Protocol agent, for Zed, JetBrains and other clients. Quick to import."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from amanu.frontends.acp.handshake import SETUP

if TYPE_CHECKING:
    import argparse


def parser() -> "argparse.ArgumentParser":
    import argparse  # an editor starts this command without it

    parser = argparse.ArgumentParser(
        prog="amanu acp",
        description="Speak the Agent Client Protocol (agentclientprotocol.com) on stdin and stdout, for an editor. Its "
        "sessions are shared with your other editors.",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--alone", action="store_true", help="in this process, without the shared daemon")
    way.add_argument(SETUP, dest="setup", action="store_true", help="store a key: an editor opens this in a terminal")
    return parser


def main(argv: Sequence[str]) -> int:
    """Serve until the client leaves; or set up a key at this terminal. Returns the exit code."""
    arguments = parser().parse_args(argv) if argv else None
    if arguments is not None and arguments.setup:
        return _set_up()
    from amanu.frontends.acp.serve import serve

    return serve(alone=arguments is not None and arguments.alone)


def _set_up() -> int:
    """Have the user choose a service, and store its key."""
    from amanu.cli import auth
    from amanu.models.key_services import KEY_SERVICES
    from amanu.web.search import SEARCH_KEYS

    vendors = [vendor for vendor in KEY_SERVICES if vendor not in SEARCH_KEYS]
    for number, vendor in enumerate(vendors, 1):
        service = KEY_SERVICES[vendor]
        print(f"  {number:>2}  {service.title}: {service.about}. Keys: {service.page}")
    try:
        answer = input("Which service do you have a key for? Enter its number › ").strip()
        if not answer.isdecimal() or not 1 <= int(answer) <= len(vendors):
            print("Nothing was changed.", file=sys.stderr)
            return 2
        return auth.main(["set", vendors[int(answer) - 1]])
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was changed.", file=sys.stderr)
        return 1
