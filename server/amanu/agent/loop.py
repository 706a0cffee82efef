"""The loop: ask the model → run its calls → feed the results back, until it is done.

    request → calls → listeners

Everything that watches a turn, limits it or adds to it is a listener (`core/listeners.py`). Here is only what no turn
can do without: headroom in the context window, a request, the reply's calls, and a remedy for a faulty reply.
"""

from dataclasses import replace
from uuid import uuid4

from amanu.agent import turn_listeners as listeners
from amanu.agent.calls import CallEnvironment, Calls, call_item
from amanu.agent.failover import route_first_request
from amanu.agent.recovery import (
    CUT_CALL,
    ENDLESS_PAUSES,
    NOT_WHOLE,
    TOO_LONG,
    RemedyCounts,
    ReplyFault,
    is_about_pictures,
    reply_fault,
)
from amanu.agent.refusals import refusal_sentence
from amanu.agent.request import answer_instead, ask_model
from amanu.agent.turn import Turn
from amanu.agent.user_call import UserCall, UserRequest
from amanu.core.conversation import Assistant, Call, Results
from amanu.core.ending import Ending
from amanu.core.listeners import ReplyText, StepRecord
from amanu.core.model import (
    AuthFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    Overloaded,
    RateLimited,
    ReplyCompleted,
    Unreachable,
)
from amanu.core.notes import SystemNote
from amanu.core.tool import ToolError
from amanu_protocol.errors import ErrorKind
from amanu_protocol.events import ItemStarted

QUOTED_CALL = "The reply ends with a tool call as text. It was not made: the model may be quoting what it has read."
NOTHING_LEFT = "Nothing more can be removed to make room. Start a new session, or send a shorter prompt."


async def run_turn(turn: Turn) -> Ending:
    """Run steps until the model is done or something ends the turn. Cancelling the task stops it anywhere and leaves a
    valid conversation. Failures of models and tools become endings and results; the only exceptions are
    `CancelledError` and our own bugs."""
    try:
        ending = await _run(turn)
        if ending.reason == "completed":
            await _make_closing_calls(turn)
        if turn.context.compaction_requested and await turn.context.make_room(turn.step_context(0, in_turn=False)):
            turn.emit_usage()
        return ending
    finally:
        await turn.end_turn()


async def run_compaction(turn: Turn, focus: str) -> Ending:
    """A turn that only compacts the conversation, because the user asked for it. `focus`: what they want the summary to
    keep; "" for nothing in particular. Raises only `CancelledError`."""
    turn.use_model(turn.candidate)
    if await turn.context.compact(turn.step_context(1, in_turn=False), focus):
        turn.emit_usage()
    return Ending("completed")


async def run_user_request(turn: Turn, request: UserRequest) -> Ending:
    """A turn that makes one call for the user, and asks no model for a reply. Raises only `CancelledError`."""
    turn.use_model(turn.candidate)
    try:
        await _call_for_user(turn, await request.call(turn))
        await _make_closing_calls(turn)
    except ToolError as error:
        return Ending("failed", error.for_user)
    except ModelError as error:
        return Ending("failed", str(error), kind=error_kind(error))
    finally:
        await turn.end_turn()
    return Ending("completed")


async def _call_for_user(turn: Turn, wanted: UserCall) -> None:
    call = Call(call_id=f"call_{uuid4().hex[:16]}", tool=wanted.tool, arguments=dict(wanted.arguments))
    turn.emit(ItemStarted(item=call_item(turn.turn_id, call, turn.tools.get(call.tool))))
    calls = Calls([call], 1, replace(_call_environment(turn), by_user=True))
    try:
        await calls.run()
    finally:
        calls.tell(turn.conversation)


async def _make_closing_calls(turn: Turn) -> None:
    if closing := turn.closing_calls():
        for call in closing:
            turn.emit(ItemStarted(item=call_item(turn.turn_id, call, turn.own_tools.get(call.tool))))
        calls = Calls(closing, 0, replace(_call_environment(turn), tools=turn.own_tools, listeners=(), by_user=True))
        try:
            await calls.run()
        finally:
            calls.tell(turn.conversation)


async def _run(turn: Turn) -> Ending:
    turn.use_model(turn.candidate)
    remedies = RemedyCounts()
    ending: Ending | None = None
    step = 0
    while True:
        step += 1
        reply = await _request(turn, step, remedies)
        if isinstance(reply, Ending):
            return reply
        if reply is None:
            continue
        fault = reply_fault(reply)
        if fault in ("refused", "cutCall", "spentThinking"):
            ending = await _handle_fault(turn, step, reply, fault, remedies)
        elif reply.message.calls:
            remedies.on_step()
            ending = await _run_calls(turn, step, reply.message)
        elif reply.stop != "paused":
            ending = await listeners.on_stop(turn, reply)
        elif not remedies.allow_pause():
            ending = ENDLESS_PAUSES
        if ending is not None:
            return ending


async def _request(turn: Turn, step: int, remedies: RemedyCounts) -> ReplyCompleted | Ending | None:
    """The reply to one request. None when the request was too long and room was made, or when pictures in it were
    refused and taken out: ask again."""
    if (ending := await listeners.before_request(turn, step)) is not None:
        return ending
    if step == 1:
        await route_first_request(turn)
    if await turn.context.make_room(turn.step_context(step)):
        turn.emit_usage()
        if (ending := await listeners.before_request(turn, step)) is not None:
            return ending
    try:
        match await listeners.before_model(turn, step):
            case Ending() as ending:
                return ending
            case ReplyText(text=text):
                return answer_instead(turn, step, text)
            case changed:
                reply = await ask_model(turn, step, changed)
    except ContextTooLong as error:
        turn.learn_window(error.limit)
        context = turn.step_context(step)
        if not remedies.allow_overflow() or not await turn.context.recover_overflow(context, error):
            return Ending("failed", f"{error} {NOTHING_LEFT}", can_continue=True, kind="contextTooLong")
        turn.emit_usage()
        return None
    except ModelError as error:
        if is_about_pictures(error) and turn.refuse_pictures():
            return None
        return Ending("failed", str(error), can_continue=True, kind=error_kind(error))
    if isinstance(reply, Ending):
        return reply
    if reply.quoted_call:
        turn.add_note(SystemNote("", QUOTED_CALL, "quotedCall"))
    remedies.on_reply(paused=reply.stop == "paused")
    if reply.window_full:
        turn.context.on_window_filled()
    return reply


async def _run_calls(turn: Turn, step: int, reply: Assistant) -> Ending | None:
    """Run the reply's calls. The conversation gets one result per call, in order, whatever happens."""
    calls = _make_calls(turn, step, reply)
    try:
        await calls.run()
    finally:
        turn.conversation.append(Results(results=calls.results))
    return await listeners.after_step(turn, StepRecord(step, reply, calls.results, calls.touched))


def _refuse_calls(turn: Turn, step: int, reply: Assistant, refusal: str) -> None:
    """Answer every call of the reply with the error `refusal`; run none."""
    if reply.calls:
        calls = _make_calls(turn, step, reply)
        calls.refuse(refusal)
        turn.conversation.append(Results(results=calls.results))


def _make_calls(turn: Turn, step: int, reply: Assistant) -> Calls:
    return Calls(reply.calls, step, _call_environment(turn))


def _call_environment(turn: Turn) -> CallEnvironment:
    return CallEnvironment(
        turn.turn_id,
        turn.tools,
        turn.approvals,
        turn.emit,
        turn.context.fit_result,
        turn.listeners,
        fit_fields=turn.context.fit_fields,
        ask_model=turn.ask_utility,
        search_web=turn.search_web,
        label=turn.label,
        told_names=turn.told_names,
    )


def _recommended(model_id: str, reply: ReplyCompleted) -> str:
    """The id of the model that the service recommends; "" for none. Bedrock's names begin with their maker's."""
    if not reply.recommended:
        return ""
    vendor, _, model = model_id.partition(":")
    maker, point, _ = model.partition(".")
    prefix = f"{maker}{point}" if maker == "anthropic" and point else ""
    return f"{vendor}:{prefix}{reply.recommended}"


async def _handle_fault(
    turn: Turn, step: int, reply: ReplyCompleted, fault: ReplyFault, remedies: RemedyCounts
) -> Ending | None:
    """Apply the remedy for a reply that cannot stand as it is (`recovery.py`). None: ask again."""
    if fault == "refused":
        _refuse_calls(turn, step, reply.message, NOT_WHOLE)
        return Ending("refused", refusal_sentence(reply.detail, _recommended(turn.info.model_id, reply)))
    if fault == "cutCall":
        _refuse_calls(turn, step, reply.message, CUT_CALL)
        return None if remedies.allow(fault) else TOO_LONG
    budget = turn.budget.wider(turn.info, reply.usage)
    if budget is None or not remedies.allow(fault):
        return TOO_LONG
    turn.budget = budget
    text = f"The model spent its whole reply on thinking. Asking again with {budget.description}."
    turn.add_note(SystemNote("", text, "moreRoom"))
    return None


def error_kind(error: ModelError) -> ErrorKind:
    """What failed, for programs."""
    match error:
        case AuthFailed():
            return "authRequired"
        case ModelNotFound():
            return "modelNotFound"
        case Unreachable():
            return "modelUnavailable"
        case Overloaded() | RateLimited():
            return "overloaded"
        case _:
            return "providerError"
