"""Odd streams of the Responses API, event by event, after what gateways were seen to send; the rest is `COMMON`'s."""

import json
from typing import Any

from recordings.shapes import COMMON
from support.strict_services.http import Raw, Say, Step

USAGE = {"input_tokens": 9, "output_tokens": 3}


def r(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def r_added(index: int, kind: str, **fields: Any) -> bytes:
    return r("response.output_item.added", output_index=index, item={"type": kind, "id": f"i{index}", **fields})


def r_done(index: int, kind: str, **fields: Any) -> bytes:
    return r("response.output_item.done", output_index=index, item={"type": kind, "id": f"i{index}", **fields})


def r_text(index: int, *texts: str, phase: str | None = None) -> list[bytes]:
    message = {"role": "assistant", **({"phase": phase} if phase else {})}
    deltas = [r("response.output_text.delta", output_index=index, content_index=0, delta=text) for text in texts]
    content: list[dict[str, Any]] = [{"type": "output_text", "text": "".join(texts), "annotations": []}]
    added = r_added(index, "message", content=[], **message)
    return [added, *deltas, r_done(index, "message", content=content, **message)]


def r_call(index: int, name: str, *pieces: str, call_id: str | None = "x") -> list[bytes]:
    call = {"name": name, "call_id": call_id}
    deltas = [r("response.function_call_arguments.delta", output_index=index, delta=piece) for piece in pieces]
    added = r_added(index, "function_call", arguments="", **call)
    return [added, *deltas, r_done(index, "function_call", arguments="".join(pieces), **call)]


def r_end(status: str = "completed", output: list[dict[str, Any]] | None = None, **fields: Any) -> bytes:
    response = {"status": status, "output": output or [], "error": None, "usage": USAGE, **fields}
    return r(f"response.{status}", response=response)


def failed(code: str, message: str) -> bytes:
    error = {"code": code, "message": message}
    return r("response.failed", response={"status": "failed", "error": error, "output": []})


def _whole(index: int, item: dict[str, Any]) -> bytes:
    return r("response.output_item.done", output_index=index, item=item)


_MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Whole."}],
}
_CALL: dict[str, Any] = {"type": "function_call", "call_id": "x", "name": "read_file", "arguments": "{}"}
_SEARCH: dict[str, Any] = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}

RESPONSES: dict[str, Step] = {
    **COMMON,
    "phases": Raw([*r_text(0, "I look.", phase="commentary"), *r_text(1, "So it is.", phase="final_answer"), r_end()]),
    "items_at_the_end_only": Raw([r_end(output=[_MESSAGE, _CALL])]),
    "no_deltas": Raw([_whole(0, _MESSAGE), _whole(1, _CALL), r_end()]),
    "no_call_id": Raw([*r_call(0, "read_file", '{"path": ', '"a"}', call_id=None), r_end()]),
    "one_id_for_two_calls": Raw([*r_call(0, "read_file", "{}"), *r_call(1, "grep", "{}"), r_end()]),
    "arguments_no_object": Raw([*r_call(0, "read_file", "[1, 2]"), r_end()]),
    "reasoning_without_content": Raw([r_done(0, "reasoning", summary=[]), *r_text(1, "Fine."), r_end()]),
    "a_tool_of_the_services_own": Raw([_whole(0, _SEARCH), *r_text(1, "Found."), r_end()]),
    "refusal_part": Raw(
        [
            r_added(0, "message", role="assistant", content=[]),
            r("response.refusal.delta", output_index=0, content_index=0, delta="I will not."),
            r_done(0, "message", role="assistant", content=[{"type": "refusal", "refusal": "I will not."}]),
            r_end(),
        ]
    ),
    "failed": Raw([*r_text(0, "Half"), failed("server_error", "The server had an error.")]),
    "failed_for_rate": Raw([failed("rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s.")]),
    "unknown_events": Raw([r("response.novelty", novelty=1), *r_text(0, "Fine."), r_end(), r("response.more")]),
    "done_marker": Raw([*r_text(0, "Fine."), r_end(), b"data: [DONE]\n\n"]),
    "thinking_only": Say(thought=["Hm.", " Well."]),
    "max_tokens_in_call": Raw(
        [
            *r_text(0, "I write"),
            *r_call(1, "read_file", '{"path": "a')[:-1],
            r_end("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ]
    ),
    "empty": Raw([]),
    "pieces_cut_anywhere": Raw([*r_text(0, "naïve 🧵 ", "— 日本語"), *r_call(1, "grep", '{"pattern": "é"}'), r_end()]),
}
