"""The line below the prompt: what changes first, what hardly changes last, and no more than fits."""

import re

from amanu.cli.job_slash_commands import running_count
from amanu.cli.text import one_line
from amanu.text.amounts import money
from amanu.text.sub_agents import count_working
from amanu_protocol.state import SessionState

_SEPARATOR = " · "
_DATE = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}$")
_LEAST = 24
"""Columns that remain of what runs now, however much stands beside it."""


def status_line(state: SessionState, moving: str, columns: int, servers: str = "") -> str:
    """`moving` is what runs now, "" when nothing does; `servers` how many MCP servers run."""
    parts = ["Esc stops"] if state.turn is not None else []
    if agents := count_working(state.agents):
        parts.append(agents)
    if jobs := running_count(state):
        parts.append(jobs)
    if state.queue:
        parts.append(f"{len(state.queue)} queued")
    if state.todos_summary and state.todos_summary not in moving:
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
    moving = moving or "Enter sends · /help"
    while parts and min(len(moving), _LEAST) + _width(parts) > columns:
        parts.pop()
    return one_line(moving, max(_LEAST, columns - _width(parts))) + "".join(_SEPARATOR + part for part in parts)


def short_name(model_id: str) -> str:
    """A model without its vendor and its date."""
    return one_line(_DATE.sub("", model_id.partition(":")[2] or model_id).rpartition("/")[2], 30)


def _width(parts: list[str]) -> int:
    return sum(len(_SEPARATOR) + len(part) for part in parts)
