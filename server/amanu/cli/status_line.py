"""The line below the prompt: what changes first, what hardly changes last, and no more than fits."""

import os
import re
from dataclasses import dataclass

from amanu.cli.job_slash_commands import running_count
from amanu.cli.text import cell_width, cut, one_line
from amanu.text.amounts import money
from amanu.text.sub_agents import count_working
from amanu_protocol.state import SessionState

_SEPARATOR = " · "
_DATE = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}$")
_LEAST = 24
"""Columns that remain of the title of what runs now, however much stands beside it."""
_DOTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DOTS_PER_SECOND = 10


@dataclass(frozen=True)
class Activity:
    """Something that goes on now. Its title may be cut, its figures may not: they say that it moves."""

    mark: str
    title: str
    figures: tuple[str, ...] = ()

    def line(self, columns: int) -> str:
        """All of it, or as much of the title as fits."""
        head = f"{self.mark} {self.title}"
        return cut(head, columns - self.width + cell_width(head)) + self._tail

    @property
    def width(self) -> int:
        return cell_width(f"{self.mark} {self.title}{self._tail}")

    @property
    def least(self) -> int:
        """Columns below which other things give way."""
        return min(self.width, _LEAST + cell_width(self._tail))

    @property
    def _tail(self) -> str:
        return "".join(_SEPARATOR + figure for figure in self.figures)


IDLE = "Enter sends · /help"
SENDING = Activity("…", "sending")


def spinner(clock_time: float) -> str:
    """A mark that turns, where the terminal can draw it."""
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        return "…"
    return _DOTS[int(clock_time * _DOTS_PER_SECOND) % len(_DOTS)]


def elapsed(value: float) -> str:
    """A duration that is still growing: whole seconds, "12 s", "3 min 5 s"."""
    whole = max(0, int(value))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def status_line(
    state: SessionState, activity: Activity | None, columns: int, servers: str = "", idle: str = IDLE
) -> str:
    """`activity` is what goes on now, `idle` stands there when nothing does; `servers` how many MCP servers run."""
    parts = ["Esc stops"] if state.turn is not None else []
    if agents := count_working(state.agents):
        parts.append(agents)
    if jobs := running_count(state):
        parts.append(jobs)
    if state.queue:
        parts.append(f"{len(state.queue)} queued")
    if state.todos_summary and (activity is None or state.todos_summary not in activity.title):
        parts.append(one_line(state.todos_summary.partition(_SEPARATOR)[0]))  # how far it is; what is done, is seen
    parts.append(state.mode)
    if state.usage is not None and state.usage.fullness:
        parts.append(state.usage.fullness)
    tier = "" if state.service_tier in (None, "standard") else f" {state.service_tier}"
    parts.append(short_name(state.turn.model_id if state.turn is not None else state.model_id) + tier)
    if state.usage is not None and state.usage.cost_usd is not None:
        parts.append(money(state.usage.cost_usd))
    if servers:
        parts.append(servers)
    least = cell_width(idle) if activity is None else activity.least
    while parts and least + _width(parts) > columns:
        parts.pop()
    room = columns - _width(parts)
    return (cut(idle, room) if activity is None else activity.line(room)) + "".join(_SEPARATOR + part for part in parts)


def short_name(model_id: str) -> str:
    """A model without its vendor and its date."""
    return one_line(_DATE.sub("", model_id.partition(":")[2] or model_id).rpartition("/")[2], 30)


def _width(parts: list[str]) -> int:
    return sum(cell_width(_SEPARATOR + part) for part in parts)
