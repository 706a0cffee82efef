"""`amanu logs`: what the daemon wrote, and where it is."""

import argparse
import sys
import time
from pathlib import Path

from amanu.cli import exits
from amanu.cli.text import stripped
from amanu.home import find_home
from amanu.system import logs

LOOK_SECONDS = 0.3


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu logs",
        description="Print the end of the log. To send it to someone: amanu doctor --report.",
    )
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="number of lines (default: 50)")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--path", action="store_true", help="print the path of the log file")
    choice.add_argument("--follow", action="store_true", help="keep printing as the log grows")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    home = find_home()
    path = logs.log_file(home)
    if arguments.path:
        print(path)
        return exits.OK
    offset = path.stat().st_size if path.exists() else 0
    lines = logs.tail(home, arguments.lines)
    if lines:
        print(stripped("\n".join(lines)))
    else:
        print(f"The log {path} is empty.", file=sys.stderr)
    if arguments.follow:
        _follow(path, offset)
    return exits.OK


def _follow(path: Path, offset: int) -> None:
    """Print what is added after `seen` bytes, also when the file is rotated, until Ctrl-C."""
    try:
        while True:
            size = path.stat().st_size if path.exists() else 0
            if size < offset:
                offset = 0
            if size > offset:
                with path.open("rb") as file:
                    file.seek(offset)
                    data = file.read()
                offset += len(data)
                print(stripped(data.decode("utf-8", "replace")), end="", flush=True)
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        print()
