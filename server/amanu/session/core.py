"""What the parts of one session share, made once with the session."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.agent.budget import CostLimits
from amanu.checks.editor_feedback import EditorFeedback
from amanu.core.agent import AgentLimits, AgentRun
from amanu.core.rules import Rule
from amanu.core.session_part import SessionPart
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import AgentLabel
from amanu.models.routing import AUTO
from amanu.permissions.approvals import Approvals
from amanu.permissions.ceilings import Ceilings
from amanu.permissions.policy import PolicyContext, drafts
from amanu.proposals.model import LiveProposal
from amanu.proposals.proposals import Proposals
from amanu.proposals.row_plan import RowPlanner
from amanu.session.access import Access
from amanu.session.audit_recorder import AuditRecorder
from amanu.session.costs import SessionCosts
from amanu.session.events import EventStream
from amanu.session.git_hook_rules import GitHookRules
from amanu.session.jobs import SessionJobs
from amanu.session.late_decisions import ENDED
from amanu.session.notices import Notices
from amanu.session.parts import Parts
from amanu.session.plan import NAME as PLAN_NAME
from amanu.session.plan import SessionPlan
from amanu.session.program_rules import ProgramRules
from amanu.session.questions import Questions
from amanu.session.restore import Restored
from amanu.session.services import Services
from amanu.session.shared_work import SharedWork
from amanu.session.todos import Todos
from amanu.session.turn_task import TurnTask
from amanu.storage.file_store import FileStore
from amanu.storage.journal import FILES, Journal
from amanu.tools.environment import ShownPictures, ToolEnvironment
from amanu.tools.shell.command_process import CommandLauncher
from amanu.tools.shell.git_looks import published_commits
from amanu.tools.shell.session_layer import SessionLayer
from amanu.web.search import SEARCH_KEYS, SearchService
from amanu.workspace.workspace import Workspace
from amanu_protocol.events import Event, ItemCompleted, ProposalChanged
from amanu_protocol.items import Mode, Proposal, Scope, ToolCall
from amanu_protocol.state import SessionState


class ClientEnvironment(Mapping[str, str]):
    """The environment commands start with: that of the client whose prompt came last."""

    def __init__(self) -> None:
        self._variables: dict[str, str] = {}

    def replace(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


class SessionPolicy:
    """A session's mode, trust and rules, for its decisions; see `permissions.session_rules.PolicySource`."""

    def __init__(self, services: Services, state: SessionState, parts: Callable[[], Parts]) -> None:
        self._services = services
        self._state = state
        self._git_hooks = GitHookRules()
        self._programs = ProgramRules(services, state, parts)

    def context(self) -> PolicyContext:
        settings = self._services.settings.sandbox
        contained = self._services.sandbox.tier != "none" or settings.without == "accept"
        return PolicyContext(mode=self._state.mode, trusted=self._state.trusted, sandboxed=contained)

    def rules(self) -> Sequence[Rule]:
        return self._services.rules.rules(self._state.roots, trusted=self._state.trusted)

    def rules_of_folders(self) -> Sequence[Rule]:
        return self._git_hooks.rules(self._state.roots)

    def rules_of_programs(self) -> Sequence[Rule]:
        return self._programs.rules()

    def remember(self, scope: Scope, rule: Rule) -> None:
        self._services.rules.remember(scope, rule, self._state.roots)

    def proposal(self, proposal_id: str) -> Proposal | None:
        return next((proposal for proposal in self._state.proposals if proposal.proposal_id == proposal_id), None)


@dataclass(frozen=True)
class Assignment:
    """What a sub-agent's session is to do, and what of its parent's it works with."""

    parent: "SessionCore"
    label: AgentLabel
    definition: AgentDefinition
    limits: AgentLimits
    allowance: float | None
    """US dollars it may spend; None for no limit of its own."""
    part: SessionPart
    """The part that the sub-agent's session gets for this work."""
    work: SharedWork


class SessionCore:
    """What all parts of one session share. `restored` is what its journal holds. With an `assignment` it is the session
    of a sub-agent at work: whatever concerns the user or the workspace is its parent's."""

    def __init__(
        self, services: Services, journal: Journal, restored: Restored, assignment: Assignment | None = None
    ) -> None:
        self.services = services
        self.assignment = assignment
        self.journal = journal
        self.state = restored.state
        self.state.at_work = assignment is not None
        self.conversation = restored.conversation
        self.history = restored.history
        self.access = Access(self.state)
        self.turn = TurnTask(self.access)
        self.parts = Parts()
        """Empty until the parts are made, since they are made with this core."""
        self.work: SharedWork | None = None if assignment is None else assignment.work
        """The work that a session shares with its sub-agents; set before the parts are made."""
        self.environment = ClientEnvironment()
        # From the clock: events that a dead daemon sent but did not save must not be taken for ours.
        epoch = max(restored.epoch + 1, int(time.time() * 1000))
        self.emit = EventStream(self.state, journal, epoch, services.secrets.mask_content, services.audit.durable)
        self.notices = Notices(self.emit)
        self.todos = Todos(self.emit, self.state)
        self.audit = AuditRecorder(services.audit, self.state)
        self.emit.listeners.append(self._follow)
        user_session = self.state if assignment is None else assignment.parent.state
        self.workspace = Workspace(
            [Path(root) for root in self.state.roots],
            services.overlay.seen_from(user_session.session_id),
            private=services.home.private,
            plan=journal.folder / PLAN_NAME,
            memory=services.home.memory,
        )
        self.workspace.shown_files.restore(self.conversation)
        limits = services.settings.limits
        self.proposal_listeners: list[Callable[[Proposal], None]] = []
        """Called with each version of a proposal, after it has been emitted."""
        if assignment is None:
            self.emit.listeners.append(self.audit.on_event)
            cost_limits = CostLimits(limits.cost_usd, limits.session_cost_usd, self.state)
            self.costs = SessionCosts(cost_limits, self.emit, None)
            self.jobs = SessionJobs(self.state, self.emit, self.notices, journal, services.secrets.mask_output)
            self.files = FileStore(journal.folder / FILES)
            self.proposals = Proposals(
                self.workspace,
                self._proposal_changed,
                self._save_preimage,
                services.sandbox.accept,
                drafting=lambda: drafts(self.mode),
                rows=RowPlanner(
                    self.workspace,
                    self.files,
                    lambda each: self.approvals.denied_to_user(each),
                    services.sandbox.repository_lock,
                    lambda change: published_commits(CommandLauncher(self.tool_environment()), change),
                ),
                durable=self._decision_durable,
                asked=self._is_asked,
                staged=services.staged,
            )
            self.layer = SessionLayer(self.workspace, self.proposals, services.sandbox, self.files)
            self.approvals = Approvals(
                self.emit,
                SessionPolicy(services, self.state, lambda: self.parts),
                ceilings=Ceilings(limits.unasked_commands, limits.unasked_seconds),
                headless=services.headless,
            )
            self.questions = Questions(self.state, self.emit, self.access, self.approvals.wait)
        else:  # what a sub-agent does is on record as its parent's
            parent = assignment.parent
            self.costs = SessionCosts(CostLimits(assignment.allowance, None, self.state), self.emit, parent.costs)
            self.jobs, self.proposals = parent.jobs, parent.proposals
            self.layer = parent.layer.apart()
            self.files = parent.files
            self.approvals, self.questions = parent.approvals, parent.questions
        self.view = self.workspace.with_drafts(self.proposals.drafts)
        """The workspace as the session's own tools see it."""
        self.plan = SessionPlan(
            journal, self.emit, self.conversation, self.approvals, self.workspace, self.todos, self.jobs
        )

    def is_chat(self, run: AgentRun) -> bool:
        """Whether that run goes on with the session's conversation. One that only rewrites lines does not."""
        return run.conversation is self.conversation and self.state.purpose != "rewrite"

    def covers(self, path: Path, data: bytes) -> bool:
        """Whether the user trusted that file with that content."""
        return self.services.trust.covers(self.state.roots, path, data)

    @property
    def agent_id(self) -> str | None:
        """The mark on calls, approvals and questions; None: the session's own agent."""
        return None if self.assignment is None else self.assignment.label.agent_id

    @property
    def mode(self) -> Mode:
        """The mode that holds: a sub-agent's is its parent's, at every moment. `state.mode` shows it."""
        return self.approvals.policy.context().mode

    def trusted(self) -> bool:
        """Whether the user trusts the folders now."""
        return self.approvals.policy.context().trusted

    def list_changed(self) -> None:
        """Announce that what a list of sessions shows of this one has changed."""
        self.services.on_session_changed(self.state)

    def tool_environment(
        self,
        feedback: EditorFeedback | None = None,
        pictures: ShownPictures | None = None,
    ) -> ToolEnvironment:
        """What the session's tools work with."""
        services = self.services
        return ToolEnvironment(
            self.view,
            self.proposals,
            self.journal,
            self.environment,
            services.settings,
            services.secrets,
            services.sandbox,
            trusted=self.trusted,
            mode=lambda: self.mode,
            plan_mode=self.plan if self.plan.active or not services.headless else None,
            headless=services.headless,
            feedback=feedback,
            set_todos=self.todos.set,
            pictures=pictures,
            session_layer=self.layer,
            jobs=self.jobs.jobs,
            questions=self.questions,
            pages=services.pages,
            search_service=self._search_service(),
            model_searches=self._model_searches(),
        )

    def _model_searches(self) -> bool:
        """Whether the service of a turn's model, or of its utility model, may be one that searches the web."""
        settings = self.services.settings
        routing = settings.routing
        models = [self.state.model_id, routing.utility]
        if self.state.model_id == AUTO:
            models += [settings.model, routing.plan, routing.easy, routing.hard]
        return any(self.services.registry.searches(model) for model in models if model is not None)

    def _search_service(self) -> SearchService | None:
        name = self.services.settings.web.search
        if name is None:
            return None
        return SearchService(
            name,
            self.services.settings.web.search_url,
            lambda: self.services.auth.key(name, self.environment) if name in SEARCH_KEYS else None,
        )

    def _follow(self, event: Event, position: int) -> None:
        self.history.on_event(self.state, event, position)
        match event:
            case ItemCompleted(item=ToolCall(proposal_id=str())) if self.assignment is None:
                self.proposals.question_ended()
            case _:
                pass

    def _is_asked(self, live: LiveProposal) -> bool:
        """Whether a question about that proposal is open, or will be: one of its calls goes on."""
        calls = map(self.state.item, live.tool_call_ids)
        return self.approvals.asks_about(live.proposal_id) or any(
            isinstance(call, ToolCall) and call.state not in ENDED for call in calls
        )

    def _proposal_changed(self, proposal: Proposal) -> None:
        previous = self.approvals.policy.proposal(proposal.proposal_id)
        self.emit(ProposalChanged(proposal=self.state.lean(proposal)))
        if self.state.turn is None and (previous is None or previous.waiting != proposal.waiting):
            self.list_changed()  # the end of a turn tells it anyway
        for listener in self.proposal_listeners:
            listener(proposal)

    async def _decision_durable(self) -> None:
        """Wait until the decision is on record and the coming change in the audit log, before a row is carried out."""
        await asyncio.gather(self.services.audit.durable(), self.emit.durable())

    async def _save_preimage(self, turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        """Before a file changes, save its content, and have the coming change on the audit log."""
        await asyncio.gather(self.services.audit.durable(), self.journal.save_preimage(turn_id, path, data, mode))
