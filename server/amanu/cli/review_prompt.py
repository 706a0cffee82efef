"""Approvals and reviews, asked of a user at a terminal. The whole thing is shown before the question."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Protocol

from amanu.cli.diff import show_file_header, show_hunk, show_proposal, show_row
from amanu.cli.long_text import is_long, printed, show_extent, show_files_again
from amanu.cli.question import show_lines, show_question, show_reasons, show_title
from amanu.cli.render import Renderer
from amanu.cli.review_page_decisions import PagedReview
from amanu.cli.text import one_line, visible
from amanu.cli.ui.dialog import ALONE, Choice, Dialog, Place
from amanu.cli.ui.terminal import StopRequested
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import (
    Approval,
    ApprovalAnswer,
    Grant,
    Hunk,
    Line,
    Proposal,
    ProposedFile,
    Row,
    Scope,
    ToolCall,
)
from amanu_protocol.labels import BUTTONS, IGNORED, MODES, SCOPES

KEYS: dict[str, Scope] = {"t": "turn", "s": "session", "w": "workspace", "u": "user"}
UNKNOWN = "  Unknown answer '{}'. Choose a row by its number, or type a few words to reject: the model reads them."
PLAN = "  You approve the text above."
NO = ("n", "no", "r", "reject")
_WHOLE = ("accept", "yes", "finish", "later")
LONGEST_SLIP = 3
"""Characters of an unknown answer that may be a slip of the finger; more are words to the model."""
STALE_SECONDS = 2.0
"""In which the question comes anew. If it does not, it is asked as it is."""
GRANTING: dict[tuple[Grant, ...], str] = {(): "-", ("network",): "+", ("unsandboxed",): "!"}
"""Keys of an approval that grants something else than `y` does."""

ALLOW, ALLOW_ONCE = "Allow", "Allow once"
"""Key → the beginning of its answer's label."""

_DECISIONS = (
    Choice("y", "Accept"),
    Choice("n", "Reject"),
    Choice("e", "Edit", "in your editor, then accept"),
    Choice("q", "Back", "the rest is decided later"),
)
"""On one hunk."""


class UserInput(Protocol):
    """Somebody at the keyboard."""

    async def ask(self, dialog: Dialog) -> str | None:
        """The value of the choice that was made, or what was typed, stripped; None as soon as the dialog is no longer
        valid. Raises EOFError when the user leaves."""
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """The text after a visit to the user's editor; None when it could not be edited."""
        ...

    async def view(self, text: str) -> None:
        """Show the text from its beginning until the user has seen enough of it."""
        ...


class ReviewPrompt:
    """Puts the pending approvals of one session to one user."""

    def __init__(
        self, view: SessionView, renderer: Renderer, user_input: UserInput, page: PagedReview | None = None
    ) -> None:
        self._page = page
        self._view = view
        self._renderer = renderer
        self._console = renderer.console
        self._user_input = user_input
        self._asked_about: set[str] = set()
        """The proposals that were asked about before."""
        self._typed = ""
        self._place: Callable[[], Place] = lambda: ALONE
        self._reviewed = False
        """Hunks were decided or the plan was edited here: that what is asked about has changed is no news."""

    async def decide(self, approval: Approval, typed: str = "", place: Callable[[], Place] = lambda: ALONE) -> None:
        """Show it, ask, send the answer; again until it is settled, here or elsewhere. What is asked about may change
        meanwhile: then it is shown anew. `typed` are words that the user left at it for another question."""
        self._typed, self._place = typed, place
        if approval.proposal_id in self._asked_about:  # what this one is about may be far above
            self._renderer.forget_diff(approval.proposal_id)
        if approval.proposal_id is not None:
            self._asked_about.add(approval.proposal_id)
        self._show(approval)
        while (current := self._current(approval)) is not None:
            if current.digest != approval.digest:
                approval = current
                self._show_anew(approval)
            self._reviewed = False
            try:
                if await self._ask_once(approval):
                    await self._view.wait(lambda _, answered=approval: not self._unchanged(answered))
                    return
            except AmanuError as error:
                self._show_error(error)
        self._console.line(("dim", f"  {IGNORED['settled']}"))

    # Showing -------------------------------------------------------------------------------------------

    def _show(self, approval: Approval) -> None:
        show_question(approval, self._console)
        if approval.proposal_id is not None:
            if self._is_draft(approval):  # its earlier versions may be far above
                self._renderer.forget_diff(approval.proposal_id)
            self._renderer.show_diff(approval.proposal_id, self._view.state)
        if is_long(text := self._whole(approval)):
            show_extent(text, self._console)
            show_title(approval, self._console)
            show_files_again(self._files(approval), self._view.state.roots, self._console)
        if approval.document is not None:  # what the daemon says of it is for editors
            self._console.line(("dim", PLAN))
        else:
            show_reasons(approval, self._console)

    def _show_anew(self, approval: Approval) -> None:
        if not self._reviewed:
            self._console.line(("yellow", IGNORED["stale"]))
        if approval.proposal_id is not None:
            self._renderer.forget_diff(approval.proposal_id)
        self._show(approval)

    def _whole(self, approval: Approval) -> str:
        """What stands between the title and the reasons."""
        proposal = self._proposal(approval.proposal_id)
        if proposal is None:
            return visible(approval.detail)
        return printed(lambda console: show_proposal(console, proposal, self._view.state.roots))

    def _files(self, approval: Approval) -> Sequence[ProposedFile]:
        proposal = self._proposal(approval.proposal_id)
        return [] if proposal is None else proposal.files

    def _choices(self, approval: Approval) -> Sequence[Choice]:
        """The daemon's answers, and what the terminal can do besides. Words that are typed are a reason."""
        answers = [each for each in approval.answers if not each.further and not _is_words(each)]
        answers.sort(key=lambda each: bool(each.rule))  # the digits of what is chosen most stay the same
        choices = [self._choice(each, approval) for each in answers]
        if approval.proposal_id is not None and (step := self._step()):
            proposals = [self._proposal(step_approval.proposal_id) for step_approval in step]
            files = {change.path for each in proposals if each is not None for change in (*each.files, *each.rows)}
            choices.insert(1, Choice("e", f"Accept all edits of this step ({plural(len(files), 'file')})"))
        if approval.document is not None:
            choices.append(Choice("e", "Edit the plan", "in your editor"))
        if is_long(self._whole(approval)):
            choices.append(Choice("v", "View all of it", "in the pager"))
        return choices

    def _choice(self, answer: ApprovalAnswer, approval: Approval) -> Choice:
        about = one_line(answer.rule) or answer.explanation
        plans = _plans(approval)
        match answer.action:
            case "allow" if answer.mode is not None:
                return Choice(str(plans.index(answer) + 1), _plan_label(answer, plans))
            case "allow" if answer.rule:
                return Choice(next(key for key, scope in KEYS.items() if scope == answer.scope), answer.label, about)
            case "allow" if approval.proposal_id is not None:
                return Choice("a", answer.label)
            case "allow":
                key = "y" if answer == _once(approval)[0] else GRANTING[tuple(answer.grants)]
                return Choice(key, answer.label, about)
            case "review":
                return Choice("h", answer.label)
            case "editCommand":
                return Choice("e", answer.label, about)
            case "finish":
                return Choice("f", answer.label, about)
            case "reject":
                return Choice("n", answer.label, about)

    def _prompt(self, approval: Approval) -> str:
        if approval.document is not None:
            return "or say what to change › "
        return "or the next prompt › " if self._is_draft(approval) else "or why not › "

    # Asking --------------------------------------------------------------------------------------------

    async def _ask_once(self, approval: Approval) -> bool:
        typed, self._typed = self._typed, ""
        answer = await self._user_input.ask(
            Dialog(
                self._prompt(approval),
                self._choices(approval),
                valid=lambda: self._unchanged(approval),
                again=lambda: show_title(approval, self._console),
                typed=typed,
                place=self._place,
            )
        )
        if answer is None:
            return False
        word, argument = _split(answer)
        if self._is_draft(approval) and (argument or len(answer) > LONGEST_SLIP) and word not in (*NO, *_WHOLE):
            await self._view.prompt(answer)  # which leaves the draft as it is
            return True
        if answer == "v":
            await self._user_input.view(self._whole(approval))
            return False
        if argument and word not in NO:
            return await self._answer(approval, _refusal(approval), reason=answer)
        if approval.document is not None:
            return await self._decide_plan(approval, approval.document, answer)
        kept = _kept(approval)
        first, *others = _once(approval)
        granting = {GRANTING[tuple(each.grants)]: each for each in others}
        match word, approval.proposal_id:
            case (("y" | "yes"), None):
                return await self._answer(approval, first)
            case (("a" | "accept"), str()):
                return await self._answer(approval, first)
            case (key, None) if key in granting:
                return await self._answer(approval, granting[key])
            case ("e", str()) if step := self._step():
                return await self._accept_all(approval, step)
            case ("e", None) if approval.command is not None:
                return await self._edit_command(approval, approval.command)
            case ("h", str(proposal_id)):
                return await self._review_hunks(approval, proposal_id)
            case (("f" | "finish" | "later"), str()):
                return await self._answer(approval, _finish(approval))
            case (("n" | "no"), None) | (("r" | "n" | "no" | "reject"), str()):
                return await self._reject(approval, argument)
            case (key, _) if KEYS.get(key) in kept:
                return await self._save_rule(approval, kept[KEYS[key]])
            case _ if len(answer) > LONGEST_SLIP:
                return await self._answer(approval, _refusal(approval), reason=answer)
            case _:
                if answer:
                    self._console.line(("yellow", UNKNOWN.format(visible(answer))))
                return False

    async def _decide_plan(self, approval: Approval, document: str, answer: str) -> bool:
        plans = {str(number): plan for number, plan in enumerate(_plans(approval), 1)}
        if answer in plans:
            return await self._answer(approval, plans[answer])
        if answer == "e":
            edited = await self._user_input.edit(approval.detail, ".md")
            if edited is not None and edited != approval.detail:
                await asyncio.to_thread(Path(document).write_text, edited, encoding="utf-8")
                self._reviewed = True
                await self._view.wait(lambda _: not self._unchanged(approval))
            return False
        if answer.lower() in NO or len(answer) > LONGEST_SLIP:
            return await self._reject(approval, "" if answer.lower() in NO else answer)
        if answer:
            self._console.line(("yellow", UNKNOWN.format(visible(answer))))
        return False

    async def _edit_command(self, approval: Approval, command: str) -> bool:
        """Have the command edited, and answer with what it is then. Nothing is answered where it stays as it was."""
        if "\n" in command:
            edited = (await self._user_input.edit(command, ".sh") or command).strip("\n")
        else:
            edited = await self._ask("  command › ", approval, default=command)
        if not edited or edited == command or not self._unchanged(approval):
            return False
        edit = next(each for each in approval.answers if each.action == "editCommand")
        return await self._answer(approval, edit, command=edited)

    def _is_draft(self, approval: Approval) -> bool:
        """Whether it asks about a draft, when the model is done: what is typed then is for the model, and no answer."""
        call = self._view.state.item(approval.tool_call_id)
        return isinstance(call, ToolCall) and call.tool == "review_draft"

    def _step(self) -> list[Approval]:
        """The oldest question about each proposal, where several of a step wait; [] for one. Never a command."""
        edits = [pending for pending in self._view.state.approvals if pending.proposal_id is not None]
        oldest = {edit.proposal_id: edit for edit in reversed(edits)}
        return [edit for edit in edits if oldest[edit.proposal_id] is edit] if len(oldest) > 1 else []

    async def _accept_all(self, approval: Approval, step: Sequence[Approval]) -> bool:
        """Show what was not shown yet, and accept each as it was."""
        step = [
            approval,
            *(step_approval for step_approval in step if step_approval.proposal_id != approval.proposal_id),
        ]
        for each in step[1:]:
            self._show(each)
        choices = [Choice("y", "Accept everything above"), Choice("n", "Back")]
        if await self._ask("› ", approval, choices=choices) not in ("y", "yes"):
            return False
        # At once: what applying one changes in another is no news to who approved both.
        settled = await asyncio.gather(*(self._answer(each, _once(each)[0]) for each in step))
        return settled[0]

    async def _reject(self, approval: Approval, reason: str) -> bool:
        return await self._answer(approval, _refusal(approval), reason=reason or None)

    async def _save_rule(self, approval: Approval, kept: ApprovalAnswer) -> bool:
        """Show what would be saved and what that means, have it edited as often as the user likes, save it."""
        rule = kept.rule
        while self._unchanged(approval):
            self._console.line(("", "  allow "), ("bold", SCOPES[kept.scope]), ("", ":"))
            for line in visible(rule).split("\n"):
                self._console.verbatim(("bold", f"    {line}"))
            preview = await self._preview(approval, rule)
            show_lines(preview.lines, self._console, "    ")
            granted = _without(f"{ALLOW} {SCOPES[kept.scope]}", kept.label) if approval.proposal_id is None else ""
            save = [Choice("y", f"Save and allow {granted}".rstrip())] if preview.fits else []
            choices = [*save, Choice("e", "Edit the rule"), Choice("b", "Back")]
            try:
                answer = await self._ask("› ", approval, choices=choices)
            except StopRequested:  # Esc goes back to the question
                return False
            if answer in ("y", "yes") and preview.fits:
                return await self._answer(approval, kept, rule=rule)
            if answer != "e":
                return False
            rule = await self._edit(approval, rule)
        return False

    async def _edit(self, approval: Approval, rule: str) -> str:
        """One rule on a line that says below it what it would do; several in the user's editor, one a line."""
        if "\n" in rule:
            return (await self._user_input.edit(rule, ".rules") or rule).strip()

        async def preview(text: str) -> Sequence[Line]:
            return (await self._preview(approval, text)).lines

        edited = await self._user_input.ask(
            Dialog("    rule › ", default=rule, valid=lambda: self._unchanged(approval), preview=preview)
        )
        return edited or rule

    async def _preview(self, approval: Approval, rule: str) -> r.RulePreviewResult:
        params = r.RulePreviewParams(rule=rule, session_id=self._view.session_id, tool_call_id=approval.tool_call_id)
        return await self._view.client.request("amanu/rule/preview", params, r.RulePreviewResult)

    async def _answer(
        self,
        approval: Approval,
        answer: ApprovalAnswer,
        *,
        rule: str | None = None,
        reason: str | None = None,
        command: str | None = None,
    ) -> bool:
        """True when it is settled."""
        result = await self._view.resolve(approval, answer, rule=rule, reason=reason, command=command)
        match result.status:
            case "tooSoon":
                self._console.line(("yellow", IGNORED["tooSoon"]))
                return False
            case "stale":
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(STALE_SECONDS):
                        await self._view.wait(lambda _: not self._unchanged(approval))
                return False
            case "alreadyResolved":
                self._console.line(("yellow", f"  {one_line(result.summary, 400)}"))
            case "resolved":
                pass
        return True

    # Hunk by hunk --------------------------------------------------------------------------------------

    async def _review_hunks(self, approval: Approval, proposal_id: str) -> bool:
        """True when the review is over; False to come back to the first question."""
        self._reviewed = True
        if self._page is not None and self._page.is_possible:
            return await self._review_page(self._page, approval, proposal_id)
        while (open_change := _next_open(self._proposal(proposal_id))) is not None:
            proposal, file, change, number = open_change
            if isinstance(change, Row):
                show_row(self._console, change, self._view.state.roots, number=number)
                is_decided = await self._ask_row(approval, proposal, change)
            else:
                assert file is not None, "each hunk is in one"
                show_file_header(self._console, file, self._view.state.roots)
                show_hunk(self._console, file, change, number=number, reason=change.reason)
                is_decided = await self._ask_hunk(approval, proposal, file, change)
            if not is_decided:
                return False
            if not self._pending(approval):
                break
        return not self._pending(approval) or await self._answer(approval, _finish(approval))

    async def _review_page(self, page: PagedReview, approval: Approval, proposal_id: str) -> bool:
        await page.review(proposal_id, lambda: self._pending(approval))
        if (current := self._current(approval)) is None:
            return True
        return _next_open(self._proposal(proposal_id)) is None and await self._answer(current, _finish(current))

    async def _ask_hunk(self, approval: Approval, proposal: Proposal, file: ProposedFile, hunk: Hunk) -> bool:
        """Ask until this hunk is decided. False when the user wants no more of this."""
        whole = printed(lambda console: show_hunk(console, file, hunk))
        if is_long(whole):
            show_extent(whole, self._console)
            show_files_again([file], self._view.state.roots, self._console)
        while True:
            answer = await self._user_input.ask(
                Dialog(
                    "or why not › ",
                    [*_DECISIONS, *([Choice("v", "View all of it", "in the pager")] if is_long(whole) else [])],
                    valid=lambda: self._pending(approval),
                    again=lambda: show_hunk(self._console, file, hunk, reason=hunk.reason),
                )
            )
            if answer is None or answer == "q":
                return False
            word, reason = _split(answer)
            match word:
                case _ if reason and word not in NO:
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason=answer)
                case "v":
                    await self._user_input.view(whole)
                    continue
                case "y" | "a":
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="accept")
                case "n" | "no" | "r":
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason=reason or None)
                case "e":
                    text = await self._user_input.edit(hunk.new_text, PurePath(file.path).suffix)
                    if text is None or text == hunk.new_text:
                        self._console.line(("dim", "  the text is unchanged"))
                        continue
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="accept", new_text=text)
                case _ if len(answer) > LONGEST_SLIP:
                    decision = r.HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason=answer)
                case _:
                    continue
            if await self._resolve(proposal, decision):
                return True

    async def _ask_row(self, approval: Approval, proposal: Proposal, row: Row) -> bool:
        """Ask until this row is decided. False when the user wants to stop."""
        while True:
            answer = await self._user_input.ask(
                Dialog(
                    "or why not › ",
                    [each for each in _DECISIONS if each.value != "e"],
                    valid=lambda: self._pending(approval),
                    again=lambda: show_row(self._console, row, self._view.state.roots),
                )
            )
            if answer is None or answer == "q":
                return False
            word, reason = _split(answer)
            if word in ("y", "a") and not reason:
                decision = r.RowDecision(row_id=row.row_id, decision="accept")
            elif word in NO:
                decision = r.RowDecision(row_id=row.row_id, decision="reject", reason=reason or None)
            elif len(answer) > LONGEST_SLIP:
                decision = r.RowDecision(row_id=row.row_id, decision="reject", reason=answer)
            else:
                continue
            if await self._resolve(proposal, decision):
                return True

    async def _resolve(self, proposal: Proposal, decision: r.HunkDecision | r.RowDecision) -> bool:
        """Send the decision, and show an error if there is one. False when it came too soon to be taken."""
        try:
            result = await self._view.resolve_changes(proposal, [decision])
        except AmanuError as error:
            self._show_error(error)
            return True  # shown again as it is now
        if result.status == "tooSoon":
            self._console.line(("yellow", IGNORED["tooSoon"]))
            return False
        return True

    def _proposal(self, proposal_id: str | None) -> Proposal | None:
        return next((proposal for proposal in self._view.state.proposals if proposal.proposal_id == proposal_id), None)

    # Small ---------------------------------------------------------------------------------------------

    async def _ask(
        self, prompt: str, approval: Approval, default: str = "", choices: Sequence[Choice] = ()
    ) -> str | None:
        """About exactly what was shown."""
        return await self._user_input.ask(
            Dialog(prompt, choices, default=default, valid=lambda: self._unchanged(approval))
        )

    def _pending(self, approval: Approval) -> bool:
        return self._current(approval) is not None

    def _unchanged(self, approval: Approval) -> bool:
        """It is asked still, and about the same thing."""
        current = self._current(approval)
        return current is not None and current.digest == approval.digest

    def _current(self, approval: Approval) -> Approval | None:
        """What is asked of that call now."""
        return next(
            (pending for pending in self._view.state.approvals if pending.tool_call_id == approval.tool_call_id), None
        )

    def _show_error(self, error: AmanuError) -> None:
        hint = f" {error.data.hint}" if error.data.hint else ""
        self._console.line(("red", f"  {visible(str(error))}{visible(hint)}"))


def _split(answer: str) -> tuple[str, str]:
    """The letter or word of an answer, and what follows: words to the model, a refusal, also after an approval."""
    word, _, argument = answer.partition(" ")
    return (word.lower().rstrip(",.;:!") or word), argument.strip()


def _next_open(proposal: Proposal | None) -> tuple[Proposal, ProposedFile | None, Hunk | Row, str] | None:
    """The next change to decide, and its place among all of them: "2 of 3"."""
    if proposal is None:
        return None
    changes: list[tuple[ProposedFile | None, Hunk | Row]] = [
        *((file, hunk) for file in proposal.files for hunk in file.hunks),
        *((None, row) for row in proposal.rows if not row.undecidable),
    ]
    for index, (file, change) in enumerate(changes):
        if change.state == "pending":
            return proposal, file, change, f"{index + 1} of {len(changes)}"
    return None


def _is_words(answer: ApprovalAnswer) -> bool:
    """Whether it is given by typing."""
    return answer.asks == "reason" and answer.label == BUTTONS["rejectWithReason"]


def _once(approval: Approval) -> list[ApprovalAnswer]:
    """Every way to allow it that nothing is kept of, the likeliest first."""
    return [answer for answer in approval.answers if answer.action == "allow" and answer.scope == "once"]


def _kept(approval: Approval) -> dict[Scope, ApprovalAnswer]:
    """The answers that save rules."""
    return {answer.scope: answer for answer in approval.answers if answer.rule and not answer.further}


def _refusal(approval: Approval) -> ApprovalAnswer:
    return next(answer for answer in approval.answers if answer.action == "reject")


def _finish(approval: Approval) -> ApprovalAnswer:
    return next(answer for answer in approval.answers if answer.action == "finish")


def _plans(approval: Approval) -> list[ApprovalAnswer]:
    return [answer for answer in approval.answers if answer.mode is not None]


def _without(beginning: str, label: str) -> str:
    """The label of an answer, without what its key stands for."""
    return label.removeprefix(beginning).strip()


def _plan_label(plan: ApprovalAnswer, plans: Sequence[ApprovalAnswer]) -> str:
    """How the plan is carried out: the mode by its name, and what it means."""
    if plan.mode is None:
        return plan.label
    if plan.fresh_context:
        alike = next((at for at, each in enumerate(plans, 1) if each.mode == plan.mode and each != plan), None)
        if alike is not None:
            return f"as {alike}, with a fresh context: without the conversation so far"
    return f"approve, in {plan.mode} mode: {MODES[plan.mode].meaning}"
