"""Decides where a command runs: pure functions of what is known about it. `docs/permissions.md` has the table for
users, `tests/unit/places.tsv` every row."""

from dataclasses import dataclass, field, replace
from typing import Literal

from amanu.core.place import LOOK, READ_ONLY, Git, Place, Placing, Reach, outside
from amanu.core.tool import Need
from amanu.permissions.policy import Verdict, drafts, is_read_only, runs_on_copy
from amanu_protocol.items import Mode

Sandbox = Literal["none", "in place", "layers"]
"""`none`: none works on this machine · `in place`: one that holds commands in the workspace itself · `layers`: one that
can also give them a private copy."""


@dataclass(frozen=True)
class LineFacts:
    """A command line, as far as its place depends on it."""

    acts: bool = True
    """It has an effect, or may have one."""
    git: Git = "none"
    """The part of git's own files that it must be able to write."""
    changes_repository: bool = False
    """It may change the repository, and so must see only what is saved and accepted."""


@dataclass(frozen=True)
class PlacingFacts:
    mode: Mode
    sandbox: Sandbox
    line: LineFacts = field(default_factory=LineFacts)
    background: bool = False
    """It goes on after its call."""
    worth_trying: bool = True
    """It requests no extra access, and will not wait in vain for a network that is not there."""
    blocked: frozenset[Need] = frozenset()
    """Access that the sandbox blocked when it ran before; `write` also where its changes could not be reviewed."""
    edited: bool = False
    """The user wrote the line, so it is not tried: they expect to be asked at once."""
    by_agent: bool = False
    """A sub-agent calls it."""


@dataclass(frozen=True)
class Ruling:
    """The rules' verdict on a command line that they do not deny."""

    verdict: Verdict
    mode: Mode
    acting_commands: int
    """The number of its commands that have an effect, or may have one."""
    rules_guard_files: bool
    """Rules deny or ask about writing some files."""


def placing(facts: PlacingFacts) -> Placing:
    """Decide where the command runs if it is tried, and where once it is approved."""
    approved = _approved(facts)
    return Placing(_tried(facts, approved), approved, facts.line.acts)


def unasked(places: Placing, ruling: Ruling) -> Place | None:
    """Decide where the command runs when nobody is asked; None: the user is asked."""
    tried, verdict = places.tried, ruling.verdict
    if verdict.decision == "ask":
        return tried if verdict.may_be_tried else None
    if tried is not None and tried.on_copy and runs_on_copy(ruling.mode) and not (verdict.named or verdict.grants):
        # A single command of git does all or nothing, needs no undo, and may switch to a branch with other protected
        # files.
        in_place = 1 if places.approved.reach.checks_out and not ruling.rules_guard_files else 0
        if ruling.acting_commands > in_place:
            return tried
    approved = places.granted(verdict.grants, secrets=verdict.named)
    if ruling.rules_guard_files and not verdict.named and approved.writes and not approved.on_copy:
        return tried  # in the workspace itself, nothing would hold it to those rules
    return approved


def _approved(facts: PlacingFacts) -> Place:
    line = facts.line
    if facts.sandbox == "none":  # what acts is refused in plan mode before it comes here
        return outside(acts=line.acts, git=line.git)
    on_copy = facts.sandbox == "layers"
    if is_read_only(facts.mode):
        if not on_copy or facts.background:
            return READ_ONLY
        return _copy(facts, "dropped") if line.acts else _look(facts)
    if on_copy and drafts(facts.mode) and not ("write" in facts.blocked or line.changes_repository):
        return _copy(facts, "dropped" if facts.background else "drafted")
    if not line.acts:
        return _look(facts) if on_copy and not facts.background else READ_ONLY
    return Place(reach=Reach(git=line.git))


def _tried(facts: PlacingFacts, approved: Place) -> Place | None:
    outlives_its_try = facts.background and not approved.on_copy
    if facts.sandbox == "none" or facts.blocked or facts.edited or outlives_its_try or not facts.worth_trying:
        return None
    if approved.on_copy or not approved.writes:
        return replace(approved, tried=True)
    return replace(_copy(facts, "proposed") if facts.sandbox == "layers" else READ_ONLY, tried=True)


def _copy(facts: PlacingFacts, then: Literal["proposed", "drafted", "dropped"]) -> Place:
    base = "fork" if facts.by_agent or then == "dropped" else "copy"
    if facts.line.changes_repository:
        return Place(base, finds="saved", then=then, reach=Reach(git="files"))
    return Place(base, finds="session", then=then)


def _look(facts: PlacingFacts) -> Place:
    return replace(LOOK, base="fork" if facts.by_agent else "copy")
