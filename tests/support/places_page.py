"""The table of `docs/permissions.md` that says where commands run, from the function that decides it.

PYTHONPATH=tests python -m support.places_page    writes it
"""

from dataclasses import replace
from pathlib import Path

from amanu.core.place import Place
from amanu.permissions.placing import LineFacts, PlacingFacts, Ruling, Sandbox, placing, unasked
from amanu.permissions.policy import Verdict, is_read_only
from amanu_protocol.items import Mode

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
BEGINS, ENDS = "<!-- generated: places -->\n", "<!-- end -->\n"
MODES: tuple[Mode, ...] = ("plan", "ask", "acceptEdits", "draft", "auto")
LOOKS, ACTS = LineFacts(acts=False), LineFacts()
COMMIT = LineFacts(git="checkout", changes_repository=True)
ANY = PlacingFacts("ask", "layers")
KINDS: dict[str, tuple[PlacingFacts, int]] = {
    "only prints (`git status`, `ls`)": (replace(ANY, line=LOOKS), 0),
    "anything else (`make`, `npm test`)": (replace(ANY, line=ACTS), 1),
    "one git command that changes the repository (`git commit`)": (replace(ANY, line=COMMIT), 1),
    "what needs the network (`npm install`)": (replace(ANY, line=ACTS, worth_trying=False), 1),
    "tried before, and could not write what it needs": (replace(ANY, line=ACTS, blocked=frozenset({"write"})), 1),
    "in the background (`npm run dev`)": (replace(ANY, line=ACTS, background=True), 1),
    "in the background, `git commit`": (replace(ANY, line=COMMIT, background=True), 1),
    "a line that you edited": (replace(ANY, line=ACTS, edited=True), 1),
}
"""Kind → what is known about such a command, and how many of its commands act."""
SANDBOXES: dict[Sandbox, str] = {
    "layers": "Where private copies work (bubblewrap, an overlay file system):",
    "in place": "Elsewhere in a sandbox (Landlock, `sandbox.layers = false`):",
    "none": "Where no sandbox works, every command that you approve runs with your own rights. In `plan`, the only\n"
    "commands that run are those that just print something.",
}


def table() -> str:
    parts = [SANDBOXES[sandbox] + "\n\n" + _rows(sandbox) for sandbox in ("layers", "in place")]
    return "\n".join([*parts, SANDBOXES["none"]]) + "\n"


def _rows(sandbox: Sandbox) -> str:
    lines = [f"| | {' | '.join(f'`{mode}`' for mode in MODES)} |", "|---" * (len(MODES) + 1) + "|"]
    for kind, (facts, acting) in KINDS.items():
        cells = [_cell(replace(facts, mode=mode, sandbox=sandbox), acting) for mode in MODES]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(facts: PlacingFacts, acting: int) -> str:
    """Say where it runs if no rule of the user's is about it: before anybody is asked, and after a yes."""
    places = placing(facts)
    if is_read_only(facts.mode) and not facts.worth_trying:
        return "refused"
    if is_read_only(facts.mode) and facts.blocked:
        return "–"  # no more can be allowed there
    verdict = Verdict("allow" if _allows(facts) else "ask", "", may_be_tried=True)
    first = unasked(places, Ruling(verdict, facts.mode, acting, rules_guard_files=False))
    approved = _said(places.approved)
    if first is None:
        return f"asked; then {approved}"
    return _said(first) if not first.tried or _said(first) == approved else f"{_said(first)}; after a yes {approved}"


def _allows(facts: PlacingFacts) -> bool:
    """Whether the mode's own rules allow the command."""
    return not facts.line.acts or facts.mode == "plan" or (facts.mode == "auto" and facts.worth_trying)


def _said(place: Place) -> str:
    """The place in a few words."""
    if place.base == "machine":
        return "outside the sandbox"
    if not place.on_copy:
        return "workspace" if place.writes else "workspace, nothing writable"
    name = "copy of what is saved" if place.finds == "saved" else "copy"
    if place.base == "fork":
        name = f"own {name}"
    return f"{name}, {place.then}" if place.writes else name


def page() -> str:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGINS)
    return f"{before}{BEGINS}{table()}{ENDS}{rest.partition(ENDS)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
