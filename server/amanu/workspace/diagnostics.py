"""What language servers and linters find: ours left out, worst first; and what a change does to it."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from amanu.workspace.diff import LineChange, changes
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import Check, Finding

MESSAGE = 500
"""Characters of one finding; type checkers can write pages."""

OWN = "amanu"
"""The source of what we show as diagnostics ourselves (review in editors without a plugin)."""

_WORST_FIRST = ("error", "warning", "information", "hint")


def foreign_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Those that are not ours, worst first, then by line."""
    foreign = [finding for finding in findings if finding.source.lower() != OWN]
    return sorted(foreign, key=lambda finding: (severity_rank(finding), finding.lines.start))


def severity_rank(finding: Finding) -> int:
    """0 for an error, higher for what is less."""
    return _WORST_FIRST.index(finding.severity)


def tally(errors: int, warnings: int) -> str:
    """ "2 errors, 1 warning"; what there is none of is left out, "" for nothing."""
    counts = [f"{n} {word}{'s' * (n != 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    return ", ".join(counts)


def message_line(text: str) -> str:
    """A message on one line; what a checker writes on a line of its own (its help) stays apart."""
    return " · ".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def format_finding(finding: Finding) -> str:
    """One line: "12: error: undefined name x (ruff F821)"."""
    message = message_line(finding.message)
    if len(message) > MESSAGE:
        message = message[:MESSAGE] + "…"
    who = " ".join(f"{finding.source} {finding.code}".split())[:80]
    return f"{finding.lines.first}: {finding.severity}: {message}" + (f" ({who})" if who else "")


@dataclass(frozen=True)
class FindingsChange:
    """What a change of a text did to its findings."""

    added: tuple[Finding, ...] = ()
    """Worst first; lines of the new text."""
    fixed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.fixed)


def combine(changes: Iterable[FindingsChange]) -> FindingsChange:
    """What several checkers say about one change."""
    changes = list(changes)
    return FindingsChange(
        tuple(finding for change in changes for finding in change.added), sum(change.fixed for change in changes)
    )


def compare_findings(
    old_text: str, old_findings: Iterable[Finding], new_text: str, new_findings: Iterable[Finding]
) -> FindingsChange:
    """Compare the findings of two texts. One is the same in both when all but its place is, and its line is where the
    change moved it to, or was among the lines that were changed. Hints are left out: editors grey things out by them.
    CPU-bound, in a thread for big texts."""
    serious_old, serious_new = _serious(old_findings), _serious(new_findings)
    if not serious_old or not serious_new:
        return FindingsChange(tuple(serious_new), len(serious_old))
    steps = changes(split_lines(old_text), split_lines(new_text))
    spans: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for finding in serious_old:
        spans.setdefault(_identity(finding), []).append(_lines(finding, steps))
    for exactly in (True, False):  # one in changed lines must not take the place of one that only moved
        unmatched: list[Finding] = []
        for finding in serious_new:
            places = spans.get(_identity(finding), [])
            line = finding.lines.first
            match = next(
                (span for span in places if (span == (line, line) if exactly else span[0] <= line <= span[1])), None
            )
            if match is None:
                unmatched.append(finding)
            else:
                places.remove(match)
        serious_new = unmatched
    return FindingsChange(tuple(serious_new), sum(map(len, spans.values())))


def with_summary(check: Check) -> Check:
    """The same, in words."""
    states = {"running": "checking …", "failed": f"could not check: {check.message or 'no reason is known'}"}
    suffix = " now that it is applied" if check.about == "applied" else ""
    summary = states.get(check.state) or f"{verdict(check.added, check.fixed)}{suffix}"
    return check.model_copy(update={"summary": summary})


def verdict(added: Iterable[Finding], fixed: int) -> str:
    """ "adds 1 error, fixes 2"; "nothing new" when it does neither."""
    kinds = Counter(finding.severity for finding in added)
    minor = kinds["information"] + kinds["hint"]
    counts = [tally(kinds["error"], kinds["warning"]), f"{minor} remark{'s' * (minor != 1)}" if minor else ""]
    breakdown = ", ".join(filter(None, counts))
    return (
        ", ".join(filter(None, [f"adds {breakdown}" if breakdown else "", f"fixes {fixed}" if fixed else ""]))
        or "nothing new"
    )


def _serious(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in foreign_findings(findings) if finding.severity != "hint"]


def _identity(finding: Finding) -> tuple[str, ...]:
    """What is equal in one finding before and after a change. Some messages name other lines, which move."""
    message = re.sub(r"\bline \d+", "line", " ".join(finding.message.split()))
    return (finding.severity, finding.source, finding.code, message)


def _lines(finding: Finding, steps: Sequence[LineChange]) -> tuple[int, int]:
    """First and last line where it can be after the change, 1-based."""
    line, shift = finding.lines.start, 0
    for step in steps:
        if line < step.old_start:
            break
        if line < step.old_end:  # where the lines are gone: the next one
            return step.new_start + 1, max(step.new_end, step.new_start + 1)
        shift = step.new_end - step.old_end
    return line + shift + 1, line + shift + 1
