"""What a session waits for, put to the client's user: approvals as permission requests, questions as forms.

They are sent one at a time: some clients show only one, and treat a second as the end of the first. Each may be
settled in another client meanwhile; its request is then withdrawn. A client that disconnects decides nothing; an
invalid response or an error counts as a rejection.
"""

import asyncio
from collections.abc import Mapping

from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import SessionView, insist
from amanu.frontends.acp import questions
from amanu.frontends.acp.handshake import mapping
from amanu.frontends.acp.peer import ClientDisconnected, Peer, RpcError
from amanu.frontends.acp.plain_cards import adapted_request
from amanu.frontends.acp.schema import ClientFeatures, chosen_option
from amanu.frontends.acp.tool_calls import describe_approval, proposal_of, shown_rows
from amanu.frontends.acp.updates import Updates
from amanu.text.approval_answers import answers_at_once
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, ApprovalAnswer, Question, ToolCall
from amanu_protocol.state import SessionState

UNANSWERED = "The editor could not ask the user."
HUNKS_ELSEWHERE = "Decide later, hunk by hunk in another editor"
MAX_RULE = 120
"""Characters of a rule in the name of an option."""


def choices_of(approval: Approval) -> dict[str, ApprovalAnswer]:
    """The options of an approval, by their id."""
    choices: dict[str, ApprovalAnswer] = {}
    for answer in answers_at_once(approval):
        if answer.action != "allow":
            choices[answer.action] = answer  # `finish` after `reject`: clients that deny take the first that rejects
        elif answer.scope != "once":
            choices[answer.scope] = answer
        else:
            choices[f"allow-{len(choices)}"] = answer
    return choices


def option_of(key: str, answer: ApprovalAnswer) -> dict[str, str]:
    """An answer as the client shows it."""
    if answer.action != "allow":
        name = HUNKS_ELSEWHERE if answer.action == "finish" else answer.label
        return {"optionId": key, "name": name, "kind": "reject_once"}
    if answer.scope == "once":
        return {"optionId": key, "name": answer.label, "kind": "allow_once"}
    rule = ", ".join(answer.rule.split("\n"))
    rule = rule if len(rule) <= MAX_RULE else f"{rule[: MAX_RULE - 1]}…"
    return {"optionId": key, "name": f"{answer.label}: {rule}", "kind": "allow_always"}


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
            choices = {key: each for key, each in choices.items() if each.scope == "once"}
        choice = await self._choose(pending, choices)
        reason = UNANSWERED if choice is None else None
        choice = choice or choices["reject"]
        answered = await insist(lambda: self._view.resolve(pending, choice, reason=reason))
        if answered.status in ("tooSoon", "stale"):
            self._requested.discard(_key(pending))  # it still stands, perhaps changed: ask again

    async def _choose(self, approval: Approval, choices: Mapping[str, ApprovalAnswer]) -> ApprovalAnswer | None:
        """The user's choice; None where the client could not ask. Raises `ClientDisconnected`."""
        proposal = proposal_of(approval.proposal_id, self._view.state)
        diff_is_all = proposal is None or not shown_rows(proposal)
        params = {
            "sessionId": self._view.session_id,
            "toolCall": describe_approval(approval, self._view.state),
            "options": [option_of(key, each) for key, each in choices.items()],
        }
        try:
            adapted = adapted_request(params, self._features, diff_is_all=diff_is_all)
            result = await self._peer.request("session/request_permission", adapted)
        except RpcError:
            return None
        if mapping(mapping(result).get("outcome")).get("outcome") == "cancelled":
            return choices["reject"]
        return choices.get(chosen_option(result) or "")


def _key(pending: Approval | Question) -> tuple[str, str]:
    return (pending.item_id, "") if isinstance(pending, Question) else (pending.tool_call_id, pending.digest)


def _open(state: SessionState) -> set[tuple[str, str]]:
    return {_key(pending) for pending in (*state.approvals, *state.questions)}
