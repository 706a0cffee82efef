"""`python -m bench.endings`: how often a model must be asked who speaks next, and how often the rule is wrong."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.endings.corpus import MOST_ASKED, Ending, load

OUTPUT = Path(__file__).with_name("results.md")
ABOUT = f"""\
<!-- `python -m bench.endings` -->

# Who speaks next

Generated. Endings of replies without calls, in eight languages, each labelled with who has to speak next and why.
*Asked*: the rule (`agent/reply_endings.py`) cannot tell, so a model is asked, if the session's own is one that may stop
midway; other models are never asked about. Goal: of the endings the rule was made with, at most {MOST_ASKED:.0%} asked
and none ruled wrongly. The second set was written when the rule was done, by the same hand, and ran once: nothing was
changed for it, and its figures are the ones to expect."""


def main() -> int:
    """Returns 1 when the goal is missed."""
    made_with, held_out = load(), load("held_out")
    page = "\n\n".join(
        [
            ABOUT,
            _table(
                ("", "endings", "asked", "share", "of them after tools", "ruled wrongly"),
                [_row("the rule was made with", made_with), _row("held out", held_out)],
            ),
            "## By language\n\n" + _table(("", "made with: asked", "wrong", "held out: asked", "wrong"), _languages()),
            "## Asked\n\n" + _quotes(each for each in (*made_with, *held_out) if each.ruled is None),
            "## Ruled wrongly\n\n" + _quotes(each for each in (*made_with, *held_out) if _wrong(each)),
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
    asked = _asked(endings)
    after_tools = _asked(each for each in endings if each.used_tools)
    share = f"{asked / len(endings):.1%}"
    return name, str(len(endings)), str(asked), share, str(after_tools), str(sum(map(_wrong, endings)))


def _languages() -> Iterable[tuple[str, ...]]:
    sets = load(), load("held_out")
    for language in dict.fromkeys(each.language for each in sets[0]):
        of_language = [[each for each in endings if each.language == language] for endings in sets]
        yield language, *(str(n) for each in of_language for n in (_asked(each), sum(map(_wrong, each))))


def _quotes(endings: Iterable[Ending]) -> str:
    lines = [f"- {each.language}, {each.next} next: {' '.join(each.text.split())}" for each in endings]
    return "\n".join(lines) or "None."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
