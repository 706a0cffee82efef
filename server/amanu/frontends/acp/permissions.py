"""What a session waits for, put to the client's user: approvals as permission requests, questions as forms.

They are sent one at a time: some clients show only one, and treat a second as the end of the first. Each may be
settled in another client meanwhile; its request is then withdrawn. A client that disconnects decides nothing; an
invalid response or an error counts as a rejection.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Literal

from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import SessionView, insist
from amanu.frontends.acp import questions
from amanu.frontends.acp.handshake import mapping
from amanu.frontends.acp.peer import ClientDisconnected, Peer, RpcError
from amanu.frontends.acp.plain_cards import adapted_request
from amanu.frontends.acp.schema import ClientFeatures, chosen_option
from amanu.frontends.acp.tool_calls import describe_approval, proposal_of, shown_rows
from amanu.frontends.acp.updates import Updates
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import AllowOption, Approval, Grant, Question, Scope, ToolCall
from amanu_protocol.labels import BUTTONS, SCOPES
from amanu_protocol.state import SessionState

UNANSWERED = "The editor could not ask the user."
MAX_RULE = 120
"""Characters of a rule in the name of an option."""


@dataclass(frozen=True)
class Choice:
    """What an option of a permission request means."""

    name: str
    kind: Literal["allow_once", "allow_always", "reject_once"]
    decision: Literal["allow", "reject", "finish"]
    scope: Scope = "once"
    grants: tuple[Grant, ...] = ()
    plan: AllowOption | None = None


def choices_of(approval: Approval) -> dict[str, Choice]:
    """The options of an approval, by their id."""
    choices: dict[str, Choice] = {}
    for number, option in enumerate(approval.options):
        label = option.label if approval.document is not None else f"Allow once {option.label}".strip()
        plan = option if approval.document is not None else None
        choices[f"allow-{number}"] = Choice(label, "allow_once", "allow", grants=tuple(option.grants), plan=plan)
    if approval.proposal_id is not None:
        choices = {"allow-0": Choice(BUTTONS["acceptAll"], "allow_once", "allow")}
    elif not choices:
        choices = {"allow-0": Choice("Allow once", "allow_once", "allow")}
    granted = approval.options[0] if approval.options and approval.document is None else None
    grants = () if granted is None else tuple(granted.grants)
    with_grants = f" {granted.label}" if granted is not None and granted.label else ""
    for offer in approval.scopes:
        if offer.scope != "once":
            rule = ", ".join(offer.rule.split("\n"))
            rule = rule if len(rule) <= MAX_RULE else f"{rule[: MAX_RULE - 1]}…"
            name = f"Allow {SCOPES[offer.scope]}{with_grants}: {rule}"
            choices[offer.scope] = Choice(name, "allow_always", "allow", scope=offer.scope, grants=grants)
    no = BUTTONS["keepPlanning"] if approval.document is not None else BUTTONS["reject"]
    choices["reject"] = Choice(no, "reject_once", "reject")
    if approval.proposal_id is not None:  # the last: clients that deny on their own take the first that rejects
        choices["finish"] = Choice("Decide later, hunk by hunk in another editor", "reject_once", "finish")
    return choices


def is_reviewed(pending: Approval | Question, state: SessionState) -> bool:
    """Whether all changes were decided in another client: then the approval stands only until they are applied."""
    if isinstance(pending, Question) or pending.proposal_id is None:
        return False
    proposal = proposal_of(pending.proposal_id, state)
    if proposal is None:
        return False
    changes = [*(hunk for file in proposal.files for hunk in file.hunks), *proposal.rows]
    return bool(changes) and all(change.state not in ("pending", "conflicted") for change in changes)


class Permissions:
    """Of one session."""

    def __init__(self, view: SessionView, peer: Peer, features: ClientFeatures, updates: Updates) -> None:
        self._view = view
        self._peer = peer
        self._features = features
        self._updates = updates
        self._requested: set[tuple[str, str]] = set()
        """Sent to the client already: (call, digest) of approvals, (question, "")."""
        self._retried: set[tuple[str, str]] = set()
        """Those whose answer could not be stored, for example on a full disk: asked once more, without rules to
        save."""

    async def run(self) -> None:
        """Ask whatever the session waits for, until cancelled. Raises `Disconnected` when the daemon is gone."""
        while True:
            await self._view.wait(lambda state: self._next(state) is not None)
            pending = self._next(self._view.state)
            if pending is not None:
                self._requested.add(_key(pending))
                await self._ask(pending)

    def _next(self, state: SessionState) -> Approval | Question | None:
        return next(
            (
                pending
                for pending in (*state.approvals, *state.questions)
                if _key(pending) not in self._requested and not is_reviewed(pending, state)
            ),
            None,
        )

    async def _ask(self, pending: Approval | Question) -> None:
        """Put it to the user until it is settled, here or elsewhere."""
        answer = asyncio.create_task(self._answer(pending))
        settled = asyncio.create_task(self._view.wait(lambda state: _key(pending) not in _open(state)))
        try:
            await asyncio.wait({answer, settled}, return_when=asyncio.FIRST_COMPLETED)
            await (answer if answer.done() else settled)
        except ClientDisconnected:
            pass  # it stays open, for other clients
        except AmanuError as error:
            self._updates.notice("error", str(error), error.data.hint or "")
            if _key(pending) in _open(self._view.state) and _key(pending) not in self._retried:
                self._retried.add(_key(pending))
                self._requested.discard(_key(pending))
        except Disconnected:
            self._requested.discard(_key(pending))  # asked again once the daemon is there
            raise
        finally:
            for task in (answer, settled):
                task.cancel()
            await asyncio.gather(answer, settled, return_exceptions=True)

    async def _answer(self, pending: Approval | Question) -> None:
        if isinstance(pending, Question):
            await questions.ask(pending, self._view, self._peer, self._features)
            return
        call = self._view.state.item(pending.tool_call_id)
        if isinstance(call, ToolCall):  # the call comes before the question about it
            self._updates.show(call, self._view.state)
        choices = choices_of(pending)
        if _key(pending) in self._retried:
            choices = {key: each for key, each in choices.items() if each.kind != "allow_always"}
        choice = await self._choose(pending, choices)
        reason = UNANSWERED if choice is None else None
        choice = choice or choices["reject"]
        answered = await insist(lambda: self._resolve(pending, choice, reason))
        if answered.status in ("tooSoon", "stale"):
            self._requested.discard(_key(pending))  # it still stands, perhaps changed: ask again

    async def _choose(self, approval: Approval, choices: Mapping[str, Choice]) -> Choice | None:
        """The user's choice; None where the client could not ask. Raises `ClientDisconnected`."""
        proposal = proposal_of(approval.proposal_id, self._view.state)
        diff_is_all = proposal is None or not shown_rows(proposal)
        params = {
            "sessionId": self._view.session_id,
            "toolCall": describe_approval(approval, self._view.state),
            "options": [{"optionId": key, "name": each.name, "kind": each.kind} for key, each in choices.items()],
        }
        try:
            adapted = adapted_request(params, self._features, diff_is_all=diff_is_all)
            result = await self._peer.request("session/request_permission", adapted)
        except RpcError:
            return None
        if mapping(mapping(result).get("outcome")).get("outcome") == "cancelled":
            return choices["reject"]
        return choices.get(chosen_option(result) or "")

    def _resolve(self, approval: Approval, choice: Choice, reason: str | None) -> Awaitable[r.ApprovalResolveResult]:
        return self._view.resolve(
            approval, choice.decision, scope=choice.scope, reason=reason, grants=choice.grants, plan=choice.plan
        )


def _key(pending: Approval | Question) -> tuple[str, str]:
    return (pending.item_id, "") if isinstance(pending, Question) else (pending.tool_call_id, pending.digest)


def _open(state: SessionState) -> set[tuple[str, str]]:
    return {_key(pending) for pending in (*state.approvals, *state.questions)}
