"""README's table of speed beside other agents, from bench/results.md. `make generate` writes it."""

import re
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "bench" / "results.md"
SUBJECTS = ("Amanu, anthropic", "Gemini CLI", "OpenCode", "Codex")
"""The wire on which Amanu needs most memory, and most time for a first prompt."""
CASES = {
    "start → session ready": "start → session ready",
    "start → first token of a prompt sent at once": "start → first token",
    "start → first token of a prompt sent at once, daemon running": "the same, daemon running",
    "warm prompt → first token, added by the agent": "later prompt → first token, added",
    "200 chunks a second, 99th percentile": "delay of a chunk, 99th percentile",
    "20,000 chunks at full speed, CPU": "CPU for 20,000 chunks",
    "memory (PSS) after a first short reply": "memory after a reply",
    "grep in 20,000 files": "grep in 20,000 files",
    "glob in 200,000 files": "glob in 200,000 files",
    "at rest: wake-ups": "wake-ups at rest",
}
"""Rows in which it is checked that each subject did the work, wherever we stand in them, and how README words them."""


def table() -> str:
    text = RESULTS.read_text("utf-8")
    date, versions, machine = facts(text)
    rows = [f"| {words}, {unit} | {' | '.join(cells)} |" for words, unit, cells in figures(text)]
    return "\n".join(
        [
            f"One run on {date} ({machine}), with {versions}.",
            "Medians; lower is better, bold is best, – was not measured.",
            "",
            "| | Amanu | Gemini CLI | OpenCode | Codex |",
            "|---|--:|--:|--:|--:|",
            *rows,
        ]
    )


def facts(text: str) -> tuple[str, str, str]:
    """The day of the run, the peers' versions, and the machine."""
    head = text.partition("-->")[0]
    date = re.search(r"\d{4}-\d\d-\d\d", head)
    versions = [re.search(rf"{name} [\d.]*\d", head) for name in SUBJECTS[1:]]
    machine = re.search(r"Linux \S+ \d+ cores", head)
    assert date and machine and all(versions), head
    return date[0], ", ".join(each[0] for each in versions if each), machine[0]


def figures(text: str) -> list[tuple[str, str, list[str]]]:
    """Rows of a case in our words, its unit, and the subjects' figures, the best in bold."""
    lines = text.partition("## Figures")[2].partition("\n## ")[0].splitlines()
    head, _, *rows = [split(line) for line in lines if line.startswith("|")]
    by_case = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    return [
        (words, by_case[case]["unit"], marked([by_case[case][subject] for subject in SUBJECTS]))
        for case, words in CASES.items()
    ]


def marked(cells: list[str]) -> list[str]:
    numbers = [float(each.replace(",", "")) if each != "–" else float("inf") for each in cells]
    best = min(numbers) if sum(each != "–" for each in cells) > 1 else None
    return [f"**{each}**" if number == best else each for each, number in zip(cells, numbers, strict=True)]


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]
