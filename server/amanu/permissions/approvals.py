"""Policy → remembered answers → ask the user."""

import asyncio
import hashlib
import hmac
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from amanu.core.emit import Emit
from amanu.core.rules import Rule, with_grants
from amanu.core.tool import Preview, Subject
from amanu.permissions.policy import (
    PolicyContext,
    Verdict,
    acts,
    allow_rules,
    built_in,
    command_parts,
    decide,
    decide_all,
    of_mode,
    offers,
    remember,
    suggested_rule,
)
from amanu.text import wording
from amanu.text.display import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, ApprovalResolved
from amanu_protocol.items import Approval, CommandPart, Decision, Grant, Proposal, Scope, ScopeOffer
from amanu_protocol.requests import ApprovalResolveParams, ApprovalResolveResult

GUARD_SECONDS = 0.5
"""An answer this soon after the question appeared was meant for something else (editor-peers: focus theft caused
accidental approvals)."""


_NAMED = 5  # rules named to somebody who was not asked
_EARLIER = 200  # questions a rule is tried on


@dataclass(frozen=True)
class Ceilings:
    """How much rules may allow in one turn. After that commands with an effect are asked about."""

    commands: int = 200
    seconds: float = 1800


@dataclass(frozen=True)
class PastQuestion:
    """A question the user was asked."""

    call_id: str
    title: str
    asking: tuple[Subject, ...]
    """What no rule allowed at the time."""


@dataclass
class PendingApproval:
    """A question waiting for the user."""

    approval: Approval
    subjects: tuple[Subject, ...]
    asked_about: tuple[Subject, ...]
    """Of them, those that no rule allows."""
    answer: "asyncio.Future[Decision]"
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def too_soon(self) -> bool:
        return time.monotonic() - self.asked_at < GUARD_SECONDS


def seal(proposal: Proposal) -> str:
    """A digest of what a yes to the whole proposal is about: the files, what they are based on, and what would be in
    them."""
    parts = [
        [
            [file.path, file.change, file.new_path, file.base_sha256],
            *([hunk.hunk_id, hunk.old_text, hunk.new_text] for hunk in file.hunks if hunk.state == "pending"),
        ]
        for file in proposal.files
    ]
    return hashlib.sha256(json.dumps([proposal.proposal_id, parts]).encode()).hexdigest()


def bases(proposal: Proposal) -> dict[str, str]:
    """Which texts of which files its open hunks are based on."""
    return {
        file.path: file.base_sha256 for file in proposal.files if any(hunk.state == "pending" for hunk in file.hunks)
    }


class PolicySource(Protocol):
    """What the decisions of one session rest on, each as it is now."""

    def context(self) -> PolicyContext: ...

    def rules(self) -> Sequence[Rule]:
        """Those that hold beyond the session."""
        ...

    def remember(self, scope: Scope, rule: Rule) -> None:
        """Keep a rule of the scopes workspace and user. Raises `AmanuError` storageError."""
        ...

    def proposal(self, proposal_id: str) -> Proposal | None: ...


class Approvals:
    """The decisions of one session."""

    def __init__(
        self, emit: Emit, policy: PolicySource, *, ceilings: Ceilings | None = None, headless: bool = False
    ) -> None:
        self._emit = emit
        self._policy = policy
        self._allowed_on: dict[str, dict[str, str]] = {}
        """Call → the bases of its proposal when the user said yes."""
        self._ceilings = ceilings or Ceilings()
        self._headless = headless
        self._free_commands = 0
        """Commands with an effect that rules allowed in this turn."""
        self._free_seconds = 0.0
        self.earlier: deque[PastQuestion] = deque(maxlen=_EARLIER)
        self._session_rules: list[Rule] = []
        self._turn_rules: list[Rule] = []
        self._pending: dict[str, PendingApproval] = {}
        self._settled: dict[str, Decision] = {}
        self._waiting_since = 0.0
        self.waited = 0.0
        """Seconds spent waiting for the user, in all."""

    def start_turn(self) -> None:
        """What was allowed for the last turn is not allowed for this one."""
        self._turn_rules.clear()
        self._free_commands, self._free_seconds = 0, 0.0

    def ran(self, decision: Decision, seconds: float) -> None:
        """A command ended that was decided on so, after that long."""
        if decision.by == "rule":
            self._free_seconds += seconds

    def allow_in_session(self, rule: Rule) -> None:
        """Add a rule of session scope: from a resumed session, or from `--allow`."""
        self._session_rules.append(rule)

    def rules(self) -> tuple[Rule, ...]:
        """All rules in force, in no particular order: deny beats must-ask beats allow."""
        return (
            *built_in(),
            *of_mode(self._policy.context().mode),
            *self._turn_rules,
            *self._session_rules,
            *self._policy.rules(),
        )

    def verdict(self, subjects: Sequence[Subject]) -> Verdict:
        """On a call about all of them."""
        return decide_all(self.rules(), subjects, self._policy.context())[0]

    def allowed(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that are allowed without a question."""
        return self._with_decision(subjects, "allow")

    def denied(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that a rule denies."""
        return self._with_decision(subjects, "deny")

    def parts(self, subjects: Sequence[Subject]) -> list[CommandPart]:
        """What is thought of each command among them."""
        return command_parts(zip(subjects, self._verdicts(subjects), strict=True))

    def would_cover(self, text: str, call_id: str | None) -> tuple[bool | None, list[str]]:
        """Of rules as text: whether they would answer that pending question (None: there is none), and the titles of
        the earlier questions they would have answered and today's rules do not, latest first. Raises `AmanuError`
        (invalidRule)."""
        current_rules = self.rules()
        rules = (*current_rules, *allow_rules(text, "session"))
        when = self._policy.context()

        def covers(rules: Sequence[Rule], subjects: Sequence[Subject]) -> bool:
            return bool(subjects) and all(decide(rules, subject, when).decision == "allow" for subject in subjects)

        pending = self._pending.get(call_id or "")
        earlier = [earlier_call for earlier_call in reversed(self.earlier) if earlier_call.call_id != call_id]
        saved = [
            earlier_call.title
            for earlier_call in earlier
            if covers(rules, earlier_call.asking) and not covers(current_rules, earlier_call.asking)
        ]
        return (None if pending is None else covers(rules, pending.subjects)), saved

    async def decide(self, call_id: str, preview: Preview, asking: Callable[[], None]) -> Decision:
        """Settle one call: by rule where one matches, else by asking (`asking` is called just before). Waits as
        long as the user takes; no time-out ever means yes. Cancelling the task withdraws the question."""
        self._allowed_on.pop(call_id, None)  # a yes to what it was before
        verdict, decision = self._by_rule((preview.subject, *preview.extra_subjects))
        if decision is not None:
            return self._settle(call_id, decision)
        if self._headless:
            return self._settle(call_id, self._unasked(preview, verdict))
        asking()
        await self._emit.durable()  # what is asked about survives a crash, once somebody was asked
        verdict, decision = self._by_rule(
            (preview.subject, *preview.extra_subjects)
        )  # mode or rules may be others by now
        if decision is not None:
            return self._settle(call_id, decision)
        return await self._ask(call_id, preview, verdict)

    def resolve(self, params: ApprovalResolveParams, client: str) -> ApprovalResolveResult:
        """Take a client's answer. The first one wins; a word that is not known is a refusal. A yes counts only with
        the digest of what is asked about."""
        call_id = params.tool_call_id
        settled = self._settled.get(call_id)
        if settled is not None:
            return ApprovalResolveResult(status="alreadyResolved", outcome=settled.outcome, client=settled.client)
        pending = self._pending.get(call_id)
        if pending is None:
            raise AmanuError("approvalNotFound", "There is no such question in this session.")
        if pending.too_soon:
            return ApprovalResolveResult(status="tooSoon")
        if params.decision == "allow" and not _same(params.digest, pending.approval.digest):
            return ApprovalResolveResult(status="stale")
        decision = self._read_answer(params, pending, client)
        proposal_id = pending.approval.proposal_id
        if (
            decision.outcome == "allowed"
            and proposal_id is not None
            and (proposal := self._policy.proposal(proposal_id)) is not None
        ):
            self._allowed_on[call_id] = bases(proposal)
        self._answer(call_id, decision)
        if decision.scope not in (None, "once"):
            self.reconsider()
        return ApprovalResolveResult(status="resolved", outcome=decision.outcome, client=client)

    def pending(self, call_id: str) -> PendingApproval | None:
        return self._pending.get(call_id)

    def holds(self, preview: Preview, decision: Decision) -> bool:
        """Whether rules and mode, as they are now, still let that yes stand: one of the user's ends with a deny, one
        of a rule also when no rule says it any more."""
        current = self.verdict((preview.subject, *preview.extra_subjects))
        if current.decision != "allow":
            return decision.by == "user" and current.decision == "ask"
        return decision.by == "user" or {*decision.grants} <= {*_given(current)}

    def reveals(self, preview: Preview, decision: Decision) -> bool:
        """Whether that yes lets a command read files that hold secrets: the user was asked about it, or keeps a rule
        that names it."""
        return decision.by == "user" or self.verdict((preview.subject, *preview.extra_subjects)).named

    def same_bases(self, call_id: str, proposal_id: str) -> bool:
        """Whether the files of a proposal are based on what they were when the user allowed that call. Hunks that
        others added, or decided, since are not its business. True where no user did."""
        current = self._policy.proposal(proposal_id)
        allowed_on = self._allowed_on.get(call_id, {})
        return current is None or all(allowed_on.get(path, sha) == sha for path, sha in bases(current).items())

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal is this now: questions about it are asked again, and end when it is settled."""
        self._ask_again(proposal.proposal_id)
        if proposal.state == "settled":
            self.finish_reviews(proposal.proposal_id)

    def _ask_again(self, proposal_id: str) -> None:
        for pending in self._pending.values():
            if pending.approval.proposal_id != proposal_id:
                continue
            digest = self._sealed(proposal_id)
            if pending.approval.digest != digest:
                pending.approval = pending.approval.model_copy(update={"digest": digest})
                self._emit(ApprovalRequested(approval=pending.approval))

    def reconsider(self) -> None:
        """Mode, rules or trust changed: every standing question is decided as if it came now. What still has to be
        asked stays, and says why it is asked now. Where the rules cannot be read, all of them stay."""
        for call_id, pending in list(self._pending.items()):
            try:
                verdict, decision = self._by_rule(pending.subjects)
            except AmanuError:
                return
            if decision is not None:
                self._answer(call_id, decision)
            else:
                self._put_anew(pending, verdict)

    def finish_reviews(self, proposal_id: str | None = None, client: str | None = None) -> None:
        """End the review of that proposal's calls (None: of all proposals): each call reports what was decided
        so far. Questions about anything but proposals keep waiting."""
        for call_id, pending in list(self._pending.items()):
            about = pending.approval.proposal_id
            if about is not None and proposal_id in (None, about):
                self._answer(call_id, Decision(outcome="reviewed", by="user", client=client))

    def _sealed(self, proposal_id: str) -> str:
        proposal = self._policy.proposal(proposal_id)
        return "" if proposal is None else seal(proposal)

    def _verdicts(self, subjects: Sequence[Subject]) -> list[Verdict]:
        rules, when = self.rules(), self._policy.context()
        return [decide(rules, subject, when) for subject in subjects]

    def _with_decision(self, subjects: Iterable[Subject], decision: str) -> list[Subject]:
        subjects = list(subjects)
        verdicts = self._verdicts(subjects)
        return [subject for subject, verdict in zip(subjects, verdicts, strict=True) if verdict.decision == decision]

    def _by_rule(self, subjects: Sequence[Subject]) -> tuple[Verdict, Decision | None]:
        """The verdict on a call about those, and the decision, if the user need not be asked."""
        verdict = self._within_ceilings(subjects, self.verdict(subjects))
        match verdict.decision:
            case "allow":
                return verdict, Decision(outcome="allowed", by="rule", rule=verdict.rule, grants=_given(verdict))
            case "deny":
                reason = f"Denied by a rule: {verdict.rule}."
                return verdict, Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason)
            case "ask":
                return verdict, None

    def _within_ceilings(self, subjects: Sequence[Subject], verdict: Verdict) -> Verdict:
        """Commands with an effect that rules allow are counted; beyond the ceilings the user is asked."""
        if verdict.decision != "allow" or not any(map(acts, subjects)):
            return verdict
        if self._free_commands >= self._ceilings.commands:
            over = f"limits.unasked_commands: rules allowed {self._free_commands} commands in this turn"
            return Verdict("ask", over, rememberable=False, why=verdict.why)
        if self._free_seconds >= self._ceilings.seconds:
            over = f"limits.unasked_seconds: commands allowed by rules took {self._free_seconds:.0f} s in this turn"
            return Verdict("ask", over, rememberable=False, why=verdict.why)
        self._free_commands += 1
        return verdict

    async def _ask(self, call_id: str, preview: Preview, verdict: Verdict) -> Decision:
        subjects = (preview.subject, *preview.extra_subjects)
        asked_subjects, scopes = self._asked_about(subjects, verdict)
        title = one_line(preview.title)
        approval = Approval(
            tool_call_id=call_id,
            title=title,
            detail=visible(preview.detail),
            effect=preview.subject.effect,
            rule=verdict.rule,
            scopes=scopes,
            proposal_id=preview.proposal_id,
            asked_at=int(time.time() * 1000),
            digest=preview.digest if preview.proposal_id is None else self._sealed(preview.proposal_id),
            parts=self.parts(subjects),
            sandbox=preview.sandbox,
            grants=list(preview.grants),
            likely_grants=list(preview.likely_grants),
        )
        approval = wording.explain_approval(approval)
        self.earlier.append(PastQuestion(call_id, title, asked_subjects))
        self._settled.pop(call_id, None)  # asked again, for it is about something else by now
        pending = PendingApproval(approval, subjects, asked_subjects, asyncio.get_running_loop().create_future())
        if not self._pending:
            self._waiting_since = time.monotonic()
        self._pending[call_id] = pending
        self._emit(ApprovalRequested(approval=approval))
        try:
            return await pending.answer
        except asyncio.CancelledError:
            self._answer(call_id, Decision(outcome="cancelled", by="rule", rule="the turn was cancelled"))
            raise

    def _asked_about(
        self, subjects: tuple[Subject, ...], verdict: Verdict
    ) -> tuple[tuple[Subject, ...], list[ScopeOffer]]:
        """Of what a question is about, that which no rule allows; and the ways to answer it."""
        judged = list(zip(subjects, self._verdicts(subjects), strict=True))
        open_subjects = [
            (subject, subject_verdict) for subject, subject_verdict in judged if subject_verdict.decision != "allow"
        ]
        scopes = offers(open_subjects if verdict.rememberable else [], allowed=len(judged) - len(open_subjects))
        return tuple(subject for subject, _ in open_subjects) or subjects, scopes

    def _put_anew(self, pending: PendingApproval, verdict: Verdict) -> None:
        """A question that stands, with what is thought of it by now."""
        pending.asked_about, scopes = self._asked_about(pending.subjects, verdict)
        changes = {"rule": verdict.rule, "scopes": scopes, "parts": self.parts(pending.subjects)}
        approval = wording.explain_approval(pending.approval.model_copy(update=changes))
        if approval != pending.approval:
            pending.approval = approval
            self._emit(ApprovalRequested(approval=approval))

    def _unasked(self, preview: Preview, verdict: Verdict) -> Decision:
        """Nobody is there to ask: no, and what would have permitted it. Nothing does where a must-ask decided."""
        reason, allow = "Nobody is there to ask.", None
        subjects = (preview.subject, *preview.extra_subjects)
        open_subjects = [subject for subject in subjects if not self.allowed([subject])]
        if verdict.rememberable or not open_subjects:
            suggestions = list(dict.fromkeys(map(suggested_rule, open_subjects)))
            if not open_subjects:  # each command is allowed, but not the network to all of them
                suggestions = [
                    with_grants(suggested_rule(subject), ["network"]) for subject in subjects if acts(subject)
                ]
            allow = suggestions[0]
            options = " ".join(f"--allow {_quote(suggestion)}" for suggestion in suggestions[:_NAMED])
            reason += f" It would have been permitted by {options}{' …' if len(suggestions) > _NAMED else ''}."
        else:
            reason += f" This is always asked, whatever is allowed, because of a rule: {verdict.rule}."
        return Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason, permitted_by=allow)

    def _read_answer(self, params: ApprovalResolveParams, pending: PendingApproval, client: str) -> Decision:
        if params.decision == "finish" and pending.approval.proposal_id is not None:
            return Decision(outcome="reviewed", by="user", client=client)
        if params.decision != "allow":
            return Decision(outcome="rejected", by="user", client=client, reason=params.reason)
        grants: list[Grant] = [grant for grant in params.grants if grant in pending.approval.grants]
        if params.scope == "once":
            return Decision(outcome="allowed", by="user", client=client, scope="once", grants=grants)
        offered = {offer.scope: offer.rule for offer in pending.approval.scopes}
        if params.scope not in offered:
            raise AmanuError("invalidRule", f"This cannot be remembered for the scope {params.scope!r}.")
        # What is kept grants what this answer does, and this call gets what is kept.
        text = params.rule or with_grants(offered[params.scope], grants, only=True)
        rules = remember(text, params.scope, pending.asked_about, self._policy.context(), grants)
        granting_verdict = decide_all((*self.rules(), *rules), pending.subjects, self._policy.context())[0]
        grants = [grant for grant in pending.approval.grants if grant in {*grants, *_given(granting_verdict)}]
        for rule in rules:
            match params.scope:
                case "turn":
                    self._turn_rules.append(rule)
                case "session":
                    self._session_rules.append(rule)
                case _:
                    self._policy.remember(params.scope, rule)
        saved = "\n".join(rule.text for rule in rules)
        return Decision(outcome="allowed", by="user", client=client, rule=saved, scope=params.scope, grants=grants)

    def _answer(self, call_id: str, decision: Decision) -> None:
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return
        if not self._pending:
            self.waited += time.monotonic() - self._waiting_since
        decision = wording.summarize_decision(decision)
        self._settled[call_id] = decision
        self._emit(ApprovalResolved(tool_call_id=call_id, decision=decision))
        if not pending.answer.done():
            pending.answer.set_result(decision)

    def _settle(self, call_id: str, decision: Decision) -> Decision:
        decision = self._settled[call_id] = wording.summarize_decision(decision)
        return decision


def _given(verdict: Verdict) -> list[Grant]:
    return ["unsandboxed"] if verdict.unsandboxed else ["network"] if verdict.network else []


def _same(answered: str | None, digest: str) -> bool:
    """Nothing is the same as nothing: of a proposal that is gone there is no digest, and nothing to say yes to."""
    return bool(digest) and hmac.compare_digest((answered or "").encode("utf-8", "surrogatepass"), digest.encode())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
