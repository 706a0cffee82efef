"""`amanu audit`: what was asked, decided and done in this user's name, and whether that record is intact. Read from the
files themselves: it needs no daemon and starts none."""

import argparse
import re
import sys
import time
from datetime import datetime
from pathlib import Path

from amanu.cli import exits
from amanu.cli.text import visible
from amanu.home import find_home
from amanu.storage.audit_chain import ChainLink, read, verify
from amanu.storage.audit_log import about, sentence, shown
from amanu.text.wording import audit_details


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu audit",
        description="Show what was asked, decided and done in your name, and whether that record is intact. It is read "
        "from the files themselves: no daemon is needed, and none is started.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print entries, oldest first")
    show.add_argument("--session", metavar="ID", help="only entries of this session, even if it was deleted")
    show.add_argument("--call", metavar="ID", help="only entries of this tool call")
    show.add_argument("--since", type=_time, metavar="WHEN", help="a date, a date and time, or 30m, 12h, 7d ago")
    show.add_argument("--json", action="store_true", help="one JSON object per line")
    checking = commands.add_parser("verify", help="check the whole log", epilog="exit codes: 0 intact · 1 broken")
    checking.add_argument(
        "--noted", type=_entry, metavar="ENTRY", help="an entry you noted earlier that must still be in the log"
    )
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv or ["show"])  # the bare word looks
    folder = find_home().audit
    try:
        if arguments.command == "verify":
            return _verify(folder, arguments.noted)
        _show(folder, arguments)
    except BrokenPipeError:  # who reads what is printed has left; that is no fault of the log
        raise
    except OSError as error:
        print(f"amanu: {error.filename or folder} cannot be read: {error.strerror}.", file=sys.stderr)
        return exits.FAILED
    return exits.OK


def _verify(folder: Path, noted: ChainLink | None) -> int:
    verdict = verify(folder, noted)
    print(sentence(verdict))
    if verdict.fault:
        return exits.FAILED
    if verdict.first:
        print(
            f"The last entry is {verdict.last}\n"
            "Keep it elsewhere: `amanu audit verify --noted ENTRY` can then also detect a truncated or rewritten log."
        )
    return exits.OK


def _show(folder: Path, arguments: argparse.Namespace) -> None:
    any_entry = False
    for entry in map(shown, read(folder, about(arguments.session, arguments.call))):
        if arguments.since is not None and entry.at < arguments.since:
            continue
        any_entry = True
        print(entry.model_dump_json() if arguments.json else visible("\n".join(audit_details(entry))))
    if not any_entry:
        print("No matching entries.", file=sys.stderr)


def _time(text: str) -> int:
    """Milliseconds since the epoch."""
    if ago := re.fullmatch(r"(\d{1,6})([mhd])", text):
        seconds = int(ago[1]) * {"m": 60, "h": 3600, "d": 86400}[ago[2]]
        return int((time.time() - seconds) * 1000)
    return int(datetime.fromisoformat(text).timestamp() * 1000)


_time.__name__ = "time"


def _entry(text: str) -> ChainLink:
    number, _, hashed = text.partition(":")
    if re.fullmatch(r"[0-9a-f]{64}", hashed) is None:
        raise ValueError
    return ChainLink(int(number), hashed)


_entry.__name__ = "entry"
