"""How a sub-agent's work ended, in sentences for the model and the user."""

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from amanu.agents.complete_task import CompleteTask
from amanu.agents.model import AgentEnd, AgentReport
from amanu.core.tool import AgentLabel
from amanu.text.amounts import money, plural
from amanu.text.display import one_line
from amanu_protocol.events import TurnEnded
from amanu_protocol.items import SubAgent

MAX_FINDINGS = 50

_ENDS: Mapping[str, AgentEnd] = {
    "stepLimit": "turnLimit",
    "timeLimit": "timeLimit",
    "costLimit": "costLimit",
    "hook": "hook",
}
_SENTENCES: Mapping[AgentEnd, str] = {
    "completed": "completed its task",
    "noResult": "failed: it stopped without calling complete_task, so its task is not completed",
    "turnLimit": "failed: it reached its step limit without completing its task",
    "timeLimit": "failed: it reached its time limit without completing its task",
    "costLimit": "failed: it reached its cost limit without completing its task",
    "hook": "failed, and its task is not completed",
    "stalled": "failed: nothing came from its model for too long, so it was stopped",
    "cancelled": "was stopped by the user; its task is not completed",
    "closed": "was stopped because its session was closed; its task is not completed",
    "failed": "failed",
}


def conclude(
    label: AgentLabel,
    shown: SubAgent,
    complete_task: CompleteTask,
    ended: TurnEnded | None,
    stopped: AgentEnd | None,
    message: str,
    said: str,
) -> AgentReport:
    """`ended`: the end of its turn, if it had one. `stopped`: why it was stopped from outside, with a `message` if it
    failed. `said`: its last words. A task is completed if and only if `complete_task` was called."""
    end = _end(complete_task, ended, stopped)
    if end in ("failed", "hook") and not message and ended is not None:
        message = ended.message
    text = complete_task.result if complete_task.result is not None else said
    work = plural(shown.steps, "step") + (f", {money(shown.cost_usd)}" if shown.cost_usd else "")
    sentence = f"{label.name} ({label.agent_id}) {_SENTENCES[end]}{f': {message}' if message else ''}".rstrip(".")
    transcript = "" if end == "completed" else f" All it did is in its session, {shown.session_id}."
    return AgentReport(label.agent_id, label.name, shown.session_id, end, f"{sentence} ({work}).{transcript}", text)


def _end(complete_task: CompleteTask, ended: TurnEnded | None, stopped: AgentEnd | None) -> AgentEnd:
    if complete_task.result is not None:
        return "completed"
    if stopped is not None or ended is None:
        return stopped or "failed"
    match ended.reason:
        case "completed":
            return "noResult"
        case "cancelled":
            return "cancelled"
        case reason:
            return _ENDS.get(reason, "failed")


def findings_notice(label: AgentLabel, fields: Mapping[str, JsonValue]) -> str | None:
    """For the user: the findings of a review, one line each, with a `path:line` that clients turn into a link. None:
    the result has no findings."""
    findings = fields.get("findings")
    if not isinstance(findings, list):
        return None
    lines: list[str] = []
    for finding in findings[:MAX_FINDINGS]:
        match finding:
            case {"path": str(path), "line": int(line), "message": str(message)}:
                severity = cast("dict[str, JsonValue]", finding).get("severity", "")
                lines.append(one_line(f"{path}:{line}: {severity}: {message}"))
            case _:
                return None
    if len(findings) > MAX_FINDINGS:
        lines.append(f"… and {len(findings) - MAX_FINDINGS} more")
    return "\n".join([f"{label.name} has {plural(len(findings), 'finding')}{':' if lines else '.'}", *lines])
