"""Anthropic's `messages`, as strict as the service, with its published rules in code.

It issues signatures, remembers what it had seen when it issued them, and refuses what comes back changed.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from support.strict_services import pictures
from support.strict_services.http import Cite, Fault, Received, Refusal, Say, Service, data_of, main
from support.strict_services.refusals import Refused, need

_STOPS = {
    "end": "end_turn",
    "calls": "tool_use",
    "outputLimit": "max_tokens",
    "refused": "refusal",
    "paused": "pause_turn",
}
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_TOP = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "stream",
    "stop_sequences", "metadata", "cache_control", "service_tier", "speed", "container", "diagnostics",
    "inference_geo", "temperature", "top_p", "top_k",
}  # fmt: skip
_TOOL = {
    "name", "description", "input_schema", "cache_control", "type", "strict", "defer_loading",
    "eager_input_streaming", "input_examples",
}  # fmt: skip
_THINKING = ("thinking", "redacted_thinking")
_TEXT_ONLY = "all content must be type `text` if `is_error` is true"
_KNOWN = ("text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result")
_PICTURES = {"image/jpeg": "jpeg", "image/png": "png", "image/gif": "gif", "image/webp": "webp"}
_MAX_PICTURE = 5 * 1024 * 1024
"""Characters of base64."""


class Anthropic(Service):
    vendor = "anthropic"
    window = 4_000_000
    """Characters of body, pictures aside, above which the prompt is too long."""
    most = 32 * 1024 * 1024
    """Bytes of body above which it is not read."""
    knows_eager = True
    """It takes `eager_input_streaming`; not every gateway does."""
    knows_ttl = True
    """It takes lifetimes of caches; not every gateway does."""
    knows_system_role = True
    system_role_refusal = "role 'system' is not supported on this model"
    """It takes messages of the system; not every gateway does."""

    def __init__(self, script: Any = ()) -> None:
        super().__init__(script)
        self._eager: set[str] = set()
        """Names of tools whose arguments are sent as they are written."""
        self._issued: dict[str, tuple[dict[str, Any], str, str]] = {}
        """Signature (or data) → block, model, digest of what came before it."""
        self._sent: set[str] = set()
        """Kinds of blocks it sent that it would not take from anybody else."""
        self._openings: dict[str, str] = {}
        """Call id → signature of the thinking its message opened with, "" if with none."""
        self._cited: dict[str, list[dict[str, Any]]] = {}
        self._searched: dict[str, dict[str, Any]] = {}
        """Searches it made: id → what was asked for."""
        """Text → the citations it came with."""
        self._made = 0

    def distrust(self) -> None:
        """From now on refuse the thinking issued so far."""
        self._issued.clear()

    # what it refuses ---------------------------------------------------------------------------------

    def check(self, request: Received) -> Refusal | None:
        try:
            self._check(request)
        except Refused as refused:
            return refused.refusal
        except (KeyError, TypeError, ValueError) as error:
            return Refusal(400, f"Malformed request: {error!r}", "invalid_request_error")
        return None

    def _check(self, request: Received) -> None:
        headers = request.headers
        token = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
        if not token:
            raise Refused("authentication required", 401, "authentication_error")
        if request.method != "POST" or request.path != "/v1/messages":
            raise Refused(f"not found: {request.path}", 404)
        need("anthropic-version" in headers, "anthropic-version: header is required")
        if len(request.body) > self.most:
            raise Refused("Request exceeds the maximum size", 413, "request_too_large")
        body: dict[str, Any] = request.json
        length = len(request.body) - _check_pictures(body["messages"])
        if length > self.window:
            raise Refused(f"prompt is too long: {length} tokens > {self.window} maximum")
        for name in body.keys() - _TOP:
            raise Refused(f"{name}: Extra inputs are not permitted")
        need(isinstance(body.get("max_tokens"), int) and body["max_tokens"] >= 1, "max_tokens: at least 1")
        need(bool(body.get("model")), "model: Field required")
        self._check_tools(body)
        self._check_system(body)
        _check_speed(body, headers)
        _check_thinking(body, headers.get("anthropic-beta", ""))
        _check_marks(body, knows_ttl=self.knows_ttl)
        self._check_messages(body)

    def _check_tools(self, body: dict[str, Any]) -> None:
        names: set[str] = set()
        for tool in body.get("tools", []):
            if "type" in tool:
                _check_search(tool)
                names.add(tool["name"])
                continue
            for field in tool.keys() - (_TOOL if self.knows_eager else _TOOL - {"eager_input_streaming"}):
                raise Refused(f"tools: {field}: Extra inputs are not permitted")
            need(bool(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"])), "tools: bad name")
            need(tool["name"] not in names, f"tools: Tool names must be unique: {tool['name']}")
            names.add(tool["name"])
            if tool.get("eager_input_streaming") is True:
                self._eager.add(tool["name"])
            schema = tool["input_schema"]
            need(schema.get("type") == "object", "tools: input_schema.type: must be object")
            need(not {"oneOf", "anyOf", "allOf"} & schema.keys(), "tools: input_schema: no top-level oneOf/anyOf/allOf")
            keys: Iterable[str] = schema.get("properties", {})
            need(
                all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in keys),
                "tools: input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
            )
        used = any(
            block["type"] in ("tool_use", "tool_result") for message in body["messages"] for block in _blocks(message)
        )
        need(not used or bool(names), "tools: required when messages hold tool_use or tool_result")
        choice = body.get("tool_choice", {"type": "auto"})
        need(choice["type"] in ("auto", "any", "tool", "none"), "tool_choice: unknown type")
        need("tool_choice" not in body or bool(names), "tool_choice: may only be specified while providing tools")
        need(choice["type"] != "tool" or choice.get("name") in names, "tool_choice: tool not found in provided tools")

    def _check_system(self, body: dict[str, Any]) -> None:
        system = body.get("system", [])
        for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
            need(block["type"] == "text" and bool(block["text"].strip()), "system: text must be non-empty")

    def _check_messages(self, body: dict[str, Any]) -> None:
        messages: list[dict[str, Any]] = body["messages"]
        need(bool(messages), "messages: at least one message is required")
        need(messages[0]["role"] == "user", "messages: first message must use the user role")
        need(messages[-1]["role"] != "assistant", "This model does not support assistant message prefill")
        loop = max((at for at in range(len(messages)) if _is_prompt(messages, at)), default=0)
        last = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
        seen: set[str] = set()
        waiting: list[str] = []
        prefixes = _prefixes(body) if rules(body["model"])["prefix_checked"] else []
        for at, message in enumerate(messages):
            need(message.keys() <= {"role", "content"}, "messages: Extra inputs are not permitted")
            need(message["role"] in ("user", "assistant", "system"), f"messages.{at}.role: user or assistant")
            if message["role"] == "system":
                need(self.knows_system_role, self.system_role_refusal)
                _check_system_message(body, at)
            blocks = _blocks(message)
            need(bool(blocks), f"messages.{at}: all messages must have non-empty content")
            for block in blocks:
                if block["type"] == "server_tool_use":
                    need(block["input"] == self._searched.get(block["id"]), f"messages.{at}: input: not as it came")
                if block["type"] in _KNOWN or block["type"] not in self._sent:
                    _check_block(block, message["role"], at)
            waiting = self._check_pairs(blocks, message["role"], at, waiting, seen)
            if message["role"] == "assistant":
                self._check_bound(body, at, prefixes, in_loop=at > loop, latest=at == last)
        need(not waiting, f"tool_use ids were found without tool_result blocks: {waiting}")

    def _check_pairs(
        self, blocks: list[dict[str, Any]], role: str, at: int, waiting: list[str], seen: set[str]
    ) -> list[str]:
        if role == "assistant":
            need(not waiting, f"messages.{at}: tool_use without tool_result in the next message: {waiting}")
            ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
            for call_id in ids:
                need(call_id not in seen, f"messages.{at}: tool_use ids must be unique: {call_id}")
                seen.add(call_id)
            return ids
        if role == "system":  # after a message of the user, so nothing waits
            return waiting
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        need(len(answered) == len(set(answered)), f"messages.{at}: each tool_use must have a single result")
        need(sorted(answered) == sorted(waiting), f"messages.{at}: results {answered} do not answer {waiting}")
        if waiting and answered != waiting:
            self.lint.append(f"messages.{at}: results not in call order")
        kinds = [block["type"] for block in blocks]
        need(kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), f"messages.{at}: text before tool_result")
        return []

    def _check_bound(self, body: dict[str, Any], at: int, prefixes: list[str], *, in_loop: bool, latest: bool) -> None:
        """Thinking blocks come back unchanged, in place, after exactly what they were produced with."""
        blocks = _blocks(body["messages"][at])
        facts = rules(body["model"])
        for block in blocks:
            if block["type"] == "text" and "citations" in block:
                cited = self._cited.get(block["text"], [])
                need(block["citations"] == cited, f"messages.{at}: citations: not as they came")
            if block["type"] not in _THINKING:
                continue
            issued = self._issued.get(block.get("signature") or block.get("data") or "")
            if issued is None:
                raise Refused(f"messages.{at}: Invalid `signature` in `thinking` block")
            known, model, prefix = issued
            if model != body["model"]:
                self.lint.append(f"messages.{at}: a thinking block of another model")
                continue
            need(block == known, f"messages.{at}: `thinking` blocks cannot be modified")
            if facts["prefix_checked"]:
                same = prefix == prefixes[at]
                need(same, f"messages.{at}: the thinking block was produced after a different prefix")
        need(blocks[-1]["type"] not in _THINKING, f"messages.{at}: the final block cannot be thinking")
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if not in_loop or not calls or body.get("thinking", {}).get("type") not in ("enabled", "adaptive"):
            return
        opens = blocks[0]["type"] in _THINKING
        opening = self._openings.get(calls[0])
        if opening is None:  # another service wrote this reply
            need(opens or facts["adaptive"], f"messages.{at}: expected `thinking`, found `{blocks[0]['type']}`")
        elif not opening:  # a loop that begins without thinking goes on without
            begins = _is_prompt(body["messages"], at - 1)
            need(facts["adaptive"] or not begins, f"messages.{at}: expected `thinking`, found `{blocks[0]['type']}`")
        elif opening in self._issued:
            _, model, prefix = self._issued[opening]
            dropped = model != body["model"] or (facts["prefix_checked"] and prefix != prefixes[at])
            need(opens or dropped, f"messages.{at}: expected `thinking`, found `{blocks[0]['type']}`")

    # what it says --------------------------------------------------------------------------------------

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        events = self._events(say, request)
        yield from events if request.json.get("stream") else [_whole(events)]

    def _events(self, say: Say, request: Received) -> Iterator[bytes]:
        body: dict[str, Any] = request.json
        prefix = _prefixes(body)[-1]
        written = say.usage.get("cache_write", 0)
        hour = written if "1h" in _check_marks(body, knows_ttl=True) else 0
        usage: dict[str, Any] = {
            "input_tokens": say.usage.get("input", 100),
            "cache_read_input_tokens": say.usage.get("cache_read", 0),
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
            "output_tokens": 1,
            "speed": say.tier or body.get("speed", "standard"),
        }
        self._made += 1
        message = {"id": f"msg_{self._made}", "type": "message", "role": "assistant", "model": body["model"]}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield _event("message_start", message=message)
        index = 0
        opening = ""
        display = body.get("thinking", {}).get("display", "summarized")
        for number, (thoughts, shown) in enumerate(
            ((say.thoughts, ("summarized",)), ([say.progress] * bool(say.progress), ("summarized", "updates")))
        ):
            if not thoughts:
                continue
            told = thoughts if display in shown else []
            signature = f"sig_{self._made}_{number}_{hashlib.sha256(prefix.encode()).hexdigest()[:16]}"
            opening = opening or signature
            block = {"type": "thinking", "thinking": "".join(told), "signature": signature}
            self._issued[signature] = (block, body["model"], prefix)
            thinking = {"type": "thinking", "thinking": "", "signature": ""}
            pieces: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": text} for text in told]
            yield from _block_events(index, thinking, [*pieces, {"type": "signature_delta", "signature": signature}])
            index += 1
        for number, secret in enumerate(say.redacted):
            data = f"{secret}_{self._made}_{number}"
            opening = opening or data
            block = {"type": "redacted_thinking", "data": data}
            self._issued[data] = (block, body["model"], prefix)
            yield from _block_events(index, block, [])  # whole from its start
            index += 1
        if any("type" in tool for tool in request.json.get("tools", ())) and (say.cites or say.stop == "paused"):
            for block, pieces in self._search(say):
                yield from _block_events(index, block, pieces)
                index += 1
        if say.texts:
            start: dict[str, Any] = {"type": "text", "text": "", "citations": [] if say.cites else None}
            pieces = [{"type": "text_delta", "text": text} for text in say.texts]
            cited = [_citation(number, cite) for number, cite in enumerate(say.cites)]
            if cited:
                self._cited["".join(say.texts)] = cited
            pieces += [{"type": "citations_delta", "citation": each} for each in cited]
            yield from _block_events(index, start, pieces)
            index += 1
        for number, call in enumerate(say.calls):
            call_id = call.call_id or f"toolu_{self._made}_{number}"
            self._openings[call_id] = opening
            text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            half = len(text) // 2 if call.tool in self._eager else len(text)
            pieces = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:half], text[half:])]
            yield from _block_events(index, {"type": "tool_use", "id": call_id, "name": call.tool, "input": {}}, pieces)
            index += 1
        stop = say.stop or ("calls" if say.calls else "end")
        delta: dict[str, Any] = {"stop_reason": _STOPS.get(stop, stop), "stop_sequence": None}
        if stop == "refused":
            delta["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": "Not this."}
        counts: dict[str, Any] = {"output_tokens": say.usage.get("output", 20) + say.usage.get("thoughts", 0)}
        if "thoughts" in say.usage:
            counts["output_tokens_details"] = {"thinking_tokens": say.usage["thoughts"]}
        if any("type" in tool for tool in body.get("tools", ())):
            counts["server_tool_use"] = {"web_search_requests": int(bool(say.cites or say.stop == "paused"))}
        yield _event("message_delta", delta=delta, usage=counts)
        yield _event("message_stop")

    def _search(self, say: Say) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """The blocks of a search, each with its pieces: those must come back as they were."""
        search_id, asked = f"srvtoolu_{self._made}", {"query": "what was asked"}
        self._searched[search_id] = asked
        self._sent.update(("server_tool_use", "web_search_tool_result"))
        call: dict[str, Any] = {"type": "server_tool_use", "id": search_id, "name": "web_search", "input": {}}
        yield call, [{"type": "input_json_delta", "partial_json": part} for part in ("", json.dumps(asked))]
        page = {"type": "web_search_result", "encrypted_content": "Eo8D", "page_age": None}
        found = [{**page, "title": cite.title, "url": cite.url} for cite in say.cites]
        yield {"type": "web_search_tool_result", "tool_use_id": search_id, "content": found}, []

    def issue(self, body: bytes, request: Received) -> None:
        prefix = _prefixes(request.json)[-1]
        blocks: dict[int, dict[str, Any]] = {}
        for event in data_of(body):
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                match event["type"]:
                    case "content_block_start":
                        blocks[event["index"]] = dict(event["content_block"])
                    case "content_block_delta":
                        block, delta = blocks[event["index"]], event["delta"]
                        for name in ("thinking", "signature", "text"):
                            if name in delta:
                                block[name] += delta[name]
                        if "citation" in delta:
                            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
                    case _:
                        pass
        for block in blocks.values():
            self._sent.add(str(block.get("type")))
            if block.get("citations"):
                self._cited[block["text"]] = block["citations"]
            if block.get("type") in _THINKING:
                self._issued[block.get("signature") or block.get("data") or ""] = block, request.json["model"], prefix

    def finish_markers(self) -> int:
        return 2

    def malformed_event(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {\n\n'

    def error_body(self, status: int, message: str, code: str) -> bytes:
        kind = code or _KINDS.get(status, "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()

    def error_event(self, fault: Fault) -> bytes:
        error = {"type": fault.code or "overloaded_error", "message": fault.message}
        return _event("error", error=error)

    def other(self, request: Received) -> tuple[int, bytes] | None:
        if request.path == "/v1/models" and "wrong" in request.headers.get("x-api-key", ""):
            return 401, self.error_body(401, "invalid x-api-key", "")
        if request.method == "HEAD" or request.path == "/v1/models":
            return 200, b'{"data": [], "has_more": false}'
        return None


def rules(model: str) -> dict[str, bool]:
    """What this model insists on; the service's own table, on purpose not the product's."""
    new = bool(re.match(r"claude-((opus|sonnet|haiku)-5-5|(fable|mythos)-5-[1-9])", model))
    only = new or bool(re.match(r"claude-((opus|sonnet)-(4-[78]|5$)|(fable|mythos)-)", model))
    adaptive = only or bool(re.match(r"claude-(opus|sonnet)-4-6", model))
    return {"prefix_checked": new, "adaptive_only": only, "adaptive": adaptive}


_FAST_MODE = "fast-mode-2026-02-01"


def _check_speed(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """`speed` is for some models only, of which some want a beta."""
    betas = [each.strip() for each in headers.get("anthropic-beta", "").split(",")]
    if "speed" not in body:
        need(_FAST_MODE not in betas, "anthropic-beta: fast mode without speed")  # a fault of ours
        return
    need(body["speed"] in ("standard", "fast"), "speed: Input should be 'standard' or 'fast'")
    model = body["model"]
    if re.fullmatch(r"claude-opus-5(-\d{8})?", model):
        need(_FAST_MODE in betas, "speed: Extra inputs are not permitted")
        return
    taken = re.fullmatch(r"claude-(opus-5-5|fable-5-2|mythos-5-2)(-\d{8})?", model)
    need(taken, f"'{model}' does not support the `speed` parameter.")


def _check_thinking(body: dict[str, Any], betas: str) -> None:
    thinking: dict[str, Any] = body.get("thinking") or {"type": "disabled"}
    facts = rules(body["model"])
    display = thinking.get("display", "omitted")
    need(display in ("summarized", "omitted", "updates"), "thinking.adaptive.display: unknown")
    if display == "updates":
        told = re.match(r"claude-((opus|sonnet)-5-5|fable-5|mythos-5-1)", body["model"])
        need(told and "thinking-display-updates-2026-08-18" in betas, "thinking.adaptive.display: needs a beta")
    match thinking["type"]:
        case "adaptive":
            need(facts["adaptive"], "thinking: adaptive is not supported by this model")
            need(thinking.keys() <= {"type", "display", "block_binding"}, "thinking: Extra inputs are not permitted")
        case "enabled":
            need(not facts["adaptive_only"], "thinking: enabled is not supported by this model, use adaptive")
            need(thinking.keys() <= {"type", "budget_tokens", "display"}, "thinking: Extra inputs are not permitted")
            need(1024 <= thinking["budget_tokens"] < body["max_tokens"], "thinking: 1024 <= budget_tokens < max_tokens")
            need(body.get("temperature", 1) == 1, "temperature: must be 1 while thinking")
        case "disabled":
            need(not (facts["prefix_checked"] and "thinking" in body), "thinking: cannot be disabled")
        case other:
            raise Refused(f"thinking: unknown type {other}")
    if facts["adaptive_only"]:
        need(not {"temperature", "top_p", "top_k"} & body.keys(), "temperature, top_p, top_k: not supported")
    forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
    need(not (forced and thinking["type"] != "disabled"), "tool_choice: not forced while thinking")
    if "output_config" in body:
        need(facts["adaptive"] or "opus-4-5" in body["model"], "output_config.effort: not supported by this model")
        efforts = ["low", "medium", "high"]
        efforts += [] if "opus-4-5" in body["model"] else ["max"]
        efforts += [] if re.search(r"-4-[56]", body["model"]) else ["xhigh"]
        need(body["output_config"]["effort"] in efforts, "output_config.effort: not supported by this model")


def _check_system_message(body: dict[str, Any], at: int) -> None:
    """One in mid-conversation."""
    taken = r"claude-(opus-4-8|opus-5|(sonnet|haiku)-5-5|(fable|mythos)-5)"
    need(bool(re.match(taken, body["model"])), "role 'system' is not supported on this model")
    roles = [message["role"] for message in body["messages"]]
    need(at > 0 and roles[at - 1] == "user", f"messages.{at}: a system message must follow a user message")
    need(roles[at + 1 : at + 2] in ([], ["assistant"]), f"messages.{at}: must be last or before an assistant message")
    kinds = {block["type"] for block in _blocks(body["messages"][at])}
    need(kinds == {"text"}, f"messages.{at}: a system message holds text only")


def _check_marks(body: dict[str, Any], *, knows_ttl: bool) -> list[str]:
    """The lifetimes of the cache marks, in order."""
    system = body.get("system", [])
    places: list[dict[str, Any]] = [*body.get("tools", []), *(system if isinstance(system, list) else [])]
    places += [block for message in body["messages"] for block in _blocks(message)]
    marked = [place for place in places if "cache_control" in place]
    need(len(marked) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}.")
    lifetimes: list[str] = []
    for place in marked:
        need(place.get("type") not in _THINKING, "cache_control cannot be set on thinking blocks")
        need(place.get("text") != "", "cache_control cannot be set for empty text blocks")
        mark: dict[str, Any] = place["cache_control"]
        need(mark.get("type") == "ephemeral", "cache_control.type: Input should be 'ephemeral'")
        for name in mark.keys() - ({"type", "ttl"} if knows_ttl else {"type"}):
            raise Refused(f"cache_control.ephemeral.{name}: Extra inputs are not permitted")
        lifetimes.append(mark.get("ttl", "5m"))
        need(lifetimes[-1] in ("5m", "1h"), "cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
        need(
            not (lifetimes[-1] == "1h" and "5m" in lifetimes),
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are "
            "processed in the following order: `tools`, `system`, `messages`.",
        )
    return lifetimes


def _check_block(block: dict[str, Any], role: str, at: int) -> None:
    where = f"messages.{at}: {block['type']}"
    fields: dict[str, set[str]] = {
        "text": {"text", "citations"},
        "image": {"source"},
        "document": {"source", "title", "context", "citations"},
        "thinking": {"thinking", "signature"},
        "redacted_thinking": {"data"},
        "tool_use": {"id", "name", "input", "caller"},
        "tool_result": {"tool_use_id", "content", "is_error"},
    }
    if block["type"] not in fields:
        raise Refused(f"{where}: unknown type")
    extra = block.keys() - fields[block["type"]] - {"type", "cache_control"}
    need(not extra, f"{where}: Extra inputs are not permitted: {extra}")
    match block["type"]:
        case "text":
            need(bool(block["text"].strip()), f"{where}: text content blocks must contain non-whitespace text")
        case "image" | "document":
            need(role == "user", f"{where}: only in user messages")
        case "tool_use":
            need(role == "assistant", f"{where}: only in assistant messages")
            need(bool(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"])), f"{where}: id should match the pattern")
            need(bool(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])), f"{where}: bad name")
            need(isinstance(block["input"], dict), f"{where}: input: should be a valid dictionary")
        case "tool_result":
            need(role == "user", f"{where}: only in user messages")
            need(not (block.get("is_error") and not block.get("content")), f"{where}: content required with is_error")
            for each in _result_blocks(block):
                need(each["type"] in ("text", "image", "document"), f"{where}.content: {each['type']}")
                need(each["type"] == "text" or not block.get("is_error"), _TEXT_ONLY)
                _check_block(each, role, at)
        case _:
            need(role == "assistant", f"{where}: only in assistant messages")


def _check_pictures(messages: list[dict[str, Any]]) -> int:
    """Characters of all pictures."""
    every = [block for message in messages for block in _blocks(message)]
    every += [inner for block in every for inner in _result_blocks(block)]
    blocks = [block for block in every if block["type"] == "image"]
    documents = [block["source"] for block in every if block["type"] == "document"]
    for source in documents:
        need(source.keys() == {"type", "media_type", "data"}, "document.source: type, media_type and data")
        need((source["type"], source["media_type"]) == ("base64", "application/pdf"), "document.source: base64 PDF")
        need(pictures.is_pdf(source["data"]), "The PDF specified was not valid.")
    need(len(blocks) <= 100, "messages: too many images; at most 100")
    most = 2_000 if len(blocks) > 20 else 8_000
    for block in blocks:
        source = block["source"]
        need(source.keys() == {"type", "media_type", "data"}, "image.source: type, media_type and data")
        need(source["type"] == "base64", "image.source.type: base64")
        match pictures.fault(source["media_type"], source["data"], _PICTURES):
            case "type":
                raise Refused(f"image.source.base64.media_type: Input should be one of {sorted(_PICTURES)}")
            case "base64":
                raise Refused("image.source.base64.data: invalid base64 data")
            case "mismatch":
                raise Refused(f"Image does not match the provided media type {source['media_type']}")
            case "damaged":
                raise Refused("Could not process image")
            case None:
                pass
        length = len(source["data"])
        need(length <= _MAX_PICTURE, f"image exceeds 5 MB maximum: {length} bytes > {_MAX_PICTURE} bytes")
        need(pictures.longer_side(source["data"]) <= most, f"image dimensions exceed max allowed size: {most} pixels")
    return sum(len(source["data"]) for source in [*(block["source"] for block in blocks), *documents])


def _result_blocks(block: dict[str, Any]) -> list[dict[str, Any]]:
    """What a result is made of, if it is no plain text."""
    content: Any = block.get("content") if block["type"] == "tool_result" else None
    return cast("list[dict[str, Any]]", content) if isinstance(content, list) else []


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content: Any = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return cast("list[dict[str, Any]]", content)


def _check_search(tool: dict[str, Any]) -> None:
    """The search of the service itself (SDK 2.12, `web_search_tool_*_param.py`)."""
    need(re.fullmatch(r"web_search_(20250305|20260209|20260318)", tool["type"]) is not None, "tools: unknown type")
    need(tool.get("name") == "web_search", "tools: name: must be web_search")
    taken = {"type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location", "cache_control"}
    taken |= {"strict", "defer_loading", "allowed_callers"}
    taken |= {"response_inclusion"} if tool["type"].endswith("18") else set()
    for field in tool.keys() - taken:
        raise Refused(f"tools: {field}: Extra inputs are not permitted")
    need(not {"allowed_domains", "blocked_domains"} <= tool.keys(), "tools: only one of the lists of domains")


def _citation(number: int, cite: Cite) -> dict[str, Any]:
    if cite.url:
        index = {"encrypted_index": f"enc{number}"}
        place = {"type": "web_search_result_location", "url": cite.url, "title": cite.title, **index}
    else:
        where = {"document_index": number, "start_char_index": 0, "end_char_index": len(cite.quote), "file_id": None}
        place = {"type": "char_location", "document_title": cite.title or None, **where}
    return {**place, "cited_text": cite.quote}


def _is_prompt(messages: list[dict[str, Any]], at: int) -> bool:
    """A user message that opens a turn: no results in it, nor in one right before, for they are joined. What the system
    says right after it belongs to it."""
    if messages[at]["role"] == "system":
        return _is_prompt(messages, at - 1)
    if messages[at]["role"] != "user" or any(block["type"] == "tool_result" for block in _blocks(messages[at])):
        return False
    return at == 0 or messages[at - 1]["role"] != "user" or _is_prompt(messages, at - 1)


def _prefixes(body: dict[str, Any]) -> list[str]:
    """Digests of all before each message, and of all; cache marks do not count."""
    digest = hashlib.sha256()
    found: list[str] = []
    for part in ([body.get("system"), body.get("tools")], *body["messages"]):
        digest.update(json.dumps(_unmarked(part), sort_keys=True).encode())
        found.append(digest.hexdigest())
    return found


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: _unmarked(each) for name, each in pairs if name != "cache_control"}
    return value


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _block_events(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[bytes]:
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _whole(events: Iterator[bytes]) -> bytes:
    """The message that these events make, as it comes where nothing is streamed."""
    message: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    for event in data_of(b"".join(events)):
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                blocks.append(dict(event["content_block"]))
            case "content_block_delta":
                for name, value in event["delta"].items():
                    if name == "citation":
                        blocks[-1]["citations"] = [*(blocks[-1].get("citations") or []), value]
                    elif name != "type":
                        blocks[-1][name] = blocks[-1].get(name, "") + value
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
            case _:
                pass
    for block in blocks:
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    return json.dumps({**message, "content": blocks}).encode()


if __name__ == "__main__":
    main(Anthropic)
