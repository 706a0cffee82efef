"""`amanu version`: the version, what it runs on, and where it is installed."""

import argparse
import json
import platform
import sys
from pathlib import Path

from amanu import __version__


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu version", description="Show the version, the Python it runs on and where it is installed."
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    folder = Path(__file__).parents[1]
    if arguments.json:
        installed = {
            "version": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
            "platform": platform.platform(),
            "folder": str(folder),
        }
        print(json.dumps(installed))
    else:
        print(f"amanu {__version__}")
        print(f"Python {platform.python_version()} at {sys.executable}")
        print(platform.platform())
        print(f"installed in {folder}")
    return 0
