"""`python -m bench.soak [NAME …] [--seconds N]`: long sweeps; their figures are added to `bench/results.md`.

A sweep takes the seconds it may use and returns what it found, name → figure. It raises when something is wrong.
A new one is a line in `SWEEPS`.
"""

import argparse
import asyncio
import importlib
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amanu.permissions import approvals as approval
from amanu.proposals import tracking as following
from bench.cases.steps import reads
from bench.results import Results
from bench.run import Failed, Run
from bench.soundness import sweep as soundness_sweep
from bench.stage import Stage
from bench.subjects import amanu
from bench.subjects.environment import ROOT

Figures = dict[str, str]
Sweep = Callable[[float], Coroutine[Any, Any, Figures]]

OUTPUT = Path(__file__).with_name("results.md")
HEADING = "\n## Soak\n"
PATIENCE = 50.0
"""Milliseconds in which 99 of 100 requests of somebody else are answered (issue 6, part 10)."""
FRAMES = 500
"""Of one connection, before the next."""
STALE = 200
"""Times that each way is tried in which what was approved can become something else."""
GROWTH = 1.25
"""A process that takes more than that times what it took after its first turns grows without end."""


async def turns(seconds: float) -> Figures:
    """Turns of twenty read steps through one daemon, a new session every tenth, as who leaves one for another: memory,
    threads and open files must stay flat."""
    async with Stage() as stage:
        subject = next(each for each in amanu.subjects() if each.wire == "anthropic")
        run = Run(stage, [subject], Results())
        session = await run.start(subject, run.workspace)
        try:
            agent = session.agent
            assert isinstance(agent, amanu.AmanuAgent)
            tree = agent.tree
            begun = time.monotonic()
            first: tuple[float, int, int] | None = None
            count = 0
            while first is None or time.monotonic() - begun < seconds:
                if count % 10 == 0:
                    await agent.close(session.id)
                    session.id = await agent.open(session.folder)
                await session.say(reads(session, 20))
                await run.seen()
                count += 1
                if count == 30:  # what is loaded on first use is loaded
                    first = (tree.memory(), tree.threads(), tree.files())
            last = (tree.memory(), tree.threads(), tree.files())
        finally:
            await session.agent.stop()
    for name, before, after in zip(("memory", "threads", "open files"), first, last, strict=True):
        if after > before * GROWTH + 5:
            raise Failed(f"{name} grew from {before:.0f} to {after:.0f} in {count} turns")
    return {
        "turns": f"{count}",
        "memory, MB": f"{first[0]:.0f} → {last[0]:.0f}",
        "threads": f"{first[1]} → {last[1]}",
        "open files": f"{first[2]} → {last[2]}",
    }


async def kills(seconds: float) -> Figures:
    """The journal's writer killed at a random moment, again and again: nothing acknowledged may be lost."""
    sweep = _test("unit.test_journal").test_killed_at_any_moment_nothing_acknowledged_is_lost
    begun = time.monotonic()
    count = 0
    while count == 0 or time.monotonic() - begun < seconds:
        with tempfile.TemporaryDirectory() as folder:
            await sweep(Path(folder), count)
        count += 1
    return {"kills survived": f"{count}"}


async def sessions(seconds: float) -> Figures:
    """Random moves of users and restarts in a session: its promises must hold after each game."""
    play = _test("support.random_session").play
    approval.GUARD_SECONDS = 0.0  # random hands are quick
    begun = time.monotonic()
    count = 0
    while count == 0 or time.monotonic() - begun < seconds:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
            os.environ["AMANU_HOME"] = home
            await play(Path(folder), 1000 + count)
        count += 1
    return {"games without a broken promise": f"{count}"}


async def cuts(seconds: float) -> Figures:
    """Recorded streams cut at every byte, in random order: each turn must end complete, continued, retried or with a
    typed error, with a valid transcript."""
    tests = _test("support.damaged_streams")
    tests.at_once()
    sweeps = tests.sweeps()
    all_cuts = [(sweep, cut) for sweep in sweeps for cut in sweep.cuts()]
    random.Random(0).shuffle(all_cuts)
    outcomes: Counter[str] = Counter()
    begun = time.monotonic()
    for sweep, (name, at, kind) in all_cuts:
        try:
            outcomes[await tests.quiet(sweep.cut(name, at, kind))] += 1
        except Exception as error:
            raise Failed(f"{sweep.way.name}/{name} {kind} at byte {at}: {error}") from error
        if time.monotonic() - begun > seconds:
            break
    for sweep in sweeps:
        await sweep.close()
    streams = sum(len(sweep.recordings) for sweep in sweeps)
    return {
        "streams": f"{streams}",
        "cuts": f"{outcomes.total():,} of {len(all_cuts):,}",
        **{outcome: f"{count:,}" for outcome, count in outcomes.most_common()},
    }


async def nasty(seconds: float) -> Figures:
    """Services that mean harm, with the limits that hold in earnest: how late the event loop is for other sessions, and
    what memory it takes."""
    cases, client = _test("support.hostile_provider").CASES, _test("support.hostile_provider_client")
    results: Counter[str] = Counter()
    async with client.hostile_provider() as url:
        for way in client.WIRES:
            await client.suffer(way, f"{url}/no_http")  # what is loaded on first use is loaded
        before = client.memory()
        async with client.watched() as delays:
            for name in cases:
                for way in client.WIRES:
                    results[type(await client.suffer(way, f"{url}/{name}")).__name__] += 1
    if client.memory() - before > 400:
        raise Failed(f"memory grew by {client.memory() - before:.0f} MB")
    return {
        "ended as": ", ".join(f"{name} {count}" for name, count in results.most_common()),
        "event loop late, ms": f"p99 {delays.p99 * 1000:.0f}, most {max(delays.late) * 1000:.0f}",
        "memory, MB": f"{before:.0f} → {client.memory():.0f}",
    }


async def peers(seconds: float) -> Figures:
    """Clients, providers, commands and checkers that stand still or flood, and how soon a request of somebody else is
    answered meanwhile: p99 under 50 ms, of what the same takes with nobody else there."""
    frozen = _test("support.stalled_peers")
    each = seconds / (len(frozen.FREEZES) + 1)
    figures: Figures = {}
    slow: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async for name, took in frozen.measure(list(frozen.FREEZES), each, Path(folder)):
            took.sort()
            p99 = took[int(len(took) * 0.99)] * 1000
            figures[name] = f"p99 {p99:.1f} ms, most {took[-1] * 1000:.0f} ms of {len(took):,}"
            if p99 >= PATIENCE:
                slow.append(f"{name} ({p99:.0f} ms)")
    if slow:
        raise Failed(f"somebody else waited: {', '.join(slow)}; {figures}")
    return figures


async def frames(seconds: float) -> Figures:
    """Frames no client should send, at random, to a real session: each request is answered once, soon, and never by a
    fault of ours."""
    odd = _test("support.frame_fuzzer")
    begun = time.monotonic()
    seed = good = 0
    while seed == 0 or time.monotonic() - begun < seconds:
        for capabilities in odd.CLIENTS:
            try:
                async with odd.played(capabilities) as (client, place):
                    good += await odd.suffer(client, 10_000 + seed, place, FRAMES)
            except AssertionError as error:
                raise Failed(f"seed {10_000 + seed}: {error}") from error
        seed += 1
    return {"frames": f"{2 * FRAMES * seed:,}", "answered with a result": f"{good:,}"}


async def edits(seconds: float) -> Figures:
    """Random moves of model, user and crashes around one file, against a reference that only knows lines."""
    games = _test("support.random_edits")
    following.QUIET = 0.001
    begun = time.monotonic()
    count = 0
    while count == 0 or time.monotonic() - begun < seconds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                await games.Game(Path(folder), 10_000 + count).play()
                await games.stack(Path(folder), 10_000 + count)
            except AssertionError as error:
                raise Failed(f"game {10_000 + count}: {error}") from error
        count += 1
    return {"games without a broken promise": f"{count:,}"}


async def interruptions(seconds: float) -> Figures:
    """Turns of every kind cancelled, closed, or left by the daemon, at random steps of the event loop: each ends, and
    leaves nothing. Needs `bwrap`."""
    plays = _test("support.interruptions")
    approval.GUARD_SECONDS = 0.0  # nobody is there to read
    begun = time.monotonic()
    figures: Counter[str] = Counter()
    while not figures or time.monotonic() - begun < seconds:
        for name, scene in plays.SCENES.items():
            for how in plays.HOWS:
                moments = sorted(random.sample(range(1, 150), 8))
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        figures[f"turns broken off: {how}"] += await plays.interrupt(
                            Path(folder).resolve(), scene, how, moments
                        )
                    except AssertionError as error:
                        raise Failed(f"{name}: {error}") from error
    return {name: f"{count:,}" for name, count in figures.items()}


async def stale(seconds: float) -> Figures:
    """What was approved is changed in every way before it runs, 200 times each, and swapped by a thread while it
    starts, in each tier: nothing stale runs. Fewer times when the seconds are over; the figures say how many."""
    plays = _test("support.approval_races")
    approval.GUARD_SECONDS = 0.0  # it is known what is asked
    begun = time.monotonic()
    ends: Counter[str] = Counter()
    figures: Figures = {}

    async def play(what: Callable[..., Coroutine[Any, Any, Counter[str]]], *arguments: Any) -> Counter[str]:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
            os.environ["AMANU_HOME"] = home
            try:
                return await what(Path(folder).resolve(), *arguments)
            except (AssertionError, TimeoutError) as error:
                raise Failed(f"{what.__name__}{arguments}: {type(error).__name__} {error}") from error

    for tier in ("bubblewrap", "landlock", "none"):
        for name in plays.SWAPS:
            raced: Counter[str] = Counter()
            while raced.total() < STALE and (not raced or time.monotonic() - begun < seconds / 2):
                raced += await play(plays.race, name, tier, 10)
            unsaid, said = raced["stale, unsaid"], raced["stale, said"]
            if tier == "bubblewrap" and name == "written" and unsaid + said:
                raise Failed(f"{name}, {tier}: {dict(raced)}")
            figures[f"race {name}, {tier}"] = ", ".join(f"{end} {count}" for end, count in sorted(raced.items()))
    rounds = 0
    while rounds < STALE and (rounds == 0 or time.monotonic() - begun < seconds):
        for name in plays.MUTATORS:
            ends += await play(plays.mutate, [name], 4)
        for name in plays.ANSWERS:
            ends += await play(plays.answer, [name], 4)
        for name in plays.EDITS:
            ends += await play(plays.edit, name, 4)
        ends += await play(plays.repeat, 4)
        rounds += 4
    figures["mutators"] = (
        f"{len(plays.MUTATORS)} of commands, {len(plays.EDITS)} of edits and {len(plays.ANSWERS)} answers, "
        f"{rounds} times each"
    )
    return figures | {end: f"{count:,}" for end, count in sorted(ends.items())}


async def crashes(seconds: float) -> Figures:
    """A decision over four files, and its undo, killed at every system call that touches files, and each of those that
    write refused with ENOSPC, EIO and EACCES. Needs `strace`."""
    crash = _test("support.crash_injection")
    todo = [each for word in ("accept", "undo") for each in crash.breaks(word)]
    random.Random(0).shuffle(todo)
    outcomes: Counter[str] = Counter()
    begun = time.monotonic()

    broke: list[str] = []

    async def work() -> None:
        while todo and not broke and time.monotonic() - begun < seconds:
            broken = todo.pop()
            try:
                stands = await asyncio.to_thread(crash.survive, broken)
            except AssertionError as error:
                broke.append(str(error))
                return
            outcomes[f"{'killed' if broken.how == 'kill' else 'refused'}, files as {stands}"] += 1

    count = len(todo)
    await asyncio.gather(*(work() for _ in range(os.cpu_count() or 1)))
    if broke:
        raise Failed("; ".join(broke))
    return {"breaks": f"{outcomes.total():,} of {count:,}"} | {key: f"{n:,}" for key, n in outcomes.most_common()}


async def layers(seconds: float) -> Figures:
    """What a command changed in its layer is brought home, and a real daemon is killed at each change of files that
    this takes, and finds the disk full from each on; with what Amanu keeps on the workspace's file system and on
    another one. Needs `bwrap`."""
    broken: list[str] = []
    counts, planned = await _test("support.layer_faults").sweep(seconds=seconds, report=broken.append)
    if broken:
        raise Failed("; ".join(broken))
    figures = {f"{mode}, {how}: {outcome}": f"{count:,}" for (mode, how, outcome), count in sorted(counts.items())}
    return {"faults": f"{counts.total():,} of {planned:,}"} | figures


async def lines(seconds: float) -> Figures:
    """Command lines changed at random: reading them never fails, takes no 100 ms, and never ends the process."""
    sweep = _test("support.command_fuzzer")
    begun = time.monotonic()
    count = 0

    async def work(part: int) -> None:
        nonlocal count
        seed = 10_000 + part
        while count == 0 or time.monotonic() - begun < seconds:
            await asyncio.to_thread(sweep.survive, seed, 20_000)
            seed += 100
            count += 20_000

    try:
        await asyncio.gather(*(work(part) for part in range(os.cpu_count() or 1)))
    except AssertionError as error:
        raise Failed(str(error)) from error
    return {"lines read": f"{count:,}"}


async def soundness(seconds: float) -> Figures:
    """Generated command lines judged to have no effect, really run, with files, network and processes compared before
    and after: none may have one. Needs `bwrap`."""
    found = await soundness_sweep.run(
        soundness_sweep.SOAKED, seed=time.time_ns() % 1_000_000, seconds=seconds, workers=2 * (os.cpu_count() or 1)
    )
    OUTPUT.with_name("soundness").joinpath("results.md").write_text(found.page(), encoding="utf-8")
    if found.effects:
        raise Failed(f"{len(found.effects)} effects: " + "; ".join(str(each) for each in found.effects[:20]))
    return found.figures()


SWEEPS: dict[str, Sweep] = {
    "turns": turns,
    "kills": kills,
    "sessions": sessions,
    "cuts": cuts,
    "nasty": nasty,
    "frames": frames,
    "peers": peers,
    "edits": edits,
    "interruptions": interruptions,
    "stale": stale,
    "crashes": crashes,
    "layers": layers,
    "lines": lines,
    "soundness": soundness,
}


def _test(name: str) -> Any:
    """A module of the tests."""
    sys.path.append(str(ROOT / "tests"))
    return importlib.import_module(name)


def main() -> int:
    """Run the sweeps. Returns 1 when one of them found something wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(SWEEPS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=1800, help="for each sweep (default: 1800)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in SWEEPS]
    if unknown:
        parser.error(f"there is no sweep {', '.join(unknown)}")
    lines: list[str] = []
    failed = False
    for name in arguments.names or SWEEPS:
        try:
            found = asyncio.run(SWEEPS[name](arguments.seconds))
            said = "; ".join(f"{what}: {figure}" for what, figure in found.items())
        except Exception as error:
            failed = True
            said = f"**failed**: {type(error).__name__}: {error}"
        lines.append(f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {name}, {arguments.seconds:g} s: {said}")
        print(lines[-1], flush=True)
    _write(lines)
    return int(failed)


def _write(lines: list[str]) -> None:
    page = OUTPUT.read_text() if OUTPUT.exists() else ""
    if HEADING not in page:
        page = f"{page.rstrip()}\n{HEADING}\n"
    OUTPUT.write_text(page + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
