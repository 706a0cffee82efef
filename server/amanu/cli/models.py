"""`amanu models`: lists the models with their windows, their prices, and the source of both."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from amanu.cli import exits
from amanu.cli.console import Console, open_console
from amanu.cli.text import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import LongPrompt, ModelInfo

if TYPE_CHECKING:
    from amanu.models.catalogue import Catalogue
    from amanu.models.registry import ModelRegistry


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu models",
        description="List the models: window in tokens, US dollars per million tokens (in / out), and their source.",
        epilog="exit codes: 0 listed · 1 no such model, or a vendor did not answer · 2 wrong usage",
    )
    parser.add_argument("search", nargs="*", metavar="SEARCH", help="only models with these words in id or name")
    parser.add_argument("--refresh", action="store_true", help="refresh the lists of the vendors you have a key for")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        return asyncio.run(_run(arguments.search, refresh=arguments.refresh))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)


async def _run(search: Sequence[str], *, refresh: bool) -> int:
    registry = open_registry()
    try:
        complete = not refresh or await _refresh(registry)
        models = [info for info in await registry.list(os.environ) if _matches(info, search)]
    finally:
        await registry.close()
    if not models:
        print(f"No model has “{visible(' '.join(search))}” in its id or name.", file=sys.stderr)
        return exits.FAILED
    console = open_console(sys.stdout)
    show_models(models, console)
    show_age(registry.catalogue, console)
    return exits.OK if complete else exits.FAILED


def open_registry() -> "ModelRegistry":
    """The models as your settings, keys and servers have them."""
    from amanu.config import load_settings
    from amanu.home import find_home
    from amanu.models.catalogue import Catalogue
    from amanu.models.credentials import Credentials
    from amanu.models.registry import ModelRegistry

    home = find_home().make()
    auth = Credentials(home.auth)
    catalogue = Catalogue(home.catalogue)
    settings = load_settings(home, os.environ)
    for warning in settings.warnings:
        print(visible(warning), file=sys.stderr)
    return ModelRegistry(settings, auth, home.local_models, catalogue)


async def _refresh(registry: "ModelRegistry") -> bool:
    """Ask now; failures go to standard error. Returns whether all answered."""
    addresses = registry.listing_addresses(os.environ)
    if not addresses:
        print("There is no vendor to ask: you have no key for any, or their addresses were changed.", file=sys.stderr)
        return False
    failures = {
        vendor: failure
        for vendor, failure in (await registry.catalogue.refresh(addresses, force=True)).items()
        if failure is not None
    }
    for vendor, failure in failures.items():
        print(one_line(f"{vendor}: {failure} Its models are listed as last known.", 1_000), file=sys.stderr)
    return not failures


def _matches(info: ModelInfo, search: Sequence[str]) -> bool:
    text = f"{info.model_id} {info.name}".casefold()
    return all(word.casefold() in text for word in " ".join(search).split())


def show_models(models: Sequence[ModelInfo], console: Console) -> None:
    """Print them vendor by vendor, each in one line."""
    width = min(48, max(len(one_line(info.model_id)) for info in models))
    for vendor, group in groupby(models, lambda info: info.model_id.partition(":")[0]):
        infos = list(group)
        missing = infos[0].unavailable
        console.line(("bold", one_line(vendor)), ("dim", f" — {one_line(missing)}" if missing else ""))
        for info in infos:
            console.line(
                ("" if info.available else "dim", f"  {one_line(info.model_id):<{width}}  {_window(info):>6}"),
                ("", f"  {_price(info):<16}"),
                ("dim", f"  {one_line(info.facts_from)}"),
                ("yellow", "".join(f" · {note}" for note in notes(info))),
            )


def show_age(catalogue: "Catalogue", console: Console) -> None:
    """Print the day of the facts, and what to do if it is long ago."""
    console.line(("dim", one_line(catalogue.told_age)))
    if catalogue.is_stale:
        console.line(("yellow", f"Prices may have changed since. {catalogue.how_to_renew}"))


def _window(info: ModelInfo) -> str:
    """In thousands or millions, as its vendor would say it: "200k", "1M", "1.05M"."""
    thousands = info.context_window / 1_000
    return f"{thousands:.0f}k" if thousands < 1_000 else f"{thousands / 1_000:.2f}".rstrip("0").rstrip(".") + "M"


def _price(info: ModelInfo) -> str:
    if info.input_price is None or info.output_price is None:
        return "price unknown"
    if not info.input_price and not info.output_price:
        return "free"
    return f"${info.input_price:g} / ${info.output_price:g}"


def notes(info: ModelInfo) -> Iterator[str]:
    """What the user should know before choosing this model."""
    instead = f"; use {one_line(info.successor)}" if info.successor else ""
    if info.retires is not None:
        is_past = info.retires < datetime.now(UTC).date().isoformat()
        yield f"{'shut down' if is_past else 'shuts down'} on {info.retires}{instead}"
    elif info.successor is not None:
        yield f"deprecated{instead}"
    if info.long_prompt is not None and info.context_window - info.max_output > info.long_prompt.above:
        yield _long_prompt(info.long_prompt)


def _long_prompt(long: LongPrompt) -> str:
    """What a long prompt costs: "above 272k tokens: input 2 times the price, output 1.5 times"."""
    above = f"above {long.above / 1_000:g}k tokens"
    if long.input == long.output:
        return f"{above}: {long.input:g} times the price"
    output = "" if long.output == 1 else f", output {long.output:g} times"
    return f"{above}: input {long.input:g} times the price{output}"
