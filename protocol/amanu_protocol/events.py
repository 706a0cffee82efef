"""The closed union of what happens in a session. State changes only by folding one of these."""

from typing import Annotated, Literal

from pydantic import Field

from amanu_protocol.base import Wire
from amanu_protocol.items import (
    Approval,
    CommandSandbox,
    Decision,
    Effort,
    Item,
    Job,
    Mode,
    PlanDocument,
    Proposal,
    Purpose,
    QueuedPrompt,
    Retry,
    ServiceTier,
    Spend,
    SubAgent,
    Todo,
    Usage,
)

EndReason = Literal[
    "completed",
    "cancelled",
    "stepLimit",
    "timeLimit",
    "costLimit",
    "loop",
    "refused",
    "hook",
    "failed",
    "interrupted",
]
"""Why a turn ended. `interrupted`: the daemon died in it. `refused`: the model declined. `hook`: a hook ended it."""


class SessionChanged(Wire):
    """Session properties that changed; an absent field is unchanged."""

    kind: Literal["sessionChanged"] = "sessionChanged"
    roots: list[str] | None = None
    """Only in a session's first event."""
    title: str | None = None
    mode: Mode | None = None
    model_id: str | None = None
    effort: Effort | None = None
    service_tier: ServiceTier | None = None
    trusted: bool | None = None
    trust_changed: bool | None = None
    sandbox: CommandSandbox | None = None
    plan: PlanDocument | None = None
    parent_session_id: str | None = None
    """Only in a session's first event, as `agent`."""
    agent: str | None = None
    purpose: Purpose | None = None
    closed: bool | None = None


class TurnStarted(Wire):
    kind: Literal["turnStarted"] = "turnStarted"
    turn_id: str
    prompt_id: str
    model_id: str


class TurnRouted(Wire):
    """The turn goes on with this model, and why: a rule of routing, a fallback, the way back from one."""

    kind: Literal["turnRouted"] = "turnRouted"
    turn_id: str
    model_id: str
    reason: str
    """A sentence for the user."""


class StepEnded(Wire):
    """A model reply is complete. Its private part carries the reply for the conversation."""

    kind: Literal["stepEnded"] = "stepEnded"
    turn_id: str
    step: int
    """1-based in the turn."""
    usage: Spend | None = None
    """What the reply took; None when it was cut short."""
    finish_reason: str = ""
    """The service's own word for why the reply ended, as it came: "end_turn", "STOP", "tool_calls"; "" when it was cut
    short, and where the service says none."""
    request_id: str = ""
    """The service's own id of the request, which its support asks for: of the answer's header (`request-id`,
    `x-request-id`) where there is one, otherwise of its body (`id`, `responseId`). Of several requests for one reply
    that of the last. "" where there is none."""


class TurnEnded(Wire):
    """Exactly one per turn."""

    kind: Literal["turnEnded"] = "turnEnded"
    turn_id: str
    reason: EndReason
    message: str
    """For the user; "" when the reason says it all."""
    can_continue: bool
    """The turn stopped at a limit or a failure and a further prompt goes on from there."""
    usage: Spend | None = None
    """What the whole turn took."""


class ItemStarted(Wire):
    kind: Literal["itemStarted"] = "itemStarted"
    item: Item


class ItemDelta(Wire):
    """Text to append: to `text` of a thought or answer, to `output` of a tool call."""

    kind: Literal["itemDelta"] = "itemDelta"
    item_id: str
    text: str


class ItemChanged(Wire):
    """A further state of an open item (a tool call moving on)."""

    kind: Literal["itemChanged"] = "itemChanged"
    item: Item


class ItemCompleted(Wire):
    """The final form of an item; creates it when it was never started."""

    kind: Literal["itemCompleted"] = "itemCompleted"
    item: Item


class ItemsWithdrawn(Wire):
    """Items of an attempt that failed and is retried: they never happened."""

    kind: Literal["itemsWithdrawn"] = "itemsWithdrawn"
    item_ids: list[str]
    reason: str


class ApprovalRequested(Wire):
    kind: Literal["approvalRequested"] = "approvalRequested"
    approval: Approval


class ApprovalResolved(Wire):
    kind: Literal["approvalResolved"] = "approvalResolved"
    tool_call_id: str
    decision: Decision


class ProposalChanged(Wire):
    """A proposal's present state, whole."""

    kind: Literal["proposalChanged"] = "proposalChanged"
    proposal: Proposal


class PromptQueued(Wire):
    kind: Literal["promptQueued"] = "promptQueued"
    prompt: QueuedPrompt


class PromptUnqueued(Wire):
    """The queued prompt starts, or the user took it back, or it never can start: then a notice holds its words."""

    kind: Literal["promptUnqueued"] = "promptUnqueued"
    prompt_id: str


class RetryChanged(Wire):
    """A retry is scheduled, or (None) it is no longer waited for."""

    kind: Literal["retryChanged"] = "retryChanged"
    retry: Retry | None = None


class SessionRewound(Wire):
    """The user went back: the item, all after it and these turns are no part of the session any more. Their edits are
    undone by `proposalChanged`, or stay."""

    kind: Literal["sessionRewound"] = "sessionRewound"
    item_id: str
    """The first item that goes."""
    turn_ids: list[str]
    items: list[Item] = []
    """What is left, its last items, for a state that does not hold the first item that goes."""
    todos: list[Todo] = []
    """The session's to-dos as they were then."""
    todos_summary: str = ""
    plan: PlanDocument | None = None
    """The session's plan as it was then; absent: unchanged."""


class UsageChanged(Wire):
    kind: Literal["usageChanged"] = "usageChanged"
    usage: Usage


class JobChanged(Wire):
    """A background command's present state, whole."""

    kind: Literal["jobChanged"] = "jobChanged"
    job: Job


class JobProgress(Wire):
    """A running background command has printed something; at most two a second."""

    kind: Literal["jobProgress"] = "jobProgress"
    job_id: str
    last_line: str
    output_size: int


class AgentChanged(Wire):
    """A sub-agent's present state, whole."""

    kind: Literal["agentChanged"] = "agentChanged"
    agent: SubAgent


class ItemsReplaced(Wire):
    """Sent to one slow client instead of deltas: the items as they are now. It has the `seq` of the last one it stands
    for, and names that of the first, so it follows a state that lacks no event before `replacesFrom`."""

    kind: Literal["itemsReplaced"] = "itemsReplaced"
    replaces_from: int
    items: list[Item]
    withdrawn: list[str]


Event = Annotated[
    SessionChanged
    | TurnStarted
    | TurnRouted
    | StepEnded
    | TurnEnded
    | ItemStarted
    | ItemDelta
    | ItemChanged
    | ItemCompleted
    | ItemsWithdrawn
    | ApprovalRequested
    | ApprovalResolved
    | ProposalChanged
    | PromptQueued
    | PromptUnqueued
    | RetryChanged
    | SessionRewound
    | UsageChanged
    | JobChanged
    | JobProgress
    | AgentChanged
    | ItemsReplaced,
    Field(discriminator="kind"),
]


class EventMessage(Wire):
    """`amanu/event`, the only stream. `seq` grows by one per session; `epoch` changes when the daemon
    starts or history is rolled back, so that late messages cannot be mistaken."""

    session_id: str
    epoch: int
    seq: int
    at: int
    """Milliseconds since the epoch."""
    event: Event
