"""Models that VS Code has from its other extensions: the client that offered one is asked for its reply.

VS Code tells neither usage, which is estimated, nor why a reply ended, and keeps thoughts to itself.
"""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from uuid import uuid4

import orjson

from amanu.core.conversation import Assistant, Call, Native, Text
from amanu.core.model import (
    AuthFailed,
    CallDelta,
    CallStarted,
    Delta,
    ModelError,
    ModelNotFound,
    ReplyCompleted,
    ReplyTooLong,
    Request,
    StreamBroken,
    TextDelta,
    TokenUsage,
    Unreachable,
)
from amanu.core.nesting import too_deep
from amanu.core.token_estimate import estimate
from amanu.models.errors import mask, quota_exhausted, sentence, status_error
from amanu.models.limits import MAX_REPLY, check_arguments, check_calls
from amanu.models.offered import WHAT_TO_DO, OfferedModels, not_offered
from amanu.models.vscode_messages import WIRE, clean, message, run_tool, system_message
from amanu.models.wire_messages import WireMessages, dumps
from amanu_protocol.requests import ModelRunParams, ModelRunResult, OfferedModel, RunCallPart, RunTextPart


class VSCodeModel:
    """`Model` for all that clients offer."""

    searches = False

    def __init__(self, offered: OfferedModels) -> None:
        self._offered = offered
        self._messages = WireMessages(message)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        model_id = request.model.model_id
        found = self._offered.find(model_id)
        if found is None:
            raise Unreachable(f"{not_offered(model_id)} {WHAT_TO_DO}", "VS Code")
        host, model = found
        converted = [system_message(request.system), *self._messages.of(request.conversation, request.model)]
        params = ModelRunParams(
            run_id=uuid4().hex,
            vendor=model.vendor,
            id=model.id,
            messages=[sent.message for sent in converted if sent.message is not None],
            tools=[run_tool(tool) for tool in request.callable_tools],
        )
        tools = estimate("".join(tool.model_dump_json() for tool in params.tools))
        reply = _Reply(request, tools + sum(sent.tokens for sent in converted))
        try:
            async with aclosing(host.run(params)) as parts:
                async for part in parts:
                    if isinstance(part, ModelRunResult):
                        if part.error is not None:
                            raise _error(part, model)
                        yield reply.completed()
                        return
                    for delta in reply.add(part):
                        yield delta
        except ConnectionError:
            why = f"The VS Code window that answers for {request.model.name} was closed, or is reloading."
            raise StreamBroken(f"{why} {WHAT_TO_DO}", "VS Code") from None

    async def connect(self) -> None:
        pass

    async def close(self) -> None:
        pass


class _Reply:
    """A reply in the making: parts in, deltas out, and the whole message at the end."""

    def __init__(self, request: Request, prompt_tokens: float) -> None:
        self._request = request
        self._prompt_tokens = prompt_tokens
        self._parts: list[list[str] | Call] = []
        """Runs of text, in pieces, and calls."""
        self._ids: dict[str, str] = {}
        """The provider's id of each call → ours."""
        self._size = 0

    def add(self, part: RunTextPart | RunCallPart) -> Sequence[Delta]:
        """Raises `ReplyTooLong`."""
        if isinstance(part, RunTextPart):
            self._grow(len(part.text))
            if not self._parts or isinstance(self._parts[-1], Call):
                self._parts.append([])
            last = self._parts[-1]
            assert isinstance(last, list)
            last.append(clean(part.text))
            return [TextDelta(last[-1])]
        written = dumps(part.arguments).decode()
        check_arguments(len(written), "VS Code")
        self._grow(len(written))
        arguments = written if too_deep(part.arguments) else orjson.loads(written)
        call = Call(call_id=f"call_{uuid4().hex[:16]}", tool=part.tool, arguments=arguments)
        theirs = part.call_id
        if not theirs or theirs in self._ids or self._request.conversation.has_wire_id(theirs):
            theirs = call.call_id
        self._ids[theirs] = call.call_id
        self._parts.append(call)
        check_calls(len(self._ids), "VS Code")
        return [CallStarted(call.call_id, call.tool), CallDelta(call.call_id, written)]

    def completed(self) -> ReplyCompleted:
        parts = [part if isinstance(part, Call) else Text(text="".join(part)) for part in self._parts]
        native = Native(wire=WIRE, model=self._request.model.model_id, blocks=None, call_ids=self._ids)
        reply = Assistant(parts=tuple(parts), native=native if parts else None)
        written = (part.text if isinstance(part, Text) else dumps(part.arguments).decode() for part in parts)
        usage = TokenUsage(input=round(self._prompt_tokens), output=round(sum(map(estimate, written))))
        return ReplyCompleted(reply, usage, "calls" if self._ids else "end")

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > MAX_REPLY:
            raise ReplyTooLong(f"The reply from VS Code is longer than {MAX_REPLY >> 20} MB.", "VS Code")


def _error(result: ModelRunResult, model: OfferedModel) -> ModelError:
    """What VS Code says went wrong (`LanguageModelError`), as one of our errors."""
    name, vendor = model.name, model.vendor_title or model.vendor
    words = mask(result.message, None)
    if result.error == "notAllowed":
        return AuthFailed(
            f"VS Code does not let Amanu use {name} yet. Send the prompt again and choose Allow when VS Code asks, or "
            "choose another model.",
            vendor,
            details=words,
        )
    if result.error == "notFound":
        return ModelNotFound(f"{vendor} no longer has {name}. Choose another model.", vendor, details=words)
    if result.error == "blocked":
        return quota_exhausted(vendor, None, words)
    match = re.search(r"Request Failed: (\d{3})\b", words)  # as GitHub Copilot says it
    status = int(match[1]) if match is not None else None
    if status in (401, 403):
        return AuthFailed(f"{vendor} does not let you use {name}: {sentence(words)}", vendor, status)
    return status_error(vendor, status, words)
