"""Replies in the vendors' streaming formats, as HTTP chunks made ahead: one per event, as the vendors send them."""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.plan import Plan


@dataclass(frozen=True)
class Wire:
    """One vendor's format. `head` and `tail` stand around the pieces of text."""

    result_mark: bytes
    """Occurs once in a request for each result of a call."""
    head: Callable[[], list[bytes]]
    piece: Callable[[str], bytes]
    tail: Callable[[Sequence[str]], list[bytes]]
    """Takes the pieces."""
    call: Callable[[Plan, int], list[bytes]]


def pieces(count: int) -> Iterator[str]:
    """Words that never repeat, so that nobody's loop detector speaks up."""
    return (f"w{n} " for n in range(count))


@functools.lru_cache(maxsize=32)
def text_reply(name: str, count: int) -> tuple[bytes, bytes]:
    """HTTP chunks of a reply of so many pieces: those up to the first piece, and the rest with the end."""
    wire = WIRES[name]
    words = list(pieces(count))
    first = [*wire.head(), wire.piece(words[0])]
    rest = [*map(wire.piece, words[1:]), *wire.tail(words)]
    return b"".join(map(chunk, first)), b"".join(map(chunk, rest)) + END


def said_reply(name: str, text: str) -> bytes:
    """HTTP chunks of a reply with that text."""
    wire = WIRES[name]
    return b"".join(map(chunk, [*wire.head(), wire.piece(text), *wire.tail([text])])) + END


def call_reply(name: str, plan: Plan, step: int) -> bytes:
    """HTTP chunks of a reply that calls the plan's tool."""
    return b"".join(map(chunk, WIRES[name].call(plan, step))) + END


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


END = b"0\r\n\r\n"
_FEW = ("",) * 5
"""As many tokens as a call has."""


def _event(value: dict[str, Any], *, named: bool) -> bytes:
    data = json.dumps(value, separators=(",", ":"))
    return (f"event: {value['type']}\ndata: {data}\n\n" if named else f"data: {data}\n\n").encode()


# Anthropic ------------------------------------------------------------------------------------------


def _anthropic_head() -> list[bytes]:
    start: dict[str, Any] = {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return [
        _event({"type": "message_start", "message": start}, named=True),
        _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, named=True),
    ]


def _anthropic_piece(text: str) -> bytes:
    delta = {"type": "text_delta", "text": text}
    return _event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True)


def _anthropic_tail(words: Sequence[str], stop: str = "end_turn") -> list[bytes]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        _event({"type": "content_block_stop", "index": 0}, named=True),
        _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": len(words)}}, named=True),
        _event({"type": "message_stop"}, named=True),
    ]


def _anthropic_call(plan: Plan, step: int) -> list[bytes]:
    block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{step}", "name": plan.tool, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(plan.call(step))}
    return [
        _anthropic_head()[0],
        _event({"type": "content_block_start", "index": 0, "content_block": block}, named=True),
        _event({"type": "content_block_delta", "index": 0, "delta": delta}, named=True),
        *_anthropic_tail(_FEW, "tool_use"),
    ]


# Gemini ---------------------------------------------------------------------------------------------


def _gemini(parts: list[dict[str, Any]], finish: str | None = None, count: int = 1) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 10, "candidatesTokenCount": count, "totalTokenCount": 10 + count}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash", "responseId": "r"}


def _gemini_call(plan: Plan, step: int) -> list[bytes]:
    call = {"name": plan.tool, "args": plan.call(step)}
    return [_event(_gemini([{"functionCall": call}], "STOP"), named=False)]


# OpenAI chat completions ----------------------------------------------------------------------------


def _chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    rest = {"id": "chat_bench", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1"}
    return _event({**rest, "choices": [choice]}, named=False)


def _chat_tail(words: Sequence[str], finish: str = "stop") -> list[bytes]:
    count = len(words)
    usage = {"prompt_tokens": 10, "completion_tokens": count, "total_tokens": 10 + count}
    rest = {"id": "chat_bench", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1"}
    return [_chat({}, finish), _event({**rest, "choices": [], "usage": usage}, named=False), b"data: [DONE]\n\n"]


def _chat_call(plan: Plan, step: int) -> list[bytes]:
    function = {"name": plan.tool, "arguments": json.dumps(plan.call(step))}
    call = {"index": 0, "id": f"call_{step}", "type": "function", "function": function}
    return [_chat({"role": "assistant", "content": None, "tool_calls": [call]}), *_chat_tail(_FEW, "tool_calls")]


# OpenAI responses -----------------------------------------------------------------------------------


def _response(status: str, output: list[dict[str, Any]], count: int = 5) -> dict[str, Any]:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": count,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10 + count,
    }
    return {"id": "resp_bench", "object": "response", "status": status, "output": output, "usage": usage}


def _message(text: str, status: str) -> dict[str, Any]:
    content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"type": "message", "id": "msg_bench", "role": "assistant", "status": status, "content": content}


def _responses_head() -> list[bytes]:
    added = {"type": "response.output_item.added", "output_index": 0, "item": _message("", "in_progress")}
    return [
        _event({"type": "response.created", "response": _response("in_progress", [])}, named=True),
        _event(added, named=True),
    ]


def _responses_piece(text: str) -> bytes:
    where = {"item_id": "msg_bench", "output_index": 0, "content_index": 0}
    return _event({"type": "response.output_text.delta", **where, "delta": text}, named=True)


def _responses_tail(words: Sequence[str]) -> list[bytes]:
    return _responses_end(_message("".join(words), "completed"), len(words))


def _responses_end(item: dict[str, Any], count: int) -> list[bytes]:
    return [
        _event({"type": "response.output_item.done", "output_index": 0, "item": item}, named=True),
        _event({"type": "response.completed", "response": _response("completed", [item], count)}, named=True),
    ]


def _responses_call(plan: Plan, step: int) -> list[bytes]:
    named = {"id": f"fc_{step}", "call_id": f"call_{step}", "name": plan.tool, "status": "completed"}
    item = {"type": "function_call", **named, "arguments": json.dumps(plan.call(step))}
    return [_responses_head()[0], *_responses_end(item, 5)]


WIRES = {
    "anthropic": Wire(b'"tool_result"', _anthropic_head, _anthropic_piece, _anthropic_tail, _anthropic_call),
    "gemini": Wire(
        b'"functionResponse"',
        lambda: [],
        lambda text: _event(_gemini([{"text": text}]), named=False),
        lambda words: [_event(_gemini([{"text": "."}], "STOP", len(words)), named=False)],
        _gemini_call,
    ),
    "chat": Wire(
        b'"tool_call_id"',
        lambda: [_chat({"role": "assistant", "content": ""})],
        lambda text: _chat({"content": text}),
        _chat_tail,
        _chat_call,
    ),
    "responses": Wire(b'call_output"', _responses_head, _responses_piece, _responses_tail, _responses_call),
}
