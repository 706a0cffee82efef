"""The results as Markdown."""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from amanu_protocol.items import Mode
from bench.questions.corpus import Line
from bench.questions.trial import Outcome

GOALS = {"layer": 0.12, "bubblewrap": 0.25, "landlock": 0.25}
"""By tier, the share of commands that may be asked about in the mode `ask`."""
ABOUT = """\
Generated. {count} ordinary commands of a coding agent (`questions/corpus.toml`), each really run: as one call of
`run_shell_command` in one turn of a session, in a small project made anew for it (`questions/sample.py`) which its
user trusts. What is asked is allowed once, with what the command probably needs. Where the result tells the model that
the sandbox was in the way, the agent calls again as told. *Before* counts the commands that were asked about before
they ran, *after* those that were asked about only after a try; *share* is both together. *To decide* counts those
that changed files on their private copy of the workspace, which the user then reviews like any edit.

*Ended otherwise* counts the commands about which nobody was asked, and which ended with another exit code, or left
something else in the project, than where nothing holds them: being silent is no gain if the work is not done.

Of what a command leaves, the project, its remote and the installed packages are compared, without caches.

docker and gh are stand-ins that try to reach what the real ones would, and say what those say; registries, GitHub and
the git remote are services on loopback. {unrun} commands were not run, since this machine has not the program. The
whole took {seconds:.0f} s. The corpus is ours, so figures on other people's work will differ."""


@dataclass(frozen=True)
class Pass:
    """All commands in one mode and one tier."""

    mode: Mode
    tier: str
    outcomes: Sequence[Outcome]
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.mode}, {self.tier}"

    @property
    def asked(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.when]

    @property
    def to_decide(self) -> int:
        return sum(any(question.when == "decide" for question in each.questions) for each in self.outcomes)

    @property
    def share(self) -> float:
        return len(self.asked) / len(self.outcomes)

    def first_asked(self, when: str) -> int:
        return sum(each.when == when for each in self.outcomes)

    @property
    def silently_different(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.difference and not each.questions]


@dataclass
class Run:
    unrun: Sequence[Line]
    passes: list[Pass] = field(default_factory=list[Pass])
    unavailable: dict[str, str] = field(default_factory=dict[str, str])
    """Tier → why it does not work here."""
    seconds: float = 0.0


def page(run: Run) -> str:
    count = max((len(each.outcomes) for each in run.passes), default=0)
    parts = [
        f"<!-- `python -m bench.questions`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} -->",
        "# How often one is asked",
        ABOUT.format(count=count, unrun=len(run.unrun), seconds=run.seconds),
        _table(
            ("mode", "tier", "before", "after", "share", "goal", "to decide", "ended otherwise", "time"),
            map(_row, run.passes),
        ),
        *_slowest(run.passes),
        *(f"{tier} was not measured. {why}" for tier, why in run.unavailable.items()),
        "## By group\n\nCommands that were asked about, of how many.",
        _table(("", *(each.name for each in run.passes)), _groups(run.passes)),
        *_lists("What was asked", "", run.passes, lambda each: map(_question, each.asked)),
        *_lists(
            "What ended otherwise, and nobody was asked",
            "",
            run.passes,
            lambda each: map(_difference, each.silently_different),
        ),
        *_lists(
            "What ended otherwise although it was allowed",
            "What was granted was not enough, or the sandbox has changed what came out.",
            run.passes,
            lambda each: [_difference(one) for one in each.asked if one.difference],
        ),
        "## Not run",
        "\n".join(f"- {_code(line.text)}: needs {' and '.join(line.needs)}" for line in run.unrun) or "Nothing.",
    ]
    return "\n\n".join(parts) + "\n"


def without_places(text: str, folder: Path) -> str:
    """The page without the paths of the projects in that folder: they are this machine's."""
    return re.sub(rf"{re.escape(str(folder))}(/place\d+)?", "…", text)


def _row(each: Pass) -> Sequence[str]:
    goal = GOALS.get(each.tier) if each.mode == "ask" else None
    return (
        f"`{each.mode}`",
        each.tier,
        str(each.first_asked("before")),
        str(each.first_asked("after")),
        f"{len(each.asked)} of {len(each.outcomes)}, {each.share:.1%}".replace("%", " %"),
        "" if goal is None else f"≤ {goal:.0%}, {'met' if each.share <= goal else '**missed**'}".replace("%", " %"),
        str(each.to_decide),
        str(len(each.silently_different)),
        f"{each.seconds:.0f} s",
    )


def _slowest(passes: Sequence[Pass]) -> Iterator[str]:
    """Of each command the longest it took, questions and all."""
    took: dict[Line, float] = {}
    for each in (one for some in passes for one in some.outcomes):
        took[each.line] = max(each.seconds, took.get(each.line, 0.0))
    found = sorted(took.items(), key=lambda one: -one[1])[:3]
    if found:
        yield "The slowest: " + ", ".join(f"{_code(line.text)} ({seconds:.1f} s)" for line, seconds in found) + "."


def _groups(passes: Sequence[Pass]) -> Iterator[Sequence[str]]:
    for group in dict.fromkeys(one.line.group for each in passes for one in each.outcomes):
        counted = [[one for one in each.outcomes if one.line.group == group] for each in passes]
        yield group, *(f"{sum(bool(one.when) for one in some)} of {len(some)}" for some in counted)


def _lists(title: str, about: str, passes: Sequence[Pass], entries: Callable[[Pass], Iterable[str]]) -> Iterator[str]:
    yield f"## {title}"
    if about:
        yield about
    seen: dict[str, str] = {}
    for each in passes:
        text = "\n".join(f"- {entry}" for entry in entries(each)) or "Nothing."
        yield f"### {title}: {each.name}"
        earlier = seen.setdefault(text, each.name)
        yield text if earlier == each.name or text == "Nothing." else f"The same as in {earlier}."


def _question(outcome: Outcome) -> str:
    told = (
        f"{each.when}: {each.reason}{f' Needs {_and(each.grants)}.' if each.grants else ''}"
        for each in outcome.questions
    )
    return f"{_code(outcome.line.text)} — {' — '.join(told)}"


def _difference(outcome: Outcome) -> str:
    return f"{_code(outcome.line.text)} — {outcome.difference}"


def _code(text: str) -> str:
    """On one line."""
    line = " ⏎ ".join(text.strip().splitlines())
    mark = "``" if "`" in line else "`"
    return f"{mark}{line}{mark}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))
