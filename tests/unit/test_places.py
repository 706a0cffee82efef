"""The places of commands: every combination of what is known about one, as `places.tsv` has it.

In a row, each column lists the values that lead to the same result; `*` means all. `unasked` is where the command runs
when nobody is asked ("tried:" when a block becomes a question); the other columns are where it runs once approved: with
nothing granted, with the network, and outside the sandbox. The rows were written down from the code that decided before
there were places."""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

from amanu.core.place import Place, Placing
from amanu.permissions.placing import LineFacts, PlacingFacts, Ruling, Sandbox, placing, unasked
from amanu.permissions.policy import Verdict, is_read_only
from amanu_protocol.items import Grant, Mode

TABLE = Path(__file__).with_name("places.tsv")
SERVER = Path(__file__).parents[2] / "server" / "amanu"
MODES: tuple[Mode, ...] = ("plan", "ask", "acceptEdits", "draft", "auto")
LINES = {
    "looks": (LineFacts(acts=False), 0),
    "looks, of git": (LineFacts(acts=False), 0),
    "acts": (LineFacts(), 1),
    "acts, beside git": (LineFacts(), 1),
    "unclear": (LineFacts(), 2),
    "commits, among others": (LineFacts(git="files", changes_repository=True), 2),
    "commits": (LineFacts(git="checkout", changes_repository=True), 1),
    "commits, twice": (LineFacts(git="checkout", changes_repository=True), 2),
    "sets git up": (LineFacts(git="settings", changes_repository=True), 1),
}
"""Reading → what is known about the line, and how many of its commands act."""
SANDBOXES: dict[str, Sandbox] = {"none": "none", "landlock": "in place", "bubblewrap": "in place", "layers": "layers"}
VERDICTS = {
    "deny": Verdict("deny", "a rule"),
    "ask": Verdict("ask", "a rule"),
    "ask, may be tried": Verdict("ask", "a rule", may_be_tried=True),
    "allow": Verdict("allow", "a rule"),
    "allow by name": Verdict("allow", "a rule", named=True),
    "allow with network": Verdict("allow", "a rule", named=True, grants=("network",)),
    "allow unsandboxed": Verdict("allow", "a rule", named=True, grants=("unsandboxed",)),
}
BOTH = ("no", "yes")
DOMAINS = {
    "mode": MODES,
    "reading": tuple(LINES),
    "sandbox": tuple(SANDBOXES),
    "background": BOTH,
    "worth trying": BOTH,
    "blocked": ("no", "write", "network"),
    "edited": BOTH,
    "agent": BOTH,
    "verdict": tuple(VERDICTS),
    "guards": BOTH,
}
Facts = tuple[str, ...]


def test_the_table() -> None:
    rows = dict(_rows(TABLE.read_text(encoding="utf-8").splitlines()[1:]))
    wrong = [(facts, result, given) for facts, result in rows.items() if (given := _result(facts)) != result]
    assert not wrong, wrong[:5]
    assert len(rows) == len(list(itertools.product(*DOMAINS.values()))), "every combination is in it, once"


def _rows(lines: Iterable[str]) -> Iterator[tuple[Facts, Facts]]:
    for line in lines:
        cells = line.split("\t")
        facts, result = cells[: len(DOMAINS)], tuple(cells[len(DOMAINS) :])
        values = [
            domain if cell == "*" else cell.split(" | ") for cell, domain in zip(facts, DOMAINS.values(), strict=True)
        ]
        yield from ((facts, result) for facts in itertools.product(*values))


def _result(facts: Facts) -> Facts:
    *known, verdict, guards = facts
    mode, reading, sandbox, _, worth_trying, blocked = cast("tuple[Mode, str, str, str, str, str]", (*known[:6],))
    _, acting = LINES[reading]
    if is_read_only(mode) and _refused(sandbox, acts=acting > 0, online=worth_trying == "no" or blocked == "network"):
        return ("refused", "-", "-", "-")
    places = _placing(tuple(known))
    grants: tuple[Grant, ...] = () if sandbox == "none" or is_read_only(mode) else ("network", "unsandboxed")
    return _unasked(places, mode, acting, verdict, guards, grants), *_approved(places, grants)


def _refused(sandbox: str, *, acts: bool, online: bool) -> bool:
    """Whether a mode that keeps nothing refuses the line before it is decided on."""
    return online or (acts and sandbox == "none")


@cache
def _placing(known: Facts) -> Placing:
    mode, reading, sandbox, background, worth_trying, blocked, edited, agent = known
    return placing(
        PlacingFacts(
            mode,  # pyright: ignore[reportArgumentType]
            SANDBOXES[sandbox],
            LINES[reading][0],
            background=background == "yes",
            worth_trying=worth_trying == "yes",
            blocked=frozenset() if blocked == "no" else frozenset({blocked}),  # pyright: ignore[reportArgumentType]
            edited=edited == "yes",
            by_agent=agent == "yes",
        )
    )


@cache
def _unasked(
    places: Placing, mode: Mode, acting: int, verdict_name: str, guards: str, grants: tuple[Grant, ...]
) -> str:
    verdict = VERDICTS[verdict_name]
    if verdict.decision == "deny":
        return "denied"
    verdict = replace(verdict, grants=tuple(grant for grant in verdict.grants if grant in grants))
    place = unasked(places, Ruling(verdict, mode, acting, guards == "yes"))
    return "asked" if place is None else _said(place)


@cache
def _approved(places: Placing, grants: tuple[Grant, ...]) -> tuple[str, ...]:
    wanted: tuple[tuple[Grant, ...], ...] = ((), ("network",), ("unsandboxed",))
    return tuple(_said(places.granted(each, secrets=True)) if {*each} <= {*grants} else "-" for each in wanted)


@cache
def _said(place: Place) -> str:
    reach = place.reach
    words = [f"{'tried: ' if place.tried else ''}{place.base}", "writes" if place.writes else "reads"]
    words += [f"finds {place.finds}", place.then]
    if place.base != "machine":
        words += [] if reach.git == "none" else [f"git {reach.git}"]
        words += ["network"] if reach.network else []
        words += ["secrets"] if reach.secrets else []
    return ", ".join(words)


def test_nothing_but_a_place_tells_where_a_command_runs() -> None:
    """A flag beside it would have to be decoded again, in each file that asks."""
    flags = {
        f"{path.relative_to(SERVER)}: {name}"
        for room in ("core", "permissions", "agent", "sandbox", "tools/shell")
        for path in (SERVER / room).rglob("*.py")
        if path != SERVER / "core" / "place.py"
        for name in _flags(ast.parse(path.read_text(encoding="utf-8")))
        if PLACE_WORDS & {*name.split("_")}
    }
    assert flags <= ELSEWHERE, flags - ELSEWHERE
    calls = (SERVER / "agent" / "calls.py").read_text(encoding="utf-8")
    assert not re.search("layer|unsandboxed|trial", calls), "the loop knows no layers"


def _flags(tree: ast.Module) -> Iterator[str]:
    """The names of fields and parameters that are yes or no."""
    for node in ast.walk(tree):
        annotation = node.annotation if isinstance(node, ast.AnnAssign | ast.arg) else None
        if isinstance(annotation, ast.Name) and annotation.id == "bool":
            yield node.arg if isinstance(node, ast.arg) else ast.unparse(cast("ast.AnnAssign", node).target)


PLACE_WORDS = {
    *(
        "trial",
        "tried",
        "layer",
        "layered",
        "copy",
        "fork",
        "apart",
        "unsandboxed",
        "sandboxed",
        "outside",
        "discarded",
    ),
    *("dropped", "draft", "drafts", "drafted", "proposed", "saved", "writes", "place"),
}
ELSEWHERE = {
    "core/rules.py: unsandboxed",  # what a rule grants, as it is written
    "core/command.py: sandboxed",  # whether a sandbox works on this machine
    "permissions/policy.py: sandboxed",
    "permissions/policy.py: may_be_tried",  # what a verdict leaves open
    "tools/shell/command_params.py: outside",  # what a call asks for
    "tools/shell/denial_hints.py: tried_network",  # what a command did
    "tools/shell/report.py: tried_network",
}
