"""OpenAI's Responses API, as strict as the service, with its published and reported refusals in code.

Stateless use only: a request that asks to store anything is a fault of ours.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from support.strict_services import pictures
from support.strict_services.http import Cite, Fault, Received, Refusal, Say, Service, ToolUse, data_of, main
from support.strict_services.refusals import Refused, need
from support.strict_services.tiers import check_tier, served

_TOP = {
    "model", "input", "instructions", "stream", "stream_options", "store", "include", "tools", "tool_choice",
    "parallel_tool_calls", "reasoning", "text", "max_output_tokens", "prompt_cache_key", "prompt_cache_options",
    "temperature", "top_p", "metadata", "service_tier", "safety_identifier", "truncation", "user",
    "previous_response_id", "conversation", "background", "max_tool_calls",
}  # fmt: skip
_MOVED = {"max_tokens": "max_output_tokens", "reasoning_effort": "reasoning.effort", "response_format": "text.format"}
_ITEM = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "reasoning": {"type", "id", "summary", "encrypted_content", "status", "content"},
    "function_call": {"type", "call_id", "name", "arguments", "id", "status", "namespace"},
    "function_call_output": {"type", "call_id", "output", "id", "status"},
    "custom_tool_call": {"type", "call_id", "name", "input", "id"},
    "web_search_call": {"type", "id", "status", "action"},
    "custom_tool_call_output": {"type", "call_id", "output", "id"},
}
_PREFIX = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
}
_PARTS = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text", "input_image", "input_file"},
    "developer": {"input_text", "input_image", "input_file"},
    "assistant": {"output_text", "refusal"},
}


def efforts(model: str) -> tuple[str, ...]:
    """What the model takes; nothing for one that does not reason."""
    if re.match(r"gpt-(3|4)|chatgpt", model):
        return ()
    if re.match(r"o\d", model):
        return ("low", "medium", "high")
    if re.match(r"gpt-(6-astra|6\.1-sol|6\.2)", model):
        return ("low", "medium", "high", "xhigh", "max")
    if re.match(r"gpt-(5\.6|6)", model):
        return ("none", "low", "medium", "high", "xhigh", "max")
    if re.match(r"gpt-5\.3-codex", model):
        return ("low", "medium", "high", "xhigh")
    return ("none", "low", "medium", "high", "xhigh")


class Responses(Service):
    vendor = "openai-responses"
    window = 4_000_000
    """Characters of body, pictures aside, above which the prompt is too long."""

    def __init__(
        self,
        script: Any = (),
        *,
        summaries: bool = True,
        known: bool = True,
        plan: Callable[[str], bool] | None = None,
    ) -> None:
        """`summaries`: the organisation may see them. `known`: the reasoning it is sent is its own. `plan`: requests
        count towards a ChatGPT plan, and it tells whether an access token is valid."""
        super().__init__(script)
        self.plan = plan
        self.summaries = summaries
        self.known = known
        self._issued: dict[str, str] = {}
        """Encrypted reasoning → the model it is of."""
        self._phased: set[tuple[int, str]] = set()
        """Place in the input, and text, of the messages that came with a phase in replies that were whole."""
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
        if not key:
            raise Refused("You didn't provide an API key.", 401)
        if self.plan is not None and not self.plan(key):
            raise Refused("Your authentication token is not valid any more.", 401, "token_expired")
        if key == "bad":
            raise Refused("Incorrect API key provided: bad.", 401, "invalid_api_key")
        if request.method != "POST" or request.path != "/v1/responses":
            raise Refused(f"Invalid URL ({request.method} {request.path})", 404)
        need(request.headers.get("content-type") == "application/json", "content-type: application/json expected")
        body: dict[str, Any] = request.json
        for name in body.keys() - _TOP:
            if name in _MOVED:
                raise Refused(
                    f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to "
                    f"'{_MOVED[name]}'.",
                    400,
                    "unsupported_parameter",
                )
            raise Refused(f"Unknown parameter: '{name}'.", 400, "unknown_parameter")
        if self.plan is not None:
            _check_plan(body)
        need(body.get("model"), "you must provide a model parameter")
        check_tier(body)
        length = len(request.body) - _picture_size(body["input"])
        if length > self.window:
            raise Refused(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                400,
                "context_length_exceeded",
            )
        if body.get("store") is not False:
            self.lint.append("store is not false")
        need("stream_options" not in body or body.get("stream"), "stream_options is only allowed when stream is true")
        if body.get("stream") and body.get("stream_options") != {"include_obfuscation": False}:
            self.lint.append("deltas are padded")
        need(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': integer below minimum value.")
        need(len(body.get("prompt_cache_key", "")) <= 64, "Invalid 'prompt_cache_key': string too long.")
        self._check_reasoning(body)
        declared = self._check_tools(body.get("tools"))
        _check_tool_choice(body)
        searched = any(tool["type"] == "web_search" for tool in body.get("tools") or ())
        reasoning: dict[str, Any] = body.get("reasoning") or {}
        need(
            not (searched and reasoning.get("effort") == "minimal"),
            "The following tools cannot be used with reasoning.effort 'minimal': web_search.",
        )
        self._check_input(body["input"], declared, body["model"])

    def _check_reasoning(self, body: dict[str, Any]) -> None:
        model: str = body["model"]
        taken = efforts(model)
        reasoning: dict[str, Any] = body.get("reasoning") or {}
        need(reasoning.keys() <= {"effort", "summary", "context", "mode"}, "Unknown parameter: 'reasoning.x'.")
        if reasoning and not taken:
            raise Refused(f"Unsupported parameter: 'reasoning.effort' is not supported with the '{model}' model.")
        effort = reasoning.get("effort")
        if effort is not None and effort not in taken:
            offered = ", ".join(f"'{word}'" for word in taken)
            raise Refused(
                f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: "
                f"{offered}.",
                400,
                "unsupported_value",
            )
        if reasoning.get("summary") and not self.summaries:
            raise Refused(
                "Your organization must be verified to generate reasoning summaries. Please go to the settings.",
                400,
                "unsupported_value",
            )
        if "reasoning.encrypted_content" in body.get("include", ()):
            need(taken, "Encrypted content is not supported with this model.")
        elif taken:
            self.lint.append("reasoning is lost: its encrypted content was not asked for")
        need(not (taken and "temperature" in body), "Unsupported parameter: 'temperature' is not supported.")

    def _check_tools(self, tools: Any) -> set[str]:
        need(tools is None or tools, "Invalid 'tools': empty array.")
        names: set[str] = set()
        for at, tool in enumerate(tools or ()):
            if tool["type"] == "web_search":
                extra = tool.keys() - {"type", "filters", "search_context_size", "user_location", "external_web_access"}
                need(not extra, f"Unknown parameter: 'tools[{at}].{''.join(sorted(extra))}'.")
                continue
            if tool["type"] == "custom":
                extra = tool.keys() - {"type", "name", "description", "format"}
                form = tool.get("format", {"type": "text"})
                need(form["type"] in ("text", "grammar"), f"Invalid value: tools[{at}].format.type")
                if form["type"] == "grammar":
                    need(form.keys() == {"type", "syntax", "definition"}, f"tools[{at}].format: syntax and definition")
                    need(form["syntax"] in ("lark", "regex"), f"Invalid value: tools[{at}].format.syntax")
                    need(form["definition"].strip(), f"Invalid grammar: tools[{at}].format.definition")
            else:
                need(tool["type"] == "function", f"Invalid value: '{tool['type']}'. (tools[{at}].type)")
                extra = tool.keys() - {"type", "name", "description", "parameters", "strict", "defer_loading", "async"}
                need(tool["parameters"]["type"] == "object", f"Invalid schema for function '{tool['name']}'")
                if "strict" not in tool:
                    self.lint.append(f"tools[{at}]: strict is left out, which does not mean false")
            need(not extra, f"Unknown parameter: 'tools[{at}].{''.join(sorted(extra))}'.")
            need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]), f"Invalid 'tools[{at}].name'")
            need(tool["name"] not in names, f"Duplicate tool name: {tool['name']}")
            names.add(tool["name"])
        return names

    def _check_input(self, items: list[dict[str, Any]], declared: set[str], model: str) -> None:
        need(items, "Invalid 'input': empty array.")
        waiting: list[tuple[str, str]] = []
        seen: set[str] = set()
        for at, item in enumerate(items):
            kind = item.get("type", "message")
            need(kind in _ITEM, f"Invalid value: '{kind}'. (input[{at}].type)")
            for name in item.keys() - _ITEM[kind]:
                raise Refused(f"Unknown parameter: 'input[{at}].{name}'.", 400, "unknown_parameter")
            if "id" in item:
                prefix = _PREFIX[kind]
                need(
                    item["id"].startswith(prefix),
                    f"Invalid 'input[{at}].id': '{item['id']}'. Expected an ID that begins with '{prefix}'.",
                )
            if "call_id" in item:
                need(0 < len(item["call_id"]) <= 64, f"Invalid 'input[{at}].call_id': string too long.")
            match kind:
                case "message":
                    need(not waiting, _unanswered(waiting))
                    self._check_message(item, at)
                case "web_search_call":
                    need("id" in item, f"Missing required parameter: 'input[{at}].id'.")
                case "reasoning":
                    need(not waiting, _unanswered(waiting))
                    self._check_reasoning_item(items, at, model)
                case "function_call" | "custom_tool_call":
                    need(item["call_id"] not in seen, f"Duplicate item found with call_id {item['call_id']}.")
                    need(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"]), f"Invalid 'input[{at}].name'")
                    written = item["arguments" if kind == "function_call" else "input"]
                    need(isinstance(written, str), f"Invalid type for 'input[{at}]': a string is expected")
                    if kind == "function_call":
                        json.loads(written)
                    seen.add(item["call_id"])
                    waiting.append((item["call_id"], kind))
                    if not declared:
                        self.lint.append(f"input[{at}]: a call, but no tools declared")
                case _:
                    call = (item["call_id"], kind.removesuffix("_output"))
                    need(call in waiting, f"No tool call found for function call output with call_id {call[0]}.")
                    if call != waiting[0]:
                        self.lint.append(f"input[{at}]: outputs not in call order")
                    waiting.remove(call)
                    need(isinstance(item["output"], str | list), f"Invalid type for 'input[{at}].output'.")
                    if isinstance(item["output"], list):
                        self._check_message({"role": "user", "content": item["output"]}, at)
        need(not waiting, _unanswered(waiting))

    def _check_message(self, item: dict[str, Any], at: int) -> None:
        role: str = item["role"]
        need(role in _PARTS, f"Invalid value: '{role}'. (input[{at}].role)")
        content = item["content"]
        if isinstance(content, str):
            content = [{"type": "input_text" if role != "assistant" else "output_text", "text": content}]
        need(content, f"Invalid 'input[{at}].content': empty array.")
        for part in cast("list[dict[str, Any]]", content):
            offered = " and ".join(f"'{kind}'" for kind in sorted(_PARTS[role]))
            need(part["type"] in _PARTS[role], f"Invalid value: '{part['type']}'. Supported values are: {offered}.")
            if part["type"] in ("input_image", "input_file"):
                _check_media(part)
                continue
            allowed = {"type", "text", "annotations", "logprobs"} if role == "assistant" else {"type", "text"}
            need(part.keys() <= allowed, f"Unknown parameter: 'input[{at}].content'.")
            need(isinstance(part["text"], str), f"Invalid type for 'input[{at}].content.text'.")
            if role == "assistant" and (at, part["text"]) in self._phased and "phase" not in item:
                self.lint.append(f"input[{at}]: its phase was dropped")

    def _check_reasoning_item(self, items: list[dict[str, Any]], at: int, model: str) -> None:
        item = items[at]
        need("summary" in item, f"Missing required parameter: 'input[{at}].summary'.")
        need(not item.get("content"), f"Invalid 'input[{at}].content': array too long. Expected maximum length 0.")
        encrypted = item.get("encrypted_content")
        if not encrypted:
            raise Refused(
                f"Item with id '{item.get('id', 'rs_?')}' not found. Items are not persisted when `store` is set to "
                "false. Try again with `store` set to true, or remove this item from your input.",
                404,
            )
        if encrypted not in self._issued or not self.known:
            raise Refused(
                "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or "
                "parsed.",
                400,
                "invalid_encrypted_content",
            )
        if self._issued[encrypted] != model:
            self.lint.append(f"input[{at}]: the reasoning of another model, which is dropped")
        following = items[at + 1].get("type") if at + 1 < len(items) else None
        if "id" in item and following not in ("message", "reasoning", "function_call", "custom_tool_call"):
            raise Refused(f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.")

    # what it says --------------------------------------------------------------------------------------

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        body: dict[str, Any] = request.json
        self._made += 1
        response: dict[str, Any] = {"id": f"resp_{self._made}", "object": "response", "model": body["model"]}
        custom = {tool["name"] for tool in body.get("tools") or () if tool["type"] == "custom"}
        items = self._items(say, body, custom)
        numbers = iter(range(1_000_000))

        def event(kind: str, **fields: Any) -> bytes:
            data = json.dumps({"type": kind, "sequence_number": next(numbers), **fields})
            return f"event: {kind}\ndata: {data}\n\n".encode()

        final = self._final(say, response, [item for item, _ in items]) | {"service_tier": served(say, body)}
        if not body.get("stream"):
            yield json.dumps(final).encode()
            return
        yield event("response.created", response={**response, "status": "in_progress", "output": [], "error": None})
        for index, (item, pieces) in enumerate(items):
            yield from _item_events(event, index, item, pieces)
        yield event("response.incomplete" if final["status"] == "incomplete" else "response.completed", response=final)

    def _items(self, say: Say, body: dict[str, Any], custom: set[str]) -> list[tuple[dict[str, Any], list[str]]]:
        """The output items of a reply, each with the pieces it is streamed in."""
        model: str = body["model"]
        made: list[tuple[dict[str, Any], list[str]]] = []
        if say.thoughts or (say.calls and efforts(model)):
            encrypted = f"gAAAA{self._made}"
            self._issued[encrypted] = model
            summary = [{"type": "summary_text", "text": "".join(say.thoughts)}] if say.thoughts else []
            reasoning = {"type": "reasoning", "id": f"rs_{self._made}", "summary": summary}
            made.append(({**reasoning, "encrypted_content": encrypted}, say.thoughts))
        if any(tool["type"] == "web_search" for tool in body.get("tools") or ()):
            action = {"type": "search", "query": "what was asked"}
            search = {"type": "web_search_call", "id": f"ws_{self._made}", "status": "completed", "action": action}
            made.append((search, []))
        if say.texts:
            phase = "commentary" if say.calls else "final_answer"
            text = "".join(say.texts)
            if say.fault is None and say.stop != "outputLimit":
                self._phased.add((len(body["input"]) + len(made), text))
            part: dict[str, Any] = {"type": "output_text", "text": text, "logprobs": []}
            part["annotations"] = [_annotation(cite) for cite in say.cites]
            message = {"type": "message", "id": f"msg_{self._made}", "role": "assistant", "status": "completed"}
            made.append(({**message, "phase": phase, "content": [part]}, say.texts))
        for number, call in enumerate(say.calls):
            made.append(self._call(call, number, custom))
        return made

    def _call(self, call: ToolUse, number: int, custom: set[str]) -> tuple[dict[str, Any], list[str]]:
        call_id = call.call_id or f"call_{self._made}_{number}"
        if call.tool in custom:
            written = call.arguments if isinstance(call.arguments, str) else next(iter(call.arguments.values()))
            item = {"type": "custom_tool_call", "id": f"ctc_{self._made}{number}", "call_id": call_id}
            item |= {"name": call.tool, "input": written}
        else:
            written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            item = {"type": "function_call", "id": f"fc_{self._made}{number}", "call_id": call_id}
            item |= {"name": call.tool, "arguments": written, "status": "completed"}
        half = len(written) // 2
        return item, [written[:half], written[half:]]

    def _final(self, say: Say, response: dict[str, Any], output: list[dict[str, Any]]) -> dict[str, Any]:
        reason = {"outputLimit": "max_output_tokens", "refused": "content_filter"}.get(say.stop or "")
        cached, written = say.usage.get("cache_read", 0), say.usage.get("cache_write", 0)
        thoughts = say.usage.get("thoughts", 0)
        return {
            **response,
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "error": None,
            "output": output,
            "usage": {
                "input_tokens": say.usage.get("input", 100) + cached + written,
                "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
                "output_tokens": say.usage.get("output", 20) + thoughts,
                "output_tokens_details": {"reasoning_tokens": thoughts},
            },
        }

    def issue(self, body: bytes, request: Received) -> None:
        for event in data_of(body):
            if isinstance(event, dict):
                item: Any = cast("dict[str, Any]", event).get("item")
                if isinstance(item, dict) and isinstance(encrypted := item.get("encrypted_content"), str):  # pyright: ignore
                    self._issued[encrypted] = request.json["model"]

    def error_body(self, status: int, message: str, code: str) -> bytes:
        kind = "rate_limit_exceeded" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
        return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code or None}}).encode()

    def error_event(self, fault: Fault) -> bytes:
        error = {"type": "error", "sequence_number": 9, "code": fault.code or "server_error", "message": fault.message}
        return f"event: error\ndata: {json.dumps({**error, 'param': None})}\n\n".encode()

    def other(self, request: Received) -> tuple[int, bytes] | None:
        if request.path == "/v1/models":
            return 200, b'{"object": "list", "data": [{"id": "test-model", "object": "model"}]}'
        return None


def _item_events(event: Any, index: int, item: dict[str, Any], pieces: list[str]) -> Iterator[bytes]:
    where = {"item_id": item["id"], "output_index": index}
    empty: dict[str, Any] = {
        "content": [],
        "summary": [],
        "arguments": "",
        "input": "",
        "encrypted_content": "",
        "status": "in_progress",
    }
    begun = {name: empty.get(name, value) for name, value in item.items()}
    yield event("response.output_item.added", output_index=index, item=begun)
    match item["type"]:
        case "reasoning":
            if pieces:
                at = {**where, "summary_index": 0}
                summary = {"type": "summary_text", "text": ""}
                yield event("response.reasoning_summary_part.added", **at, part=summary)
                for piece in pieces:
                    yield event("response.reasoning_summary_text.delta", **at, delta=piece)
                yield event("response.reasoning_summary_text.done", **at, text="".join(pieces))
                yield event("response.reasoning_summary_part.done", **at, part=item["summary"][0])
        case "message":
            at = {**where, "content_index": 0}
            part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
            yield event("response.content_part.added", **at, part=part)
            for piece in pieces:
                yield event("response.output_text.delta", **at, delta=piece, logprobs=[])
            yield event("response.output_text.done", **at, text="".join(pieces), logprobs=[])
            yield event("response.content_part.done", **at, part=item["content"][0])
        case "web_search_call":
            for name in ("in_progress", "searching", "completed"):
                yield event(f"response.web_search_call.{name}", **where)
        case kind:
            name = "function_call_arguments" if kind == "function_call" else "custom_tool_call_input"
            for piece in pieces:
                yield event(f"response.{name}.delta", **where, delta=piece)
            field = "arguments" if kind == "function_call" else "input"
            yield event(f"response.{name}.done", **where, **{field: item[field]})
    yield event("response.output_item.done", output_index=index, item=item)


_NOT_ON_A_PLAN = {
    "max_output_tokens", "prompt_cache_key", "prompt_cache_options", "temperature", "top_p", "truncation", "metadata",
    "service_tier", "background", "user",
}  # fmt: skip


def _check_plan(body: dict[str, Any]) -> None:
    """What is documented to be refused; in which words is not known."""
    code = "subscription_sharing_unsupported_capability"
    for name in sorted(body.keys() & _NOT_ON_A_PLAN):
        raise Refused(f"This request may not carry {name}.", 400, code)
    if body.get("store") is not False or body.get("stream") is not True:
        raise Refused("Requests must be streamed, and nothing can be stored.", 400, code)
    if any(item.get("role") == "system" for item in body["input"]):
        raise Refused("There may be no system message: use instructions, or developer messages.", 400, code)
    if any(tool["type"] not in ("function", "custom", "web_search") for tool in body.get("tools") or ()):
        raise Refused("This tool is not available.", 400, code)


def _check_tool_choice(body: dict[str, Any]) -> None:
    """`ToolChoiceAllowed` and `ToolChoiceOptions` in the SDK."""
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, str):
        need(choice in ("none", "auto", "required"), "Invalid value: 'tool_choice'.")
        return
    need(choice.keys() == {"type", "mode", "tools"}, "Unknown parameter: 'tool_choice.x'.")
    need(choice["type"] == "allowed_tools" and choice["mode"] in ("auto", "required"), "Invalid value: 'tool_choice'.")
    need(choice["tools"], "Invalid 'tool_choice.tools': empty array.")
    declared = [(tool["type"], tool.get("name")) for tool in body.get("tools") or ()]
    for tool in choice["tools"]:
        need((tool["type"], tool["name"]) in declared, f"Tool choice '{tool['name']}' not found in 'tools' parameter.")


def _unanswered(waiting: list[tuple[str, str]]) -> str:
    return f"No tool output found for function call {waiting[0][0] if waiting else ''}."


def _annotation(cite: Cite) -> dict[str, Any]:
    if not cite.url:
        return {"type": "file_citation", "filename": cite.title, "file_id": "file_1", "index": 0}
    return {"type": "url_citation", "url": cite.url, "title": cite.title, "start_index": 0, "end_index": 1}


def _check_media(part: dict[str, Any]) -> None:
    if part["type"] == "input_file":
        need(part.keys() == {"type", "filename", "file_data"}, "Unknown parameter: 'content.file'.")
        need(part["filename"].lower().endswith(".pdf"), "Invalid file: unsupported file type.")
        head, _, data = part["file_data"].partition(",")
        need(head == "data:application/pdf;base64", "Invalid 'file_data': expected a base64-encoded data URL.")
        need(pictures.is_pdf(data), "The file could not be parsed.")
        return
    need(part.keys() <= {"type", "image_url", "detail"}, "Unknown parameter: 'content.image'.")
    found = re.fullmatch(r"data:([\w/+.-]+);base64,(.*)", part["image_url"])
    need(found, "Invalid 'image_url': expected a base64-encoded data URL.")
    match pictures.fault(found[1], found[2], ("image/png", "image/jpeg", "image/webp")) if found else None:
        case "base64":
            raise Refused("Invalid base64 image_url.", 400, "invalid_base64")
        case "type" | "mismatch" | "damaged":
            raise Refused("You uploaded an unsupported image.", 400, "invalid_image_format")
        case None:
            pass


def _picture_size(items: list[dict[str, Any]]) -> int:
    """Characters of all pictures."""
    lists = [item[name] for item in items for name in ("content", "output") if isinstance(item.get(name), list)]
    return sum(len(part.get("image_url") or part.get("file_data") or "") for parts in lists for part in parts)


if __name__ == "__main__":
    main(Responses)
