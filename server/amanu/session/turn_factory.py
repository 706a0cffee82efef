"""Makes the turns of one session, and its agent for other conversations, with the tools and settings they share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from amanu.agent import reply_endings
from amanu.agent.budget import LimitGuard
from amanu.agent.finishing import FinishTaskRequired
from amanu.agent.loop import run_compaction, run_turn, run_user_request
from amanu.agent.loop_guard.guard import LoopGuard
from amanu.agent.next_speaker import NextSpeaker
from amanu.agent.recovery import FaultReminders, ReplyBudget
from amanu.agent.steering import LateSteering, Steering
from amanu.agent.system_prompt import agent_prompt, system_prompt
from amanu.agent.turn import Turn
from amanu.agent.user_call import UserRequest
from amanu.agent.window.window import ContextWindow
from amanu.core.agent import AgentLimits, AgentRun, SystemPrompt
from amanu.core.conversation import Call, Conversation
from amanu.core.ending import Ending
from amanu.core.foreign_calls import FOREIGN_NAMES
from amanu.core.listeners import TurnListener
from amanu.core.model_families import family
from amanu.core.session_part import Slot
from amanu.core.tool import AnyTool
from amanu.session.core import Assignment, SessionCore
from amanu.session.model_choice import ModelChoice, ModelChooser
from amanu.session.queue import PromptQueue
from amanu.session.rewrite import SessionRewrite
from amanu.session.title import SessionTitle
from amanu.storage.journal import MAX_BLOB
from amanu.tools.environment import ToolEnvironment
from amanu.tools.files.read_output import ID_LENGTH
from amanu.tools.finish_task import FinishTask
from amanu.tools.registry import make_tools, tools_of_agent
from amanu.tools.review_draft import ReviewDraft
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Effort, ModelInfo, Proposal, ServiceTier, ToolCall


class TurnFactory:
    """Makes the turns of one session."""

    def __init__(
        self, core: SessionCore, queue: PromptQueue, title: SessionTitle, environment: ToolEnvironment
    ) -> None:
        """`environment` is what the session's tools work with."""
        self._core = core
        self._assignment = core.assignment
        self._costs = core.costs
        self._services = services = core.services
        self._journal = core.journal
        self._conversation = conversation = core.conversation
        self._approvals = core.approvals
        self._state = state = core.state
        self._emit = core.emit
        self._queue = queue
        settings = services.settings
        self._title = title
        self.rewrite = SessionRewrite(core, environment)
        self._review_draft = ReviewDraft(environment)
        self.tools = self._make_tools(environment)
        self.window = self._new_window(conversation)
        self.model_chooser = ModelChooser(settings, services.registry, services.availability, state)
        self._cost_limits = core.costs.limits

    def _make_tools(self, environment: ToolEnvironment) -> dict[str, AnyTool]:
        tools: dict[str, AnyTool] = make_tools(environment, headless=self._services.headless)
        tools |= {tool.name: tool for tool in self._core.parts.tools()}
        if self._assignment is not None:
            return tools_of_agent(tools, self._assignment.definition)
        if self._services.until_done:  # the model ends a turn only by calling this
            tools[FinishTask.name] = FinishTask()
        return tools

    def prepare(self) -> None:
        """See `PromptComposer.prepare`."""
        for tool in tuple(self.tools.values()):
            tool.spec()
        reply_endings.prepare()

    def start_run(self, turn_id: str, prompt: str, window: int) -> AgentRun:
        """The run that answers the user's prompt, which is already the last message of the conversation, with a model
        that has a window of so many tokens."""
        self._cost_limits.start_turn()
        limits = self._services.settings.limits
        run = AgentRun(
            turn_id,
            prompt,
            self._conversation,
            self._system_prompt,
            {**self.tools, **{tool.name: tool for tool in self._core.parts.turn_tools(window)}},
            AgentLimits(limits.steps, limits.seconds),
            self._emit,
            inbox=self._queue,
        )
        return self.rewrite.run(run) if self._assignment is None else self._assigned(run, self._assignment)

    def _assigned(self, run: AgentRun, assignment: Assignment) -> AgentRun:
        run.limits, run.label = assignment.limits, assignment.label
        return run

    def agent(self, choice: ModelChoice) -> "SessionAgent":
        """The agent for a turn of the session, or for a run on another conversation."""
        return SessionAgent(self, self.rewrite.choice(choice))

    def make_turn(self, run: AgentRun, choice: ModelChoice) -> Turn:
        settings = self._services.settings
        own = run.conversation is self._conversation
        specs = [tool.spec() for tool in run.tools.values()]
        guard = LoopGuard(run.task, specs) if settings.loops else None
        return Turn(
            turn_id=run.turn_id,
            session_id=self._state.session_id,
            candidate=choice.candidate,
            system_prompt_for=run.instructions,
            tools=run.tools,
            conversation=run.conversation,
            context=self.window if own else self._new_window(run.conversation),
            approvals=self._approvals,
            emit=run.emit,
            ledger=self._costs.start_ledger() if own else self._costs.new_ledger(),
            listeners=[*self._listeners(run, guard), *(self._title_listeners(run, choice) if own else ())],
            reply_watch=guard,
            fallbacks=choice.fallbacks,
            utility=choice.utility,
            budget=ReplyBudget(effort=self._effort(choice.candidate.info)),
            service_tier=self._service_tier() if own else "standard",
            label=run.label,
            progress=self._services.headless,
            user_may_pause=not self._services.headless and run.label is None,
            closing_calls=lambda: self._draft_reviews(run),
            own_tools={self._review_draft.name: self._review_draft},
        )

    def _draft_reviews(self, run: AgentRun) -> Sequence[Call]:
        """The calls that put the draft to the user: what this turn drafted, and what earlier turns did and nobody was
        asked about to the end, whatever the mode is now. None where nobody is there, or has said something else
        already."""
        if self._services.headless or run.label is not None or self._state.queue:
            return ()
        return [
            Call(call_id=f"call_{uuid4().hex[:16]}", tool=ReviewDraft.name, arguments={"proposal_id": each.proposal_id})
            for each in self._state.proposals
            if each.draft and each.state == "pending" and (_has_part(run.turn_id, each) or not self._was_reviewed(each))
        ]

    def _was_reviewed(self, draft: Proposal) -> bool:
        """Whether the user has answered a question about it, if only with "later"."""
        calls = [item for call_id in draft.tool_call_ids if isinstance(item := self._state.item(call_id), ToolCall)]
        return any(call.tool == ReviewDraft.name and call.state != "cancelled" for call in calls)

    def _listeners(self, run: AgentRun, guard: LoopGuard | None) -> Sequence[TurnListener]:
        """The listeners in the order in which they are called: by slot, and within a slot those of parts last."""
        own: Mapping[Slot, Sequence[TurnListener]] = {
            "limits": [LimitGuard(run.limits, self._cost_limits, self._approvals)],
            "context": run.listeners,
            "steering": [] if run.inbox is None else [Steering(run.inbox)],
            "faults": [FaultReminders()],
            "loops": [] if guard is None else [guard],
            "end": self._stop_listeners(run),
            "late": [] if run.inbox is None else [LateSteering(run.inbox)],
        }
        return self._core.parts.listeners(run, own)

    def _title_listeners(self, run: AgentRun, choice: ModelChoice) -> Sequence[TurnListener]:
        listener = self._title.listener(run.task, choice.utility)
        return () if listener is None else (listener,)

    def _stop_listeners(self, run: AgentRun) -> Sequence[TurnListener]:
        if run.label is not None:
            return ()  # `CompleteTaskRequired` decides
        if FinishTask.name in run.tools:
            return (FinishTaskRequired(FinishTask.name),)
        policy = self._services.settings.next_speaker
        return () if policy == "off" else (NextSpeaker(judged=policy == "judge"),)

    def _new_window(self, conversation: Conversation) -> ContextWindow:
        writers = [
            name
            for tool in self.tools.values()
            if tool.effect == "write"
            for name in (tool.name, *FOREIGN_NAMES.get(tool.name, ()))
        ]
        return ContextWindow(conversation, self._services.settings.context, self._keep_output, writers)

    async def _keep_output(self, text: str) -> str:
        """Store a tool's output where `read_output` finds it, and return its id; "" when the disk does not take it."""
        try:
            blob = await self._journal.put_blob(text.encode("utf-8", "replace")[:MAX_BLOB])
        except AmanuError:
            return ""
        return blob.blob_id[:ID_LENGTH]

    def _effort(self, info: ModelInfo) -> Effort:
        return self._state.effort or self._services.settings.effort or family(info.model_id).default_effort

    def _service_tier(self) -> ServiceTier:
        """A sub-agent works at the usual speed, unless the user has chosen the lower price for everything: nobody waits
        for its words as they come, and there may be many of them."""
        state = self._state if self._assignment is None else self._assignment.parent.state
        tier = state.service_tier or self._services.settings.service_tier
        return tier if self._assignment is None or tier == "flex" else "standard"

    def _system_prompt(self, info: ModelInfo) -> SystemPrompt:
        if self._assignment is not None:
            return agent_prompt(self._assignment.definition.prompt, self._state.roots, self._conversation.memory)
        return system_prompt(family(info.model_id).name, self._state.roots, self._conversation.memory)


@dataclass(frozen=True)
class SessionAgent:
    """The loop, with a session's permissions, allowance and a choice of its models."""

    turns: TurnFactory
    choice: ModelChoice

    async def run(self, run: AgentRun) -> Ending:
        """See `core.agent.Agent`."""
        turn = self.turns.make_turn(run, self.choice)
        self.choice.announce(turn)
        try:
            ending = await run_turn(turn)
            return await self.turns.model_chooser.with_others(ending, turn.info)
        finally:
            run.spent = turn.spent

    async def compact(self, run: AgentRun, focus: str) -> Ending:
        """Only compact the conversation (`/compact`)."""
        turn = self.turns.make_turn(run, self.choice)
        try:
            return await run_compaction(turn, focus)
        finally:
            run.spent = turn.spent

    async def serve(self, run: AgentRun, request: UserRequest) -> Ending:
        """Only do what the user asks for (`! COMMAND`)."""
        turn = self.turns.make_turn(run, self.choice)
        try:
            return await run_user_request(turn, request)
        finally:
            run.spent = turn.spent


def _has_part(turn_id: str, draft: Proposal) -> bool:
    """Whether that turn has made the draft, or an open row of it."""
    rows = [row for row in draft.rows if row.state in ("pending", "conflicted")]
    return draft.turn_id == turn_id or any(row.turn_id == turn_id for row in rows)
