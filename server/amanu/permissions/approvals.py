"""Who decides on each call of one session: a rule, or the user, who is asked.

`Approvals.decide` settles a call and waits for the answer if there has to be one; clients answer through `resolve`. A
question stays open until somebody answers it, a rule that changed answers it, or the turn is cancelled.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from amanu.core import protected_paths as protected
from amanu.core.emit import Emit
from amanu.core.rules import Rule, with_grants
from amanu.core.tool import AgentLabel, Preview, Subject, ToolError
from amanu.permissions.offers import offers, permitting, remember, rules_of
from amanu.permissions.policy import (
    DRAFTED,
    NOTHING_MATCHED,
    TRIAL,
    PolicyContext,
    Verdict,
    acts,
    built_in,
    command_parts,
    decide_all,
    decide_each,
    drafts,
    of_mode,
    runs_on_copy,
)
from amanu.permissions.user_wait import UserWait
from amanu.text import wording
from amanu.text.display import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, ApprovalResolved
from amanu_protocol.items import (
    Approval,
    CommandPart,
    CommandSandbox,
    Decision,
    Grant,
    Line,
    Proposal,
    Scope,
    ScopeOffer,
)
from amanu_protocol.requests import ApprovalResolveParams, ApprovalResolveResult

GUARD_SECONDS = 0.5
"""An answer this soon after the question appeared was meant for something else: a prompt that steals the focus collects
keystrokes."""

_MAX_SUGGESTIONS = 5  # rules suggested when there is nobody to ask
_MAX_PAST_QUESTIONS = 200  # questions a rule is tried on


@dataclass(frozen=True)
class Ceilings:
    """How much rules may allow in one turn: a number of commands with an effect, and the seconds they take together.
    Beyond that the user is asked."""

    commands: int = 200
    seconds: float = 1800


@dataclass(frozen=True)
class PastQuestion:
    """A question the user was asked."""

    call_id: str
    title: str
    subjects: tuple[Subject, ...]
    """What no rule allowed at the time."""


@dataclass
class PendingApproval:
    """A question waiting for the user."""

    approval: Approval
    subjects: tuple[Subject, ...]
    open_subjects: tuple[Subject, ...]
    """Those of `subjects` that no rule allows."""
    notes: tuple[Line, ...]
    answer: "asyncio.Future[Decision]"
    preview_again: Callable[[], Awaitable[Preview]] | None = None
    """Makes the preview anew, where what is asked about can change while the question is open; None: it cannot."""
    revised: Preview | None = None
    """What is asked about now, if that has changed since the question was first asked."""
    asked_at: float = field(default_factory=time.monotonic)

    @property
    def too_soon(self) -> bool:
        return time.monotonic() - self.asked_at < GUARD_SECONDS


@dataclass(frozen=True)
class Edit:
    """The user's own command line, in answer to an approval."""

    answer: Decision
    seen: Approval
    """The approval the user saw."""
    reasons: frozenset[tuple[str, str]]
    """(What, why) of all that was asked about."""

    @property
    def original(self) -> str | None:
        return self.seen.original_command or self.seen.command

    def covers(self, preview: Preview) -> bool:
        """Whether a command is held at least as the one that was seen, and needs no grant that was not in sight."""
        in_sight = {*self.seen.likely_grants, *self.answer.grants}
        if "unsandboxed" in in_sight:
            in_sight.add("network")
        return in_sight >= {*preview.likely_grants} and _reach(preview.sandbox) <= _reach(self.seen.sandbox)


def _reach(sandbox: CommandSandbox | None) -> int:
    """How far a command's writes may reach; the sandbox tells it with what the command probably needs."""
    return 2 if sandbox is None else ("nothing", "workspace", "everything").index(sandbox.writes)


def proposal_digest(proposal: Proposal) -> str:
    """A digest (SHA-256) of what an approval of the whole proposal is about: the files, what they are based on, and
    what would be in them."""
    parts = [
        [
            [file.path, file.change, file.new_path, file.base_sha256],
            *([hunk.hunk_id, hunk.old_text, hunk.new_text] for hunk in file.hunks if hunk.state == "pending"),
        ]
        for file in proposal.files
    ]
    return hashlib.sha256(json.dumps([proposal.proposal_id, parts]).encode()).hexdigest()


def open_bases(proposal: Proposal) -> dict[str, str]:
    """Path → SHA-256 of the text that the open hunks of that file are based on."""
    return {
        file.path: file.base_sha256 for file in proposal.files if any(hunk.state == "pending" for hunk in file.hunks)
    }


class PolicySource(Protocol):
    """What the decisions of one session rest on; each method returns the current value."""

    def context(self) -> PolicyContext: ...

    def rules(self) -> Sequence[Rule]:
        """The rules that hold beyond the session."""
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
        self._allowed_bases: dict[str, dict[str, str]] = {}
        """Call → the bases of its proposal when the user said yes."""
        self._ceilings = ceilings or Ceilings()
        self._headless = headless
        self._unasked_commands = 0
        """Commands with an effect that rules allowed in this turn."""
        self._unasked_seconds = 0.0
        self._past_questions: deque[PastQuestion] = deque(maxlen=_MAX_PAST_QUESTIONS)
        self._session_rules: list[Rule] = []
        self._turn_rules: list[Rule] = []
        self._pending: dict[str, PendingApproval] = {}
        self._settled: dict[str, Decision] = {}
        self._revised: dict[str, Preview] = {}
        self._edits: dict[str, Edit] = {}
        """Call → the user's own command line, which is not decided on yet."""
        self.wait = UserWait()

    def start_turn(self) -> None:
        """What was allowed for the last turn is not allowed for this one."""
        self._turn_rules.clear()
        self._unasked_commands, self._unasked_seconds = 0, 0.0

    def add_run_time(self, decision: Decision, seconds: float) -> None:
        """Count the time of a command that has ended and was allowed by this decision."""
        if decision.by == "rule":
            self._unasked_seconds += seconds

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
        """The verdict on a call about all of them."""
        return decide_all(self.rules(), subjects, self._policy.context())[0]

    def would_ask(self, preview: Preview) -> bool:
        """Whether no rule decides on that call, nor is it tried first or drafted; the ceilings are not looked at."""
        if self._decide_draft(preview) is not None:
            return False
        verdict = self.verdict((preview.subject, *preview.extra_subjects))
        return verdict.decision == "ask" and not (preview.trial and verdict.trial)

    def allowed(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that are allowed without a question."""
        return self._with_decision(subjects, "allow")

    def denied(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that a rule denies."""
        return self._with_decision(subjects, "deny")

    def parts(self, subjects: Sequence[Subject]) -> list[CommandPart]:
        """The verdict on each command among them, for the user."""
        return command_parts(zip(subjects, self._verdicts(subjects), strict=True))

    def would_cover(self, text: str, call_id: str | None) -> tuple[bool | None, list[str]]:
        """What allow rules, written as text, would do: (whether they would answer that pending question, None if there
        is none; the titles of past questions they would have answered and the current rules would not, latest first).
        Raises `AmanuError` (invalidRule)."""
        current_rules = self.rules()
        rules = (*current_rules, *rules_of(text, "session"))
        when = self._policy.context()

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
        if edit is not None and edit.answer.command != preview.command:
            edit = None  # a hook has changed the user's line: it is not theirs any more
        if edit is not None and self._covered(edit, preview):
            allowed = edit.answer.model_copy(update={"outcome": "allowed", "grants": _offered(edit.answer, preview)})
            return self._settle(call_id, allowed)
        verdict, decision = self._decide_unasked(preview)
        if decision is not None:
            return self._settle(call_id, decision)
        if self._headless:
            return self._settle(call_id, self._deny_headless(preview, verdict))
        on_ask()
        await self._emit.durable()  # once a client shows the question, what it is about survives a crash
        verdict, decision = self._decide_unasked(preview)  # they may have changed
        if decision is not None:
            return self._settle(call_id, decision)
        return await self._ask(call_id, preview, verdict, preview_again, agent, edit and edit.original)

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

    def reject_plan(self, reason: str, client: str) -> None:
        """The user sent a message instead of approving the plan: it counts as not approved."""
        for call_id, pending in list(self._pending.items()):
            if pending.approval.document is not None:
                self._answer(call_id, Decision(outcome="rejected", by="user", client=client, reason=reason))

    def resolve(self, params: ApprovalResolveParams, client: str) -> ApprovalResolveResult:
        """Take a client's answer. The first one wins; an unknown word is a refusal. An approval counts only with the
        digest of what is asked about. Raises `AmanuError` (approvalNotFound, invalidRule, storageError)."""
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
            raise AmanuError("approvalNotFound", "No such question is pending in this session.")
        if pending.too_soon:
            return ApprovalResolveResult(status="tooSoon")
        if params.decision == "allow" and not _same_digest(params.digest, pending.approval.digest):
            return ApprovalResolveResult(status="stale")
        if params.decision == "allow" and params.command not in (None, pending.approval.command):
            return self._take_edit(params, params.command or "", pending, client)
        decision = self._read_answer(params, pending, client)
        proposal_id = pending.approval.proposal_id
        if (
            decision.outcome == "allowed"
            and proposal_id is not None
            and (proposal := self._policy.proposal(proposal_id)) is not None
        ):
            self._allowed_bases[call_id] = open_bases(proposal)
        self._answer(call_id, decision)
        if decision.scope not in (None, "once"):
            self.reconsider()
        return ApprovalResolveResult(status="resolved", outcome=decision.outcome, client=client)

    def _take_edit(
        self, params: ApprovalResolveParams, command: str, pending: PendingApproval, client: str
    ) -> ApprovalResolveResult:
        """Take the user's own command line. The call goes on with it and is decided on anew, which `_covered` may make
        short."""
        if pending.approval.command is None:
            raise AmanuError("invalidParams", "This command cannot be edited.")
        if not command.strip():
            raise AmanuError("invalidParams", "The command is empty.")
        if visible(command) != command:
            raise AmanuError("invalidParams", f"The command contains hidden characters: {one_line(command)}")
        answer = Decision(
            outcome="edited",
            by="user",
            client=client,
            scope=params.scope,
            grants=[grant for grant in params.grants if grant in pending.approval.grants],
            command=command,
        )
        call_id = params.tool_call_id
        self._edits[call_id] = Edit(answer, pending.approval, self._reasons(pending.subjects))
        self._answer(call_id, answer)
        return ApprovalResolveResult(status="resolved", outcome="edited", client=client)

    def _covered(self, edit: Edit, preview: Preview) -> bool:
        """Whether the user's own line asks for no more than they saw when they wrote it: nothing denies it, and what it
        needs approval for is that no rule allows it, or was asked about before. Then writing it was the yes."""
        subjects = (preview.subject, *preview.extra_subjects)
        if edit.answer.scope != "once" or self.verdict(subjects).decision == "deny" or not edit.covers(preview):
            return False
        return all(why == NOTHING_MATCHED or (what, why) in edit.reasons for what, why in self._reasons(subjects))

    def _reasons(self, subjects: Sequence[Subject]) -> frozenset[tuple[str, str]]:
        """Why a call about those needs approval: (what, why) of each of them, and of all of them together."""
        verdicts = zip((subject.text for subject in subjects), self._verdicts(subjects), strict=True)
        judged = [*verdicts, ("", self.verdict(subjects))]
        return frozenset((text, verdict.rule) for text, verdict in judged if verdict.decision != "allow")

    def pending(self, call_id: str) -> PendingApproval | None:
        return self._pending.get(call_id)

    def still_allowed(self, preview: Preview, decision: Decision) -> bool:
        """Whether that approval still holds under the current rules and mode: the user's ends only with a deny, a
        rule's also when no rule allows the call any more."""
        current = self.verdict((preview.subject, *preview.extra_subjects))
        if current.decision != "allow":
            tried = decision.trial and preview.trial and current.trial
            return current.decision == "ask" and (decision.by == "user" or tried)
        return decision.by == "user" or {*decision.grants} <= {*_grants_of(current)}

    def reveals_secrets(self, preview: Preview, decision: Decision) -> bool:
        """Whether that approval lets a command read files that hold secrets: the user gave it, or has a rule that
        names the command."""
        return decision.by == "user" or self.verdict((preview.subject, *preview.extra_subjects)).named

    def same_bases(self, call_id: str, proposal_id: str) -> bool:
        """Whether the files of a proposal are based on what they were when the user allowed that call; hunks added or
        decided since do not matter. True where no user was asked."""
        current = self._policy.proposal(proposal_id)
        allowed_on = self._allowed_bases.get(call_id, {})
        return current is None or all(allowed_on.get(path, sha) == sha for path, sha in open_bases(current).items())

    def on_proposal(self, proposal: Proposal) -> None:
        """A proposal has changed: questions about it are asked again, and end when it is settled."""
        self._ask_again(proposal.proposal_id)
        if proposal.state == "settled":
            self.finish_reviews(proposal.proposal_id)

    def _ask_again(self, proposal_id: str) -> None:
        for pending in self._pending.values():
            if pending.approval.proposal_id != proposal_id:
                continue
            digest = self._proposal_digest(proposal_id)
            if pending.approval.digest != digest:
                pending.approval = pending.approval.model_copy(update={"digest": digest})
                self._emit(ApprovalRequested(approval=pending.approval))

    def reconsider(self) -> None:
        """Mode, rules or trust changed: decide every open question again. What still has to be asked stays open, with
        the current reason. Where the rules cannot be read, all of them stay."""
        for call_id, pending in list(self._pending.items()):
            try:
                verdict, decision = self._decide_by_rule(pending.subjects)
            except AmanuError:
                return
            if decision is not None:
                self._answer(call_id, decision)
            else:
                self._update_question(pending, verdict)

    def finish_reviews(self, proposal_id: str | None = None, client: str | None = None) -> None:
        """End the review of that proposal's calls (None: of all proposals): each call reports what was decided
        so far. Questions about anything else stay open."""
        for call_id, pending in list(self._pending.items()):
            reviewed_id = pending.approval.proposal_id
            if reviewed_id is not None and proposal_id in (None, reviewed_id):
                self._answer(call_id, Decision(outcome="reviewed", by="user", client=client))

    def _proposal_digest(self, proposal_id: str) -> str:
        proposal = self._policy.proposal(proposal_id)
        return "" if proposal is None else proposal_digest(proposal)

    def _verdicts(self, subjects: Sequence[Subject]) -> list[Verdict]:
        return decide_each(self.rules(), subjects, self._policy.context())

    def _with_decision(self, subjects: Iterable[Subject], decision: str) -> list[Subject]:
        subjects = list(subjects)
        verdicts = self._verdicts(subjects)
        return [subject for subject, verdict in zip(subjects, verdicts, strict=True) if verdict.decision == decision]

    def _decide_by_rule(self, subjects: Sequence[Subject]) -> tuple[Verdict, Decision | None]:
        """The verdict on a call about those, and the decision; None when the user has to be asked."""
        verdict = self._within_ceilings(subjects, self.verdict(subjects))
        match verdict.decision:
            case "allow":
                return verdict, Decision(outcome="allowed", by="rule", rule=verdict.rule, grants=_grants_of(verdict))
            case "deny":
                reason = f"Denied by a rule: {wording.rule_in_words(verdict.rule)}."
                return verdict, Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason)
            case "ask":
                return verdict, None

    def _decide_unasked(self, preview: Preview) -> tuple[Verdict, Decision | None]:
        """The verdict on the call, and the decision, where a rule decides or it may be tried first; None when the user
        has to be asked."""
        subjects = (preview.subject, *preview.extra_subjects)
        if (decision := self._decide_draft(preview)) is not None:
            return Verdict("allow", decision.rule or ""), decision
        verdict, decision = self._decide_by_rule(subjects)
        if decision is None and preview.trial and verdict.trial:
            tried = self._within_ceilings(subjects, replace(verdict, decision="allow", rule=self._trial_rule()))
            if tried.decision == "ask":
                return tried, None
            decision = Decision(outcome="allowed", by="rule", rule=tried.rule, trial=True)
        elif decision is not None and verdict.decision == "allow" and self._runs_on_copy(preview, verdict):
            decision = decision.model_copy(update={"trial": True})
        return verdict, decision

    def _runs_on_copy(self, preview: Preview, verdict: Verdict) -> bool:
        """Whether a command that a rule allows runs on a private copy of the workspace all the same. Not what a rule of
        the user's names or grants more; nor lines of git alone, which need no undo and may switch to a branch with
        other protected files."""
        if not (preview.trial and preview.in_layer and runs_on_copy(self._policy.context().mode)):
            return False
        is_plain = not (verdict.named or verdict.network or verdict.unsandboxed)
        only_git = preview.requirements is not None and preview.requirements.checkout
        return is_plain and not only_git and any(map(acts, (preview.subject, *preview.extra_subjects)))

    def _decide_draft(self, preview: Preview) -> Decision | None:
        """The decision on a call whose edits are only drafted: they wait for the user, the call does not. None where
        that is not so, where a rule denies an edit, and where something else than the edits is to be decided."""
        proposal = None if preview.proposal_id is None else self._policy.proposal(preview.proposal_id)
        mode = self._policy.context().mode
        if proposal is None or not (proposal.draft and drafts(mode)) or preview.review:
            return None
        subjects = (preview.subject, *preview.extra_subjects)
        for subject, verdict in zip(subjects, self._verdicts(subjects), strict=True):
            # Whether an edit of a file with secrets fits says what is in it.
            is_drafted = subject.effect == "write" and not (subject.must_ask or protected.is_secret(subject.text))
            if verdict.decision == "deny" or (verdict.decision == "ask" and not is_drafted):
                return None
        return Decision(outcome="reviewed", by="rule", rule=f"mode {mode}: allow @write ({DRAFTED})")

    def _trial_rule(self) -> str:
        return f"mode {self._policy.context().mode}: allow @run ({TRIAL})"

    def _within_ceilings(self, subjects: Sequence[Subject], verdict: Verdict) -> Verdict:
        """Commands with an effect that rules allow are counted; beyond the ceilings the user is asked."""
        if verdict.decision != "allow" or not any(map(acts, subjects)):
            return verdict
        if self._unasked_commands >= self._ceilings.commands:
            count = self._unasked_commands
            reason = f"rules have already allowed {count} commands in this turn (limits.unasked_commands)"
            return Verdict("ask", reason, rememberable=False, why=verdict.why)
        if self._unasked_seconds >= self._ceilings.seconds:
            seconds = f"{self._unasked_seconds:.0f} s"
            reason = f"commands allowed by rules have already taken {seconds} in this turn (limits.unasked_seconds)"
            return Verdict("ask", reason, rememberable=False, why=verdict.why)
        self._unasked_commands += 1
        return verdict

    async def _ask(
        self,
        call_id: str,
        preview: Preview,
        verdict: Verdict,
        preview_again: Callable[[], Awaitable[Preview]] | None,
        agent: AgentLabel | None,
        original_command: str | None,
    ) -> Decision:
        subjects = (preview.subject, *preview.extra_subjects)
        asked_subjects, scopes = self._open_subjects(subjects, verdict)
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
            digest=preview.digest if preview.proposal_id is None else self._proposal_digest(preview.proposal_id),
            parts=self.parts(subjects),
            sandbox=preview.sandbox,
            blocked=visible(preview.blocked),
            grants=list(preview.grants),
            likely_grants=list(preview.likely_grants),
            command=self._editable(preview.command),
            original_command=original_command,
            document=None if preview.plan is None else str(preview.plan.path),
            agent_id=None if agent is None else agent.agent_id,
            agent="" if agent is None else agent.name,
        )
        approval = wording.explain_approval(approval, preview.notes)
        self._past_questions.append(PastQuestion(call_id, title, asked_subjects))
        self._settled.pop(call_id, None)  # asked again: the call has changed
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        pending = PendingApproval(approval, subjects, asked_subjects, preview.notes, answer, preview_again)
        self.wait.begin()
        self._pending[call_id] = pending
        self._emit(ApprovalRequested(approval=approval))
        try:
            return await pending.answer
        except asyncio.CancelledError:
            self._answer(call_id, Decision(outcome="cancelled", by="rule", rule="the end of the turn"))
            raise

    def _editable(self, command: str | None) -> str | None:
        """The command line, if a user who edits it sees all of it."""
        return command if command and command == visible(command) == self._emit.redact(command) else None

    def _open_subjects(
        self, subjects: tuple[Subject, ...], verdict: Verdict
    ) -> tuple[tuple[Subject, ...], list[ScopeOffer]]:
        """What of a question no rule allows, and the ways to answer it."""
        judged = list(zip(subjects, self._verdicts(subjects), strict=True))
        open_subjects = [
            (subject, subject_verdict) for subject, subject_verdict in judged if subject_verdict.decision != "allow"
        ]
        scopes = offers(open_subjects if verdict.rememberable else [], allowed=len(judged) - len(open_subjects))
        return tuple(subject for subject, _ in open_subjects) or subjects, scopes

    def _update_question(self, pending: PendingApproval, verdict: Verdict) -> None:
        """Show an open question with the current verdict."""
        pending.open_subjects, scopes = self._open_subjects(pending.subjects, verdict)
        changes = {"rule": verdict.rule, "scopes": scopes, "parts": self.parts(pending.subjects)}
        approval = wording.explain_approval(pending.approval.model_copy(update=changes), pending.notes)
        if approval != pending.approval:
            pending.approval = approval
            self._emit(ApprovalRequested(approval=approval))

    def _deny_headless(self, preview: Preview, verdict: Verdict) -> Decision:
        """Deny a call because there is nobody to ask, and name what would have permitted it."""
        subjects = (preview.subject, *preview.extra_subjects)
        rules, when = self.rules(), self._policy.context()
        suggestions = permitting(rules, subjects, when)
        reason = "Nobody is there to approve it."
        if suggestions:
            options = " ".join(f"--allow {_quote(suggestion)}" for suggestion in suggestions[:_MAX_SUGGESTIONS])
            reason += f" Permit it with {options}{' …' if len(suggestions) > _MAX_SUGGESTIONS else ''}."
        elif decide_all(rules, subjects, when)[0].decision == "allow":  # but a ceiling is reached
            reason += f" It needs approval: {verdict.rule}."
        else:
            why = "" if verdict.rule == NOTHING_MATCHED else f": {wording.rule_in_words(verdict.rule)}"
            reason += f" No rule can allow it, only the user{why}."
        # A plan that nobody approves is not an action denied to the run: the plan is its answer.
        permitted_by = None if preview.plan is not None else suggestions[0] if suggestions else ""
        return Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason, permitted_by=permitted_by)

    def _read_answer(self, params: ApprovalResolveParams, pending: PendingApproval, client: str) -> Decision:
        if params.decision == "finish" and pending.approval.proposal_id is not None:
            return Decision(outcome="reviewed", by="user", client=client)
        if params.decision != "allow":
            return Decision(outcome="rejected", by="user", client=client, reason=params.reason)
        grants: list[Grant] = [grant for grant in params.grants if grant in pending.approval.grants]
        own_command = pending.approval.command if pending.approval.original_command is not None else None
        if params.scope == "once":
            mode, fresh = (params.mode or "ask", params.fresh_context) if pending.approval.document else (None, False)
            if mode is not None and not any(option.mode == mode for option in pending.approval.options):
                message = f"A plan cannot be carried out in {mode} mode. Choose one of the offered options."
                raise AmanuError("invalidParams", message)
            return Decision(
                outcome="allowed",
                by="user",
                client=client,
                scope="once",
                grants=grants,
                command=own_command,
                mode=mode,
                fresh_context=fresh,
            )
        offered = {offer.scope: offer.rule for offer in pending.approval.scopes}
        if params.scope not in offered:
            raise AmanuError("invalidRule", f"This answer cannot be saved with the scope {params.scope!r}.")
        # The saved rule grants what this answer grants, and this call gets all that the saved rule grants.
        text = params.rule or with_grants(offered[params.scope], grants, only=True)
        rules = remember(text, params.scope, pending.open_subjects, self._policy.context(), grants)
        granting_verdict = decide_all((*self.rules(), *rules), pending.subjects, self._policy.context())[0]
        grants = [grant for grant in pending.approval.grants if grant in {*grants, *_grants_of(granting_verdict)}]
        for rule in rules:
            match params.scope:
                case "turn":
                    self._turn_rules.append(rule)
                case "session":
                    self._session_rules.append(rule)
                case _:
                    self._policy.remember(params.scope, rule)
        saved = "\n".join(rule.text for rule in rules)
        return Decision(
            outcome="allowed",
            by="user",
            client=client,
            rule=saved,
            scope=params.scope,
            grants=grants,
            command=own_command,
        )

    def _answer(self, call_id: str, decision: Decision) -> None:
        pending = self._pending.pop(call_id, None)
        if pending is None:
            return
        self.wait.end()
        decision = wording.summarize_decision(decision)
        self._settled[call_id] = decision
        if pending.revised is not None:
            self._revised[call_id] = pending.revised
        self._emit(ApprovalResolved(tool_call_id=call_id, decision=decision))
        if not pending.answer.done():
            pending.answer.set_result(decision)

    def _settle(self, call_id: str, decision: Decision) -> Decision:
        decision = self._settled[call_id] = wording.summarize_decision(decision)
        return decision


def _grants_of(verdict: Verdict) -> list[Grant]:
    return ["unsandboxed"] if verdict.unsandboxed else ["network"] if verdict.network else []


def _offered(answer: Decision, preview: Preview) -> list[Grant]:
    """The grants of an answer that this call can have."""
    return [grant for grant in answer.grants if grant in preview.grants]


def _same_digest(answered: str | None, digest: str) -> bool:
    """Whether the answer is about this digest. An empty one equals nothing: a proposal that is gone cannot be
    allowed."""
    return bool(digest) and hmac.compare_digest((answered or "").encode("utf-8", "surrogatepass"), digest.encode())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
