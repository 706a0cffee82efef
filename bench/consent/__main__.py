"""`python -m bench.consent`: how often the user is asked in vain, what gets through, how long it takes to tell."""

import argparse
import platform
import shutil
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from amanu.core.command import CommandContext
from amanu.shell.analyze import read
from bench.consent import hostile, project, published

HERE = Path(__file__).parent
OUTPUT = HERE / "results.md"
TOOLS = (
    *(
        "rg",
        "fd",
        "jq",
        "tree",
        "python",
        "python3",
        "pip",
        "node",
        "npm",
        "yarn",
        "ruff",
        "cargo",
        "rustc",
        "go",
        "make",
    ),
    *("xxd", "column", "ss", "ps", "free", "curl", "docker", "kubectl", "lsof"),
)
ABOUT = """\
Generated. {reads} lines that only print something, about what the model may see, and {acts} that do more; {vectors}
more that must not run unasked, each a trick or a near miss (`corpus.toml`, `vectors.txt`). A question is *needless*
when the line is of the first kind. Codex and Gemini CLI are their published lists written anew from descriptions
(`published.py`), as lists alone: both stand in a sandbox, and Gemini CLI's counts only with one. *Let through* counts
lines of the other two kinds that would run unasked. Programs that this machine has not ({missing}) are stood for by
empty files: nothing of all this is run.

Amanu's list decides by itself only where no sandbox works: these are the questions there. Where one works, what is not
in it is tried first; how often the user is asked then is in `bench/questions.md`. The corpus is ours, and so are its
labels: figures on other people's sessions will differ."""


@dataclass(frozen=True)
class Line:
    text: str
    reads: bool
    here: CommandContext


Judge = Callable[[Line], bool]
"""Whether a line runs unasked."""


def main() -> int:
    """Returns 1 when something gets through."""
    parser = argparse.ArgumentParser(prog="python -m bench.consent", description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="print only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = {kind: project.make(kind, Path(folder)) for kind in project.FILES}
        missing = [tool for tool in TOOLS if shutil.which(tool, path=project.PATH) is None]
        for tool in missing:
            project.stand_in(tool, Path(folder))
        corpus = _corpus(here)
        vectors = [Line(text, False, here["python"]) for text in _vectors()]
        judges: Mapping[str, Judge] = {
            "Amanu": lambda line: read(line.text, line.here).effect == "none",
            "Codex's list": lambda line: published.codex(line.text),
            "Gemini CLI's list": lambda line: published.gemini_cli(line.text),
        }
        unasked = {name: [line for line in (*corpus, *vectors) if judge(line)] for name, judge in judges.items()}
        reads = [line for line in corpus if line.reads]
        asked = {name: [line for line in reads if line not in done] for name, done in unasked.items()}
        through = {name: [line for line in done if not line.reads] for name, done in unasked.items()}
        slowest = max(hostile.lines(here["node"], Line), key=lambda line: _times([line])[0])
        times = {"corpus": _times(line for line in corpus), "hostile": _times(hostile.lines(here["node"], Line))}
        page = _page(reads, corpus, vectors, asked, through, times, missing, slowest)
    print(page)
    if not arguments.no_write:
        OUTPUT.write_text(page, encoding="utf-8")
    return int(bool(through["Amanu"]))


def _corpus(where: Mapping[str, CommandContext]) -> list[Line]:
    with (HERE / "corpus.toml").open("rb") as file:
        parts = tomllib.load(file)["part"]
    return [
        Line(text, part["label"] == "reads", where[part["project"]])
        for part in parts
        for text in part["lines"].strip().splitlines()
    ]


def _vectors() -> list[str]:
    return (HERE / "vectors.txt").read_text("utf-8").strip().splitlines()


def _times(lines: Iterable[Line]) -> list[float]:
    """Milliseconds of each line: the better of two, in processor time."""
    found: list[float] = []
    for line in lines:
        best = float("inf")
        for _ in range(2):
            begun = time.thread_time()
            read(line.text, line.here)
            best = min(best, time.thread_time() - begun)
        found.append(best * 1000)
    return found


def _page(
    reads: Sequence[Line],
    corpus: Sequence[Line],
    vectors: Sequence[Line],
    asked: Mapping[str, Sequence[Line]],
    through: Mapping[str, Sequence[Line]],
    times: Mapping[str, Sequence[float]],
    missing: Sequence[str],
    slowest: Line,
) -> str:
    acts = len(corpus) - len(reads)
    parts = [
        f"<!-- `python -m bench.consent`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()} -->",
        "# How often one is asked in vain",
        ABOUT.format(reads=len(reads), acts=acts, vectors=len(vectors), missing=", ".join(missing) or "none"),
        _table(
            ("", f"needless questions, of {len(reads)}", "", f"let through, of {acts + len(vectors)}"),
            [
                (name, str(len(lines)), f"{100 * len(lines) / len(reads):.1f} %", str(len(through[name])))
                for name, lines in asked.items()
            ],
        ),
        "## Time of a verdict\n\nMilliseconds of processor time, the better of two.",
        _table(
            ("lines", "number", "p50", "p99", "max"),
            [
                (
                    name,
                    str(len(found)),
                    *(f"{each:.2f}" for each in (statistics.median(found), _p99(found), max(found))),
                )
                for name, found in times.items()
            ],
        ),
        f"The slowest: {len(slowest.text):,} characters, `{slowest.text[:40]}…`",
        "## What Amanu asks about needlessly",
        "\n".join(f"- `{line.text}`: {_why(line)}" for line in asked["Amanu"]),
        "## What gets through",
        "\n".join(
            f"- {name}: " + (", ".join(f"`{line.text}`" for line in lines) or "nothing")
            for name, lines in through.items()
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _why(line: Line) -> str:
    reading = read(line.text, line.here)
    why = reading.unclear or next((each.why for each in reading.commands if each.effect != "none"), "")
    return why.replace(str(line.here.folder), "…")


def _p99(found: Sequence[float]) -> float:
    return sorted(found)[int(len(found) * 0.99)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
