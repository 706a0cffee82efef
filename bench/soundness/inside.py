"""Within the sandbox: judge the lines of a seed, run those that are automatic, tell what they did. A line of JSON for
each finding, and the figures as the last one."""

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from pathlib import PurePath

from amanu.core.command import Reading
from amanu.shell.analyze import read
from bench.soundness.lines import Lines
from bench.soundness.watch import Watch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="of every so many lines, one")
    parser.add_argument("--automatic", type=int, default=0, help="stop after so many that ran")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--given", action="store_true", help="run the lines of the input instead, whatever they do")
    arguments = parser.parse_args()
    watch = Watch()
    if arguments.given:
        _given(watch)
        return
    lines = Lines(arguments.seed)
    programs: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    begun = time.monotonic()
    for number in itertools.count(arguments.first, arguments.step):
        if counts["automatic"] >= arguments.automatic or time.monotonic() - begun > arguments.seconds:
            break
        line, kind = lines.line(number)
        counts["lines"] += 1
        here = watch.here(kind)
        reading = read(line, here)
        if reading.effect != "none" or not line.strip():
            continue
        counts["automatic"] += 1
        counts["by argv"] += reading.argv is not None
        programs.update(_programs(reading))
        seen = watch.run(line, reading, here)
        counts["ended"] += seen.ended
        counts["succeeded"] += seen.code == 0
        if seen.effects:
            counts["effects"] += 1
            found = {"seed": arguments.seed, "number": number, "kind": kind, "line": line, "effects": seen.effects}
            print(json.dumps(found), flush=True)
    figures = {"counts": counts, "programs": programs, "processor": sum(os.times()[:4])}
    print(json.dumps({"figures": figures}), flush=True)


def _given(watch: Watch) -> None:
    """Of each line of the input, a list in JSON of what it did, in the hostile workspace. To see that what lines do is
    seen."""
    for text in sys.stdin:
        seen = watch.run(json.loads(text), Reading(()), watch.here("hostile"))
        print(json.dumps(seen.effects), flush=True)


def _programs(reading: Reading) -> set[str]:
    """The programs a line runs, with git's commands apart."""
    names: set[str] = set()
    for each in reading.commands:
        words = [word for word in each.words if word is not None]
        if words:
            name = PurePath(words[0]).name
            rest = [word for word in words[1:] if not word.startswith("-")]
            names.add(f"git {rest[0]}" if name == "git" and rest else name)
    return names


if __name__ == "__main__":
    main()
