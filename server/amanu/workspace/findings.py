"""What language servers and linters find, for the model: ours left out, worst first."""

from collections.abc import Iterable

from amanu_protocol.items import Finding

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
