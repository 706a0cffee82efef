"""Tool calls as ACP shows them: what is said of a call stands alone, since a permission card shows nothing else."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from amanu.frontends.row_text import row_lines
from amanu.text.amounts import plural
from amanu.text.display import visible
from amanu.text.markdown import fenced
from amanu.text.sub_agents import label_of
from amanu.workspace.diff import compose, unified_lines
from amanu.workspace.hunks import replacements
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import Approval, HunkState, Proposal, ProposedFile, Row, ToolCall, ToolCallState
from amanu_protocol.state import SessionState

KINDS: Mapping[str, str] = {
    "read_file": "read",
    "read_many_files": "read",
    "read_output": "read",
    "read_command": "read",
    "read_mcp_resource": "read",
    "list_directory": "search",
    "glob": "search",
    "grep": "search",
    "list_symbols": "search",
    "find_definition": "search",
    "find_references": "search",
    "inspect_symbol": "search",
    "get_diagnostics": "search",
    "search_tools": "search",
    "list_mcp_resources": "search",
    "delete_file": "delete",
    "move_file": "move",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "write_todos": "think",
    "run_agent": "think",
    "ask_user": "think",
    "enter_plan_mode": "switch_mode",
    "exit_plan_mode": "switch_mode",
}
"""Tool → ACP's word for what it does, for its icon. Others by their effect."""
_EFFECTS = {"read": "other", "write": "edit", "run": "execute"}
_STATUS: Mapping[ToolCallState, str] = {
    "validating": "pending",
    "awaitingApproval": "pending",
    "scheduled": "pending",
    "executing": "in_progress",
    "succeeded": "completed",
    "failed": "failed",
    "cancelled": "failed",
    "rejected": "failed",
}
ENDED: Sequence[ToolCallState] = ("succeeded", "failed", "cancelled", "rejected")
_SHOWN_STATES: Sequence[HunkState] = ("pending", "accepted", "applied", "conflicted", "undoing")
"""Hunks and rows that are shown: rejected and undone ones are no longer part of the change."""
MAX_DIFF = 1_000_000
"""Characters of a file up to which a client is sent both texts whole, and compares them itself."""
MAX_TEXT = 200_000
"""Characters shown of a text that is decided on."""
MAX_OUTPUT = 30_000
"""Characters shown of an output, its last ones: each update replaces all of it."""


def describe_call(call: ToolCall, state: SessionState) -> dict[str, Any]:
    """The fields of a `tool_call` or `tool_call_update`."""
    proposal = proposal_of(call.proposal_id, state)
    described: dict[str, Any] = {
        "toolCallId": call.item_id,
        "title": _owner(call.agent_id, state) + _title(call),
        "name": call.tool,
        "kind": KINDS.get(call.tool, _EFFECTS[call.effect]),
        "status": _STATUS[call.state],
        "rawInput": call.arguments,
        "content": [*_command(call), *_changes(proposal, state), *_output(call, proposal)],
        "locations": _locations(call, proposal, state),
    }
    if call.state in ENDED:
        described["rawOutput"] = {"output": call.output, "error": call.error}
    return described


def describe_approval(approval: Approval, state: SessionState) -> dict[str, Any]:
    """The call that an approval is about, with all there is to know to decide: also for a client that shows nothing
    but the permission request."""
    call = state.item(approval.tool_call_id)
    if isinstance(call, ToolCall):
        described = describe_call(call, state)
    else:
        described = {"toolCallId": approval.tool_call_id, "kind": _EFFECTS[approval.effect], "status": "pending"}
    proposal = proposal_of(approval.proposal_id, state)
    ran = isinstance(call, ToolCall) and call.output != "" and not approval.blocked  # it asks about what that changed
    command = approval.command or (approval.detail if approval.effect == "run" and not ran else None)
    title = approval.title if command is None else _first_line(command)
    detail = [_command_content(command)] if command is not None else []
    if command is None and proposal is None and approval.detail:
        detail = [text_content(visible(approval.detail))]
    reasons = "\n".join(line.text for line in approval.lines)
    return {
        **described,
        "title": _owner(approval.agent_id, state) + title,
        "content": [*detail, *_changes(proposal, state), *([code_content(visible(reasons))] if reasons else [])],
    }


def proposal_of(proposal_id: str | None, state: SessionState) -> Proposal | None:
    return next((each for each in state.proposals if each.proposal_id == proposal_id), None)


def shown_rows(proposal: Proposal) -> list[Row]:
    """The rows that are still part of the change: neither rejected nor undone."""
    return [row for row in proposal.rows if row.state in _SHOWN_STATES]


def text_content(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _title(call: ToolCall) -> str:
    command = call.arguments.get("command")
    return _first_line(command) if call.effect == "run" and isinstance(command, str) and command else call.title


def _first_line(command: str) -> str:
    """As code: clients draw titles as Markdown, and some cut other ones at a colon."""
    first, *further = visible(command.strip()).split("\n")
    code = first if "`" in first else f"`{first}`"
    return code if not further else f"{code} (and {plural(len(further), 'more line')})"


def _owner(agent_id: str | None, state: SessionState) -> str:
    return "" if agent_id is None else f"{label_of(state.agents, agent_id)}: "


def _command(call: ToolCall) -> list[dict[str, Any]]:
    command = call.arguments.get("command")
    if call.effect != "run" or not isinstance(command, str) or not command:
        return []
    return [_command_content(command)]


def _command_content(command: str) -> dict[str, Any]:
    return code_content(f"$ {visible(command)}", "sh")


def _output(call: ToolCall, proposal: Proposal | None) -> list[dict[str, Any]]:
    """What the call has put out so far, or why it failed. An edit's result says what its diff shows."""
    text = call.error if call.error and not call.output else call.output
    if call.state == "rejected" and call.decision is not None:
        text = call.decision.summary or text
    if not text or (proposal is not None and call.state == "succeeded"):
        return []
    text = visible(text if len(text) <= MAX_OUTPUT else f"…\n{text[-MAX_OUTPUT:]}")
    return [code_content(text.rstrip())]


def code_content(text: str, language: str = "") -> dict[str, Any]:
    """The text as it is, whatever Markdown is in it; of a long one the beginning, and how much is left out."""
    if len(text) > MAX_TEXT:
        left_out = text.count("\n", MAX_TEXT) + 1
        text = f"{text[:MAX_TEXT]}\n… {plural(left_out, 'more line')} not shown"
    return text_content(fenced(text, language))


def _changes(proposal: Proposal | None, state: SessionState) -> list[dict[str, Any]]:
    """The diffs of a proposal, then its rows as one text."""
    if proposal is None:
        return []
    diffs = [content for file in proposal.files for content in _diff(file, state)]
    lines = [line for row in shown_rows(proposal) for line in row_lines(row, state.roots)]
    return [*diffs, code_content("\n".join(lines))] if lines else diffs


def _diff(file: ProposedFile, state: SessionState) -> list[dict[str, Any]]:
    edits = replacements(file, lambda hunk: hunk.state in _SHOWN_STATES)
    moved = [text_content(f"Renamed to {visible(file.new_path)}")] if file.new_path is not None else []
    if not edits:
        return moved
    if file.base_text is None and file.change != "create":
        return [*moved, text_content(f"The text of {visible(file.path)} cannot be read, so the change is not shown.")]
    base = file.base_text or ""
    lines = split_lines(base)
    size = len(base) + sum(len(text) for _, _, text in edits)
    parted = all(start + count <= following for (start, count, _), (following, _, _) in pairwise(edits))
    if size > MAX_DIFF or not parted:
        replaced = [(start, start + count, text) for start, count, text in edits]
        diff = unified_lines(_shown_path(file.path, state), lines, replaced)
        return [*moved, code_content(visible(diff), "diff")]
    new_text = compose(lines, edits)
    old_text = None if file.change == "create" else base
    return [*moved, {"type": "diff", "path": file.path, "oldText": old_text, "newText": new_text}]


def _locations(call: ToolCall, proposal: Proposal | None, state: SessionState) -> list[dict[str, Any]]:
    if proposal is not None:
        lines = {file.path: file.hunks[0].lines.first if file.hunks else 1 for file in proposal.files}
        shown = [row for row in proposal.rows if row.kind != "git" and row.path not in lines]
        paths = dict.fromkeys(row.new_path if row.new_path and row.state == "applied" else row.path for row in shown)
        return [*({"path": path, "line": line} for path, line in lines.items()), *({"path": path} for path in paths)]
    named = call.arguments.get("paths")
    paths = [call.arguments.get("path"), *(named if isinstance(named, list) else [])]
    line = call.arguments.get("start_line")
    at = {"line": line} if isinstance(line, int) and line > 0 else {}
    return [{"path": str(Path(state.roots[0]) / path), **at} for path in paths if isinstance(path, str) and path]


def _shown_path(path: str, state: SessionState) -> str:
    root = next((root for root in state.roots if path.startswith(f"{root}/")), None)
    return path if root is None else path[len(root) + 1 :]
