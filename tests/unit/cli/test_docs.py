"""docs/cli.md and --help tell the same story."""

import argparse
import importlib
import re
from pathlib import Path

import pytest

from amanu.__main__ import VERBS
from amanu.cli import exits

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = {
    found[1]: found[2] for found in re.finditer(r"^## amanu (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}


def parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [parser]
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for each in action.choices.values():  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                found += parsers(each)  # pyright: ignore[reportUnknownArgumentType]
    return found


@pytest.mark.parametrize("command", VERBS)
def test_the_page_lists_the_options_that_there_are(command: str) -> None:
    section = SECTIONS[command]
    parser = importlib.import_module(VERBS[command][0]).parser()
    described = set(re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE))
    offered: set[str] = set()
    for each in parsers(parser):
        assert len(each.format_help().splitlines()) < 42, "--help is short"
        for action in each._actions:  # pyright: ignore[reportPrivateUsage]
            offered |= {name for name in action.option_strings if name not in ("-h", "--help")}
            if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
                for name in action.choices:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                    assert re.search(rf"`(amanu {command} )?{name}\b", section), f"{command} {name} is not described"
    assert described == offered


def test_the_page_lists_the_exit_codes() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", SECTIONS["run"], re.MULTILINE)}
    assert codes == {
        exits.OK,
        exits.FAILED,
        exits.USAGE,
        exits.DENIED,
        exits.UNAVAILABLE,
        exits.LIMIT,
        exits.CANCELLED,
    }
    assert codes == {int(code) for code in re.findall(r"(?:: |· )(\d+) ", exits.HELP)}


@pytest.mark.parametrize("command", sorted(set(VERBS) - {"run"}))
def test_the_page_and_the_help_give_a_verb_the_same_exit_codes(command: str) -> None:
    parser = importlib.import_module(VERBS[command][0]).parser()
    epilogs = " ".join(each.epilog or "" for each in parsers(parser)).lower().partition("exit codes: ")[2]
    page = re.search(r"^Exit codes[^:]*: (.*?)^(?=\n|\Z)", SECTIONS[command], re.DOTALL | re.MULTILINE)
    assert re.findall(r"(?:^|[·,] )(\d+) ", page[1] if page else "") == re.findall(r"(?:^|· )(\d+) ", epilogs)
