"""The steps of a plan, as its Markdown lists them."""

import re
from collections.abc import Sequence

from amanu.text.display import one_line
from amanu.tools.write_todos import MAX_TEXT, MAX_TODOS

_HEADING = re.compile(r"(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"(?:\d+[.)]|[-*+])\s+(?:\[[ xX]\]\s+)?(\S.*)$")
_NUMBERED_HEADING = re.compile(r"(?:step\s+)?\d+\s*[.:)–-]?\s+(\S.*)$", re.IGNORECASE)
_STEPS = re.compile(r"\bsteps?\b|\bimplementation\b", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARKUP = re.compile(r"[*_`]{1,3}")


def plan_steps(plan: str) -> Sequence[str]:
    """The steps, each on one line without markup: the numbered headings below a heading that names steps, else the
    outer items of the lists below it; without such a heading, those of the numbered lists. Empty if there are none."""
    headings: list[str] = []
    listed: list[str] = []
    numbered: list[str] = []
    level = 0  # of the heading that names steps, while below it
    fenced = False
    for line in plan.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            continue
        elif (heading := _HEADING.match(line)) is not None:
            depth, title = len(heading[1]), heading[2].rstrip().rstrip("#").rstrip()
            if level and depth > level:
                if (step := _NUMBERED_HEADING.match(title)) is not None:
                    headings.append(step[1])
            elif not (headings or listed):
                level = depth if _STEPS.search(title) else 0
            else:
                level = 0
        elif (item := _ITEM.match(line)) is not None:
            if level:
                listed.append(item[1])
            elif line[0].isdigit():
                numbered.append(item[1])
    steps = (headings or listed or numbered)[:MAX_TODOS]
    return [one_line(_MARKUP.sub("", step)).strip()[:MAX_TEXT] for step in steps]
