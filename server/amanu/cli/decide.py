"""Approvals and reviews, asked of a person at a terminal. The whole thing is shown before the question."""

from collections.abc import Callable
from pathlib import PurePath
from typing import Protocol

from amanu.cli.diff import show_file_header, show_hunk
from amanu.cli.render import Renderer, indent
from amanu.cli.text import one_line, visible
from amanu.cli.view import SessionView
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, Hunk, Proposal, ProposedFile, Scope
from amanu_protocol.state import SessionState

SCOPES: dict[str, Scope] = {"t": "turn", "s": "session", "w": "workspace", "u": "user"}
TOO_SOON = "That came within half a second of the question, so it does not count. Once more:"
_FOR: dict[Scope, str] = {
    "once": "this once",
    "turn": "this turn",
    "session": "this session",
    "workspace": "this workspace, from now on",
    "user": "every workspace of yours, from now on",
}


class Person(Protocol):
    """Somebody at the keyboard."""

    async def ask(self, question: str, *, default: str = "", valid: Callable[[], bool]) -> str | None:
        """One line, stripped; None as soon as `valid` no longer holds or the person left the question."""
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """The text after a visit to the person's editor; None when it could not be edited."""
        ...


class Decider:
    """Puts the pending approvals of one session to one person."""

    def __init__(self, view: SessionView, renderer: Renderer, person: Person) -> None:
        self._view = view
        self._renderer = renderer
        self._paper = renderer.paper
        self._person = person

    async def decide(self, approval: Approval) -> None:
        """Show it, ask, send the answer; again until it is settled, here or elsewhere."""
        self._show(approval)
        while self._pending(approval):
            try:
                if await self._once(approval):
                    await self._view.wait(lambda _: not self._pending(approval))
                    return
            except AmanuError as error:
                self._say_error(error)
        self._paper.line(("dim", "  settled meanwhile"))

    # Showing -------------------------------------------------------------------------------------------

    def _show(self, approval: Approval) -> None:
        self._paper.line(("heading", "? "), ("bold", one_line(approval.title)))
        if approval.proposal_id is not None:
            self._renderer.show_diff(approval.proposal_id, self._view.state)
        else:
            self._paper.line(("", indent(visible(approval.detail))))
        self._paper.line(("dim", f"  asked because: {one_line(approval.rule)}"))

    def _choices(self, approval: Approval) -> str:
        scopes = {offer.scope for offer in approval.scopes}
        remembered = [f"[{key}] {scope}" for key, scope in SCOPES.items() if scope in scopes]
        if approval.proposal_id is None:
            return " · ".join(["[y] once", *remembered, "[n] no"]) + " › "
        now = ["[a] accept all", "[h] hunk by hunk", "[r] reject", "[f] finish review"]
        later = ["\nor allow for the: " + " · ".join(remembered)] if remembered else []  # 80 columns hold each line
        return "".join([" · ".join(now), *later]) + " › "

    # Asking --------------------------------------------------------------------------------------------

    async def _once(self, approval: Approval) -> bool:
        answer = await self._ask(self._choices(approval), approval)
        if answer is None:
            return False
        word, _, rest = answer.partition(" ")
        scopes = {offer.scope: offer.rule for offer in approval.scopes}
        match word.lower(), approval.proposal_id:
            case (("y" | "yes"), None) | (("a" | "accept"), str()):
                return await self._answer(approval, "allow")
            case ("h", str(proposal_id)):
                return await self._hunks(approval, proposal_id)
            case ("f", str()):
                return await self._answer(approval, "finish")
            case (("n" | "no"), None) | (("r" | "n" | "no"), str()):
                return await self._reject(approval, rest)
            case (key, _) if SCOPES.get(key) in scopes:
                return await self._remember(approval, SCOPES[key], scopes[SCOPES[key]])
            case _:
                return False

    async def _reject(self, approval: Approval, reason: str) -> bool:
        said = reason or await self._ask("  why not? (goes to the model, may be empty) › ", approval)
        if said is None:
            return False
        return await self._answer(approval, "reject", reason=said or None)

    async def _remember(self, approval: Approval, scope: Scope, rule: str) -> bool:
        while True:
            self._paper.line(("", "  allow for "), ("bold", _FOR[scope]), ("", ": "), ("bold", visible(rule)))
            answer = await self._ask("  [y] save and allow · [e] edit the rule · [b] back › ", approval)
            if answer in ("y", "yes"):
                return await self._answer(approval, "allow", scope=scope, rule=rule)
            if answer != "e":
                return False
            edited = await self._person.ask("  rule › ", default=rule, valid=lambda: self._pending(approval))
            if not edited:
                continue
            checked = await self._view.client.request(
                "amanu/rule/preview", r.RulePreviewParams(rule=edited), r.RulePreviewResult
            )
            self._paper.line(("dim" if checked.valid else "red", indent(visible(checked.explanation))))
            if checked.valid:
                rule = edited

    async def _answer(
        self,
        approval: Approval,
        decision: str,
        *,
        scope: Scope = "once",
        rule: str | None = None,
        reason: str | None = None,
    ) -> bool:
        result = await self._view.resolve(approval, decision, scope=scope, rule=rule, reason=reason)
        match result.status:
            case "tooSoon":
                self._paper.line(("yellow", TOO_SOON))
                return False
            case "alreadyResolved":
                who = f" by {one_line(result.client)}" if result.client else ""
                self._paper.line(("dim", f"  already {result.outcome}{who}"))
            case "resolved":
                pass
        return True

    # Hunk by hunk --------------------------------------------------------------------------------------

    async def _hunks(self, approval: Approval, proposal_id: str) -> bool:
        """True when the review is over; False to come back to the first question."""
        while (found := _next_open(self._proposal(proposal_id))) is not None:
            proposal, file, hunk, number, count = found
            show_file_header(self._paper, file, self._view.state.roots)
            show_hunk(self._paper, file, hunk, number=f"{number} of {count}", reason=hunk.reason)
            if not await self._hunk(approval, proposal, file, hunk):
                return False
            if not self._pending(approval):
                break
        if self._pending(approval):
            return (await self._view.resolve(approval, "finish")).status != "tooSoon"
        return True

    async def _hunk(self, approval: Approval, proposal: Proposal, file: ProposedFile, hunk: Hunk) -> bool:
        """Ask until this hunk is decided. False when the person wants no more of this."""
        while True:
            answer = await self._ask("  [y] accept · [n] reject, or: n why not · [e] edit · [q] stop › ", approval)
            if answer is None or answer == "q":
                return False
            word, _, reason = answer.partition(" ")
            match word.lower():
                case "y" | "a":
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="accept")
                case "n" | "r":
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason=reason or None)
                case "e":
                    text = await self._person.edit(hunk.new_text, PurePath(file.path).suffix)
                    if text is None or text == hunk.new_text:
                        self._paper.line(("dim", "  the text is unchanged"))
                        continue
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="accept", new_text=text)
                case _:
                    continue
            try:
                result = await self._view.resolve_hunks(proposal.proposal_id, proposal.version, [decision])
            except AmanuError as error:
                self._say_error(error)
                return True  # shown again as it is now
            if result.status == "tooSoon":
                self._paper.line(("yellow", TOO_SOON))
                continue
            await self._at_least(result.proposal)
            return True

    def _proposal(self, proposal_id: str) -> Proposal | None:
        return next((each for each in self._view.state.proposals if each.proposal_id == proposal_id), None)

    async def _at_least(self, replied: Proposal) -> None:
        """Until the state has what the reply told: replies and events may overtake each other."""

        def known(_: SessionState) -> bool:
            proposal = self._proposal(replied.proposal_id)
            return proposal is None or proposal.version >= replied.version

        await self._view.wait(known)

    # Small ---------------------------------------------------------------------------------------------

    async def _ask(self, question: str, approval: Approval) -> str | None:
        return await self._person.ask(question, valid=lambda: self._pending(approval))

    def _pending(self, approval: Approval) -> bool:
        return any(each.tool_call_id == approval.tool_call_id for each in self._view.state.approvals)

    def _say_error(self, error: AmanuError) -> None:
        hint = f" {error.data.hint}" if error.data.hint else ""
        self._paper.line(("red", f"  {visible(str(error))}{visible(hint)}"))


def _next_open(proposal: Proposal | None) -> tuple[Proposal, ProposedFile, Hunk, int, int] | None:
    if proposal is None:
        return None
    hunks = [(file, hunk) for file in proposal.files for hunk in file.hunks]
    for at, (file, hunk) in enumerate(hunks):
        if hunk.state == "pending":
            return proposal, file, hunk, at + 1, len(hunks)
    return None
