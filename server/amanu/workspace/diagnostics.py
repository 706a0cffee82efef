"""What language servers and linters find: ours left out, worst first; and what a change does to it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from amanu.workspace.diff import Change, changes
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import Check, Finding

MESSAGE = 500
"""Characters of one finding; type checkers can write pages."""

OWN = "amanu"
"""The source of what we show as diagnostics ourselves (review in editors without a plugin)."""

_WORST_FIRST = ("error", "warning", "information", "hint")


def of_others(findings: Iterable[Finding]) -> list[Finding]:
    """Those that are not ours, worst first, then by line."""
    kept = [each for each in findings if each.source.lower() != OWN]
    return sorted(kept, key=lambda each: (rank(each), each.start_line))


def rank(finding: Finding) -> int:
    """0 for an error, higher for what is less."""
    return _WORST_FIRST.index(finding.severity)


def tally(errors: int, warnings: int) -> str:
    """ "2 errors, 1 warning"; what there is none of is left out, "" for nothing."""
    counts = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return ", ".join(counts)


def line(finding: Finding) -> str:
    """One line: "12: error: undefined name x (ruff F821)"."""
    message = " ".join(finding.message.split())
    if len(message) > MESSAGE:
        message = message[:MESSAGE] + "…"
    who = " ".join(f"{finding.source} {finding.code}".split())[:80]
    return f"{finding.start_line}: {finding.severity}: {message}" + (f" ({who})" if who else "")


@dataclass(frozen=True)
class Difference:
    """What a change of a text did to its findings."""

    added: tuple[Finding, ...] = ()
    """Worst first; lines of the new text."""
    fixed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.fixed)


def difference(before: str, found_before: Iterable[Finding], after: str, found_after: Iterable[Finding]) -> Difference:
    """Compare the findings of two texts. One is the same in both when all but its place is, and its line is where the
    change moved it to, or was among the lines that were changed. Hints are left out: editors grey things out by them.
    CPU-bound, in a thread for big texts."""
    old, new = _serious(found_before), _serious(found_after)
    if not old or not new:
        return Difference(tuple(new), len(old))
    steps = changes(split_lines(before), split_lines(after))
    left: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for each in old:
        left.setdefault(_same(each), []).append(_lines(each, steps))
    for exactly in (True, False):  # one in changed lines must not take the place of one that only moved
        rest: list[Finding] = []
        for each in new:
            places = left.get(_same(each), [])
            at = each.start_line
            match = next((one for one in places if (one == (at, at) if exactly else one[0] <= at <= one[1])), None)
            if match is None:
                rest.append(each)
            else:
                places.remove(match)
        new = rest
    return Difference(tuple(new), sum(map(len, left.values())))


def summarized(check: Check) -> Check:
    """The same, in words."""
    words = {"running": "checking …", "failed": f"could not check: {check.message or 'no reason is known'}"}
    now = " now that it is applied" if check.about == "applied" else ""
    summary = words.get(check.state) or f"{verdict(check.added, check.fixed)}{now}"
    return check.model_copy(update={"summary": summary})


def verdict(added: Iterable[Finding], fixed: int) -> str:
    """ "adds 1 error, fixes 2"; "nothing new" when it does neither."""
    kinds = Counter(each.severity for each in added)
    other = kinds["information"] + kinds["hint"]
    counts = [tally(kinds["error"], kinds["warning"]), f"{other} remark{'s' * (other != 1)}" if other else ""]
    more = ", ".join(filter(None, counts))
    return ", ".join(filter(None, [f"adds {more}" if more else "", f"fixes {fixed}" if fixed else ""])) or "nothing new"


def _serious(found: Iterable[Finding]) -> list[Finding]:
    return [each for each in of_others(found) if each.severity != "hint"]


def _same(finding: Finding) -> tuple[str, ...]:
    """What is equal in one finding before and after a change. Some messages name other lines, which move."""
    message = re.sub(r"\bline \d+", "line", " ".join(finding.message.split()))
    return (finding.severity, finding.source, finding.code, message)


def _lines(finding: Finding, steps: Sequence[Change]) -> tuple[int, int]:
    """First and last line where it can be after the change, 1-based."""
    line, shift = finding.start_line - 1, 0
    for each in steps:
        if line < each.old:
            break
        if line < each.old_end:  # where the lines are gone: the next one
            return each.new + 1, max(each.new_end, each.new + 1)
        shift = each.new_end - each.old_end
    return line + shift + 1, line + shift + 1
