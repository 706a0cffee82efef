"""`amanu logs`: where the logs are, what is in them now, and a bundle to send, with secrets masked."""

import argparse
import io
import os
import platform
import re
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from amanu import __version__
from amanu.cli import exits
from amanu.cli.text import stripped
from amanu.home import Home, find_home

LAST_LINES = 50
MAX_BYTES = 5_000_000
"""Of each file in a bundle: its end."""

_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{12,}|AIza[A-Za-z0-9_-]{20,}|AQ\.[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)"
)
_NAMED = re.compile(
    r"(?i)((?:authorization|x-api-key|x-goog-api-key|api[-_]?key|token|secret|password)[\"']?\s*[:=]\s*[\"']?"
    r"(?:bearer\s+|basic\s+)?|[?&]key=)([^\s\"'&,;]+)"
)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu logs",
        description="Print the end of the log. To send logs to somebody: amanu logs --bundle FILE.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--path", action="store_true", help="print the folder of the logs")
    what.add_argument("--follow", action="store_true", help="go on printing what is written")
    what.add_argument("--bundle", metavar="FILE", help="write logs and versions into a .tar.gz, secrets masked")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    home = find_home()
    if arguments.path:
        print(home.logs)
        return exits.OK
    if arguments.bundle is not None:
        return _bundle(home, Path(arguments.bundle))
    files = log_files(home)
    if not files:
        print(f"There are no logs yet in {home.logs}.", file=sys.stderr)
        return exits.OK
    newest = files[-1]
    lines = newest.read_text(encoding="utf-8", errors="replace").split("\n")
    print(stripped("\n".join(lines[-LAST_LINES - 1 :])), end="")
    if arguments.follow:
        _follow(newest)
    return exits.OK


def log_files(home: Home) -> list[Path]:
    """Oldest first."""
    if not home.logs.is_dir():
        return []
    files = [path for path in home.logs.iterdir() if path.is_file() and ".log" in path.name]
    return sorted(files, key=lambda path: path.stat().st_mtime)


def masked(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Without what looks like a key, what is named like one, and the values of variables that hold one."""
    for value in _secret_values(environ):
        text = text.replace(value, "***")
    text = _SHAPES.sub("***", text)
    return _NAMED.sub(lambda found: f"{found[1]}***", text)


def _secret_values(environ: Mapping[str, str]) -> Iterable[str]:
    for name, value in environ.items():
        if re.search(r"KEY|TOKEN|SECRET|PASSWORD", name) and len(value) >= 8:
            yield value


def _bundle(home: Home, target: Path) -> int:
    about = f"amanu {__version__}\npython {sys.version}\nsystem {platform.platform()}\n"
    try:
        with target.open("xb") as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
            _add(bundle, "about.txt", about)
            for path in log_files(home):
                with path.open("rb") as log:
                    log.seek(max(0, path.stat().st_size - MAX_BYTES))
                    text = log.read().decode("utf-8", "replace")
                _add(bundle, f"logs/{path.name}", masked(text))
        target.chmod(0o600)
    except FileExistsError:
        print(f"{target} exists; name another file.", file=sys.stderr)
        return exits.USAGE
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}.", file=sys.stderr)
        return exits.FAILED
    print(f"{target}: logs and versions, what looks like a secret is masked. Read it before you send it.")
    return exits.OK


def _add(bundle: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    entry = tarfile.TarInfo(f"amanu-logs/{name}")
    entry.size, entry.mtime = len(data), int(time.time())
    bundle.addfile(entry, io.BytesIO(data))


def _follow(path: Path) -> None:
    """Until Ctrl-C."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(0, os.SEEK_END)
        try:
            while True:
                text = file.read()
                if text:
                    print(stripped(text), end="", flush=True)
                else:
                    time.sleep(0.3)
        except KeyboardInterrupt:
            print()
