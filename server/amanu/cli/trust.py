"""`amanu trust`: which folders are trusted, what that enables, and what of it changed. Through the running daemon, so
that open sessions hear of it, else in this process."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from amanu.cli import exits
from amanu.cli.text import one_line, visible
from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu trust", description="Show and change which workspace folders you trust, and what that enables."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="show what trusting a folder enables, and what has changed")
    show.add_argument("--json", action="store_true", help="one JSON object")
    add = commands.add_parser("add", help="trust a folder as it is now, and show what that enables")
    add.add_argument(
        "--digest", metavar="DIGEST", help="only if the folder still has this digest, as printed by `show`"
    )
    remove = commands.add_parser("remove", help="stop trusting a folder, even if an editor trusts it")
    for subparser in (show, add, remove):
        subparser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="default: the current one")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv or ["show"])  # the bare word looks
    try:
        return asyncio.run(_run(arguments, str(Path(arguments.folder).absolute())))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)
    except Disconnected as error:
        print(error, file=sys.stderr)
        return exits.FAILED


async def _run(arguments: argparse.Namespace, root: str) -> int:
    from amanu.client.connect import connect_running

    client = await connect_running()
    try:
        match arguments.command:
            case "show":
                await _show(client, root, as_json=arguments.json)
            case "add":
                trust = await client.request("amanu/trust/get", r.TrustGetParams(root=root), r.TrustGetResult)
                digest = arguments.digest or trust.digest
                await client.request(
                    "amanu/trust/set", r.TrustSetParams(root=root, trusted=True, digest=digest), r.Empty
                )
                await _show(client, root)
            case _:
                await client.request("amanu/trust/set", r.TrustSetParams(root=root, trusted=False), r.Empty)
                await _show(client, root)
        return exits.OK
    finally:
        await client.close()


async def _show(client: DaemonClient, root: str, *, as_json: bool = False) -> None:
    trust = await client.request("amanu/trust/get", r.TrustGetParams(root=root), r.TrustGetResult)
    if as_json:
        print(json.dumps(trust.model_dump(mode="json"), indent=2))
        return
    print(f"{one_line(root)}:")
    for line in trust.lines:
        print(f"  {visible(line.text)}")
    if trust.state == "changed":
        for item in trust.enables:
            if item.diff:
                print(f"\n{visible(item.diff)}", end="")
        print(f"\nTo trust it as it is now: amanu trust add --digest {trust.digest} {one_line(root)}")
