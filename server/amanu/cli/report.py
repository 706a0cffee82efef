"""What one turn came to, as data: the object `amanu run --output-format json` prints."""

import os
from typing import Any

from amanu.cli import exits
from amanu.cli.open_draft import describe_open_draft, open_paths
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    AgentChanged,
    ApprovalRequested,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemStarted,
    ProposalChanged,
    StepEnded,
    TurnEnded,
    TurnRouted,
    TurnStarted,
    UsageChanged,
)
from amanu_protocol.items import Answer, Approval, Decision, Item, Notice, Proposal, SubAgent, ToolCall, Usage
from amanu_protocol.requests import PatchBase, ProposalPatchResult
from amanu_protocol.state import SessionState


class Report:
    """Feed it the events of a session from the prompt on."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self.ended: TurnEnded | None = None
        self.is_answered = False
        """The daemon answered itself: there was no turn, and the last notice is the answer."""
        self.base: PatchBase | None = None
        """The folder that relative paths start from, and its commit before the turn."""
        self.patch: ProposalPatchResult | None = None
        """The draft if one is left, else what the turn applied."""
        self._state: SessionState | None = None
        self._session_id: str | None = None
        self._model_id: str | None = None
        self._items: dict[str, Item] = {}
        self._started: dict[str, int] = {}
        self._ended_at: dict[str, int] = {}
        self._approvals: dict[str, Approval] = {}
        self._proposals: dict[str, Proposal] = {}
        self._agents: dict[str, SubAgent] = {}
        self._usage: Usage | None = None
        self._routed: list[TurnRouted] = []
        self._steps = 0
        self._started_at = 0
        self._duration_ms = 0
        self._time_limit = ""

    def begin(self, state: SessionState) -> None:
        """`state` is read again at the end."""
        self._state = state
        self._session_id = state.session_id
        self._model_id = state.model_id

    def on_event(self, message: EventMessage) -> None:
        match message.event:
            case TurnStarted(model_id=model_id):
                self._model_id = model_id
                self._started_at = message.at
            case TurnRouted() as routed:
                self._model_id = routed.model_id
                self._routed.append(routed)
            case ItemStarted(item=ToolCall() as item) | ItemChanged(item=ToolCall() as item):
                if item.state == "executing":
                    self._started.setdefault(item.item_id, message.at)
            case ItemCompleted(item=item):
                self._items[item.item_id] = item
                self._ended_at[item.item_id] = message.at
            case ApprovalRequested(approval=approval):
                self._approvals[approval.tool_call_id] = approval
            case ProposalChanged(proposal=proposal):
                self._proposals[proposal.proposal_id] = proposal
            case AgentChanged(agent=agent):
                self._agents[agent.agent_id] = agent
            case StepEnded(step=step):
                self._steps = step
            case UsageChanged(usage=usage):
                self._usage = usage
            case TurnEnded() as ended:
                self.ended = ended = self._as_meant(ended)
                self._duration_ms = message.at - self._started_at
                if ended.reason in ("failed", "hook"):
                    kind = self._kind() if ended.reason == "failed" else ended.reason
                    self.error = {"kind": kind, "message": ended.message, "hint": None}
            case _:
                pass

    def displayed(self, message: EventMessage) -> EventMessage:
        """The event as the user should read it: a turn stopped by `--timeout` was not cancelled by anybody."""
        if isinstance(message.event, TurnEnded):
            return message.model_copy(update={"event": self._as_meant(message.event)})
        return message

    def out_of_time(self, seconds: float | None) -> None:
        """The end that follows is not a user's cancel: the time is up."""
        self._time_limit = f"Stopped after {seconds:g} seconds." if seconds else ""

    @property
    def has_draft(self) -> bool:
        """Whether drafted changes wait for a decision."""
        return self._state is not None and bool(open_paths(self._state))

    @property
    def answers(self) -> list[str]:
        """The session's own: what sub-agents say is for the model."""
        return [item.text for item in self._items.values() if isinstance(item, Answer) and item.agent_id is None]

    @property
    def calls(self) -> list[ToolCall]:
        return [item for item in self._items.values() if isinstance(item, ToolCall)]

    def exit_code(self) -> int:
        """By the reason of the end; see `exits`."""
        assert self.ended is not None, "the turn has ended"
        unasked = any(call.decision is not None and call.decision.permitted_by is not None for call in self.calls)
        notices = frozenset(item.code for item in self._items.values() if isinstance(item, Notice))
        is_left = self.has_draft or bool(self._unapplied())
        return exits.of_turn(self.ended.reason, denied=unasked or is_left, notices=notices)

    def as_json(self, exit_code: int) -> dict[str, Any]:
        """The whole outcome. `result` is the last answer, or what the daemon answered itself; `answers` are all of
        them, in order. `modelId` is the model the turn ended with."""
        turn = None if self.ended is None else self.ended.usage
        return {
            "sessionId": self._session_id,
            "modelId": self._model_id,
            "reason": None if self.ended is None else self.ended.reason,
            "message": "" if self.ended is None else self.ended.message,
            "result": self._result(),
            "answers": self.answers,
            "steps": self._steps,
            "durationMs": self._duration_ms,
            "usage": None if self._usage is None else self._usage.model_dump(mode="json"),
            "turnUsage": None if turn is None else turn.model_dump(mode="json"),
            "routed": [{"modelId": choice.model_id, "reason": choice.reason} for choice in self._routed],
            "toolCalls": [self._call(call) for call in self.calls],
            "files": self._files(),
            "rows": self._rows(),
            "draft": self._draft(),
            "base": None if self.base is None else self.base.model_dump(mode="json"),
            "patch": self._patch(),
            "agents": [_agent(agent) for agent in self._agents.values()],
            "error": self.error,
            "exitCode": exit_code,
        }

    def _result(self) -> str:
        notices = [item.text for item in self._items.values() if isinstance(item, Notice)]
        answers = notices if self.is_answered else self.answers
        return answers[-1] if answers else ""

    def _call(self, call: ToolCall) -> dict[str, Any]:
        started = self._started.get(call.item_id)
        approval = self._approvals.get(call.item_id)
        return {
            "toolCallId": call.item_id,
            "tool": call.tool,
            "title": call.title,
            "arguments": call.arguments,
            "state": call.state,
            "decision": decision_json(call.decision),
            "parts": [part.model_dump(mode="json") for part in approval.parts] if approval is not None else [],
            "sandbox": None if call.sandbox is None else call.sandbox.model_dump(mode="json"),
            "error": call.error,
            "durationMs": None if started is None else self._ended_at[call.item_id] - started,
            "proposalId": call.proposal_id,
            "agentId": call.agent_id,
        }

    def _files(self) -> list[dict[str, Any]]:
        return [
            {
                "path": file.path,
                "relativePath": self._relative(file.path),
                "change": file.change,
                "newPath": file.new_path,
                "added": file.added,
                "removed": file.removed,
                "unsaved": file.unsaved,
                "hunks": [hunk.state for hunk in file.hunks],
                "proposalId": proposal.proposal_id,
            }
            for proposal in self._proposals.values()
            for file in proposal.files
        ]

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "path": row.path,
                "relativePath": self._relative(row.path),
                "newPath": row.new_path,
                "kind": row.kind,
                "title": row.title,
                "lines": [line.text for line in row.lines],
                "state": row.state,
                "reason": row.reason,
                "proposalId": proposal.proposal_id,
            }
            for proposal in self._proposals.values()
            for row in proposal.rows
        ]

    def _unapplied(self) -> list[str]:
        """The files in which a change is in conflict or still open, and none of a later proposal is applied."""
        unapplied: dict[str, None] = {}
        for proposal in self._proposals.values():
            for file in proposal.files:
                states = {hunk.state for hunk in file.hunks}
                if states & {"conflicted", "pending"}:
                    unapplied[file.path] = None
                elif "applied" in states:
                    unapplied.pop(file.path, None)
            for row in proposal.rows:
                if row.state in ("conflicted", "pending"):
                    unapplied[row.path] = None
                elif row.state == "applied":
                    unapplied.pop(row.path, None)
        return list(unapplied)

    def _draft(self) -> dict[str, Any] | None:
        """What is drafted and not applied; None for nothing."""
        if self._state is None or not (files := open_paths(self._state)):
            return None
        return {"files": files, "message": describe_open_draft(self._state, in_chat=False)}

    def _patch(self) -> dict[str, Any] | None:
        if self.patch is None:
            return None
        left = [each.model_dump(mode="json") for each in self.patch.left]
        return {"state": "open" if self.has_draft else "applied", "text": self.patch.patch, "left": left}

    def _relative(self, path: str) -> str:
        """The path, relative to the folder that the paths of a patch are relative to."""
        return path if self.base is None else os.path.relpath(path, self.base.folder)

    def _as_meant(self, ended: TurnEnded) -> TurnEnded:
        if self._time_limit and ended.reason == "cancelled":
            return ended.model_copy(update={"reason": "timeLimit", "message": self._time_limit})
        return ended

    def _kind(self) -> str:
        codes = [item.code for item in self._items.values() if isinstance(item, Notice) and item.level == "error"]
        return codes[-1] if codes else "failed"


def _agent(agent: SubAgent) -> dict[str, Any]:
    fields = {"agent_id", "name", "description", "session_id", "tool_call_id", "state", "steps", "cost_usd", "summary"}
    return agent.model_dump(mode="json", include=fields)


def decision_json(decision: Decision | None) -> dict[str, Any] | None:
    """A decision with the rule that made it and, when nobody could be asked, the one that would have helped."""
    if decision is None:
        return None
    fields = decision.model_dump(mode="json", include={"outcome", "by", "rule", "scope", "grants", "reason"})
    return {**fields, "allow": decision.permitted_by or None}


def error_json(error: AmanuError) -> dict[str, Any]:
    return {"kind": error.kind, "message": str(error), "hint": error.data.hint}
