"""What a session waits for, put to the client's user: approvals as permission requests, questions as forms.

One at a time: some clients show only one, and take a second for the end of the first. A question stays the daemon's:
it may be settled in another client meanwhile, and then the request is withdrawn. A client that goes away decides
nothing; one that answers nonsense, or with an error, has rejected.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Literal

from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import SessionView, insist
from amanu.frontends.acp import questions
from amanu.frontends.acp.handshake import mapping
from amanu.frontends.acp.peer import Lost, Peer, RpcError
from amanu.frontends.acp.plain_cards import fitted
from amanu.frontends.acp.schema import ClientFeatures, chosen_option
from amanu.frontends.acp.tool_calls import describe_approval
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


class Permissions:
    """Of one session."""

    def __init__(self, view: SessionView, peer: Peer, features: ClientFeatures, updates: Updates) -> None:
        self._view = view
        self._peer = peer
        self._features = features
        self._updates = updates
        self._asked: set[tuple[str, str]] = set()
        """What was answered: (call, digest) of approvals, (question, "")."""
        self._failed: set[tuple[str, str]] = set()
        """Of these, where the answer failed, for want of disk, say: they are asked once more, without rules to save."""

    async def run(self) -> None:
        """Ask whatever the session waits for, until cancelled. Raises `Disconnected` when the daemon is gone."""
        while True:
            await self._view.wait(lambda state: self._next(state) is not None)
            asked = self._next(self._view.state)
            if asked is not None:
                self._asked.add(_key(asked))
                await self._ask(asked)

    def _next(self, state: SessionState) -> Approval | Question | None:
        return next(
            (
                asked
                for asked in (*state.approvals, *state.questions)
                if _key(asked) not in self._asked and not _is_reviewed(asked, state)
            ),
            None,
        )

    async def _ask(self, asked: Approval | Question) -> None:
        """Put it to the user until it is settled, here or elsewhere."""
        answer = asyncio.create_task(self._answer(asked))
        settled = asyncio.create_task(self._view.wait(lambda state: _key(asked) not in _open(state)))
        try:
            await asyncio.wait({answer, settled}, return_when=asyncio.FIRST_COMPLETED)
            await (answer if answer.done() else settled)
        except Lost:
            pass  # it stays open, for other clients
        except AmanuError as error:
            self._updates.notice("error", str(error), error.data.hint or "")
            if _key(asked) in _open(self._view.state) and _key(asked) not in self._failed:
                self._failed.add(_key(asked))
                self._asked.discard(_key(asked))
        except Disconnected:
            self._asked.discard(_key(asked))  # asked again once the daemon is there
            raise
        finally:
            for task in (answer, settled):
                task.cancel()
            await asyncio.gather(answer, settled, return_exceptions=True)

    async def _answer(self, asked: Approval | Question) -> None:
        if isinstance(asked, Question):
            await questions.ask(asked, self._view, self._peer, self._features)
            return
        call = self._view.state.item(asked.tool_call_id)
        if isinstance(call, ToolCall):  # a call comes before what is asked about it
            self._updates.show(call, self._view.state)
        choices = choices_of(asked)
        if _key(asked) in self._failed:
            choices = {key: each for key, each in choices.items() if each.kind != "allow_always"}
        choice = await self._choose(asked, choices)
        reason = UNANSWERED if choice is None else None
        choice = choice or choices["reject"]
        answered = await insist(lambda: self._resolve(asked, choice, reason))
        if answered.status in ("tooSoon", "stale"):
            self._asked.discard(_key(asked))  # it still stands, perhaps changed: ask again

    async def _choose(self, approval: Approval, choices: Mapping[str, Choice]) -> Choice | None:
        """The user's choice; None where the client could not ask. Raises `Lost`."""
        params = {
            "sessionId": self._view.session_id,
            "toolCall": describe_approval(approval, self._view.state),
            "options": [{"optionId": key, "name": each.name, "kind": each.kind} for key, each in choices.items()],
        }
        try:
            result = await self._peer.request("session/request_permission", fitted(params, self._features))
        except RpcError:
            return None
        if mapping(mapping(result).get("outcome")).get("outcome") == "cancelled":
            return choices["reject"]
        return choices.get(chosen_option(result) or "")

    def _resolve(self, approval: Approval, choice: Choice, reason: str | None) -> Awaitable[r.ApprovalResolveResult]:
        return self._view.resolve(
            approval, choice.decision, scope=choice.scope, reason=reason, grants=choice.grants, plan=choice.plan
        )


def _key(asked: Approval | Question) -> tuple[str, str]:
    return (asked.item_id, "") if isinstance(asked, Question) else (asked.tool_call_id, asked.digest)


def _is_reviewed(asked: Approval | Question, state: SessionState) -> bool:
    """Whether all hunks were decided in another client: then the approval stands only until they are applied."""
    if isinstance(asked, Question) or asked.proposal_id is None:
        return False
    proposal = next((each for each in state.proposals if each.proposal_id == asked.proposal_id), None)
    hunks = [hunk for file in proposal.files for hunk in file.hunks] if proposal is not None else []
    return bool(hunks) and all(hunk.state not in ("pending", "conflicted") for hunk in hunks)


def _open(state: SessionState) -> set[tuple[str, str]]:
    return {_key(asked) for asked in (*state.approvals, *state.questions)}
