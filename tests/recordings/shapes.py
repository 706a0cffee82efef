"""The streams that `make.py` lets the strict services send: replies as they are scripted (`Say`), and odd ones written
out by hand, event by event, after what services were seen to send (`Raw`)."""

import json
from typing import Any

from support.strict_services.http import Fault, Raw, Say, Step, ToolUse

READ = ToolUse("read_file", {"path": "src/ä b.py"})
GREP = ToolUse("grep", {"pattern": 'say "hé"\n\\d+', "path": ""})
ELEVEN = [ToolUse("read_file", {"path": f"{number}.py"}) for number in range(11)]
UNICODE = "naïve 🧵 — 日本語\u2028‮\ud7ff\U0001f469\u200d\U0001f680"

COMMON: dict[str, Step] = {
    "text": Say(text=["All ", "is ", "well."]),
    "thought_text_call": Say(thought=["**Looking** ", "at it."], text=["I ", "read."], calls=[READ]),
    "parallel_calls": Say(thought="Both at once.", calls=[READ, GREP]),
    "eleven_calls": Say(text="All of them.", calls=ELEVEN),
    "thought_text": Say(thought=["One.\n", "Two."], text="So it is.", usage={"output": 7, "thoughts": 9}),
    "max_tokens": Say(text=["A long ", "answer that"], stop="outputLimit"),
    "refusal": Say(text="I would rather", stop="refused"),
    "error_event": Say(text=["Half ", "of ", "it", "all"], fault=Fault("errorEvent", after=3, status=503)),
    "overloaded": Fault("status", status=503, message="The model is overloaded."),
    "unfinished": Say(text="No end", fault=Fault("unfinished")),
}
"""By every vendor."""


# Anthropic -----------------------------------------------------------------------------------------------


def a(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def a_start() -> bytes:
    usage = {"input_tokens": 9, "cache_read_input_tokens": 0, "cache_creation_input_tokens": None, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_x",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [],
    }
    return a("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})


def a_block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    opened = a("content_block_start", index=index, content_block=start)
    pieces = [a("content_block_delta", index=index, delta=each) for each in deltas]
    return [opened, *pieces, a("content_block_stop", index=index)]


def a_text(index: int, *texts: str) -> list[bytes]:
    return a_block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": text} for text in texts))


def a_call(index: int, name: str, *pieces: str, call_id: str | None = None) -> list[bytes]:
    start: dict[str, Any] = {"type": "tool_use", "id": call_id or f"toolu_{index}", "name": name, "input": {}}
    return a_block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def a_thought(index: int, text: str, signature: str) -> list[bytes]:
    pieces = [{"type": "thinking_delta", "thinking": text}] if text else []
    signed = {"type": "signature_delta", "signature": signature}
    return a_block(index, {"type": "thinking", "thinking": "", "signature": ""}, *pieces, signed)


def a_end(stop: str = "end_turn", **more: Any) -> list[bytes]:
    delta = {"stop_reason": stop, "stop_sequence": None, **more}
    return [a("message_delta", delta=delta, usage={"output_tokens": 12}), a("message_stop")]


def a_reply(*blocks: list[bytes], stop: str = "end_turn") -> list[bytes]:
    return [a_start(), *(event for block in blocks for event in block), *a_end(stop)]


_CITED = {"type": "web_search_result_location", "url": "https://x.test/ä", "title": "X", "cited_text": "so"}
_CITED["encrypted_index"] = "Ab+/="

ANTHROPIC: dict[str, Step] = {
    **COMMON,
    "redacted_thinking": Raw(
        a_reply(
            a_thought(0, "Hm.", "sig/one+"),
            a_block(1, {"type": "redacted_thinking", "data": "Zm9v/+=="}),
            a_text(2, "Fine."),
            a_call(3, "read_file", '{"path"', ': "a"}'),
            stop="tool_use",
        )
    ),
    "thinking_omitted": Raw(a_reply(a_thought(0, "", "sig_two"), a_text(1, "Fine."))),
    "thinking_between_calls": Raw(
        a_reply(
            a_thought(0, "First.", "sig_3"),
            a_call(1, "read_file", '{"path": "a"}'),
            a_thought(2, "Then.", "sig_4"),
            a_call(3, "grep", '{"pattern": "b"}'),
            stop="tool_use",
        )
    ),
    "thinking_only": Raw(a_reply(a_thought(0, "Hm, hm.", "sig_5"))),
    "max_tokens_in_call": Raw(a_reply(a_text(0, "Now"), a_call(1, "read_file", '{"path": "lo'), stop="max_tokens")),
    "max_tokens_in_thought": Raw(a_reply(a_thought(0, "On and on", "sig_6"), stop="max_tokens")),
    "citations": Raw(
        a_reply(
            a_block(
                0,
                {"type": "text", "text": "", "citations": []},
                {"type": "text_delta", "text": "It is so"},
                {"type": "citations_delta", "citation": _CITED},
                {"type": "text_delta", "text": "."},
            ),
            a_text(1, " And more."),
        )
    ),
    "pings_and_comments": Raw(
        [
            b": keep-alive\n\n",
            a_start(),
            a("ping"),
            b": \xc3\xa4\n\nid: 7\nretry: 100\n\n",
            *a_text(0, "One", " two"),
            a("ping"),
            a("something_new", index=0, more={"a": [1]}),
            *a_end(),
        ]
    ),
    "empty_blocks": Raw(a_reply(a_text(0), a_text(1, "\n\n"), a_call(2, "read_file"), stop="tool_use")),
    "arguments_no_object": Raw(
        a_reply(a_call(0, "read_file", '["a"]'), a_call(1, "grep", '{"pattern": '), stop="tool_use")
    ),
    "duplicate_ids": Raw(
        a_reply(
            a_call(0, "read_file", "{}", call_id="toolu_same"),
            a_call(1, "grep", "{}", call_id="toolu_same"),
            stop="tool_use",
        )
    ),
    "stop_without_calls": Raw(a_reply(a_text(0, "I will read it."), stop="tool_use")),
    "empty": Raw(a_reply()),
    "pieces_cut_anywhere": Raw(
        [b"".join(a_reply(a_text(0, UNICODE), a_call(1, "grep", json.dumps({"pattern": UNICODE}, ensure_ascii=False))))]
    ),
}


# Gemini --------------------------------------------------------------------------------------------------


def g(*parts: dict[str, Any], finish: str | None = None, role: str | None = "model", **more: Any) -> bytes:
    content: dict[str, Any] = {"parts": list(parts)} if parts else {}
    if role:
        content["role"] = role
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return g_chunk({"candidates": [{**candidate, **more}], "modelVersion": "m"})


def g_chunk(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"


def g_call(name: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}, **more}


_SIGNED = {"thoughtSignature": "+/+/c2lnbmF0dXJl"}
_GROUNDED = {
    "groundingChunks": [{"web": {"uri": "https://x.test/ä", "title": "x.test"}}],
    "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 5}, "groundingChunkIndices": [0]}],
    "webSearchQueries": ["so"],
}

GEMINI: dict[str, Step] = {
    **COMMON,
    "several_stops": Raw([g({"text": "One"}, finish="STOP"), g({"text": " two"}, finish="STOP"), g(finish="STOP")]),
    "no_candidates": Raw(
        [
            g_chunk({"usageMetadata": {"promptTokenCount": 5}, "responseId": "r"}),
            g({"text": "Fine."}),
            g_chunk({"candidates": []}),
            g_chunk({"candidates": [{"index": 0}]}),
            g_chunk({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"totalTokenCount": 9}}),
        ]
    ),
    "no_parts": Raw([g(), g({"text": "Fine."}, role=None), g({"text": ""}), g(finish="STOP")]),
    "empty_text_signed": Raw([g({"text": "Fine."}), g({"text": "", **_SIGNED}), g(finish="STOP")]),
    "call_and_text_in_one": Raw(
        [
            g({"text": "Reading: "}, g_call("read_file", {"path": "a"}, **_SIGNED)),
            g({"text": "and then."}),
            g(g_call("grep", {"pattern": "b"}), finish="STOP"),
        ]
    ),
    "call_without_id": Raw([g(g_call("read_file", {"path": "a"}, **_SIGNED)), g(finish="STOP")]),
    "thoughts_between": Raw(
        [
            g({"text": "Hm.", "thought": True}),
            g({"text": "One."}),
            g({"text": "Hm?", "thought": True}),
            g({"text": " Two.", **_SIGNED}),
            g(finish="STOP"),
        ]
    ),
    "malformed_call": Raw(
        [g({"text": "I call", "thought": True}), g(finish="MALFORMED_FUNCTION_CALL", finishMessage="call:read{")]
    ),
    "unexpected_call": Raw([g({"text": "So"}), g(finish="UNEXPECTED_TOOL_CALL")]),
    "thinking_only": Raw([g({"text": "Hm.", "thought": True}), g({"text": "", **_SIGNED}, finish="STOP")]),
    "max_tokens_in_thought": Raw([g({"text": "On and on", "thought": True}), g(finish="MAX_TOKENS")]),
    "max_tokens_after_call": Raw([g(g_call("read_file", {"path": "a"}, **_SIGNED)), g(finish="MAX_TOKENS")]),
    "prompt_blocked": Raw([g_chunk({"promptFeedback": {"blockReason": "SAFETY"}})]),
    "recitation": Raw([g({"text": "Once upon"}), g(finish="RECITATION", citationMetadata={"citations": []})]),
    "grounding": Raw(
        [g({"text": "It is so."}, groundingMetadata=_GROUNDED), g(finish="STOP", groundingMetadata=_GROUNDED)]
    ),
    "unknown_fields": Raw(
        [g({"text": "Fine.", "somethingNew": {"a": 1}}), g(finish="SOMETHING_NEW", novelty=[1]), g_chunk({"new": 1})]
    ),
    "pieces_cut_anywhere": Raw(
        [g({"text": UNICODE}) + g(g_call("grep", {"pattern": UNICODE}, **_SIGNED), finish="STOP")]
    ),
    "empty": Raw([g(finish="STOP")]),
}


# OpenAI-compatible ---------------------------------------------------------------------------------------


def o(finish: str | None = None, **delta: Any) -> bytes:
    return o_chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def o_chunk(chunk: dict[str, Any]) -> bytes:
    made = {"id": "c", "object": "chat.completion.chunk", **chunk}
    return b"data: " + json.dumps(made, ensure_ascii=False).encode() + b"\n\n"


def o_call(name: str | None = None, arguments: Any = None, **fields: Any) -> bytes:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return o(tool_calls=[{**fields, "function": function}])


_DONE = b"data: [DONE]\n\n"
_DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}

OPENAI: dict[str, Step] = {
    **COMMON,
    "no_index": Raw(
        [
            o_call("read_file", '{"path"', id="x"),
            o_call(None, ': "a"}'),
            o_call("grep", '{"pattern": "b"}', id="y"),
            o("stop"),
            _DONE,
        ]
    ),
    "neither_index_nor_id": Raw(
        [o_call("read_file", "{}"), o_call("grep", '{"pattern":'), o_call(None, '"b"}'), o("stop")]
    ),
    "arguments_as_object": Raw([o_call("read_file", {"path": "a"}, index=0, id="x"), o("tool_calls"), _DONE]),
    "same_index": Raw(
        [o_call("read_file", "{}", index=0, id="x"), o_call("grep", "{}", index=0, id="y"), o("stop"), _DONE]
    ),
    "duplicate_ids": Raw(
        [o_call("read_file", "{}", index=0, id="x"), o_call("grep", "{}", index=1, id="x"), o("stop"), _DONE]
    ),
    "interleaved": Raw(
        [
            o_call("read_file", '{"path"', index=0, id="x"),
            o_call("grep", '{"pattern"', index=1, id="y"),
            o_call(None, ': "a"}', index=0),
            o_call(None, ': "b"}', index=1),
            o("tool_calls"),
            _DONE,
        ]
    ),
    "usage_and_null_choices": Raw(
        [
            o_chunk({"choices": None}),
            o(role="assistant", content=""),
            o(content="Fine."),
            o("stop"),
            o_chunk({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
            _DONE,
        ]
    ),
    "comments": Raw(
        [
            b": OPENROUTER PROCESSING\n\n",
            o(content="One"),
            b": still\n:\n\nevent: x\n",
            o(content=" two"),
            o("stop"),
            _DONE,
        ]
    ),
    "no_done": Raw([o(content="Fine."), o("stop")]),
    "no_finish": Raw([o(content="Fine."), _DONE]),
    "two_finishes": Raw([o("stop", content="One"), o("stop", content=" two"), _DONE]),
    "refusal_text": Raw([o(refusal="I can"), o(refusal="not."), o("stop"), _DONE]),
    "reasoning_details": Raw(
        [
            o(reasoning="Hm", reasoning_details=[{**_DETAIL, "text": "Hm"}]),
            o(reasoning="?", reasoning_details=[{**_DETAIL, "text": "?", "signature": "c2ln+/"}]),
            o_call("read_file", '{"path": "a"}', index=0, id="x"),
            o("tool_calls"),
            _DONE,
        ]
    ),
    "max_tokens_in_call": Raw([o_call("read_file", '{"path": "lo', index=0, id="x"), o("length"), _DONE]),
    "max_tokens_in_thought": Raw([o(reasoning_content="On and on"), o("length"), _DONE]),
    "thinking_only": Raw([o(reasoning_content="Hm."), o("stop"), _DONE]),
    "error_object": Raw(
        [o(content="Half"), b'data: {"error": {"message": "Upstream is gone", "code": 502}}\n\n', _DONE]
    ),
    "legacy_call": Raw(
        [
            o(function_call={"name": "read_file", "arguments": ""}),
            o(function_call={"arguments": "{}"}),
            o("function_call"),
        ]
    ),
    "arguments_no_object": Raw([o_call("read_file", '["a"]', index=0, id="x"), o("tool_calls"), _DONE]),
    "pieces_cut_anywhere": Raw(
        [
            o(content=UNICODE)
            + o_call("grep", json.dumps({"pattern": UNICODE}), index=0, id="x")
            + o("tool_calls")
            + _DONE
        ]
    ),
    "carriage_returns": Raw([o(content="Fine.").replace(b"\n", b"\r"), o("stop").replace(b"\n", b"\r\n"), _DONE]),
    "empty": Raw([o(role="assistant", content=""), o("stop"), _DONE]),
}
