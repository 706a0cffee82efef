"""The visible session, and the one way it changes: `fold`.

The same fold exists in TypeScript and Lua; `protocol/fixtures/*.json` specify it for all three.
"""

from typing import Literal

from pydantic import ConfigDict, PrivateAttr

from amanu_protocol.base import Wire
from amanu_protocol.events import (
    AgentChanged,
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    JobChanged,
    JobProgress,
    PromptQueued,
    PromptUnqueued,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    SessionRewound,
    StepEnded,
    TurnEnded,
    TurnRouted,
    TurnStarted,
    UsageChanged,
)
from amanu_protocol.items import (
    MAX_AGENTS,
    MAX_JOBS,
    Answer,
    Approval,
    CommandSandbox,
    Effort,
    Item,
    Job,
    Mode,
    PlanDocument,
    Proposal,
    Purpose,
    Question,
    QueuedPrompt,
    Retry,
    ServiceTier,
    SubAgent,
    Thought,
    Todo,
    TodoList,
    ToolCall,
    Usage,
)


class TurnState(Wire):
    """The running turn."""

    turn_id: str
    model_id: str
    steps: int
    """Replies completed so far."""
    routed: str | None = None
    """Why it is this model and not the session's; None when it is."""


class SessionState(Wire):
    """Everything a client needs to draw a session."""

    model_config = ConfigDict(frozen=False)

    session_id: str
    title: str
    roots: list[str]
    mode: Mode
    model_id: str
    effort: Effort | None = None
    """How much models are to think; None: as the configuration says."""
    service_tier: ServiceTier | None = None
    """The tier at which the session's requests are served; None: as the configuration says."""
    trusted: bool
    trust_changed: bool = False
    """The folders were trusted, but what they enable has changed since: `amanu/trust/get` says what."""
    sandbox: CommandSandbox | None = None
    """What holds commands, once that was tried out."""
    plan: PlanDocument | None = None
    """The plan, once the model was asked for one."""
    read_only: bool
    """Another daemon holds the session's lease; it can be looked at, not driven."""
    closed: bool = False
    turn: TurnState | None = None
    last_turn: TurnEnded | None = None
    items: list[Item] = []
    has_earlier: bool = False
    """Items before the first one exist; page them with `amanu/history/page`."""
    approvals: list[Approval] = []
    questions: list[Question] = []
    """Those still open, even if their turn is over or their item is no longer among `items`."""
    proposals: list[Proposal] = []
    queue: list[QueuedPrompt] = []
    retry: Retry | None = None
    usage: Usage | None = None
    todos: list[Todo] = []
    """What the model means to do: the last `TodoList`, until a turn ends with all of it done or cancelled."""
    todos_summary: str = ""
    """For the user, on one line."""
    jobs: list[Job] = []
    """Background commands, the oldest first: those that run, and the last ones that ended."""
    agents: list[SubAgent] = []
    """Sub-agents, the oldest first: those that run, and the last ones that ended."""
    parent_session_id: str | None = None
    """Of a sub-agent's session: the session it works, or worked, for."""
    agent: str | None = None
    """Of a sub-agent's session: the name of its definition."""
    at_work: bool = False
    """A sub-agent's session that still works for its parent: it has the parent's mode and takes no prompts."""
    purpose: Purpose = "chat"

    _index: dict[str, int] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: object) -> None:
        self.reindex()

    @property
    def status(self) -> Literal["idle", "running", "waiting", "interrupted"]:
        """`waiting`: for the user. `interrupted`: the daemon died in the middle of the last turn."""
        if self.questions:
            return "waiting"
        if self.turn is None:
            died = self.last_turn is not None and self.last_turn.reason == "interrupted"
            return "interrupted" if died else "idle"
        return "waiting" if self.approvals else "running"

    def last(self, count: int) -> "SessionState":
        """A state of its own with the last items only; `hasEarlier` says whether that leaves some out."""
        items = self.items[-count:]
        earlier = self.has_earlier or len(items) < len(self.items)
        proposals = list(self.proposals)
        return SessionState.model_validate(
            {**dict(self), "items": items, "has_earlier": earlier, "proposals": proposals}, by_name=True
        )

    def lean(self, proposal: Proposal) -> Proposal:
        """The proposal without the base texts that an earlier version of it already told."""
        known = next((each for each in self.proposals if each.proposal_id == proposal.proposal_id), None)
        if known is None:
            return proposal
        bases = {file.path: (file.base_blob, file.base_text) for file in known.files}
        files = [
            file.model_copy(update={"base_text": None})
            if bases.get(file.path) == (file.base_blob, file.base_text)
            else file
            for file in proposal.files
        ]
        return proposal.model_copy(update={"files": files})

    def item(self, item_id: str) -> Item | None:
        """The item of that id, or None. Constant time."""
        at = self._index.get(item_id)
        return None if at is None else self.items[at]

    def at(self, item_id: str) -> int | None:
        """Where the item stands among `items`."""
        return self._index.get(item_id)

    def reindex(self) -> None:
        """After `items` were replaced."""
        self._index = {item.item_id: at for at, item in enumerate(self.items)}

    def put(self, item: Item) -> None:
        """Replace the item of the same id in its place, or append."""
        if isinstance(item, Question):
            self._put_question(item)
        index, items = self._index, self.items
        at = index.setdefault(item.item_id, len(items))
        if at == len(items):
            items.append(item)
        else:
            items[at] = item
        if isinstance(item, TodoList):
            self.todos, self.todos_summary = item.todos, item.summary

    def _put_question(self, question: Question) -> None:
        others = [other for other in self.questions if other.item_id != question.item_id]
        self.questions = [*others, question] if question.state == "open" else others

    def remove(self, item_ids: set[str]) -> None:
        self.items = [item for item in self.items if item.item_id not in item_ids]
        self.reindex()


def fold(state: SessionState, event: Event) -> None:
    """Apply one event in place. Never fails: an event about something unknown changes nothing.

    Costs the same at the first event and at the thousandth, but for withdrawals.
    """
    match event:
        case ItemDelta():
            _append(state, event)
        case ItemStarted() | ItemChanged() | ItemCompleted():
            state.put(event.item)
        case ItemsWithdrawn():
            state.remove(set(event.item_ids))
            state.questions = [question for question in state.questions if question.item_id not in event.item_ids]
        case ItemsReplaced():
            state.remove(set(event.withdrawn))
            for item in event.items:
                state.put(item)
        case ApprovalRequested():
            state.approvals = [*_others(state, event.approval.tool_call_id), event.approval]
        case ApprovalResolved():
            state.approvals = _others(state, event.tool_call_id)
        case ProposalChanged():
            _put_proposal(state, event.proposal)
        case TurnStarted():
            state.turn = TurnState(turn_id=event.turn_id, model_id=event.model_id, steps=0)
            state.last_turn = None
        case TurnRouted():
            if state.turn is not None and state.turn.turn_id == event.turn_id:
                state.turn = state.turn.model_copy(update={"model_id": event.model_id, "routed": event.reason})
        case StepEnded():
            if state.turn is not None and state.turn.turn_id == event.turn_id:
                state.turn = state.turn.model_copy(update={"steps": event.step})
        case TurnEnded():
            state.turn = None
            state.last_turn = event
            state.approvals = [approval for approval in state.approvals if _outlives_turn(state, approval)]
            state.retry = None
            if all(todo.status in ("done", "cancelled") for todo in state.todos):
                state.todos, state.todos_summary = [], ""
        case PromptQueued():
            state.queue = [*state.queue, event.prompt]
        case PromptUnqueued():
            state.queue = [prompt for prompt in state.queue if prompt.prompt_id != event.prompt_id]
        case RetryChanged():
            state.retry = event.retry
        case SessionRewound():
            at = state.at(event.item_id)
            state.items = event.items if at is None else state.items[:at]
            state.reindex()
            state.last_turn = None
            state.todos, state.todos_summary = event.todos, event.todos_summary
            state.plan = event.plan or state.plan
            state.questions = [question for question in state.questions if question.turn_id not in event.turn_ids]
        case UsageChanged():
            state.usage = event.usage
        case JobChanged():
            _put_job(state, event.job)
        case JobProgress():
            progress = {"last_line": event.last_line, "output_size": event.output_size}
            state.jobs = [job.model_copy(update=progress) if job.job_id == event.job_id else job for job in state.jobs]
        case AgentChanged():
            _put_agent(state, event.agent)
        case SessionChanged():
            _change_session(state, event)


def _append(state: SessionState, delta: ItemDelta) -> None:
    match state.item(delta.item_id):
        case (Thought() | Answer()) as item:
            state.put(item.model_copy(update={"text": item.text + delta.text}))
        case ToolCall() as item:
            state.put(item.model_copy(update={"output": item.output + delta.text}))
        case _:
            pass


def _others(state: SessionState, tool_call_id: str) -> list[Approval]:
    return [approval for approval in state.approvals if approval.tool_call_id != tool_call_id]


def _outlives_turn(state: SessionState, approval: Approval) -> bool:
    """Whether a sub-agent in the background asks: it goes on without the turn."""
    agents = (agent for agent in state.agents if agent.agent_id == approval.agent_id)
    return any(agent.background and agent.works for agent in agents)


def _put_proposal(state: SessionState, proposal: Proposal) -> None:
    for at, known in enumerate(state.proposals):
        if known.proposal_id == proposal.proposal_id:
            state.proposals[at] = _with_base_texts(proposal, known)
            return
    state.proposals.append(proposal)


def _put_job(state: SessionState, job: Job) -> None:
    """Replace the job of the same id in its place, or append; then forget the first that ended, if there are many."""
    if any(listed_job.job_id == job.job_id for listed_job in state.jobs):
        state.jobs = [job if listed_job.job_id == job.job_id else listed_job for listed_job in state.jobs]
        return
    jobs = [*state.jobs, job]
    if len(jobs) > MAX_JOBS:
        ended = next((at for at, listed_job in enumerate(jobs) if listed_job.state != "running"), None)
        jobs = jobs if ended is None else [*jobs[:ended], *jobs[ended + 1 :]]
    state.jobs = jobs


def _put_agent(state: SessionState, agent: SubAgent) -> None:
    """As `_put_job`."""
    if any(known.agent_id == agent.agent_id for known in state.agents):
        state.agents = [agent if known.agent_id == agent.agent_id else known for known in state.agents]
        return
    agents = [*state.agents, agent]
    if len(agents) > MAX_AGENTS:
        ended = next((at for at, known in enumerate(agents) if not known.works), None)
        agents = agents if ended is None else [*agents[:ended], *agents[ended + 1 :]]
    state.agents = agents


def _with_base_texts(proposal: Proposal, known: Proposal) -> Proposal:
    bases = {file.path: file.base_text for file in known.files}
    blobs = {file.path: file.base_blob for file in known.files}
    files = [
        file.model_copy(update={"base_text": bases.get(file.path)})
        if file.base_text is None and file.base_blob == blobs.get(file.path)
        else file
        for file in proposal.files
    ]
    return proposal.model_copy(update={"files": files})


def _change_session(state: SessionState, event: SessionChanged) -> None:
    if event.roots is not None:
        state.roots = event.roots
    if event.title is not None:
        state.title = event.title
    if event.mode is not None:
        state.mode = event.mode
    if event.model_id is not None:
        state.model_id = event.model_id
    if event.effort is not None:
        state.effort = event.effort
    if event.service_tier is not None:
        state.service_tier = event.service_tier
    if event.trusted is not None:
        state.trusted = event.trusted
    if event.trust_changed is not None:
        state.trust_changed = event.trust_changed
    if event.sandbox is not None:
        state.sandbox = event.sandbox
    if event.plan is not None:
        state.plan = event.plan
    if event.parent_session_id is not None:
        state.parent_session_id = event.parent_session_id
    if event.agent is not None:
        state.agent = event.agent
    if event.purpose is not None:
        state.purpose = event.purpose
    if event.closed is not None:
        state.closed = event.closed
