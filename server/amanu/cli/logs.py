"""`amanu logs`: what the daemon wrote, where it is, and a file to send with a report."""

import argparse
import os
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
        description="Print the end of the log. To send logs to someone: amanu logs --bundle FILE.",
    )
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="number of lines (default: 50)")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--path", action="store_true", help="print the path of the log file")
    choice.add_argument("--follow", action="store_true", help="keep printing as the log grows")
    choice.add_argument("--bundle", metavar="FILE", help="write versions and logs into FILE, secrets masked")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    home = find_home()
    path = logs.log_file(home)
    if arguments.path:
        print(path)
        return exits.OK
    if arguments.bundle is not None:
        return _bundle(logs.collect(home), Path(arguments.bundle))
    offset = path.stat().st_size if path.exists() else 0
    lines = logs.tail(home, arguments.lines)
    if lines:
        print(stripped("\n".join(lines)))
    else:
        print(f"The log {path} is empty.", file=sys.stderr)
    if arguments.follow:
        _follow(path, offset)
    return exits.OK


def _bundle(text: str, target: Path) -> int:
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError:
        print(f"{target} already exists; choose another file.", file=sys.stderr)
        return exits.USAGE
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}.", file=sys.stderr)
        return exits.FAILED
    print(f"{target}: contains versions and logs; what looks like a secret is masked. Read it before you send it.")
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
