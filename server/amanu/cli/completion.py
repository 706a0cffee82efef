"""`amanu completion`: the scripts that let a shell complete commands. Quick to import: shells start with it."""

import argparse
from pathlib import Path

SHELLS = ("bash", "zsh", "fish")
SHARE = Path(__file__).parent / "share"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu completion",
        description="Print the script that lets your shell complete Amanu's commands, options and values.",
        epilog='In ~/.bashrc, or in ~/.zshrc after compinit, write: eval "$(amanu completion bash)", with the name of '
        "your shell. In config.fish write: amanu completion fish | source",
    )
    printed = parser.add_mutually_exclusive_group(required=True)
    printed.add_argument("shell", nargs="?", choices=SHELLS, help="your shell")
    printed.add_argument(
        "--values", choices=("models", "sessions"), help="print values with their descriptions, for the scripts"
    )
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    if arguments.shell is None:
        from amanu.cli.completion_values import print_values

        return print_values(arguments.values)
    print((SHARE / f"amanu.{arguments.shell}").read_text(encoding="utf-8"), end="")
    return 0
