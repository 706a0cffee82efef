"""Where commands run today, for every combination of facts: `python -m support.golden_places` walks them through the
real tool and the real rules, and writes `golden_places.tsv`, the table that a rewrite of that decision must equal."""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from amanu.agent import calls
from amanu.config import SandboxSettings
from amanu.core.conversation import Call
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import Blocked, CallContext, Need, Outcome, Preview, Subject, ToolError
from amanu.home import find_home
from amanu.permissions.ceilings import Ceilings, UnaskedCommands
from amanu.permissions.policy import PolicyContext, Verdict, drafts, is_read_only
from amanu.permissions.session_rules import SessionRules
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Proof, Tier
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.command_params import RunShellCommandParams as Params
from amanu.tools.shell.run_shell_command import RunShellCommand
from amanu.tools.shell.session_layer import SessionLayer
from amanu_protocol.items import Decision, Grant, Mode
from support.tool_harness import ToolHarness

TABLE = Path(__file__).with_suffix(".tsv")
MODES: tuple[Mode, ...] = ("plan", "ask", "acceptEdits", "draft", "auto")
READINGS = {
    "looks": "ls",
    "looks, of git": "git status",
    "acts": "touch x",
    "acts, beside git": "git status && touch x",
    "unclear": "$(cat x) y",
    "commits, among others": "git commit -m x && touch x",
    "commits": "git commit -m x",
    "commits, twice": "git add x && git commit -m x",
    "sets git up": "git remote add o u",
}
SANDBOXES: dict[str, tuple[Tier, bool]] = {
    "none": ("none", False),
    "landlock": ("landlock", False),
    "bubblewrap": ("bubblewrap", False),
    "layers": ("bubblewrap", True),
}
BLOCKED: dict[str, Need | None] = {"no": None, "write": "write", "network": "network"}
VERDICTS = {
    "deny": Verdict("deny", "a rule"),
    "ask": Verdict("ask", "a rule"),
    "ask, may be tried": Verdict("ask", "a rule", trial=True),
    "allow": Verdict("allow", "a rule"),
    "allow by name": Verdict("allow", "a rule", named=True),
    "allow with network": Verdict("allow", "a rule", named=True, network=True),
    "allow unsandboxed": Verdict("allow", "a rule", named=True, network=True, unsandboxed=True),
}
GRANTS: tuple[Grant | None, ...] = (None, "network", "unsandboxed")
COLUMNS = (
    "mode",
    "reading",
    "sandbox",
    "background",
    "worth trying",
    "blocked",
    "edited",
    "agent",
    "verdict",
    "guards",
)
RESULTS = ("unasked", "approved", "with network", "unsandboxed")
Facts = tuple[str, ...]


class AtTier(Sandbox):
    """A sandbox that says that it is of that tier. Nothing runs in it."""

    def __init__(self, folder: Path, tier: Tier, *, layers: bool) -> None:
        super().__init__(SandboxSettings(), find_home({"AMANU_HOME": str(folder)}))
        self._tier: Tier = tier
        self._layers = layers

    @property
    def proof(self) -> Proof | None:
        return Proof(self._tier, ())

    async def proved(self) -> Proof:
        return Proof(self._tier, ())

    async def layer_fault(self, roots: Sequence[Path]) -> str:
        return "" if self._layers else "There are none."


class Rules(SessionRules):
    """The rules of a session in that mode, which give that verdict."""

    def __init__(self, mode: Mode, verdict: Verdict, *, guards: bool) -> None:
        self._mode: Mode = mode
        self._verdict = verdict
        self._guards = guards
        self._unasked = UnaskedCommands(Ceilings())

    def context(self) -> PolicyContext:
        return PolicyContext(self._mode)

    def verdict(self, subjects: Sequence[Subject]) -> Verdict:
        return self._verdict

    def _guards_files(self) -> bool:
        return self._guards


class Runs:
    """Takes the runs of a tool instead of the sandbox, and tells where each would be."""

    def __init__(self, tool: RunShellCommand, tier: Tier) -> None:
        self.place = ""
        self._tier = tier
        whole = cast("Any", tool)
        whole._layered.run = self._in_layer
        whole._layered.run_and_discard = self._in_own_layer
        whole._layered.look = self._looks
        whole._foreground.run = self._in_place
        whole._background.start = self._in_background
        whole._bring_built = self._nothing
        whole._layer.shows_more = self._yes

    async def _in_layer(self, params: Any, plan: Any, call: CallContext) -> Outcome:
        assert call.preview is not None
        then = "drafted" if call.preview.draft else "proposed"
        return self._note("copy", plan.need, writes=True, then=then, layered=call)

    async def _in_own_layer(self, params: Any, plan: Any, call: CallContext) -> Outcome:
        return self._note("fork", plan.need, writes=True, then="dropped", layered=call)

    async def _looks(self, params: Any, plan: Any, call: CallContext) -> Outcome:
        if plan.need.unsandboxed:
            return self._fault()
        return self._note("copy", plan.need, writes=False, then="dropped", finds="session")

    async def _in_place(self, params: Any, plan: Any, call: CallContext) -> Outcome:
        base = "machine" if plan.need.unsandboxed or self._tier == "none" else "workspace"
        return self._note(base, plan.need, writes=plan.need.writes == "workspace", then="stays", finds="disk")

    async def _in_background(self, params: Any, plan: Any, call: CallContext, layer: Any = None) -> Outcome:
        if layer is None:
            return await self._in_place(params, plan, call)
        return self._note("fork", plan.need, writes=True, then="dropped", finds="session")

    def _note(
        self,
        base: str,
        need: SandboxRequirements,
        *,
        writes: bool,
        then: str,
        finds: str = "",
        layered: CallContext | None = None,
    ) -> Outcome:
        git = "settings" if need.settings else "checkout" if need.checkout else "files" if need.git else ""
        if layered is not None:
            assert layered.preview is not None
            finds = "session" if layered.preview.sees_edits else "saved"
            git = "" if layered.preview.sees_edits else "files"
        reach = [f"git {git}"] if git else []
        reach += ["network"] if need.network else []
        reach += ["secrets"] if need.secrets else []
        if base == "machine":  # nothing is out of reach there
            reach = []
        words = [base, "writes" if writes else "reads", f"finds {finds}", then, *reach]
        self.place = ", ".join(words)
        return Outcome("", "")

    def _fault(self) -> Outcome:
        self.place = "cannot be started"
        return Outcome("", "")

    async def _nothing(self, *arguments: Any) -> None:
        pass

    async def _yes(self, *arguments: Any) -> bool:
        return True


async def _walk(root: Path) -> dict[Facts, Facts]:
    """Facts → results."""
    rows: dict[Facts, Facts] = {}
    (root / "x").write_text("x\n")
    (root / ".git").mkdir()
    harness = ToolHarness(root)
    for mode, sandbox in itertools.product(MODES, SANDBOXES):
        tier, layers = SANDBOXES[sandbox]
        at = AtTier(root.parent / f"home-{sandbox}", tier, layers=layers)
        environment = replace(
            harness.environment,
            sandbox=at,
            trusted=lambda: True,
            read_only=lambda mode=mode: is_read_only(mode),
            drafting=lambda mode=mode: drafts(mode),
            session_layer=SessionLayer(harness.workspace, harness.proposals, at),
        )
        tool = RunShellCommand(environment)
        runs = Runs(tool, tier)
        for reading, background, asks, blocked in itertools.product(READINGS, (False, True), (False, True), BLOCKED):
            need = BLOCKED[blocked]
            params = RunShellCommandParams(command=READINGS[reading], background=background, network=asks)
            call = CallContext("c", "t", 1)
            if need is not None:
                call.ran = Outcome("", "", blocked=Blocked(frozenset({need}), "it said so"))
            facts = (mode, reading, sandbox, _said(background), _said(not asks), blocked)
            try:
                preview = await tool.preview(params, call)
            except ToolError:
                preview = None
            for edited in (False, True):
                shown = preview if preview is None or not edited else replace(preview, trial=False)
                approved = [] if shown is None else await _approved(tool, runs, params, call, shown)
                for verdict, guards in itertools.product(VERDICTS, (False, True)):
                    rules = Rules(mode, VERDICTS[verdict], guards=guards)
                    result = ("refused", "-", "-", "-")
                    if shown is not None:
                        result = (await _unasked(tool, runs, params, call, shown, rules), *approved)
                    for agent in (False, True):
                        key = (*facts, _said(edited), _said(agent), verdict, _said(guards))
                        rows[key] = tuple(map(_for_agent, result)) if agent else result
    return rows


def _said(fact: bool) -> str:
    return "yes" if fact else "no"


def _for_agent(place: str) -> str:
    """The layer of a sub-agent begins as a copy of its parent's."""
    return place.replace("copy,", "fork,")


async def _unasked(
    tool: RunShellCommand, runs: Runs, params: Params, call: CallContext, preview: Preview, rules: SessionRules
) -> str:
    """Where it runs if nobody is asked; else that the user is asked, or that it is denied."""
    _, decision = rules.decide_unasked(preview)
    if decision is None:
        return "asked"
    if decision.outcome == "denied":
        return "denied"
    place = await _place(tool, runs, params, call, preview, decision, secrets=rules.reveals_secrets(preview, decision))
    return f"tried: {place}" if decision.trial else place


async def _approved(
    tool: RunShellCommand, runs: Runs, params: Params, call: CallContext, preview: Preview
) -> list[str]:
    """Where it runs after a yes with each grant; "-" where that cannot be granted."""
    places: list[str] = []
    for grant in GRANTS:
        grants = [] if grant is None else [grant]
        if not {*grants} <= {*preview.grants}:
            places.append("-")
            continue
        yes = Decision(outcome="allowed", by="user", grants=grants)
        places.append(await _place(tool, runs, params, call, preview, yes, secrets=True))
    return places


async def _place(
    tool: RunShellCommand,
    runs: Runs,
    params: Params,
    call: CallContext,
    preview: Preview,
    decision: Decision,
    *,
    secrets: bool,
) -> str:
    call.preview = calls._with_grants(preview, decision, secrets=secrets)  # pyright: ignore[reportPrivateUsage]
    await tool.run(params, call)
    return runs.place


Row = tuple[tuple[frozenset[str], ...], Facts]


def _merged(rows: Mapping[Facts, Facts]) -> list[Row]:
    """The same table with fewer rows: in each, a fact is a set of values."""
    merged: list[Row] = [(tuple(frozenset({fact}) for fact in facts), result) for facts, result in rows.items()]
    order = [COLUMNS.index(name) for name in _MERGED]
    changed = True
    while changed:
        changed = False
        for column in order:
            groups: dict[Any, set[str]] = {}
            for facts, result in merged:
                groups.setdefault((facts[:column], facts[column + 1 :], result), set()).update(facts[column])
            changed = changed or len(groups) < len(merged)
            merged = [((*a, frozenset(values), *b), result) for (a, b, result), values in groups.items()]
    return merged


_MERGED = (
    "agent", "guards", "edited", "verdict", "worth trying", "blocked", "background", "reading", "sandbox", "mode",
)  # fmt: skip


def _text(rows: Sequence[Row]) -> str:
    domains = [list(dict.fromkeys(values)) for values in (MODES, READINGS, SANDBOXES, *[("no", "yes")] * 2, BLOCKED)]
    domains += [["no", "yes"], ["no", "yes"], list(VERDICTS), ["no", "yes"]]

    def cell(values: frozenset[str], domain: list[str]) -> str:
        return "*" if values == {*domain} else " | ".join(sorted(values, key=domain.index))

    def place(row: Row) -> list[int]:
        return [min(map(domain.index, values)) for values, domain in zip(row[0], domains, strict=True)]

    lines = ["\t".join((*COLUMNS, *RESULTS))]
    for facts, result in sorted(rows, key=place):
        lines.append("\t".join((*map(cell, facts, domains), *result)))
    return "\n".join(lines) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        rows = asyncio.run(_walk(root))
    merged = _merged(rows)
    TABLE.write_text(_text(merged), encoding="utf-8")
    print(f"{len(rows):,} combinations, {len({*rows.values()})} results, {len(merged)} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
