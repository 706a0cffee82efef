"""Behaviours × vendors: which test holds what of whom. Printed by the test run, and part of docs/models.md together
with the facts of the families.

    PYTHONPATH=tests python -m support.vendor_matrix    writes what is generated of `DOCUMENTS`

A line is the name of a test that `over_vendors` or `over_handovers` marked; a test file need not be named here.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, get_args

import pytest

from amanu.agent.system_prompt import load_prompt, system_prompt
from amanu.core.model_families import FAMILIES, GENERIC, MAX_TOOLS, MODELS, ModelFamily, model_info
from amanu.core.service_tiers import at_tier
from amanu.text.amounts import prices
from support import peers_table
from support.prompt_sizes import sizes_table
from support.vendors import VENDORS, Column, Need, Vendor

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
COLUMNS: tuple[Column, ...] = get_args(Column)
YES, NO, UNTRIED = "✓", "✗", "·"


@dataclass(frozen=True)
class Row:
    """A behaviour. A cell is `YES`, or why there is none; "" if nobody said, which `test_matrix.py` forbids."""

    behaviour: str
    cells: Mapping[Column, str]


# The behaviours, as the tests say --------------------------------------------------------------------------


def rows() -> list[tuple[str, list[Row]]]:
    """By test file: what the file is about, and its behaviours in order."""
    found: list[tuple[str, list[Row]]] = []
    for path in sorted((Path(__file__).parents[1] / "wire").glob("test_*.py")):
        module = importlib.import_module(f"wire.{path.stem}")
        tests = [test for name, test in vars(module).items() if name.startswith("test_")]
        made = [row for test in tests if (row := _row(test)) is not None]
        if made:
            found.append((path.stem.removeprefix("test_").replace("_", " "), made))
    return found


def _row(test: Any) -> Row | None:
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    needs = next((cast("tuple[Need, ...]", mark.args) for mark in marks if mark.name == "behaviour"), None)
    if needs is None:
        return None
    tested = {vendor.name for mark in marks if mark.name == "parametrize" for vendor in _vendors(mark)}
    return Row(words(test.__name__), {column: _cell(column, needs, tested) for column in COLUMNS})


def _vendors(mark: pytest.Mark) -> Iterable[Vendor]:
    names, values = cast("tuple[Any, list[Any]]", mark.args[:2])
    for value in values:
        named = {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
        if isinstance(vendor := named.get("vendor"), Vendor):
            yield vendor


def _cell(column: Column, needs: Iterable[Need], tested: set[str]) -> str:
    of_column = [vendor for vendor in VENDORS if vendor.column == column]
    if any(vendor.name in tested for vendor in of_column):
        return YES
    return next((vendor.lacks[need] for vendor in of_column for need in needs if need in vendor.lacks), "")


def words(test_name: str) -> str:
    return test_name.removeprefix("test_").replace("_", " ")


# The run -----------------------------------------------------------------------------------------------------


def summary(stats: Mapping[str, list[Any]]) -> list[str]:
    """The table of a run, as lines of text; nothing if the run was about a few behaviours only. `stats`: pytest's
    reports by outcome, whose property `behaviour` names test and column (`conftest.py`)."""
    outcomes: dict[tuple[str, str], set[str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == "behaviour":
                    outcomes.setdefault((value[0], value[1]), set()).add(outcome)
    if len({test for test, _ in outcomes}) < 10:
        return []
    lines: list[str] = []
    reasons: dict[str, str] = {}
    for section, behaviours in rows():
        lines += ["", f"{section:<76}" + " ".join(f"{column:<17}" for column in COLUMNS)]
        for row in behaviours:
            test = "test_" + row.behaviour.replace(" ", "_")
            cells: list[str] = []
            for column in COLUMNS:
                seen = outcomes.get((test, column))
                why = row.cells[column]
                if seen is not None:
                    cells.append(YES if seen == {"passed"} else NO)
                elif why != YES:
                    cells.append(f"– ({reasons.setdefault(why, str(len(reasons) + 1))})")
                else:
                    cells.append(UNTRIED)
            lines.append(f"  {row.behaviour:<74}" + " ".join(f"{cell:<17}" for cell in cells))
    return [*lines, "", *(f"  – ({number}) {why}" for why, number in reasons.items())]


# The document --------------------------------------------------------------------------------------------------


def behaviours_table() -> str:
    lines: list[str] = []
    for section, behaviours in rows():
        lines += [
            "",
            f"### {section[:1].upper()}{section[1:]}",
            "",
            "| | " + " | ".join(COLUMNS) + " |",
            "|---" * (len(COLUMNS) + 1) + "|",
        ]
        for row in behaviours:
            cells = [cell if cell == YES else f"– {cell}" for cell in row.cells.values()]
            lines.append(f"| {row.behaviour} | " + " | ".join(cells) + " |")
    return "\n".join(lines).strip()


FACTS: Mapping[str, str] = MappingProxyType(
    {
        "thinking": "thinking is set by",
        "efforts": "efforts",
        "thoughts": "thoughts arrive",
        "must_return": "refused without",
        "tells_progress": "what it says between calls can be had without its thoughts",
        "prefix_checked": "thinking is valid only after the messages it was written for",
        "results": "tool results",
        "max_tools": "most tools",
        "tool_name": "characters of a tool's name",
        "caching": "caching",
        "status_role": "role of the session status message",
        "max_output": "output tokens asked for, at most",
        "pictures": "pictures",
        "withheld": "tools it is not told of",
        "name": "the prompt adds",
    }
)
"""What each fact of a family is called; one that is not here by the name it has in the code."""

_UNTOLD = {"max_tokens_field"}
"""A word of one wire, which tells nobody anything."""

_GROUPS = (("anthropic", "Anthropic"), ("gemini", "Gemini"), ("openai", "OpenAI"), ("google-openai", "Gemini behind "
    "Google's OpenAI-compatible address"), ("openrouter", "OpenRouter"), ("vscode", "Models of VS Code"),
    ("", "Everything else"))  # fmt: skip


def families_table() -> str:
    """The facts of all families, by vendor: what all its families share, then a family a column."""
    lines: list[str] = []
    for vendor, title in _GROUPS:
        of_vendor = [(ids, facts) for ids, facts in [*FAMILIES, ("", GENERIC)] if _vendor(ids) == vendor]
        heads = [f"`{_cut(ids, vendor)}`" if ids else "any other" for ids, _ in of_vendor]
        shared: list[str] = []
        table = ["| ids begin with | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for name in sorted((each.name for each in fields(ModelFamily) if each.name not in _UNTOLD), key=_order):
            said = [_said(name, getattr(facts, name)) for _, facts in of_vendor]
            fact = FACTS.get(name, name.replace("_", " "))
            if len(set(said)) == 1:
                shared.append(f"- {fact}: {said[0]}")
            else:
                table.append(f"| {fact} | " + " | ".join(said) + " |")
        lines += ["", f"### {title}", "", *shared, "", *table]
    limit = f"A session declares at most {MAX_TOOLS} tools, whichever model it begins with: the narrowest limit counts."
    return "\n".join([*lines, "", limit]).strip()


def tiers_table() -> str:
    """The service tiers of the models that have any, with their prices, and the models that have none."""
    lines = ["| model | standard | `fast` | `flex` |", "|---|---|---|---|"]
    without: list[str] = []
    for info in (model_info(each.model_id) for each in MODELS):
        if not info.service_tiers:
            without.append(info.name)
            continue
        priced = [at_tier(info, tier) if tier in info.service_tiers else None for tier in ("fast", "flex")]
        cells = [prices(each.input_price, each.output_price) if each else "–" for each in (info, *priced)]
        lines.append(f"| {info.name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"None is known for {', '.join(without)}."])


def _vendor(ids: str) -> str:
    vendor = re.split(r"\\?:", ids)[0]
    return vendor if vendor in {known for known, _ in _GROUPS} else ""


def _cut(ids: str, vendor: str) -> str:
    return (ids.removeprefix(f"{vendor}:") or "…").replace("|", "\\|")


def _order(name: str) -> int:
    known = list(FACTS)
    return known.index(name) if name in FACTS else len(known)


def _said(name: str, value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case None:
            return "no limit known"
        case frozenset():
            names = sorted(cast("frozenset[str]", value))
            if name == "pictures":
                return ", ".join(each.removeprefix("image/").upper() for each in names)
            return ", ".join(f"`{each}`" for each in names) or "–"
        case Mapping():
            said = [
                f"{each:,}" if isinstance(each, int) else str(each)
                for each in cast("Mapping[str, Any]", value).values()
            ]
            return " · ".join(said) or "–"
        case str() if name == "name":
            return f"“{said}”" if (said := load_prompt(value)) else "nothing"
        case _:
            return str(value)


def prompts() -> str:
    """What the families are told: the rules, and what each hears besides."""
    names = dict.fromkeys(facts.name for _, facts in FAMILIES)
    additions = [f"- **{name}**: {said}" for name in names if (said := load_prompt(name))]
    size = len(system_prompt("generic", ["/work"]).core)
    return "\n".join(
        [
            f"The system prompt has {size:,} characters, about {size // 400 * 100:,} tokens. Besides, by family:",
            "",
            *additions,
            "",
            "The rules:",
            "",
            "````markdown",
            load_prompt("core"),
            "````",
        ]
    )


def document(text: str, made: Mapping[str, Callable[[], str]]) -> str:
    """The document, with what is generated made anew."""
    for name, make in made.items():
        begin, end = f"<!-- generated: {name} -->", "<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"the document has no place for {name}: {begin}")
        text = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return text


DOCUMENTS: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    DOCUMENT: {"tiers": tiers_table, "families": families_table, "behaviours": behaviours_table},
    DOCUMENT.with_name("prompts.md"): {"told": prompts, "sizes": sizes_table},
    DOCUMENT.parents[1] / "README.md": {"peers": peers_table.table},
}


if __name__ == "__main__":
    for path, parts in DOCUMENTS.items():
        path.write_text(document(path.read_text("utf-8"), parts), "utf-8")
