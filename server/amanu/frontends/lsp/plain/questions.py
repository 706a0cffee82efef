"""Approvals asked by window/showMessageRequest. What cannot be asked so, or is not answered, is a code action.

A question about edits is none of these: the changes themselves are before the user, to be accepted and rejected. No
answer, a strange one, and any amount of time mean nothing.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.plain.command_arguments import AnswerArguments
from amanu.frontends.lsp.plain.editor import INFO, MESSAGE, PlainEditor
from amanu.frontends.lsp.plain.rule_editor import RuleEditor
from amanu.text.approval_answers import answers_at_once
from amanu.text.display import one_line, visible
from amanu.text.sub_agents import asked_by
from amanu.workspace.diagnostics import OWN
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, ApprovalAnswer
from amanu_protocol.labels import BUTTONS, IGNORED
from amanu_protocol.requests import ApprovalResolveParams

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session

UNANSWERED = 15.0
"""Seconds after which a question is also a diagnostic: an editor may never have shown it."""
LATER, ALL = BUTTONS["later"], BUTTONS["showAll"]
LINES = 20
QUOTE = "│ "
"""Before a line of what is asked about: nothing in it can pass for a line of ours."""


def reply(session_id: str, approval: Approval, answer: ApprovalAnswer) -> dict[str, Any]:
    """An answer as the argument of the command `amanu.answer`; it names what was shown."""
    arguments = AnswerArguments(
        session=session_id,
        call=approval.tool_call_id,
        decision=answer.action,
        digest=approval.digest,
        scope=answer.scope,
        grants=answer.grants,
        mode=answer.mode,
        fresh_context=answer.fresh_context,
    )
    return arguments.model_dump(mode="json", by_alias=True)


def choices(approval: Approval) -> list[ApprovalAnswer]:
    """The likeliest first. Other scopes than the session's are for the rule's own document."""
    return [answer for answer in answers_at_once(approval) if answer.scope in ("once", "session")]


class Questions:
    """`client` is who answers; `rule_editor` shows a question as a document. `listeners` are called when another
    question is left to code actions."""

    def __init__(self, editor: PlainEditor, client: "Client", rule_editor: RuleEditor) -> None:
        self._editor = editor
        self._client = client
        self._rule_editor = rule_editor
        self.listeners: list[Callable[[], None]] = []
        self._can_ask = True
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        """By call and digest: what has changed is another question."""
        self.unanswered: dict[str, Approval] = {}
        """Questions no dialog is open for, as far as we know."""

    def update(self, session: "Session") -> None:
        """Ask what is new; forget what is settled."""
        pending = {approval.tool_call_id: approval for approval in session.state.approvals}
        self.unanswered = {call_id: pending[call_id] for call_id in self.unanswered if call_id in pending}
        for approval in pending.values():
            key = _key(approval)
            if key not in self._tasks and approval.proposal_id is None:
                task = self._tasks[key] = asyncio.create_task(self._ask(session, approval))
                task.add_done_callback(_retrieved)

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def answer(self, session: "Session", arguments: AnswerArguments, rule: str | None = None) -> bool:
        """Pass an answer on and say what became of it. False when the question still stands."""
        params = ApprovalResolveParams(
            session_id=session.state.session_id,
            tool_call_id=arguments.call,
            decision=arguments.decision,
            scope=arguments.scope,
            rule=rule,
            digest=arguments.digest,
            grants=arguments.grants,
            mode=arguments.mode,
            fresh_context=arguments.fresh_context,
        )
        result = await session.resolve_approval(params, self._client)
        if result.status == "stale":
            self._editor.say(IGNORED["stale"])
            return False
        if result.status == "tooSoon":
            self._editor.say(IGNORED["tooSoon"])
            return False
        if result.status == "alreadyResolved":
            self._editor.say(visible(result.summary), INFO)
        return True

    async def _ask(self, session: "Session", approval: Approval) -> None:
        if approval.document is not None:
            await self._editor.show(Path(approval.document), focus=True)
        text, offered = dialog(approval, preselects=self._editor.quirks.preselects)
        while self._can_ask and self._pending(session, approval) is not None:
            timer = asyncio.get_running_loop().call_later(UNANSWERED, self._mark_unanswered, session, approval)
            try:
                answer = await self._editor.choose(text, list(offered))
            except ClientError:
                self._can_ask = False
                break
            finally:
                timer.cancel()
            try:
                if answer == ALL:
                    await self._rule_editor.show(session, approval)
                    break
                choice = offered.get(answer or LATER)
                if choice is None:
                    break
                current = self._pending(session, approval) or approval
                arguments = AnswerArguments.model_validate(
                    reply(session.state.session_id, current, choice), by_alias=True
                )
                if await self.answer(session, arguments):
                    break
            except AmanuError as error:
                self._editor.say(str(error))
                break
        self._mark_unanswered(session, approval)

    def _mark_unanswered(self, session: "Session", approval: Approval) -> None:
        if self._pending(session, approval) is not None:
            self.unanswered[approval.tool_call_id] = approval
            for listener in self.listeners:
                listener()

    @staticmethod
    def _pending(session: "Session", approval: Approval) -> Approval | None:
        """The question as it is asked by now; None when it no longer is."""
        return next(
            (open_approval for open_approval in session.state.approvals if _key(open_approval) == _key(approval)), None
        )


def _key(approval: Approval) -> tuple[str, str]:
    """What tells questions apart. That about a plan stays the same while the user edits the document: the dialog shows
    none of it."""
    return approval.tool_call_id, "" if approval.document is not None else approval.digest


def dialog(approval: Approval, *, preselects: bool) -> tuple[str, dict[str, ApprovalAnswer | None]]:
    """The text of a question and its answers, each title once; None decides nothing. What does not fit whole cannot be
    allowed in a dialog. A plan is before the user as a document: only what is done with it is asked, and a fresh
    context is left to code actions."""
    offered = choices(approval)
    if approval.document is not None:
        text = "\n".join(
            map(visible, [f"{one_line(approval.title)}: {approval.document}", *(line.text for line in approval.lines)])
        )
        plans = {answer.label: answer for answer in offered if not answer.fresh_context}
        return text, {LATER: None, **plans} if preselects else {**plans, LATER: None}
    kept = [answer for answer in offered if answer.rule]
    saved = [f"“{answer.label}” saves {rules_line(answer.rule)}" for answer in kept]
    saved += [visible(answer.explanation) for answer in kept]
    text = "\n".join(question_lines(approval))
    whole = "\n".join(filter(None, [text, *saved]))
    no = offered[-1]
    if len(whole) > MESSAGE or whole.count("\n") >= LINES:
        lines = text[: MESSAGE // 2].split("\n")[: LINES - 5]
        return "\n".join([*lines, "… (too long to decide here)"]), {LATER: None, ALL: None, no.label: no}
    titles: dict[str, ApprovalAnswer | None] = {
        answer.label: answer for answer in offered[:-1] if answer.grants == offered[0].grants
    }
    if len(titles) < len(offered) - 1:
        titles[ALL] = None  # which other grants there are is said by code actions
    titles[no.label] = no
    # Where Enter takes the first answer, it decides nothing.
    return whole, {LATER: None, **titles} if preselects else titles


def question_lines(approval: Approval) -> list[str]:
    """A question in plain lines."""
    detail = [QUOTE + line for line in visible(approval.detail).split("\n")]
    return [
        one_line(f"{asked_by(approval)}{approval.title}"),
        *detail,
        *(visible(line.text) for line in approval.lines),
    ]


def diagnostic(approval: Approval) -> types.Diagnostic:
    """The question at the head of whatever the user looks at, for an editor that showed no dialog."""
    start = types.Position(0, 0)
    text = "\n".join(["Amanu asks:", *question_lines(approval)])[:MESSAGE] + "\nAnswer with a code action."
    return types.Diagnostic(types.Range(start, start), text, types.DiagnosticSeverity.Warning, source=OWN)


def rules_line(rules: str) -> str:
    """Rules, one a line, as a part of a sentence."""
    return visible(" and ".join(rules.splitlines()))


def _retrieved(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
