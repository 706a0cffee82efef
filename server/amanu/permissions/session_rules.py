"""What the rules of one session say of a call: those that are kept, those of the session, and its mode."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from amanu.core import protected_paths as protected
from amanu.core.place import Place
from amanu.core.rules import Rule
from amanu.core.tool import CommandPreview, Preview, Subject
from amanu.permissions.ceilings import Ceilings, UnaskedCommands
from amanu.permissions.matching import exact_paths
from amanu.permissions.placing import Ruling, unasked
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
)
from amanu.text import wording
from amanu_protocol.items import CommandPart, Decision, Grant, Proposal, Scope

_NOT_HELD = "it runs on the workspace itself, where your rules about files do not hold it"


class PolicySource(Protocol):
    """What the decisions of one session rest on; each method returns the current value."""

    def context(self) -> PolicyContext: ...

    def rules(self) -> Sequence[Rule]:
        """The rules that hold beyond the session."""
        ...

    def rules_of_folders(self) -> Sequence[Rule]:
        """Rules about writing that follow from how the folders are set up. Blocking, for an instant."""
        ...

    def rules_of_programs(self) -> Sequence[Rule]:
        """Rules about writing the files that hooks and servers run later. Blocking, for an instant."""
        ...

    def remember(self, scope: Scope, rule: Rule) -> None:
        """Keep a rule of the scopes workspace and user. Raises `AmanuError` storageError."""
        ...

    def proposal(self, proposal_id: str) -> Proposal | None: ...


class SessionRules:
    """Of one session."""

    def __init__(self, policy: PolicySource, ceilings: Ceilings) -> None:
        self.policy = policy
        self._unasked = UnaskedCommands(ceilings)
        self._session_rules: list[Rule] = []
        self._turn_rules: list[Rule] = []

    def start_turn(self) -> None:
        """What was allowed for the last turn is not allowed for this one."""
        self._turn_rules.clear()
        self._unasked.start_turn()

    def add_run_time(self, decision: Decision, seconds: float) -> None:
        """Count the time of a command that has ended and was allowed by this decision."""
        self._unasked.add_run_time(decision, seconds)

    def allow_in_session(self, rule: Rule) -> None:
        """Add a rule of session scope: from a resumed session, or from `--allow`."""
        self._session_rules.append(rule)

    def remember(self, scope: Scope, rules: Iterable[Rule]) -> None:
        """Keep what an answer saves. Raises `AmanuError` storageError."""
        for rule in rules:
            match scope:
                case "turn":
                    self._turn_rules.append(rule)
                case "session":
                    self._session_rules.append(rule)
                case _:
                    self.policy.remember(scope, rule)

    def context(self) -> PolicyContext:
        return self.policy.context()

    def rules(self) -> tuple[Rule, ...]:
        """All rules in force, in no particular order: deny beats must-ask beats allow."""
        return (
            *built_in(),
            *of_mode(self.context().mode),
            *self._turn_rules,
            *self._session_rules,
            *self.policy.rules(),
        )

    def verdict(self, subjects: Sequence[Subject]) -> Verdict:
        """The verdict on a call about all of them."""
        return decide_all(self._rules_about(subjects), subjects, self.context())[0]

    def verdicts(self, subjects: Sequence[Subject]) -> list[Verdict]:
        """The verdict on each of them."""
        return decide_each(self._rules_about(subjects), subjects, self.context())

    def _rules_about(self, subjects: Sequence[Subject]) -> Sequence[Rule]:
        """A folder's own files are read only when a call writes."""
        writes = any(subject.effect == "write" for subject in subjects)
        return (*self.rules(), *self._about_writing()) if writes else self.rules()

    def _about_writing(self) -> Sequence[Rule]:
        return (*self.policy.rules_of_folders(), *self.policy.rules_of_programs())

    def allowed(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that are allowed without a question."""
        return self._with_decision(subjects, "allow")

    def denied(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Those that a rule denies."""
        return self._with_decision(subjects, "deny")

    def denied_to_user(self, subjects: Iterable[Subject]) -> list[Subject]:
        """The subjects that a rule denies even where the user says yes: a mode denies the model alone."""
        subjects = list(subjects)
        of_modes = {*map(id, of_mode(self.context().mode))}
        rules = [rule for rule in self._rules_about(subjects) if id(rule) not in of_modes]
        verdicts = decide_each(rules, subjects, self.context())
        return [subject for subject, verdict in zip(subjects, verdicts, strict=True) if verdict.decision == "deny"]

    def guarded(self, subjects: Iterable[Subject]) -> list[Subject]:
        """The subjects that a rule beyond the built-in ones denies or asks about. Without such a rule they are not even
        looked at: there may be a hundred thousand. Where rules name single files, the others are not judged."""
        rules = [*self._guarding(), *self._about_writing()]
        if not rules:
            return []
        names = exact_paths(rules)
        subjects = [subject for subject in subjects if names is None or subject.text.casefold() in names]
        verdicts = zip(subjects, decide_each(rules, subjects, self.context()), strict=True)
        return [subject for subject, verdict in verdicts if verdict.rule != NOTHING_MATCHED]

    def _guarding(self) -> list[Rule]:
        """The user's rules that deny or ask about writing a file. The sandbox holds commands to the other ones."""
        known = {*map(id, (*built_in(), *of_mode(self.context().mode)))}
        others = [rule for rule in self.rules() if rule.kind != "allow" and id(rule) not in known]
        return [rule for rule in others if {"@write", "*", "write_file"} & {*rule.targets}]

    def parts(self, subjects: Sequence[Subject]) -> list[CommandPart]:
        """The verdict on each command among them, for the user."""
        return command_parts(zip(subjects, self.verdicts(subjects), strict=True))

    def reasons(self, subjects: Sequence[Subject]) -> frozenset[tuple[str, str]]:
        """Why a call about those needs approval: (what, why) of each of them, and of all of them together."""
        verdicts = zip((subject.text for subject in subjects), self.verdicts(subjects), strict=True)
        judged = [*verdicts, ("", self.verdict(subjects))]
        return frozenset((text, verdict.rule) for text, verdict in judged if verdict.decision != "allow")

    def would_ask(self, preview: Preview) -> bool:
        """Whether no rule decides on that call, nor is it tried first or drafted; the ceilings are not looked at."""
        if self._decide_draft(preview) is not None:
            return False
        verdict = self.verdict((preview.subject, *preview.extra_subjects))
        is_tried = preview.command is not None and preview.command.placing.tried is not None and verdict.may_be_tried
        return verdict.decision == "ask" and not is_tried

    def decide_by_rule(self, preview: Preview) -> tuple[Verdict, Decision | None]:
        """The verdict on the call, and the decision of a rule; None when the user has to be asked."""
        subjects = (preview.subject, *preview.extra_subjects)
        verdict, fields = self.verdict(subjects), dict[str, object]()
        if verdict.decision == "allow" and preview.command is not None:
            place = self._unasked_place(preview, preview.command, verdict)
            if place is None:
                return replace(verdict, decision="ask", rule=_NOT_HELD), None
            fields = _at(place)
        verdict = self._unasked.within(subjects, verdict)
        match verdict.decision:
            case "allow":
                decision = Decision(outcome="allowed", by="rule", rule=verdict.rule, grants=list(verdict.grants))
                return verdict, decision.model_copy(update=fields)
            case "deny":
                reason = f"Denied by a rule: {wording.rule_in_words(verdict.rule)}."
                return verdict, Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason)
            case "ask":
                return verdict, None

    def decide_unasked(self, preview: Preview) -> tuple[Verdict, Decision | None]:
        """The verdict on the call, and the decision, where a rule decides or it may be tried first; None when the user
        has to be asked."""
        if (decision := self._decide_draft(preview)) is not None:
            return Verdict("allow", decision.rule or ""), decision
        verdict, decision = self.decide_by_rule(preview)
        if decision is not None or preview.command is None:
            return verdict, decision
        place = self._unasked_place(preview, preview.command, verdict)
        if place is None:
            return verdict, None
        subjects = (preview.subject, *preview.extra_subjects)
        tried = self._unasked.within(subjects, replace(verdict, decision="allow", rule=self._trial_rule()))
        if tried.decision == "ask":
            return tried, None
        return verdict, Decision(outcome="allowed", by="rule", rule=tried.rule).model_copy(update=_at(place))

    def placed(self, preview: Preview, decision: Decision) -> Decision:
        """The user's decision on a command line with the place where it runs, if it may."""
        if preview.command is None or decision.outcome != "allowed" or decision.place is not None:
            return decision
        grants: list[Grant] = [grant for grant in decision.grants if grant in preview.command.grants]
        return decision.model_copy(update=_at(preview.command.placing.granted(grants, secrets=True)))

    def still_allowed(self, preview: Preview, decision: Decision) -> bool:
        """Whether that approval still holds under the current rules and mode: the user's ends only with a deny, a
        rule's also when the call is no longer allowed unasked, or would run in another place."""
        current = self.verdict((preview.subject, *preview.extra_subjects))
        if decision.by == "user" or current.decision == "deny":
            return current.decision != "deny"
        if preview.command is None or decision.place is None:
            return current.decision == "allow" and {*decision.grants} <= {*current.grants}
        return self._unasked_place(preview, preview.command, current) == Place.read(decision.place)

    def _unasked_place(self, preview: Preview, command: CommandPreview, verdict: Verdict) -> Place | None:
        granted = tuple(grant for grant in verdict.grants if grant in command.grants)  # a mode may grant less
        acting = sum(map(acts, (preview.subject, *preview.extra_subjects)))
        ruling = Ruling(replace(verdict, grants=granted), self.context().mode, acting, self._guards_files())
        return unasked(command.placing, ruling)

    def _guards_files(self) -> bool:
        """Whether rules beyond the built-in ones deny or ask about writing a file."""
        return bool(self._guarding() or self.policy.rules_of_programs())

    def _decide_draft(self, preview: Preview) -> Decision | None:
        """The decision on a call whose edits are only drafted: they wait for the user, the call does not. None where
        that is not so, where a rule denies an edit, and where something else than the edits is to be decided."""
        proposal = None if preview.proposal_id is None else self.policy.proposal(preview.proposal_id)
        mode = self.context().mode
        if proposal is None or not (proposal.draft and drafts(mode)) or preview.review:
            return None
        subjects = (preview.subject, *preview.extra_subjects)
        for subject, verdict in zip(subjects, self.verdicts(subjects), strict=True):
            # Whether an edit of a file with secrets fits says what is in it.
            is_drafted = subject.effect == "write" and not (subject.must_ask or protected.is_secret(subject.text))
            if verdict.decision == "deny" or (verdict.decision == "ask" and not is_drafted):
                return None
        return Decision(outcome="reviewed", by="rule", rule=f"mode {mode}: allow @write ({DRAFTED})")

    def _trial_rule(self) -> str:
        return f"mode {self.context().mode}: allow @run ({TRIAL})"

    def _with_decision(self, subjects: Iterable[Subject], decision: str) -> list[Subject]:
        subjects = list(subjects)
        verdicts = self.verdicts(subjects)
        return [subject for subject, verdict in zip(subjects, verdicts, strict=True) if verdict.decision == decision]


def _at(place: Place) -> dict[str, object]:
    """The fields of a decision that say where the command runs."""
    return {"trial": place.tried, "place": place.wire()}
