"""Chat completions, as strict as OpenAI, with its published rules in code. Whole replies too, where not streamed.

`keyless` makes it a local server, whose model cannot see; `gemini` makes it Google's compatible endpoint, which
signs calls; `deepseek` makes it one that wants its thoughts back.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from support.strict_services import pictures
from support.strict_services.http import Cite, Fault, Received, Refusal, Say, Service, data_of, main
from support.strict_services.refusals import Refused, need
from support.strict_services.tiers import check_tier, served

_STOPS = {"end": "stop", "calls": "tool_calls", "outputLimit": "length", "refused": "content_filter"}
_TOP = {
    "model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "max_tokens",
    "max_completion_tokens", "reasoning_effort", "temperature", "top_p", "stop", "seed", "n", "user", "metadata",
    "prompt_cache_key", "response_format", "store", "service_tier", "verbosity", "safety_identifier",
}  # fmt: skip
_PROVIDER = {
    "order", "allow_fallbacks", "require_parameters", "data_collection", "zdr", "only", "ignore", "quantizations",
    "sort", "max_price",
}  # fmt: skip
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
"""OpenRouter's."""
_SKIP = "skip_thought_signature_validator"
_MESSAGE = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "reasoning_details", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}


class OpenAI(Service):
    vendor = "openai"
    window = 4_000_000
    """Characters of body, pictures aside, above which the prompt is too long."""

    def __init__(
        self, script: Any = (), *, keyless: bool = False, gemini: bool = False, deepseek: bool = False
    ) -> None:
        super().__init__(script)
        self._keyless = keyless
        self._gemini = gemini
        self._deepseek = deepseek
        self._thought: dict[tuple[str, str], str] = {}
        """Model, and first call id of a reply → the thoughts it came with."""
        self._thoughts: set[str] = set()
        """All that were sent."""
        self._signed: dict[str, str] = {}
        """Call id → the signature it was issued with."""
        self._issued: set[str] = set()
        """All signatures, also of calls whose id was used again."""
        self._made = 0

    # what it refuses ---------------------------------------------------------------------------------

    def check(self, request: Received) -> Refusal | None:
        try:
            self._check(request)
        except Refused as refused:
            return refused.refusal
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Refusal(400, f"Malformed request: {error!r}")
        return None

    def _check(self, request: Received) -> None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not key and not self._keyless:
            raise Refused("You didn't provide an API key.", 401)
        if key == "bad":
            raise Refused("Incorrect API key provided: bad.", 401, "invalid_api_key")
        if self._keyless and key:
            self.lint.append("a key was sent to a server that needs none")
        if request.method != "POST" or request.path != "/v1/chat/completions":
            raise Refused(f"Invalid URL ({request.method} {request.path})", 404)
        need(request.headers.get("content-type") == "application/json", "content-type: application/json expected")
        length = len(request.body) - _pictures(request.json["messages"])
        if length > self.window:
            raise Refused(
                f"This model's maximum context length is {self.window} tokens. However, your messages resulted in "
                f"{length} tokens.",
                400,
                "context_length_exceeded",
            )
        body: dict[str, Any] = request.json
        routed = "/" in str(body.get("model"))
        taken = _TOP | {"reasoning", "plugins", "provider", "top_k"} if routed else _TOP
        if self._keyless or self._gemini or self._deepseek:
            taken = taken - {"service_tier"}
        if routed and "provider" in body:
            need(body["provider"].keys() <= _PROVIDER, "provider: unknown field")
        for plugin in body.get("plugins", ()) if routed else ():
            need(plugin.get("id") == "web", "plugins: unknown id")
            need(plugin.keys() <= {"id", "engine", "max_results", "search_prompt"}, "plugins: unknown field")
        taken = taken | {"cache_control"} if str(body.get("model")).startswith("anthropic/") else taken
        if routed and "reasoning" in body:
            need(body["reasoning"].keys() <= {"effort", "max_tokens", "exclude", "enabled"}, "reasoning: unknown field")
            need(body["reasoning"].get("effort") in (*EFFORTS, None), "reasoning.effort: Invalid option")
        for name in body.keys() - taken:
            raise Refused(f"Unrecognized request argument supplied: {name}")
        need(body.get("model"), "you must provide a model parameter")
        check_tier(body, routed=routed)
        need("stream_options" not in body or body.get("stream"), "stream_options is only allowed when stream is true")
        reasoning = re.match(r"(openai/)?(o\d|gpt-[5-9])", body["model"]) is not None
        effort = body.get("reasoning_effort", "medium")
        need(
            not (re.match(r"gpt-(5\.[4-9]|[6-9])", body["model"]) and body.get("tools") and effort != "none"),
            f"Function tools with reasoning_effort are not supported for {body['model']} in /v1/chat/completions. "
            "To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
        )
        need(
            not (reasoning and "max_tokens" in body),
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.",
        )
        if "reasoning_effort" in body:
            need(reasoning or self._gemini, "Unrecognized request argument supplied: reasoning_effort")
            words = ("minimal",) if re.match(r"gpt-5(-|$)", body["model"]) else ()
            need(
                body["reasoning_effort"] in (*words, "low", "medium", "high"),
                f"Unsupported value: '{body['reasoning_effort']}' is not supported with this model.",
            )
        declared = _check_tools(body.get("tools"))
        if "tool_choice" in body:
            need(declared, "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
            need(body["tool_choice"] in ("none", "auto", "required"), "Invalid value for 'tool_choice'.")
        self._check_messages(body["messages"], declared, body["model"])

    def _check_messages(self, messages: list[dict[str, Any]], declared: set[str], model: str) -> None:
        need(messages, "[] is too short - 'messages'")
        waiting: list[str] = []
        seen: set[str] = set()
        prompt = max((at for at in range(len(messages)) if _is_prompt(messages, at)), default=0)
        for at, message in enumerate(messages):
            role = message.get("role")
            need(role in _MESSAGE, f"Invalid value: {role}. (messages[{at}].role)")
            extra = message.keys() - _MESSAGE[cast(str, role)]
            need(not extra, f"Additional properties are not allowed ({extra} was unexpected) - 'messages.{at}'")
            if role == "tool":
                need(
                    message["tool_call_id"] in waiting,
                    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'.",
                )
                if message["tool_call_id"] != waiting[0]:
                    self.lint.append(f"messages[{at}]: results not in call order")
                waiting.remove(message["tool_call_id"])
                need(isinstance(message.get("content"), str), f"Invalid type for messages[{at}].content")
                continue
            need(
                not waiting,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {waiting}",
            )
            calls: list[dict[str, Any]] = message.get("tool_calls") or []
            if role == "assistant":
                self._check_thought(message, at, (model, calls[0]["id"] if calls else ""))
            need("tool_calls" not in message or calls, f"[] is too short - 'messages.{at}.tool_calls'")
            content = message.get("content")
            if isinstance(content, list):
                self._check_parts(cast("list[dict[str, Any]]", content), at, cast(str, role))
                continue
            need(
                isinstance(content, str) or (content is None and calls),
                f"Invalid value for 'content': expected a string, got null. (messages[{at}])",
            )
            if content == "" and not calls:
                self.lint.append(f"messages[{at}]: nothing in it")
            waiting = [self._check_call(call, at, first=call is calls[0], current=at > prompt) for call in calls]
            for call_id in waiting:
                need(call_id not in seen, f"Duplicate tool_call id: {call_id}")
                seen.add(call_id)
            if calls and not declared:
                self.lint.append(f"messages[{at}]: calls, but no tools declared")
        need(not waiting, f"The following tool_call_ids did not have response messages: {waiting}")

    def _check_parts(self, parts: list[dict[str, Any]], at: int, role: str) -> None:
        need(parts, f"[] is too short - 'messages.{at}.content'")
        for part in parts:
            if part["type"] == "text":
                need(part.keys() == {"type", "text"}, f"messages[{at}].content: type and text")
                need(isinstance(part["text"], str), f"Invalid type for messages[{at}].content.text")
                continue
            need(part["type"] == "image_url", f"Invalid value: '{part['type']}'. (messages[{at}].content.type)")
            need(not self._keyless, "image input is not supported - hint: you may need to provide the mmproj")
            need(role == "user", f"Image URLs are only allowed for messages with role 'user', not '{role}'.")
            need(part.keys() == {"type", "image_url"}, f"messages[{at}].content: type and image_url")
            need(part["image_url"].keys() <= {"url", "detail"}, f"messages[{at}].content.image_url: url and detail")
            found = re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", part["image_url"]["url"])
            need(found, "Invalid image_url: expected a base64-encoded data URL.")
            match pictures.fault(found[1], found[2], ("image/png", "image/jpeg", "image/webp")) if found else None:
                case "base64":
                    raise Refused("Invalid base64 image_url.", 400, "invalid_base64")
                case "type" | "mismatch" | "damaged":  # a GIF would do if it does not move; that is not looked at here
                    raise Refused("You uploaded an unsupported image.", 400, "invalid_image_format")
                case None:
                    pass

    def _check_thought(self, message: dict[str, Any], at: int, reply: tuple[str, str]) -> None:
        thought = message.get("reasoning_content")
        need(
            thought is not None or not self._deepseek,
            f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}",
        )
        need(
            thought is None or self._deepseek or thought in self._thoughts,
            f"Additional properties are not allowed ('reasoning_content' was unexpected) - 'messages.{at}'",
        )
        if reply in self._thought and thought != self._thought[reply]:
            self.lint.append(f"messages[{at}]: its thoughts did not come back as they were")

    def _check_call(self, call: dict[str, Any], at: int, *, first: bool, current: bool) -> str:
        extra = call.keys() - {"id", "type", "function", *(("extra_content",) if self._gemini else ())}
        need(not extra, f"Additional properties are not allowed ({extra} was unexpected) - messages.{at}.tool_calls")
        need(call["type"] == "function", "tool_calls.type: function")
        need(0 < len(call["id"]) <= 40, f"Invalid 'tool_calls[].id': string too long: {call['id']}")
        function = call["function"]
        need(function.keys() == {"name", "arguments"}, "tool_calls.function: name and arguments")
        need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]), f"Invalid function name: {function['name']!r}")
        need(isinstance(function["arguments"], str), "tool_calls.function.arguments: a string is expected")
        try:
            json.loads(function["arguments"])
        except ValueError:
            raise Refused("tool_calls.function.arguments: not JSON") from None
        if self._gemini and first:
            signature = call.get("extra_content", {}).get("google", {}).get("thought_signature")
            need(signature or not current, "Function call is missing a thought_signature in functionCall parts.")
            issued = self._signed.get(call["id"])
            need(signature in {None, *self._issued, _SKIP}, "Corrupted thought signature.")
            if issued and signature != issued:
                self.lint.append(f"messages[{at}]: the validator skipped although a real signature was issued")
            if signature == _SKIP and not current:
                self.lint.append(f"messages[{at}]: the validator skipped outside the present loop")
        return call["id"]

    # what it says --------------------------------------------------------------------------------------

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        body: dict[str, Any] = request.json
        self._made += 1
        stop = say.stop or ("calls" if say.calls else "end")
        finish = _STOPS.get(stop, stop)
        calls = [self._call(number, call.tool, call.arguments, call.call_id) for number, call in enumerate(say.calls)]
        usage = _usage(say)
        if body.get("plugins"):
            usage["cost"] = 0.021
        tier = {} if self._keyless or self._gemini or self._deepseek else {"service_tier": served(say, body)}
        if say.thoughts:
            self._thoughts.add("".join(say.thoughts))
            if calls:
                self._thought[body["model"], calls[0]["id"]] = "".join(say.thoughts)
        cited = [_annotation(cite) for cite in say.cites]
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": "".join(say.texts) or None}
            if say.thoughts:
                message["reasoning_content"] = "".join(say.thoughts)
            if calls:
                message["tool_calls"] = calls
            if cited:
                message["annotations"] = cited
            choice = {"index": 0, "message": message, "finish_reason": finish}
            completion = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage, **tier}
            yield json.dumps(completion).encode()
            return
        yield self._chunk({"role": "assistant", "content": ""})
        for text in say.thoughts:
            yield self._chunk({"reasoning_content": text})
        for text in say.texts:
            yield self._chunk({"content": text})
        if cited:
            yield self._chunk({"annotations": cited})
        for index, call in enumerate(calls):
            arguments = call["function"]["arguments"]
            half = len(arguments) // 2
            opening = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield self._chunk({"tool_calls": [opening]})
            for piece in (arguments[:half], arguments[half:]):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._chunk({}, finish)
        if body.get("stream_options", {}).get("include_usage"):
            chunk: dict[str, Any] = {
                "id": "c",
                "object": "chat.completion.chunk",
                "choices": [],
                "usage": usage,
                **tier,
            }
            yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    def issue(self, body: bytes, request: Received) -> None:
        thought = ""
        for chunk in data_of(body):
            with contextlib.suppress(KeyError, TypeError, AttributeError, IndexError):
                choice = chunk["choices"][0]
                said = choice.get("delta") or choice["message"]
                thought += said.get("reasoning_content") or ""
                for call in said["tool_calls"]:
                    if "extra_content" in call:
                        signature = call["extra_content"]["google"]["thought_signature"]
                        self._signed[call["id"]] = signature
                        self._issued.add(signature)
        self._thoughts.add(thought)

    def _call(self, number: int, tool: str, arguments: Any, call_id: str | None) -> dict[str, Any]:
        written = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call: dict[str, Any] = {
            "id": call_id or f"call_{self._made}_{number}",
            "type": "function",
            "function": {"name": tool, "arguments": written},
        }
        if self._gemini and number == 0:
            signature = f"c2lnbmF0dXJl+/{self._made}="
            self._signed.setdefault(call["id"], signature)
            self._issued.add(signature)
            call["extra_content"] = {"google": {"thought_signature": signature}}
        return call

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": f"c{self._made}", "object": "chat.completion.chunk", "choices": [choice]}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    def finish_markers(self) -> int:
        return 3

    def error_body(self, status: int, message: str, code: str) -> bytes:
        kind = {401: "invalid_request_error", 429: "rate_limit_exceeded"}.get(status, "server_error")
        if 400 <= status < 429:
            kind = "invalid_request_error"
        return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code or None}}).encode()

    def error_event(self, fault: Fault) -> bytes:
        return b"data: " + self.error_body(fault.status, fault.message, fault.code) + b"\n\n"

    def other(self, request: Received) -> tuple[int, bytes] | None:
        if request.path == "/v1/models":
            return 200, b'{"object": "list", "data": [{"id": "test-model", "object": "model"}]}'
        return None


def _is_prompt(messages: list[dict[str, Any]], at: int) -> bool:
    """What the user said, and nothing said right after results."""
    if messages[at]["role"] != "user" or (at and messages[at - 1]["role"] == "tool"):
        return False
    return at == 0 or messages[at - 1]["role"] != "user" or _is_prompt(messages, at - 1)


def _annotation(cite: Cite) -> dict[str, Any]:
    if not cite.url:
        return {"type": "file_citation", "file_citation": {"filename": cite.title, "index": 0}}
    where = {"start_index": 0, "end_index": 1, "url": cite.url, "title": cite.title, "content": cite.quote}
    return {"type": "url_citation", "url_citation": where}


def _check_tools(tools: Any) -> set[str]:
    need(tools is None or tools, "[] is too short - 'tools'")
    names: set[str] = set()
    for tool in tools or ():
        need(tool.keys() == {"type", "function"} and tool["type"] == "function", "tools: type and function")
        function = tool["function"]
        extra = function.keys() - {"name", "description", "parameters", "strict"}
        need(not extra, f"tools: Additional properties are not allowed: {extra}")
        need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]), f"tools: Invalid name {function['name']!r}")
        need(function["name"] not in names, f"tools: duplicate name {function['name']}")
        need(function.get("parameters", {}).get("type", "object") == "object", "tools: parameters.type: object")
        names.add(function["name"])
    return names


def _pictures(messages: list[dict[str, Any]]) -> int:
    """Characters of all pictures."""
    lists = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    return sum(len(part["image_url"]["url"]) for parts in lists for part in parts if part["type"] == "image_url")


def _usage(say: Say) -> dict[str, Any]:
    cached, thoughts = say.usage.get("cache_read", 0), say.usage.get("thoughts", 0)
    return {
        "prompt_tokens": say.usage.get("input", 100) + cached,
        "completion_tokens": say.usage.get("output", 20) + thoughts,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }


if __name__ == "__main__":
    main(OpenAI)
