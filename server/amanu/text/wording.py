"""The words the daemon uses for approvals, decisions, rules, trust, the audit log, jobs and usage. No other module
words them.

Every frontend shows these lines as they are. They quote commands, paths and the like unchanged, so a frontend must make
hidden characters visible.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from amanu.text.amounts import money, plural, seconds, token_count
from amanu.text.display import one_line
from amanu_protocol.items import (
    Approval,
    CommandPart,
    CommandSandbox,
    Decision,
    Grant,
    Job,
    Line,
    Spend,
    SubAgent,
    Todo,
    Tone,
    ToolCall,
    Usage,
)
from amanu_protocol.labels import CONTEXT_TIERS, GRANTS, OPENINGS, SCOPES, TRUST
from amanu_protocol.requests import AuditEntry, AuditQueryResult, RulePreviewResult, TrustedItem, TrustGetResult

_NEEDS: dict[Grant, str] = {"network": "network access", "unsandboxed": "access that the sandbox denies"}

MAX_EARLIER = 5
"""How many earlier questions are listed."""
MAX_WAITING = 3
"""The most queued prompts that are named."""
MAX_TODO = 56
"""Characters of what is in progress: the line fits a terminal of 90 columns."""
MAX_PART = 200
"""Characters shown of one command of a line; the whole line is shown above."""

_SIGNS: dict[str, tuple[Tone, str]] = {"allow": ("good", "✓"), "ask": ("warning", "?"), "deny": ("bad", "✗")}
_ENABLED = {
    "memory": "instructions to the model",
    "rules": "rules, which can only deny or ask",
    "command": "a slash command",
    "skill": "a skill the model may load",
    "agent": "an agent the model may hand work to",
}
_CHECKERS = "sandboxed checks of edits by the linters and type checkers set up in it"
_STATES = {"same": "unchanged", "new": "new", "changed": "changed", "gone": "deleted"}
FRESH = "with a fresh context"
HASH_DIGITS = 12
"""Hexadecimal digits shown of a hash: enough to tell hashes apart."""


def explain_approval(approval: Approval, notes: Sequence[Line] = ()) -> Approval:
    """The approval with everything there is to know about it in words, `notes` among it."""
    if approval.document is not None:
        lines = [_line("plain", "You can edit the plan and comment on its lines first. You approve its current text.")]
        return approval.model_copy(update={"lines": lines})
    asked = [*_agent_line(approval), *_part_lines(approval), *_edit_line(approval)]
    lines = [*asked, *notes, *_sandbox_lines(approval), *_rule_line(approval)]
    return approval.model_copy(update={"lines": lines})


def conflict_lines(conflicts: Mapping[str, str], *, blocks: bool) -> list[Line]:
    """Lines about conflicts (file → why) in the changes that a question is about. `blocks`: then none is applied."""
    if not conflicts:
        return []
    named = " ".join(f"{one_line(path)}: {reason}" for path, reason in conflicts.items())
    advice = " Remove what is in the way, or reject that change; then accept the others." if blocks else ""
    return [_line("bad", f"In conflict, so {'nothing is' if blocks else 'not'} applied: {named}{advice}")]


def _agent_line(approval: Approval) -> list[Line]:
    return (
        [_line("plain", f"Requested by the sub-agent {approval.agent} ({approval.agent_id}).")]
        if approval.agent
        else []
    )


def _edit_line(approval: Approval) -> list[Line]:
    original = approval.original_command
    if original is None:
        return []
    return [_line("plain", f"You changed this command. The model's was: {_shortened(original)}")]


def explain_rule_preview(preview: RulePreviewResult) -> RulePreviewResult:
    """The preview in words: what the rule allows, whether it covers the call, and which earlier questions it would have
    answered."""
    fits = preview.valid and preview.covers is not False
    return preview.model_copy(update={"fits": fits, "lines": [*_rule_lines(preview)]})


def _rule_lines(preview: RulePreviewResult) -> Iterator[Line]:
    if not preview.valid:
        yield _line("bad", preview.explanation)
        return
    if preview.explanation:
        yield _line("plain", preview.explanation)
    if preview.covers is False:
        yield _line("bad", "The rule does not cover this call, so it cannot be saved.")
    if preview.covered_count:
        times = "1 earlier question" if preview.covered_count == 1 else f"{preview.covered_count} earlier questions"
        yield _line("plain", f"Would have answered {times}:")
        titles = preview.covered[:MAX_EARLIER]
        yield from (_line("plain", f"  {title}") for title in titles)
        if preview.covered_count > len(titles):
            yield _line("plain", f"  … and {preview.covered_count - len(titles)} more")
    elif preview.covers is not None:
        yield _line("plain", "It would have answered none of the earlier questions")


def _part_lines(approval: Approval) -> Iterator[Line]:
    for part in approval.parts:
        tone, sign = _SIGNS[part.decision]
        alone = len(approval.parts) == 1 and f"{approval.detail}\n".startswith(f"{part.text.strip()}\n")
        source = "" if alone else _shortened(part.text)  # a single command is already shown above
        rule = f"({rule_in_words(part.rule)})" if part.rule and _rule_is_informative(part, approval) else ""
        explanation = " ".join(filter(None, [part.reason, rule]))
        yield _line(tone, f"{sign} " + " — ".join(filter(None, [source, explanation])))


def _rule_is_informative(part: CommandPart, approval: Approval) -> bool:
    """Whether its rule is worth showing: it is not the rule the whole approval shows, nor the built-in one for commands
    without an effect."""
    if part.decision == "allow":
        return not part.rule.startswith("built in: ")
    return part.decision == "deny" or part.rule != approval.rule


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_PART else f"{text[: MAX_PART - 1]}…"


def _sandbox_lines(approval: Approval) -> Iterator[Line]:
    requests = [_NEEDS[grant] for grant in approval.likely_grants]
    if approval.blocked:
        yield _line("warning" if requests else "plain", f"It has run, and {approval.blocked}")
    elif requests:
        if_offered = "" if approval.sandbox is None else ". If you allow it:"
        yield _line("warning", f"Probably needs {' and '.join(requests)}{if_offered}")
    if approval.sandbox is not None:
        yield sandbox_line(approval.sandbox)


_ALWAYS_ASKED = ("built in: mustAsk enter_plan_mode", "built in: mustAsk exit_plan_mode")
"""Rules that are no news to the user, who is asked each time because that is what the tool is for."""
DRAFT_WAITS = "a draft is applied only if you accept it"
"""Why the user is asked about a draft, which is no news either."""


def _rule_line(approval: Approval) -> Iterator[Line]:
    if approval.rule.startswith(_ALWAYS_ASKED) or rule_in_words(approval.rule) == DRAFT_WAITS:
        return
    if approval.proposal_id is not None and approval.rule == NO_RULE:  # as it is with every edit
        return
    if any(offer.scope != "once" for offer in approval.scopes):
        yield _line("plain", f"{OPENINGS['rule']}: {rule_in_words(approval.rule)}")
    elif approval.rule != NO_RULE:  # where no rule could be saved, none is offered
        yield _line("plain", f"Asked every time: {rule_in_words(approval.rule)}")


NO_RULE = "no rule allows it"
"""Why the user is asked about something that no rule covers."""
_OWN_RULE = re.compile(r"(?P<origin>built in|mode \w+): (?:allow|deny|mustAsk) (?P<text>.+)", re.DOTALL)


def rule_in_words(rule: str) -> str:
    """What the user reads about a rule: its reason, or its mode, for one that comes with Amanu; any other rule
    unchanged, with its origin."""
    own = _OWN_RULE.fullmatch(rule)
    if own is None:
        return rule
    reason = own["text"].partition(" (")[2].removesuffix(")")
    return reason or own["origin"]


def sandbox_line(sandbox: CommandSandbox) -> Line:
    """The sandbox a command runs in."""
    return _line("bad", f"! {sandbox.summary}") if sandbox.tier == "none" else _line("plain", sandbox.summary)


# Decisions ------------------------------------------------------------------------------------------------


def describe_settled_call(call: ToolCall, frontend: str = "") -> str:
    """Who or which rule decided on a call, and the sandbox it ran in; "" for a command without an effect, for one that
    ran only as a trial, and for what is only drafted. `frontend`: the client this is shown in, which is not named."""
    if call.decision is not None and call.decision.by == "rule" and call.decision.outcome == "reviewed":
        return ""
    by_rule = call.decision is not None and call.decision.by == "rule" and call.decision.outcome == "allowed"
    quiet = call.sandbox is not None and call.sandbox.writes == "nothing"
    if by_rule and (quiet or (call.decision is not None and call.decision.trial)):
        return ""
    brief = "" if call.sandbox is None else call.sandbox.brief
    return " · ".join(filter(None, [describe_decision(call.decision, frontend), brief]))


def describe_decision(decision: Decision | None, frontend: str = "") -> str:
    """What was decided, and in which client unless that is `frontend`; "" for no decision."""
    if decision is None:
        return ""
    elsewhere = f" ({decision.client})" if decision.client and decision.client != frontend else ""
    return f"{decision.summary or decision.outcome}{elsewhere}"


def late(decision: Decision) -> str:
    """To a user whose answer came after that decision."""
    described = describe_decision(decision)
    return one_line(f"Your answer came too late. {described[:1].upper()}{described[1:]}.")


def summarize_decision(decision: Decision) -> Decision:
    """The decision with its summary."""
    return decision.model_copy(update={"summary": _summary(decision).replace("\n", "␊")})


def _summary(decision: Decision) -> str:
    outcome = decision.outcome
    if decision.by == "rule":
        if outcome == "reviewed":
            return "drafted"
        if decision.permitted_by is not None:
            return f"{outcome}: nobody could be asked"
        words = rule_in_words(decision.rule or "a rule")
        is_reason = decision.rule not in (None, words) and not words.startswith("mode ")
        return f"{outcome}: {words}" if is_reason else f"{outcome} by {words}"
    kept_scope = decision.scope if outcome == "allowed" and decision.scope != "once" else None
    scope = f" {SCOPES[kept_scope]}" if kept_scope else ""
    plan = f", to be carried out in {decision.mode} mode" if decision.mode is not None else ""
    plan += f" {FRESH}" if decision.fresh_context else ""
    grants = f" {' and '.join(GRANTS[grant].name for grant in decision.grants)}" if decision.grants else ""
    rule = f": {decision.rule}" if kept_scope and decision.rule else ""
    said = decision.reason if outcome == "reviewed" else f"“{decision.reason}”"
    reason = f": {said}" if decision.reason else ""
    edited = ", with the command as you changed it" if decision.command and outcome == "allowed" else ""
    return f"{outcome}{scope}{grants} by you{edited}{plan}{rule}{reason}"


# Audit ------------------------------------------------------------------------------------------------


def explain_audit(result: AuditQueryResult, *, detailed: bool = False) -> AuditQueryResult:
    """The result in words: the entries, oldest first, and whether the chain of hashes is intact."""
    describe = audit_details if detailed else _audit_line
    lines = [_line("plain", line) for entry in result.entries for line in describe(entry)]
    if not result.entries:
        lines.append(_line("plain", "The audit log has no matching entries."))
    verdict = _line("plain", f"✓ {result.message}") if result.intact else _line("bad", f"✗ {result.message}")
    return result.model_copy(update={"lines": [*lines, verdict]})


def audit_details(entry: AuditEntry) -> Iterator[str]:
    """Everything in an entry, its data indented."""
    yield f"{entry.number:6}  {_local(entry.at)}  {entry.kind:7}  {entry.text}"
    identifiers = " ".join(filter(None, [entry.session_id, entry.tool_call_id]))
    yield f"        {identifiers or '-'}  {entry.hash[:HASH_DIGITS]}"
    for name, value in entry.data.items():
        yield from (f"        {line}" for line in _value_lines(name, value))


def _audit_line(entry: AuditEntry) -> Iterator[str]:
    yield f"{_local(entry.at)}  {entry.kind:7}  {entry.text}"


def _value_lines(name: str, value: JsonValue) -> Iterator[str]:
    """A named value on lines of its own, nested values indented."""
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        yield f"{name}: {', '.join(map(str, value)) or 'none'}"
    elif isinstance(value, list | dict):
        yield f"{name}:"
        items = (
            value.items() if isinstance(value, dict) else ((str(index), item) for index, item in enumerate(value, 1))
        )
        yield from (f"  {line}" for key, item in items for line in _value_lines(key, item))
    else:
        first, *others = str("none" if value is None else value).split("\n")
        yield f"{name}: {first}"
        yield from (f"  {line}" for line in others)


def _local(timestamp: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(timestamp / 1000))


# Trust ------------------------------------------------------------------------------------------------


def explain_trust(result: TrustGetResult) -> TrustGetResult:
    """The result in words: what trusting that folder enables."""
    enables = [item.model_copy(update={"summary": _describe_enabled(item)}) for item in result.enables]
    lines = [_line("plain" if result.state == "trusted" else "warning", TRUST[result.state])]
    lines.append(
        _line("plain", "Trust enables:" if result.state == "trusted" else "Trusting this folder would enable:")
    )
    for item in enables:
        lines.append(_line("plain" if item.state == "same" else "warning", f"  {item.path} — {item.summary}"))
    lines.append(_line("plain", f"  {_CHECKERS}"))
    return result.model_copy(update={"enables": enables, "lines": lines})


def untrusted_diffs(result: TrustGetResult) -> list[str]:
    """What the user must see before they trust the folder: unified diffs of everything that is not as they trusted
    it."""
    return [item.diff for item in result.enables if item.diff and item.state != "same"]


def _describe_enabled(item: TrustedItem) -> str:
    return f"{_ENABLED[item.kind]} ({_STATES[item.state]})"


# Usage ------------------------------------------------------------------------------------------------


def summarize_spend(used: Spend) -> Spend:
    """The spend in words: tokens by kind, and money."""
    return used.model_copy(update={"summary": _summary_of_spend(used)})


def summarize_usage(usage: Usage) -> Usage:
    """The usage in words: what a session has spent, and how full the window is."""
    percent = _percent(usage)
    fullness = "" if percent is None else f"context {percent}%"
    if percent is not None and usage.context is not None and usage.context.tier != "roomy":
        fullness += f", {CONTEXT_TIERS[usage.context.tier].name}"
    labels = {"summary": _summary_of_spend(usage), "cost": _cost(usage), "percent": percent, "fullness": fullness}
    return usage.model_copy(update=labels)


def summarize_agent(agent: SubAgent) -> SubAgent:
    """The sub-agent with its state in words: "Completed: 5 steps, $0.02"."""
    cost = "" if not agent.cost_usd else f", {money(agent.cost_usd)}"
    summary = f"{agent.state.capitalize()}: {plural(agent.steps, 'step')}{cost}"
    return agent.model_copy(update={"summary": summary})


def summarize_job(job: Job, note: str = "") -> Job:
    """The background command with its state in words; `note` says how it ended."""
    if job.state != "running":
        summary = note.rstrip(".") or "Ended"
        if job.ended_at is not None:
            summary += f", after {seconds((job.ended_at - job.started_at) / 1000)}"
    elif job.port is None:
        summary = "Running"
    else:
        summary = f"Port {job.port}{'' if is_reachable(job) else ', reachable only inside its sandbox'}"
    return job.model_copy(update={"summary": summary})


def is_reachable(job: Job) -> bool:
    """Whether programs outside its sandbox reach the ports it listens on."""
    return job.sandbox is None or job.sandbox.network


def _summary_of_spend(used: Spend | Usage) -> str:
    read = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
    kinds = {"cached": used.cache_read_tokens, "from tools": used.tool_tokens}
    of_these = ", ".join(f"{token_count(count)} {name}" for name, count in kinds.items() if count)
    thought = f" ({token_count(used.thought_tokens)} thinking)" if used.thought_tokens else ""
    out = token_count(used.output_tokens + used.thought_tokens)
    return f"{token_count(read)} in{f' ({of_these})' if of_these else ''} · {out} out{thought} · {_cost(used)}"


def _cost(used: Spend | Usage) -> str:
    return "cost unknown" if used.cost_usd is None else money(used.cost_usd)


def _percent(usage: Usage) -> int | None:
    context = usage.context
    if context is None:
        return usage.context_tokens * 100 // usage.context_window if usage.context_window else None
    filled = context.system + context.tools + context.memory + context.conversation + context.tool_output
    return round(100 * filled / max(1, filled + context.free))


# To-dos ------------------------------------------------------------------------------------------------


def is_finished(todos: Sequence[Todo]) -> bool:
    """Whether nothing of the list is left to do."""
    return all(todo.status in ("done", "cancelled") for todo in todos)


def describe_todos(todos: Sequence[Todo]) -> str:
    """How far a to-do list is, and what is in progress: "1 of 3 done · Write the tests"."""
    wanted = [todo for todo in todos if todo.status != "cancelled"]
    done_count = sum(todo.status == "done" for todo in wanted)
    started = [_brief(one_line(todo.text)) for todo in wanted if todo.status == "inProgress"]
    return " · ".join([f"{done_count} of {len(wanted)} done", *started]) if wanted else "none"


def describe_waiting(prompts: Sequence[str], unheard: Sequence[str] = ()) -> str:
    """The queued prompts that wait for the user, and what was said into a turn that ended without hearing it."""
    sentences: list[str] = []
    if unheard:
        verb = "goes" if len(unheard) == 1 else "go"
        sentences.append(f"Not heard yet, and {verb} with the next prompt: {_quoted(unheard)}.")
    if len(prompts) == 1:
        sentences.append(
            f"1 prompt waits in the queue: {_quoted(prompts)}. When you send your next prompt, this one runs first."
        )
    elif prompts:
        sentences.append(
            f"{len(prompts)} prompts wait in the queue: {_quoted(prompts)}. When you send your next prompt, these run "
            "first, in this order."
        )
    return " ".join(sentences)


def _quoted(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MAX_WAITING} more" if len(texts) > MAX_WAITING else ""
    return ", ".join(f"“{one_line(text)}”" for text in texts[:MAX_WAITING]) + more


def _brief(text: str) -> str:
    return text if len(text) <= MAX_TODO else f"{text[: MAX_TODO - 1]}…"


def _line(tone: Tone, text: str) -> Line:
    """A line. Line feeds become visible, so that no part of it can pass for another line."""
    return Line(tone=tone, text=text.replace("\n", "␊"))
