"""Definitions of sub-agents: agents with their own conversation and session, to which a session hands work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

COMPLETE_TASK = "complete_task"
"""The tool with which a sub-agent ends its work."""


@dataclass(frozen=True)
class AgentDefinition:
    """What kind of agent it is."""

    name: str
    """What the model calls it by: `[a-z0-9_-]`."""
    description: str
    """For the model, on one line: when to use it."""
    prompt: str
    """Its instructions, in place of the session's own."""
    tools: Sequence[str] | None = None
    """Of the session's tools those it may use; None: all a sub-agent may have."""
    without_tools: Sequence[str] = ()
    """Those it may not use all the same."""
    model: str | None = None
    """`vendor:model`; None: as `[routing] subagent` says, else the turn's own. Never from a workspace's file."""
    steps: int | None = None
    """Replies of its model, if fewer than the settings allow."""
    seconds: float | None = None
    """Without waits, if fewer than the settings allow."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of its result, an object; None: the result is a text."""
    background: bool = False
    """It goes on in the background unless the call says otherwise."""
    source: str = "built in"
    """For the user: the file it comes from."""
