"""A review on a page of its own, carried out: it follows the session, and sends what the user decides."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from amanu.cli.console import Console
from amanu.cli.review_page import Decision, HunkEdit, Listed, ReviewPage
from amanu.cli.ui.terminal import StopRequested, Terminal
from amanu.client.base_texts import load_base_texts
from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import SessionView
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, ProposalChanged
from amanu_protocol.items import Hunk, Proposal, Verb
from amanu_protocol.labels import IGNORED
from amanu_protocol.state import SessionState

NOTHING = "Nothing waits for a review."
NO_PAGE = "This terminal has no full screen: /diff shows the changes; /accept, /reject, /keep and /undo decide them."


class PagedReview:
    """Reviews of one session at one terminal."""

    def __init__(self, view: SessionView, terminal: Terminal, console: Console) -> None:
        self._view = view
        self._terminal = terminal
        self._console = console

    @property
    def is_possible(self) -> bool:
        return self._terminal.has_pages

    async def review_all(self) -> None:
        """All that waits in this session."""
        if not self.is_possible:
            self._console.line(("yellow", NO_PAGE))
        elif not any(proposal.waiting for proposal in self._view.state.proposals):
            self._console.line(("dim", NOTHING))
        else:
            waiting = [proposal for proposal in self._view.state.proposals if proposal.waiting]
            await load_base_texts(self._view.client, self._view.state, waiting)
            await self.review()

    async def review(self, proposal_id: str | None = None, valid: Callable[[], bool] = lambda: True) -> None:
        """Those of one proposal, or all. Returns when the user goes back, `valid` no longer holds or nothing waits any
        more. Raises what keys raise, and Disconnected."""
        page = ReviewPage(proposal_id)
        self._follow(page)
        with self._following(page):
            async with self._terminal.paged(page):
                await self._decide(page, lambda: valid() and not self._view.state.closed and not page.is_done)
        if self._view.client.lost.is_set():
            raise Disconnected
        end = "All is decided" if page.is_done else "Left the review"
        self._console.line(("dim", f"  {end}: {page.summary()}."))

    async def _decide(self, page: ReviewPage, valid: Callable[[], bool]) -> None:
        lost = self._view.client.lost
        while valid() and not lost.is_set():
            try:
                pressed = await self._terminal.pressed(lambda: not valid() or lost.is_set())
            except StopRequested:
                return
            try:
                match pressed:
                    case Decision() as decision:
                        await self._send(page, decision)
                    case HunkEdit() as editing:
                        await self._edit(page, editing)
                    case "back":
                        return
                    case _:
                        pass
            except AmanuError as error:
                hint = f" {error.data.hint}" if error.data.hint else ""
                page.say("red", f"{error}{hint}")
            except Disconnected:
                return

    async def _edit(self, page: ReviewPage, editing: HunkEdit) -> None:
        listed = editing.listed
        assert isinstance(listed.change, Hunk)
        text = await self._terminal.edit(editing.text, PurePath(listed.path).suffix)
        if text is None or text == listed.change.new_text:
            page.say("", "The text is unchanged.")
            return
        page.kept_texts[listed.key] = text  # until it is taken: the change may be another by now
        await self._send(page, Decision([("accept", listed)], new_text=text))

    async def _send(self, page: ReviewPage, decision: Decision) -> None:
        for proposal, changes in _by_proposal(decision.changes):
            decisions = [_decision(verb, each, decision) for verb, each in changes]
            result = await self._view.resolve_changes(proposal, decisions)
            if result.status == "tooSoon":
                page.say("yellow", IGNORED["tooSoon"])
                return
        self._follow(page)
        page.decided(decision)

    # Following -------------------------------------------------------------------------------------------

    @contextmanager
    def _following(self, page: ReviewPage) -> Generator[None]:
        def on_event(message: EventMessage, state: SessionState) -> None:
            if isinstance(message.event, ProposalChanged):
                self._follow(page)
            page.other_questions = _other_questions(page, state)

        def on_state(state: SessionState) -> None:
            self._follow(page)

        self._view.listeners.append(on_event)
        self._view.replaced.append(on_state)
        try:
            yield
        finally:
            self._view.listeners.remove(on_event)
            self._view.replaced.remove(on_state)

    def _follow(self, page: ReviewPage) -> None:
        page.follow(self._view.state)
        page.other_questions = _other_questions(page, self._view.state)


def _by_proposal(changes: Sequence[tuple[Verb, Listed]]) -> list[tuple[Proposal, list[tuple[Verb, Listed]]]]:
    found: dict[str, tuple[Proposal, list[tuple[Verb, Listed]]]] = {}
    for verb, each in changes:
        found.setdefault(each.proposal.proposal_id, (each.proposal, []))[1].append((verb, each))
    return [*found.values()]


def _decision(verb: Verb, listed: Listed, decision: Decision) -> r.HunkDecision | r.RowDecision:
    reason = decision.reason or None
    if isinstance(listed.change, Hunk):
        return r.HunkDecision(hunk_id=listed.change.hunk_id, decision=verb, reason=reason, new_text=decision.new_text)
    return r.RowDecision(row_id=listed.change.row_id, decision=verb, reason=reason)


def _other_questions(page: ReviewPage, state: SessionState) -> int:
    about = page.proposals
    return sum(each.proposal_id not in about for each in state.approvals) + len(state.questions)
