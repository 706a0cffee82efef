"""What is asked of a person and what came of it, in words: the same in the terminal and in editors without a plugin.

The texts hold what the daemon sent, as it is: whoever shows them makes visible what is hidden in them.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from amanu_protocol.items import Approval, CommandPart, Decision, Grant, ToolCall, Walls
from amanu_protocol.labels import GRANTS, SCOPES
from amanu_protocol.requests import AuditQueryResult, Enabled, RulePreviewResult, TrustGetResult

Tone = Literal["plain", "good", "warning", "bad"]

_WANTED: dict[Grant, str] = {"network": "network access", "unsandboxed": "access that the sandbox denies"}

CANNOT_SAVE = "It does not cover what is asked here, so it cannot be saved for it."
NOT_SANDBOXED = "not sandboxed"
EARLIER = 5
"""Earlier questions that are named."""
PART = 200
"""Characters that are shown of a command of a line: the whole line stands above."""

_SIGNS: dict[str, tuple[Tone, str]] = {"allow": ("good", "✓"), "ask": ("warning", "?"), "deny": ("bad", "✗")}
_ENABLED = {
    "memory": "instructions to the agent",
    "rules": "rules of its own, that deny or ask",
    "command": "a command",
}
_STATES = {"same": "as you trusted it", "new": "new", "changed": "changed", "gone": "gone"}


@dataclass(frozen=True)
class Line:
    """One thing to be shown, on one line: nothing in it can look like another one."""

    tone: Tone
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.replace("\n", "␊"))


# Before -----------------------------------------------------------------------------------------------


def question(approval: Approval) -> list[Line]:
    """All that is to be known besides title and detail: each command of a line, what holds them, the rule that asks."""
    return [*_parts(approval), *_held(approval), *_asked(approval)]


def ways(approval: Approval) -> list[tuple[Grant, ...]]:
    """What a yes for this once may grant, the likeliest first: what the call will hardly work without."""
    wanted: tuple[Grant, ...] = tuple(each for each in approval.wants if each in approval.grants)
    found: list[tuple[Grant, ...]] = [wanted, (), *((each,) for each in approval.grants)]
    return list(dict.fromkeys(found))


def granting(grants: Sequence[Grant]) -> str:
    """ "with network access", "" for nothing."""
    return " and ".join(GRANTS[grant].name for grant in grants)


def way(grants: Sequence[Grant], approval: Approval) -> str:
    """A yes of `ways` as words; a plain one says what it does without, where something is wanted."""
    if grants or not approval.wants:
        return granting(grants)
    return "without network access" if tuple(approval.wants) == ("network",) else "in the sandbox"


def rememberable(approval: Approval) -> bool:
    return any(offer.scope != "once" for offer in approval.scopes)


def previewed(preview: RulePreviewResult) -> list[Line]:
    """What a rule would do: what it allows, whether it answers the question, what it would have answered before."""
    if not preview.valid:
        return [Line("bad", preview.explanation)]
    found = [Line("plain", preview.explanation)] if preview.explanation else []
    if preview.covers is False:
        found.append(Line("bad", CANNOT_SAVE))
    if preview.covered_count:
        times = "1 earlier ask" if preview.covered_count == 1 else f"{preview.covered_count} earlier asks"
        found.append(Line("plain", f"would have covered {times}:"))
        named = preview.covered[:EARLIER]
        found += [Line("plain", f"  {title}") for title in named]
        if preview.covered_count > len(named):
            found.append(Line("plain", f"  … and {preview.covered_count - len(named)} more"))
    elif preview.covers is not None:
        found.append(Line("plain", "would have covered no earlier ask"))
    return found


def can_save(preview: RulePreviewResult) -> bool:
    return preview.valid and preview.covers is not False


def _parts(approval: Approval) -> Iterator[Line]:
    for part in approval.parts:
        tone, sign = _SIGNS[part.decision]
        alone = len(approval.parts) == 1 and f"{approval.detail}\n".startswith(f"{part.text.strip()}\n")
        what = "" if alone else _shortened(part.text)  # it stands above, alone or as a part of it
        rule = f"({part.rule})" if part.rule and _telling(part, approval) else ""
        said = " ".join(filter(None, [part.why, rule]))
        yield Line(tone, f"{sign} " + " — ".join(filter(None, [what, said])))


def _telling(part: CommandPart, approval: Approval) -> bool:
    """Its rule says what nothing else does: not the rule of all questions, nor that of all that only looks."""
    if part.decision == "allow":
        return not part.rule.startswith("built in: ")
    return part.decision == "deny" or part.rule != approval.rule


def _shortened(text: str) -> str:
    return text if len(text) <= PART else f"{text[: PART - 1]}…"


def _held(approval: Approval) -> Iterator[Line]:
    if approval.walls is not None:
        yield walls(approval.walls)
    wanted = [_WANTED[each] for each in approval.wants]
    if wanted:
        yield Line("warning", f"probably needs {' and '.join(wanted)}")


def _asked(approval: Approval) -> Iterator[Line]:
    yield Line("plain", f"asked because: {approval.rule}")
    if not rememberable(approval):
        yield Line("plain", "cannot be remembered: it is asked every time")


def walls(held: Walls) -> Line:
    """What holds a command."""
    if held.tier == "none":
        return Line("bad", f"! {_beginning(NOT_SANDBOXED, held.summary)}")
    return Line("plain", _beginning(f"sandboxed ({held.tier})", held.summary))


def _beginning(words: str, summary: str) -> str:
    """The sentence with these words before it, unless it begins with them."""
    return summary if summary.lower().startswith(words) else f"{words}: {summary}"


# After ------------------------------------------------------------------------------------------------


def settled(call: ToolCall, here: str = "") -> str:
    """By whom or by which rule a call was decided, and the walls that held it; "" where there is nothing to tell: that
    what only looks was not asked about. `here` is the client that says so: it is not named."""
    by_rule = call.decision is not None and call.decision.by == "rule" and call.decision.outcome == "allowed"
    if by_rule and call.walls is not None and call.walls.writes == "nothing":
        return ""
    held = "" if call.walls is None else _briefly(call.walls)
    return " · ".join(filter(None, [decided(call.decision, here), held]))


def decided(decision: Decision | None, here: str = "") -> str:
    if decision is None:
        return ""
    outcome = decision.outcome
    if decision.by == "rule":
        return f"{outcome} by {decision.rule or 'a rule'}"
    where = f" in {decision.client}" if decision.client and decision.client != here else ""
    grants = f" {granting(decision.grants)}" if decision.grants else ""
    kept = decision.scope if outcome == "allowed" and decision.scope != "once" else None
    scope = f" {SCOPES[kept]}" if kept else ""
    rule = f": {decision.rule}" if kept and decision.rule else ""
    why = f": “{decision.reason}”" if decision.reason else ""
    return f"{outcome}{scope}{grants} by you{where}{rule}{why}"


def _briefly(held: Walls) -> str:
    if held.tier == "none":
        return NOT_SANDBOXED
    writes = {"nothing": "writes nothing", "workspace": "writes the workspace", "everything": "writes everything"}
    return f"in {held.tier}: {writes[held.writes]}, {'network' if held.network else 'no network'}"


def audited(found: AuditQueryResult) -> list[Line]:
    """Entries of the audit log, oldest first, in the time of this machine, and whether its chain holds."""
    lines = [Line("plain", f"{_clock(each.at)}  {each.kind:7}  {each.text}") for each in found.entries]
    if not found.entries:
        lines.append(Line("plain", "Nothing is on record about that."))
    return [*lines, Line("plain" if found.intact else "bad", found.message)]


def _clock(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


# Trust ------------------------------------------------------------------------------------------------

UNTRUSTED = (
    "This folder is not trusted: its files are read as plain text only. Its instructions to the agent, its rules and "
    "its settings are ignored, and nothing in it is run without your yes."
)
CHANGED = "You trusted this folder, but what it enables has changed since. It counts as not trusted until you look."


def trust(found: TrustGetResult) -> list[Line]:
    """What trusting a folder means now."""
    head = {
        "untrusted": Line("warning", UNTRUSTED),
        "changed": Line("warning", CHANGED),
        "trusted": Line("plain", "This folder is trusted."),
    }[found.state]
    if not found.enables:
        return [head, Line("plain", "It holds nothing yet that trust would enable.")]
    verb = "Trust enables:" if found.state == "trusted" else "Trust would enable:"
    return [head, Line("plain", verb), *map(_enabled, found.enables)]


def diffs(found: TrustGetResult) -> list[str]:
    """What a person has to look at before a yes: the unified diffs of all that is not as they trusted it."""
    return [each.diff for each in found.enables if each.diff and each.state != "same"]


def _enabled(each: Enabled) -> Line:
    tone: Tone = "plain" if each.state == "same" else "warning"
    return Line(tone, f"  {each.path} — {_ENABLED[each.what]} ({_STATES[each.state]})")
