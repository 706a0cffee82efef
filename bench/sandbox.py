"""`python -m bench.sandbox [--rounds N]`: what the sandbox adds to a command, per tier, in milliseconds: from asking
for them until it has ended, less the same without a sandbox; and what a layer adds to that, until it is known what the
command changed. Wall time, and time of the processor, which moves less with what else the machine does. Prints a table,
and writes it to `bench/sandbox.md`."""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from amanu.config import SandboxSettings as Settings
from amanu.core.place import READ_ONLY, SCRATCH, Place, Reach
from amanu.core.requirements import SandboxRequirements
from amanu.core.tool import CallContext
from amanu.home import find_home
from amanu.proposals.proposals import Proposals
from amanu.sandbox.rlimits import limited_entry_shell
from amanu.sandbox.sandbox import Sandbox
from amanu.sandbox.self_test import Tier
from amanu.storage.file_store import FileStore
from amanu.tools.shell.session_layer import SessionLayer
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace

GOAL = 15.0
"""Milliseconds, the median, with the best tier; also of a layer over the best tier alone, when nothing changes."""
GOAL_CHANGED = 60.0
"""The same of a command that changes `CHANGED` files."""
CHANGED = 50
FOLDERS, FILES = 400, 20_000
OUTPUT = Path(__file__).with_name("sandbox.md")
TIERS: tuple[Tier, ...] = ("none", "landlock", "bubblewrap")
NEEDS = {
    "an ordinary command": SandboxRequirements(),
    "one without effect": SandboxRequirements(READ_ONLY),
    "git": SandboxRequirements(Place(reach=Reach(git="files"))),
}
NOTHING = ":"
CHANGE = f"for i in $(seq 0 {CHANGED - 1}); do echo $ROUND > $PLACE/$i.py; done"
"""Each round, and a command in a layer elsewhere than one without."""


class Cost(NamedTuple):
    """Milliseconds."""

    wall: float
    processor: float


async def measure(rounds: int) -> dict[tuple[str, str], Cost]:
    """Need and tier → the medians. A tier that does not hold here is left out. The tiers take turns."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(os.path.realpath(name))
        root = base / "work"
        for at in range(FOLDERS):  # as a project has them
            (root / f"package{at % 20}" / f"part{at}").mkdir(parents=True)
            for number in range(FILES // FOLDERS):
                (root / f"package{at % 20}" / f"part{at}" / f"{number}.py").touch()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        home = find_home({"AMANU_HOME": str(base / "amanu")}).make()
        sandboxes = {tier: Sandbox(Settings(), home, best=tier) for tier in TIERS}
        held = {tier: each for tier, each in sandboxes.items() if (await each.proved()).tier == tier}
        took: dict[tuple[str, str], list[Cost]] = {}
        layer = _layer(root, held["bubblewrap"]) if "bubblewrap" in held else None
        if layer is not None and not await layer.works():
            layer = None
        for number in range(rounds):
            for tier, sandbox in held.items():
                for what, need in NEEDS.items():
                    took.setdefault((what, tier), []).append(await _once(sandbox, need, root))
            if layer is None:
                continue
            for line in (NOTHING, CHANGE):
                variables = {**os.environ, "ROUND": str(number), "PLACE": "package0/part0"}
                cost = await _once(held["bubblewrap"], SandboxRequirements(), root, line, variables)
                took.setdefault((line, "bubblewrap"), []).append(cost)
                variables["PLACE"] = "package1/part1"
                cost = await _once_in(layer, held["bubblewrap"], root, line, variables)
                took.setdefault((line, "layer"), []).append(cost)
        if layer is not None:
            await layer.close()
        for sandbox in held.values():
            await sandbox.close()
    return {key: Cost(*map(statistics.median, zip(*found, strict=True))) for key, found in took.items()}


def _layer(root: Path, sandbox: Sandbox) -> SessionLayer:
    async def save(turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        """Nothing is applied."""

    workspace = Workspace([root], Overlay())
    proposals = Proposals(workspace, lambda _: None, save)
    return SessionLayer(workspace, proposals, sandbox, FileStore(root.with_name(f"{root.name}-files")))


async def _once_in(layer: SessionLayer, sandbox: Sandbox, root: Path, line: str, variables: dict[str, str]) -> Cost:
    begun, used = time.perf_counter(), _used()
    async with layer.command(CallContext("call", "turn", 1)) as run:
        await _once(sandbox, SandboxRequirements(SCRATCH, layer=run.folder), root, line, variables)
        changes = await run.read()
    took = Cost((time.perf_counter() - begun) * 1000, (_used() - used) * 1000)
    assert len(changes.edits) == (0 if line == NOTHING else CHANGED)
    return took


async def _once(
    sandbox: Sandbox,
    need: SandboxRequirements,
    root: Path,
    line: str = NOTHING,
    variables: Mapping[str, str] = os.environ,
) -> Cost:
    handle = os.open(root, os.O_RDONLY)
    begun, used = time.perf_counter(), _used()
    held = limited_entry_shell("/bin/bash")
    async with sandbox.launch(["/bin/sh", "-c", line], need, [root], root, handle, dict(variables), held) as started:
        process = await asyncio.create_subprocess_exec(
            *started.argv,
            cwd=started.folder,
            env=started.environment,
            pass_fds=started.pass_fds,
            start_new_session=True,
        )
        assert await process.wait() == 0
    took = Cost((time.perf_counter() - begun) * 1000, (_used() - used) * 1000)
    os.close(handle)
    return took


def _used() -> float:
    """Seconds of the processor, ours and of the children that have ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


def main() -> int:
    """Returns 1 when the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    found = asyncio.run(measure(parser.parse_args().rounds))
    tiers: list[Tier] = [tier for tier in TIERS if any(key[1] == tier for key in found)]
    lines = [f"| | {' | '.join(tiers)} |", f"|---{'|---' * len(tiers)}|"]
    for what in NEEDS:
        bare = found[what, "none"]
        cells = [
            f"{bare.wall:.1f} ({bare.processor:.1f})"
            if tier == "none"
            else f"+ {found[what, tier].wall - bare.wall:.1f} (+ {found[what, tier].processor - bare.processor:.1f})"
            for tier in tiers
        ]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    added = {
        line: Cost(*(one - other for one, other in zip(found[line, "layer"], found[line, "bubblewrap"], strict=True)))
        for line in (NOTHING, CHANGE)
        if (line, "layer") in found
    }
    said = "No layer works here."
    if added:
        nothing, changed = added[NOTHING], added[CHANGE]
        said = (
            f"A layer adds {nothing.wall:.1f} ({nothing.processor:.1f}) to an ordinary command in bubblewrap, and "
            f"{changed.wall:.1f} ({changed.processor:.1f}) to one that changes {CHANGED} files, until its changes are "
            f"read back. The goals are {GOAL:g} and {GOAL_CHANGED:g}."
        )
    page = "\n".join(
        [
            f"<!-- `python -m bench.sandbox`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} -->",
            "",
            "# What a sandbox cost",
            "",
            f"Generated. Milliseconds a command takes without a sandbox, and what each tier adds; in brackets, of the "
            f"processor. The goal is {GOAL:g}. The workspace has {FILES:,} files.",
            "",
            *lines,
            "",
            said,
            "",
        ]
    )
    print(page)
    OUTPUT.write_text(page)
    best = tiers[-1]
    missed = any(found[what, best].wall - found[what, "none"].wall > GOAL for what in NEEDS)
    missed = missed or any(cost.wall > (GOAL if line == NOTHING else GOAL_CHANGED) for line, cost in added.items())
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
