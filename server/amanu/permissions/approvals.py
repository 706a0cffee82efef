"""Who decides on each call of one session: a rule, or the user, who is asked.

`Approvals.decide` settles a call and waits for the answer if there has to be one; clients answer through `resolve`. A
question stays open until somebody answers it, a rule that changed answers it, or the turn is cancelled.
"""

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from amanu.core.emit import Emit
from amanu.core.rules import Rule
from amanu.core.tool import AgentLabel, Preview, Subject, ToolError
from amanu.permissions.answers import answers_to
from amanu.permissions.ceilings import Ceilings
from amanu.permissions.command_edit import CommandEdit
from amanu.permissions.headless_denial import headless_denial
from amanu.permissions.offers import offers, rules_of
from amanu.permissions.pending_approval import PastQuestion, PendingApproval
from amanu.permissions.policy import NOTHING_MATCHED, Verdict, decide_each
from amanu.permissions.proposal_digest import blocks_all, conflicts, is_changing, open_bases, proposal_digest
from amanu.permissions.session_rules import PolicySource, SessionRules
from amanu.permissions.user_answer import read_answer, read_edit
from amanu.permissions.user_wait import UserWait
from amanu.text import wording
from amanu.text.display import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, ApprovalResolved
from amanu_protocol.items import Approval, Decision, Line, Proposal, ScopeOffer
from amanu_protocol.requests import ApprovalResolveParams, ApprovalResolveResult

GUARD_SECONDS = 0.5
"""An answer this soon after the question appeared was meant for something else: a prompt that steals the focus collects
keystrokes."""

_MAX_PAST_QUESTIONS = 200  # questions a rule is tried on


class Approvals(SessionRules):
    """The decisions of one session."""

    def __init__(
        self, emit: Emit, policy: PolicySource, *, ceilings: Ceilings | None = None, headless: bool = False
    ) -> None:
        super().__init__(policy, ceilings or Ceilings())
        self._emit = emit
        self._allowed_bases: dict[str, dict[str, str]] = {}
        """Call → the bases of its proposal when the user said yes."""
        self._headless = headless
        self._past_questions: deque[PastQuestion] = deque(maxlen=_MAX_PAST_QUESTIONS)
        self._asking = asyncio.Lock()
        """Held until a question is with the clients, so that questions keep their order."""
        self._pending: dict[str, PendingApproval] = {}
        self._settled: dict[str, Decision] = {}
        self._revised: dict[str, Preview] = {}
        self._edits: dict[str, CommandEdit] = {}
        """Call → the user's own command line, which is not decided on yet."""
        self._deciding = 0
        """Decisions about changes that are being carried out."""
        self.wait = UserWait()

    def would_cover(self, text: str, call_id: str | None) -> tuple[bool | None, list[str]]:
        """What allow rules, written as text, would do: (whether they would answer that pending question, None if there
        is none; the titles of past questions they would have answered and the current rules would not, latest first).
        Raises `AmanuError` (invalidRule)."""
        current_rules = self.rules()
        rules = (*current_rules, *rules_of(text, "session"))
        when = self.context()

        def covers(rules: Sequence[Rule], subjects: Sequence[Subject]) -> bool:
            verdicts = decide_each(rules, subjects, when)
            return bool(verdicts) and all(verdict.decision == "allow" for verdict in verdicts)

        pending = self._pending.get(call_id or "")
        titles = [
            question.title
            for question in reversed(self._past_questions)
            if question.call_id != call_id
            and covers(rules, question.subjects)
            and not covers(current_rules, question.subjects)
        ]
        return (None if pending is None else covers(rules, pending.subjects)), titles

    async def decide(
        self,
        call_id: str,
        preview: Preview,
        on_ask: Callable[[], None],
        preview_again: Callable[[], Awaitable[Preview]] | None = None,
        agent: AgentLabel | None = None,
    ) -> Decision:
        """Settle one call: by rule where one matches, else by asking (`on_ask` is called just before). Waits as
        long as the user takes; no time-out ever means yes. Cancelling the task withdraws the question. With
        `preview_again` the question is kept up to date with what it is about: see `catch_up` and `take_revised`.
        `agent`: the sub-agent that calls."""
        self._allowed_bases.pop(call_id, None)  # an earlier yes was to an earlier form of the call
        edit = self._edits.pop(call_id, None)
        command = preview.command
        if edit is not None and (command is None or edit.answer.command != command.line):
            edit = None  # a hook has changed the user's line: it is not theirs any more
        if edit is not None and self._covered(edit, preview):
            allowed = edit.answer.model_copy(update={"outcome": "allowed", "grants": edit.grants_for(preview)})
            return self._settle(call_id, self.placed(preview, allowed))
        verdict, decision = self.decide_unasked(preview)
        if decision is not None:
            return self._settle(call_id, decision)
        if self._headless:
            return self._settle(call_id, headless_denial(preview, verdict, self.rules(), self.context()))
        async with self._asking:
            on_ask()
            await self._emit.durable()  # once a client shows the question, what it is about survives a crash
            verdict, decision = self.decide_unasked(preview)  # they may have changed
            if decision is not None:
                return self._settle(call_id, decision)
            pending = self._ask(call_id, preview, verdict, preview_again, agent, edit and edit.original)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            ended = "turn" if agent is None else f"sub-agent {agent.name}"
            self._answer(call_id, Decision(outcome="cancelled", by="rule", rule=f"the end of the {ended}"))
            raise

    async def catch_up(self, call_id: str) -> None:
        """If what an open question is about has changed, ask about it as it is now. Raises nothing: if it cannot be
        previewed any more, the question stays as it is; the call is checked once more before it runs."""
        pending = self._pending.get(call_id)
        if pending is None or pending.preview_again is None:
            return
        try:
            current = await pending.preview_again()
        except ToolError:
            return
        if self._pending.get(call_id) is not pending or pending.approval.digest == current.digest:
            return
        pending.revised = current
        changes = {"digest": current.digest, "detail": visible(current.detail)}
        pending.approval = pending.approval.model_copy(update=changes)
        self._emit(ApprovalRequested(approval=pending.approval))

    def take_revised(self, call_id: str) -> Preview | None:
        """What the last answer for that call was about, if that had changed since it was first asked. Returned once."""
        return self._revised.pop(call_id, None)

    def reject_plan(self, reason: str, client: str, agent_id: str | None) -> None:
        """The user sent a message to that agent (None: the session's own) instead of approving its plan, which counts
        as not approved."""
        for call_id, pending in list(self._pending.items()):
            if pending.approval.document is not None and pending.approval.agent_id == agent_id:
                self._answer(call_id, Decision(outcome="rejected", by="user", client=client, reason=reason))

    def resolve(self, params: ApprovalResolveParams, client: str) -> ApprovalResolveResult:
        """Take a client's answer. The first one wins; an unknown word is a refusal. An approval counts only with the
        digest of what is asked about. An answer about a proposal is about all of it: it settles every question that
        shows the same. Raises `AmanuError` (approvalNotFound, invalidRule, storageError)."""
        call_id = params.tool_call_id
        settled = self._settled.get(call_id)
        if settled is not None:
            return ApprovalResolveResult(
                status="alreadyResolved",
                outcome=settled.outcome,
                client=settled.client,
                summary=wording.late(settled),
            )
        pending = self._pending.get(call_id)
        if pending is None:
            hint = "What was asked before Amanu was started again ended with its turn. Send a prompt to go on."
            raise AmanuError("approvalNotFound", "No such question is open in this session.", hint=hint)
        together = self._asked_with(pending)
        if any(self.too_soon(asked_id) for asked_id in (call_id, *together)):
            return ApprovalResolveResult(status="tooSoon")
        if params.decision == "allow" and not self._is_current(pending, params.digest):
            return ApprovalResolveResult(status="stale")
        if params.decision == "allow" and params.command not in (None, pending.approval.command):
            return self._take_edit(params, params.command or "", pending, client)
        decision = read_answer(params, pending, client, self)
        proposal = self._proposal_of(pending)
        if decision.outcome == "allowed" and proposal is not None:
            self._allowed_bases |= dict.fromkeys((call_id, *together), open_bases(proposal))
            if self._blocks(pending, proposal):
                why = f"nothing could be applied, because of {', '.join(self._conflicts(pending, proposal))}"
                decision = Decision(outcome="reviewed", by="user", client=client, reason=why)
        self._answer(call_id, decision)
        if decision.scope not in (None, "once"):
            self.reconsider()
            decision = decision.model_copy(update={"scope": "once", "rule": None})  # the rule is saved once
        for asked_id in together:
            if self._may_join(asked_id, pending, decision):
                self._answer(asked_id, decision)
        return ApprovalResolveResult(status="resolved", outcome=decision.outcome, client=client)

    def pending(self, call_id: str) -> PendingApproval | None:
        return self._pending.get(call_id)

    def asks_about(self, proposal_id: str) -> bool:
        """Whether a question about that proposal is open."""
        return any(pending.approval.proposal_id == proposal_id for pending in self._pending.values())

    def too_soon(self, call_id: str) -> bool:
        """Whether the user was asked that open question only just now."""
        pending = self._pending.get(call_id)
        return pending is not None and time.monotonic() - pending.asked_at < GUARD_SECONDS

    def same_bases(self, call_id: str, proposal_id: str) -> bool:
        """Whether the files of a proposal are based on what they were when the user allowed that call; hunks added or
        decided since do not matter. True where no user was asked."""
        current = self.policy.proposal(proposal_id)
        allowed_on = self._allowed_bases.get(call_id, {})
        return current is None or all(allowed_on.get(path, sha) == sha for path, sha in open_bases(current).items())

    @contextmanager
    def deciding(self) -> Generator[None]:
        """A context in which the user's decision about changes is carried out. Questions about them are asked again
        only after it, if they are still open then."""
        self._deciding += 1
        try:
            yield
        finally:
            self._deciding -= 1
            for proposal_id in {pending.approval.proposal_id for pending in self._pending.values()} - {None}:
                self._ask_again(proposal_id)

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal has changed: questions about it are asked again, and end when it is settled."""
        if proposal.state != "settled":
            self._ask_again(proposal.proposal_id)
            return
        for pending in list(self._pending.values()):
            if pending.approval.proposal_id == proposal.proposal_id:
                self._finish_review(pending)

    def reconsider(self) -> None:
        """Mode, rules or trust changed: decide every open question again. What still has to be asked stays open, with
        the current reason. Where the rules cannot be read, all of them stay."""
        for call_id, pending in list(self._pending.items()):
            try:
                verdict, decision = self.decide_by_rule(pending.preview)
            except AmanuError:
                return
            if decision is not None:
                self._answer(call_id, decision)
            else:
                self._update_question(pending, verdict)

    def finish_reviews(self, client: str, agent_id: str | None) -> None:
        """The user has something else to say: the reviews of that agent's calls (None: of the session's own) end, and
        each call reports what was decided so far. Questions about anything else stay open."""
        for pending in list(self._pending.values()):
            if pending.approval.proposal_id is not None and pending.approval.agent_id == agent_id:
                self._finish_review(pending, client)

    def _finish_review(self, pending: PendingApproval, client: str | None = None) -> None:
        self._answer(pending.approval.tool_call_id, Decision(outcome="reviewed", by="user", client=client))

    def _take_edit(
        self, params: ApprovalResolveParams, command: str, pending: PendingApproval, client: str
    ) -> ApprovalResolveResult:
        """Take the user's own command line. The call goes on with it and is decided on anew, which `_covered` may make
        short."""
        answer = read_edit(params, command, pending, client)
        call_id = params.tool_call_id
        self._edits[call_id] = CommandEdit(
            answer, pending.approval, pending.preview.command, self.reasons(pending.subjects)
        )
        self._answer(call_id, answer)
        return ApprovalResolveResult(status="resolved", outcome="edited", client=client)

    def _covered(self, edit: CommandEdit, preview: Preview) -> bool:
        """Whether the user's own line asks for no more than they saw when they wrote it: nothing denies it, and what it
        needs approval for is that no rule allows it, or was asked about before. Then writing it was the yes."""
        subjects = (preview.subject, *preview.extra_subjects)
        if edit.answer.scope != "once" or self.verdict(subjects).decision == "deny" or not edit.covers(preview):
            return False
        return all(why == NOTHING_MATCHED or (what, why) in edit.reasons for what, why in self.reasons(subjects))

    def _asked_with(self, answered: PendingApproval) -> list[str]:
        """The other calls whose question shows the same proposal, as it is in the answered one."""
        shown = answered.approval
        return [
            call_id
            for call_id, pending in self._pending.items()
            if pending is not answered
            and shown.proposal_id is not None
            and (pending.approval.proposal_id, pending.approval.digest) == (shown.proposal_id, shown.digest)
        ]

    def _may_join(self, call_id: str, answered: PendingApproval, decision: Decision) -> bool:
        """Whether the answer holds for that call, too. A yes does only if the answered question named all that the call
        needs approval for."""
        pending = self._pending.get(call_id)
        if pending is None:
            return False
        return decision.outcome != "allowed" or self.reasons(pending.subjects) <= self.reasons(answered.subjects)

    def _ask_again(self, proposal_id: str | None) -> None:
        """Ask anew about a proposal that is not what was asked about, unless it is just being changed."""
        proposal = None if proposal_id is None else self.policy.proposal(proposal_id)
        if self._deciding or (proposal is not None and is_changing(proposal)):
            return
        digest = "" if proposal is None else proposal_digest(proposal)
        for pending in self._pending.values():
            if pending.approval.proposal_id == proposal_id and pending.approval.digest != digest:
                pending.approval = self._explained(pending, {"digest": digest})
                self._emit(ApprovalRequested(approval=pending.approval))

    def _is_current(self, pending: PendingApproval, digest: str | None) -> bool:
        """Whether an answer with that digest is about what is asked, and that about what there is."""
        asked, proposal_id = pending.approval.digest, pending.approval.proposal_id
        is_up_to_date = proposal_id is None or asked == self._proposal_digest(proposal_id)
        return is_up_to_date and _same_digest(digest, asked)

    def _proposal_digest(self, proposal_id: str) -> str:
        proposal = self.policy.proposal(proposal_id)
        return "" if proposal is None else proposal_digest(proposal)

    def _ask(
        self,
        call_id: str,
        preview: Preview,
        verdict: Verdict,
        preview_again: Callable[[], Awaitable[Preview]] | None,
        agent: AgentLabel | None,
        original_command: str | None,
    ) -> PendingApproval:
        subjects = (preview.subject, *preview.extra_subjects)
        asked_subjects, scopes = self._open_subjects(subjects, verdict)
        title = one_line(preview.title)
        command = preview.command
        approval = Approval(
            tool_call_id=call_id,
            title=title,
            detail=visible(preview.detail),
            effect=preview.subject.effect,
            rule=verdict.rule,
            scopes=scopes,
            proposal_id=preview.proposal_id,
            asked_at=int(time.time() * 1000),
            digest=preview.digest if preview.proposal_id is None else self._proposal_digest(preview.proposal_id),
            parts=self.parts(subjects),
            sandbox=preview.sandbox,
            blocked="" if command is None else visible(command.blocked),
            grants=[] if command is None else list(command.grants),
            likely_grants=[] if command is None else list(command.likely_grants),
            command=None if command is None else self._editable(command.line),
            original_command=original_command,
            document=None if preview.plan is None else str(preview.plan.path),
            agent_id=None if agent is None else agent.agent_id,
            agent="" if agent is None else agent.name,
        )
        self._past_questions.append(PastQuestion(call_id, title, asked_subjects))
        self._settled.pop(call_id, None)  # asked again: the call has changed
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        pending = PendingApproval(approval, preview, asked_subjects, answer, preview_again)
        pending.approval = self._explained(pending, {})
        self.wait.begin()
        self._pending[call_id] = pending
        self._emit(ApprovalRequested(approval=pending.approval))
        return pending

    def _editable(self, line: str) -> str | None:
        """The command line, if a user who edits it sees all of it."""
        return line if line and line == visible(line) == self._emit.redact(line) else None

    def _open_subjects(
        self, subjects: tuple[Subject, ...], verdict: Verdict
    ) -> tuple[tuple[Subject, ...], list[ScopeOffer]]:
        """What of a question no rule allows, and the ways to answer it."""
        judged = list(zip(subjects, self.verdicts(subjects), strict=True))
        open_subjects = [
            (subject, subject_verdict) for subject, subject_verdict in judged if subject_verdict.decision != "allow"
        ]
        scopes = offers(open_subjects if verdict.rememberable else [], allowed=len(judged) - len(open_subjects))
        return tuple(subject for subject, _ in open_subjects) or subjects, scopes

    def _update_question(self, pending: PendingApproval, verdict: Verdict) -> None:
        """Show an open question with the current verdict."""
        pending.open_subjects, scopes = self._open_subjects(pending.subjects, verdict)
        changes = {"rule": verdict.rule, "scopes": scopes, "parts": self.parts(pending.subjects)}
        approval = self._explained(pending, changes)
        if approval != pending.approval:
            pending.approval = approval
            self._emit(ApprovalRequested(approval=approval))

    def _explained(self, pending: PendingApproval, changes: Mapping[str, object]) -> Approval:
        """The question with these fields changed, in words."""
        lines: list[Line] = []
        if (proposal := self._proposal_of(pending)) is not None:
            blocks = self._blocks(pending, proposal)
            lines = wording.conflict_lines(self._conflicts(pending, proposal), blocks=blocks)
        approval = pending.approval.model_copy(update=changes)
        explained = wording.explain_approval(approval, (*pending.preview.notes, *lines))
        return explained.model_copy(update={"answers": answers_to(explained)})

    def _proposal_of(self, pending: PendingApproval) -> Proposal | None:
        proposal_id = pending.approval.proposal_id
        return None if proposal_id is None else self.policy.proposal(proposal_id)

    def _blocks(self, pending: PendingApproval, proposal: Proposal) -> bool:
        """Whether a yes applies nothing because something is in conflict. A yes to one of several calls still applies
        its own changes."""
        return (pending.review or len(proposal.tool_call_ids) == 1) and blocks_all(proposal)

    def _conflicts(self, pending: PendingApproval, proposal: Proposal) -> dict[str, str]:
        """File as the question names it → why it is in conflict."""
        names = [subject.text for subject in pending.subjects]
        return {
            next((name for name in names if path.endswith(f"/{name}")), path): reason
            for path, reason in conflicts(proposal).items()
        }

    def _answer(self, call_id: str, decision: Decision) -> None:
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return
        self.wait.end()
        decision = wording.summarize_decision(self.placed(pending.preview, decision))
        self._settled[call_id] = decision
        if pending.revised is not None:
            self._revised[call_id] = pending.revised
        self._emit(ApprovalResolved(tool_call_id=call_id, decision=decision))
        if not pending.answer.done():
            pending.answer.set_result(decision)

    def _settle(self, call_id: str, decision: Decision) -> Decision:
        decision = self._settled[call_id] = wording.summarize_decision(decision)
        return decision


def _same_digest(answered: str | None, digest: str) -> bool:
    """Whether the answer is about this digest. An empty one equals nothing: a proposal that is gone cannot be
    allowed."""
    return bool(digest) and hmac.compare_digest((answered or "").encode("utf-8", "surrogatepass"), digest.encode())
