"""What a client answers to a question, as a decision."""

from amanu.core.rules import with_grants
from amanu.permissions.offers import remember
from amanu.permissions.pending_approval import PendingApproval
from amanu.permissions.policy import decide_all
from amanu.permissions.session_rules import SessionRules
from amanu.text.display import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Decision, Grant
from amanu_protocol.requests import ApprovalResolveParams


def read_answer(params: ApprovalResolveParams, pending: PendingApproval, client: str, rules: SessionRules) -> Decision:
    """The decision that a client's answer is; rules that it saves are kept in `rules`. Raises `AmanuError`."""
    if params.decision == "finish" and pending.approval.proposal_id is not None:
        return Decision(outcome="reviewed", by="user", client=client)
    if params.decision != "allow":
        return Decision(outcome="rejected", by="user", client=client, reason=params.reason)
    grants: list[Grant] = [grant for grant in params.grants if grant in pending.approval.grants]
    own_command = pending.approval.command if pending.approval.original_command is not None else None
    if params.scope == "once":
        mode, fresh = (params.mode or "ask", params.fresh_context) if pending.approval.document else (None, False)
        if mode is not None and not any(answer.mode == mode for answer in pending.approval.answers):
            message = f"A plan cannot be carried out in {mode} mode. Choose one of the answers."
            raise AmanuError("invalidParams", message)
        return Decision(
            outcome="allowed",
            by="user",
            client=client,
            scope="once",
            grants=grants,
            command=own_command,
            mode=mode,
            fresh_context=fresh,
        )
    offered = {offer.scope: offer.rule for offer in pending.approval.scopes}
    if params.scope not in offered:
        raise AmanuError("invalidRule", f"This answer cannot be saved with the scope {params.scope!r}.")
    # The saved rule grants what this answer grants, and this call gets all that the saved rule grants.
    text = params.rule or with_grants(offered[params.scope], grants, only=True)
    saved = remember(text, params.scope, pending.open_subjects, rules.context(), grants)
    granting_verdict = decide_all((*rules.rules(), *saved), pending.subjects, rules.context())[0]
    grants = [grant for grant in pending.approval.grants if grant in {*grants, *granting_verdict.grants}]
    rules.remember(params.scope, saved)
    return Decision(
        outcome="allowed",
        by="user",
        client=client,
        rule="\n".join(rule.text for rule in saved),
        scope=params.scope,
        grants=grants,
        command=own_command,
    )


def read_edit(params: ApprovalResolveParams, command: str, pending: PendingApproval, client: str) -> Decision:
    """The answer that is a command line of the user's own. Raises `AmanuError`."""
    if pending.approval.command is None:
        raise AmanuError("invalidParams", "This command cannot be edited.")
    if not command.strip():
        raise AmanuError("invalidParams", "The command is empty.")
    if visible(command) != command:
        raise AmanuError("invalidParams", f"The command contains hidden characters: {one_line(command)}")
    return Decision(
        outcome="edited",
        by="user",
        client=client,
        scope=params.scope,
        grants=[grant for grant in params.grants if grant in pending.approval.grants],
        command=command,
    )
