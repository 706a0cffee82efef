"""`python -m bench.endings`: how often a model must be asked who speaks next, and how often the rule is wrong."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.endings.corpus import MOST_ASKED, Ending, load

MADE_WITH = "the rule was made with"
SETS = {MADE_WITH: "endings", "held out": "held_out", "short announcements": "short", "another hand": "second_hand"}
OUTPUT = Path(__file__).with_name("results.md")
ABOUT = f"""\
<!-- `python -m bench.endings` -->

# Who speaks next

Generated. Endings of replies without calls, in eight languages, each labelled with who has to speak next and why.
*Asked*: the rule (`agent/reply_endings.py`) cannot tell, so a model is asked, if the session's own is one that may stop
midway; other models are never asked about. *Missed*: the model should have gone on and the rule said that it is the
user's turn. *False*: the rule has the model go on when it is the user's turn. Goal: of the endings the rule was made
with, at most {MOST_ASKED:.0%} asked and none missed or false. The second set was written when the rule was done, by the
same hand; the third, of short announcements, is the one for which words of progress and of next steps were added; the
last is by another hand that had not seen the rule. Nothing was changed for the second and the last: their figures are
the ones to expect. How a judge answers about what it is asked is not measured here."""


def main() -> int:
    """Returns 1 when the goal is missed."""
    sets = {name: load(file) for name, file in SETS.items()}
    made_with, every = sets[MADE_WITH], [each for endings in sets.values() for each in endings]
    page = "\n\n".join(
        [
            ABOUT,
            _table(
                ("", "model next", "goes on by the rule", "asked", "missed", "user next", "asked", "false"),
                [_row(name, endings) for name, endings in sets.items()],
            ),
            "## By language\n\n"
            + _table(
                ("", "model next", "goes on by the rule", "asked", "missed", "user next", "asked", "false"),
                [
                    _row(language, [each for each in every if each.language == language])
                    for language in dict.fromkeys(each.language for each in every)
                ],
            ),
            "## Asked\n\n" + _quotes(each for each in every if each.ruled is None),
            "## Missed or false\n\n" + _quotes(each for each in every if _wrong(each)),
        ]
    )
    print(page)
    OUTPUT.write_text(page + "\n", "utf-8")
    return int(_asked(made_with) > MOST_ASKED * len(made_with) or any(map(_wrong, made_with)))


def _asked(endings: Iterable[Ending]) -> int:
    return sum(each.ruled is None for each in endings)


def _wrong(ending: Ending) -> bool:
    return ending.ruled not in (None, ending.next)


def _row(name: str, endings: Sequence[Ending]) -> tuple[str, ...]:
    counts = Counter((each.next, each.ruled) for each in endings)
    model = [counts["model", ruled] for ruled in ("model", None, "user")]
    user = [counts["user", ruled] for ruled in ("user", None, "model")]
    return name, *map(str, (sum(model), *model, sum(user), *user[1:]))


def _quotes(endings: Iterable[Ending]) -> str:
    lines = [f"- {each.language}, {each.next} next: {' '.join(each.text.split())}" for each in endings]
    return "\n".join(lines) or "None."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
