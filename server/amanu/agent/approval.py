"""Policy → remembered answers → ask the person."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from amanu.agent.emit import Emit
from amanu.agent.policy import BUILT_IN, MODES, Rule, Verdict, decide, offers, remember, suggested_rule
from amanu.tools.base import Preview, Subject
from amanu.tools.visible import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, ApprovalResolved
from amanu_protocol.items import Approval, Decision, Mode, Scope
from amanu_protocol.requests import ApprovalResolveParams, ApprovalResolveResult

GUARD_SECONDS = 0.5
"""An answer this soon after the question appeared was meant for something else (editor-peers: focus theft caused
accidental approvals)."""


_NAMED = 5  # rules named to somebody who was not asked
_STRICT = ("deny", "ask", "allow")


@dataclass
class Pending:
    """A question waiting for the person."""

    approval: Approval
    subjects: tuple[Subject, ...]
    answer: "asyncio.Future[Decision]"
    asked: float = field(default_factory=time.monotonic)

    @property
    def too_soon(self) -> bool:
        return time.monotonic() - self.asked < GUARD_SECONDS


class Approvals:
    """The decisions of one session. `store` keeps rules of the scopes workspace and user."""

    def __init__(
        self,
        emit: Emit,
        mode: Callable[[], Mode],
        stored: Callable[[], Sequence[Rule]],
        store: Callable[[Scope, Rule], None],
        *,
        headless: bool = False,
    ) -> None:
        self._emit = emit
        self._mode = mode
        self._stored = stored
        self._store = store
        self._headless = headless
        self._session_rules: list[Rule] = []
        self._turn_rules: list[Rule] = []
        self._pending: dict[str, Pending] = {}
        self._settled: dict[str, Decision] = {}
        self._waiting_since = 0.0
        self.waited = 0.0
        """Seconds spent waiting for the person, in all."""

    def start_turn(self) -> None:
        """What was allowed for the last turn is not allowed for this one."""
        self._turn_rules.clear()

    def allow_in_session(self, rule: Rule) -> None:
        """Add a rule of session scope: from a resumed session, or from `--allow`."""
        self._session_rules.append(rule)

    def rules(self) -> tuple[Rule, ...]:
        """All rules in force, in no particular order: deny beats must-ask beats allow."""
        return (
            *BUILT_IN,
            *MODES[self._mode()],
            *self._turn_rules,
            *self._session_rules,
            *self._stored(),
        )

    def verdict(self, subjects: Sequence[Subject]) -> Verdict:
        """The strictest verdict on any of them: of two that ask, the one no rule can answer."""
        rules = self.rules()
        verdicts = [decide(rules, subject) for subject in subjects]
        return min(verdicts, key=lambda verdict: (_STRICT.index(verdict.decision), verdict.rememberable))

    def allowed(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that are allowed without a question."""
        rules = self.rules()
        return [subject for subject in subjects if decide(rules, subject).decision == "allow"]

    def denied(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that a rule denies."""
        rules = self.rules()
        return [subject for subject in subjects if decide(rules, subject).decision == "deny"]

    async def decide(self, call_id: str, preview: Preview, asking: Callable[[], None]) -> Decision:
        """Settle one call: by rule where one matches, else by asking (`asking` is called just before). Waits as
        long as the person takes; no time-out ever means yes. Cancelling the task withdraws the question."""
        verdict = self.verdict((preview.subject, *preview.also))
        if verdict.decision == "allow":
            return self._settle(call_id, Decision(outcome="allowed", by="rule", rule=verdict.rule))
        if verdict.decision == "deny":
            reason = f"Denied by a rule: {verdict.rule}."
            return self._settle(call_id, Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason))
        if self._headless:
            return self._settle(call_id, self._unasked(preview, verdict))
        asking()
        await self._emit.durable()  # what is asked about survives a crash, once somebody was asked
        return await self._ask(call_id, preview, verdict)

    def resolve(self, params: ApprovalResolveParams, client: str) -> ApprovalResolveResult:
        """Take a client's answer. The first one wins; a word that is not known is a refusal."""
        call_id = params.tool_call_id
        settled = self._settled.get(call_id)
        if settled is not None:
            return ApprovalResolveResult(status="alreadyResolved", outcome=settled.outcome, client=settled.client)
        pending = self._pending.get(call_id)
        if pending is None:
            raise AmanuError("approvalNotFound", "There is no such question in this session.")
        if pending.too_soon:
            return ApprovalResolveResult(status="tooSoon")
        decision = self._read_answer(params, pending, client)
        self._answer(call_id, decision)
        if decision.rule is not None:
            self._answer_covered()
        return ApprovalResolveResult(status="resolved", outcome=decision.outcome, client=client)

    def pending(self, call_id: str) -> Pending | None:
        return self._pending.get(call_id)

    def finish_reviews(self, proposal_id: str | None = None, client: str | None = None) -> None:
        """End the review of that proposal's calls (None: of all proposals): each call reports what was decided
        so far. Questions about anything but proposals keep waiting."""
        for call_id, pending in list(self._pending.items()):
            about = pending.approval.proposal_id
            if about is not None and proposal_id in (None, about):
                self._answer(call_id, Decision(outcome="reviewed", by="person", client=client))

    async def _ask(self, call_id: str, preview: Preview, verdict: Verdict) -> Decision:
        approval = Approval(
            tool_call_id=call_id,
            title=one_line(preview.title),
            detail=visible(preview.detail),
            effect=preview.subject.effect,
            rule=verdict.rule,
            scopes=offers((preview.subject, *preview.also), verdict),
            proposal_id=preview.proposal_id,
            asked_at=int(time.time() * 1000),
        )
        pending = Pending(approval, (preview.subject, *preview.also), asyncio.get_running_loop().create_future())
        if not self._pending:
            self._waiting_since = time.monotonic()
        self._pending[call_id] = pending
        self._emit(ApprovalRequested(approval=approval))
        try:
            return await pending.answer
        except asyncio.CancelledError:
            self._answer(call_id, Decision(outcome="cancelled", by="rule", rule="the turn was cancelled"))
            raise

    def _unasked(self, preview: Preview, verdict: Verdict) -> Decision:
        """Nobody is there to ask: no, and what would have permitted it. Nothing does where a must-ask decided."""
        reason, allow = "Nobody is there to ask.", None
        if verdict.rememberable:
            asked = [each for each in (preview.subject, *preview.also) if not self.allowed([each])]
            wanted = list(dict.fromkeys(map(suggested_rule, asked)))
            allow = wanted[0]
            options = " ".join(f"--allow {_quote(each)}" for each in wanted[:_NAMED])
            reason += f" It would have been permitted by {options}{' …' if len(wanted) > _NAMED else ''}."
        else:
            reason += f" This is always asked, whatever is allowed, because of a rule: {verdict.rule}."
        return Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason, permitted_by=allow)

    def _read_answer(self, params: ApprovalResolveParams, pending: Pending, client: str) -> Decision:
        if params.decision == "finish" and pending.approval.proposal_id is not None:
            return Decision(outcome="reviewed", by="person", client=client)
        if params.decision != "allow":
            return Decision(outcome="rejected", by="person", client=client, reason=params.reason)
        if params.scope == "once":
            return Decision(outcome="allowed", by="person", client=client, scope="once")
        offered = {offer.scope: offer.rule for offer in pending.approval.scopes}
        if params.scope not in offered:
            raise AmanuError("invalidRule", f"This cannot be remembered for the scope {params.scope!r}.")
        rule = remember(params.rule or offered[params.scope], params.scope, pending.subjects[0])
        match params.scope:
            case "turn":
                self._turn_rules.append(rule)
            case "session":
                self._session_rules.append(rule)
            case _:
                self._store(params.scope, rule)
        return Decision(outcome="allowed", by="person", client=client, rule=rule.text, scope=params.scope)

    def _answer_covered(self) -> None:
        """A rule was just saved: questions it covers need no further answer."""
        for call_id, pending in list(self._pending.items()):
            verdict = self.verdict(pending.subjects)
            if verdict.decision == "allow":
                self._answer(call_id, Decision(outcome="allowed", by="rule", rule=verdict.rule))

    def _answer(self, call_id: str, decision: Decision) -> None:
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return
        if not self._pending:
            self.waited += time.monotonic() - self._waiting_since
        self._settled[call_id] = decision
        self._emit(ApprovalResolved(tool_call_id=call_id, decision=decision))
        if not pending.answer.done():
            pending.answer.set_result(decision)

    def _settle(self, call_id: str, decision: Decision) -> Decision:
        self._settled[call_id] = decision
        return decision


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
