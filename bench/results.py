"""Figures of a run: so many values per row and subject, of which the median counts."""

import statistics
from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured quantity; lower is better."""

    key: str
    title: str
    unit: str
    digits: int = 1


ROWS = (
    Row("initialize", "start → `initialize` answered", "ms", 0),
    Row("initialize.alone", "… `--alone`", "ms", 0),
    Row("initialize.acp", "… of ACP", "ms", 0),
    Row("initialize.warm", "… daemon running", "ms", 0),
    Row("session.cold", "start → session ready", "ms", 0),
    Row("session.alone", "… `--alone`", "ms", 0),
    Row("session.warm", "… daemon running", "ms", 0),
    Row("cold", "start → first token of a prompt sent at once", "ms", 0),
    Row("cold.alone", "… `--alone`", "ms", 0),
    Row("cold.warm", "… daemon running", "ms", 0),
    Row("mcp.cold", "… 5 MCP servers configured and approved", "ms", 0),
    Row("memory", "memory (PSS) after a first short reply", "MB", 0),
    Row("mcp.tools.none", "tools in each request", "tokens", 0),
    Row("mcp.tools.listed", "… 5 MCP servers of 20 tools, if told one by one", "tokens", 0),
    Row("mcp.tools", "… the same, found by a search", "tokens", 0),
    Row("pause.token", "prompts 8 s apart, 100 ms round trip → first token", "ms", 0),
    Row("pause.connections", "… connections opened per prompt", "", 2),
    Row("first", "first prompt of a new session → first token, added by the agent", "ms"),
    Row("first.growth", "… ÷ the next ones", "×", 2),
    Row("first.typed", "first prompt of a new process, after 3 s of typing → first token, added", "ms"),
    Row("first.typed.growth", "… ÷ the next ones", "×", 2),
    Row("token", "warm prompt → first token, added by the agent", "ms"),
    Row("end", "end of reply → prompt answered", "ms"),
    Row("paced.usual", "200 chunks a second: delay of a chunk, median", "ms"),
    Row("paced.late", "… 99th percentile", "ms"),
    Row("paced.cpu", "… CPU", "%", 0),
    Row("stream.wall", "20,000 chunks at full speed, wall", "s", 2),
    Row("stream.cpu", "… CPU", "s", 2),
    Row("stream.rate", "… updates to the client", "a second", 0),
    Row("stream.memory", "… memory after it", "MB", 0),
    Row("steps.first", "200 read steps: each of the first ten", "ms"),
    Row("steps.last", "… each of the last ten", "ms"),
    Row("steps.growth", "… last ten ÷ first ten", "×", 2),
    Row("steps.each", "… mean of all steps", "ms"),
    Row("steps.judged", "… mean, side requests taking 2 s", "ms"),
    Row("steps.judged.growth", "… mean, slow ÷ fast side requests", "×", 2),
    Row("steps.memory", "… memory after them", "MB", 0),
    Row("steps.history", "800 read steps: last hundred ÷ hundred after a prompt as long as they are", "×", 2),
    Row("steps.disk", "100 read steps of 2 KB: on the disk after them", "MB", 2),
    Row("grep", "grep in 20,000 files", "ms"),
    Row("glob", "glob in 20,000 files", "ms"),
    Row("grep.200k", "grep in 200,000 files", "ms", 0),
    Row("glob.200k", "glob in 200,000 files", "ms", 0),
    Row("mention.first", "`@` in 200,000 files: first key → something offered", "ms", 0),
    Row("mention.all", "… → all files are read", "ms", 0),
    Row("mention.key", "… each key after it", "ms"),
    Row("big.read", "1 MB file: read", "ms"),
    Row("big.preview", "1 MB file: edit until it is shown", "ms"),
    Row("big.edit", "1 MB file: approval until it is written", "ms"),
    Row("edits.first", "1 MB file, 30 edits nobody is asked about: the first", "ms"),
    Row("edits.last", "… the thirtieth", "ms"),
    Row("edits.growth", "… last five ÷ first five", "×", 2),
    Row("edits.10mb", "10 MB file, edits nobody is asked about: the third", "ms"),
    Row("edits.bytes", "5 edits of a 1 MB file: sent to the client", "MB", 3),
    Row("hunks.1000", "edit of 1,000 hunks → shown", "ms", 0),
    Row("hunks.5000", "… of 5,000 hunks", "ms", 0),
    Row("hunks.growth", "… 5,000 hunks ÷ 1,000", "×", 2),
    Row("long.open", "opening a session of 2,000 messages", "ms", 0),
    Row("long.cold", "… as the first thing in a new daemon", "ms", 0),
    Row("long.again", "… when it is open already", "ms", 0),
    Row("long.next", "2,000 messages: prompt → its request is at the service", "ms"),
    Row("long.next.short", "… with 20 messages", "ms"),
    Row("long.next.bare", "… raw HTTP with as many bytes", "ms"),
    Row("long.next.growth", "… added to raw HTTP, 2,000 messages ÷ 20", "×", 2),
    Row("long.first", "… the first one after opening", "ms"),
    Row("long.first.growth", "… added by the first one after opening ÷ by a usual one of 20", "×", 2),
    Row("heavy.open", "opening a session of 60 MB", "ms", 0),
    Row("heavy.wait", "… longest wait of other requests meanwhile", "ms", 0),
    Row("heavy.wait.idle", "… longest wait in as much time without an opening", "ms", 0),
    Row("heavy.memory", "… memory then", "MB", 0),
    Row("heavy.memory.turn", "… memory after a turn", "MB", 0),
    Row("heavy.memory.peak", "… most memory of the daemon", "MB", 0),
    Row("page", "a web page of 5 MB → its text", "s"),
    Row("page.memory", "… memory of its reader", "MB", 0),
    Row("cancel.answered", "cancel → answered", "ms"),
    Row("cancel.dropped", "cancel → connection dropped", "ms"),
    Row("idle.wakeups", "at rest: wake-ups", "a second"),
    Row("idle.cpu", "… CPU", "%", 2),
    Row("sessions.memory", "50 more sessions: memory of each", "MB", 2),
    Row("sessions.growth", "… a warm prompt, with ÷ without them", "×", 2),
    Row("clients.growth", "a warm prompt, five clients ÷ one", "×", 2),
    Row("crowd", "8 sessions × 20 read steps at once, each step", "ms"),
)
BY_KEY = {row.key: row for row in ROWS}


class Results:
    def __init__(self) -> None:
        self._values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self.problems: list[str] = []
        """What could not be measured, and why."""

    def add(self, row: str, subject: str, value: float) -> None:
        """`value` in the row's unit."""
        assert row in BY_KEY, row
        self._values[row, subject].append(value)

    def median(self, row: str, subject: str) -> float | None:
        values = self._values.get((row, subject))
        return statistics.median(values) if values else None

    def ratio(self, row: str, subject: str, reference: str, reference_row: str | None = None) -> float | None:
        """How many times the reference's figure a subject's is; below 1 is better than the reference."""
        ours, theirs = self.median(row, subject), self.median(reference_row or row, reference)
        return None if ours is None or not theirs else ours / theirs
