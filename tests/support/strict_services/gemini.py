"""Gemini's `streamGenerateContent`, as strict as the service, with its published rules in code.

It issues signatures, remembers for which call of which model, and refuses Gemini 3 histories that lack them.
"""

import base64
import binascii
import contextlib
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, cast

from support.strict_services import pictures
from support.strict_services.http import Cite, Fault, Received, Refusal, Say, Service, data_of, main
from support.strict_services.refusals import Refused, known, need, texts

_STOPS = {"end": "STOP", "calls": "STOP", "outputLimit": "MAX_TOKENS", "refused": "SAFETY", "paused": "CONTINUATION"}
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_SKIP = "skip_thought_signature_validator"
_TOP = {
    "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent",
    "store", "labels", "serviceTier",
}  # fmt: skip
_GENERATION = {
    "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "responseMimeType",
    "responseSchema", "responseJsonSchema", "thinkingConfig", "seed", "presencePenalty", "frequencyPenalty",
    "continuationToken",
}  # fmt: skip
_PART = {
    "text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData",
    "executableCode", "codeExecutionResult", "videoMetadata", "partMetadata", "mediaResolution",
}  # fmt: skip
_DATA = _PART - {"thought", "thoughtSignature", "videoMetadata", "partMetadata", "mediaResolution"}
_BLOB = {"mimeType", "data", "displayName"}
_DECLARATION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"}


class Gemini(Service):
    vendor = "gemini"
    window = 4_000_000
    """Characters of body, pictures aside, above which the input is too long."""
    most = 20_000_000
    """Bytes of body above which it is not read."""
    call_ids = True
    """Whether calls carry an id (older models' do not)."""

    def __init__(self, script: Any = ()) -> None:
        super().__init__(script)
        self._issued: dict[bytes, tuple[str, str]] = {}
        """Signature → model, what it was issued with."""
        self._signed: set[str] = set()
        """What signatures were issued with."""
        self._paused: dict[str, dict[str, Any]] = {}
        """Continuation token → the request that it was issued for."""
        self._made = 0

    # what it refuses ---------------------------------------------------------------------------------

    def check(self, request: Received) -> Refusal | None:
        try:
            self._check(request)
        except Refused as refused:
            return refused.refusal
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Refusal(400, f"Malformed request: {error!r}", "INVALID_ARGUMENT")
        return None

    def _check(self, request: Received) -> None:
        if not (request.headers.get("x-goog-api-key") or "key=" in request.query):
            raise Refused("Method doesn't allow unregistered callers. Please use API Key.", 403, "PERMISSION_DENIED")
        if request.headers.get("x-goog-api-key") == "bad":
            raise Refused("API key not valid. Please pass a valid API key.", 400, "INVALID_ARGUMENT")
        found = re.fullmatch(r"/v1beta/models/([\w.-]+):(streamGenerateContent|generateContent)", request.path)
        streams = "alt=sse" in request.query
        if request.method != "POST" or found is None or streams != (found[2] == "streamGenerateContent"):
            raise Refused(f"not found: {request.path}?{request.query}", 404, "NOT_FOUND")
        if len(request.body) > self.most:
            raise Refused(f"Request payload size exceeds the limit: {self.most} bytes.")
        length = len(request.body) - _pictures(request.json)
        if length > self.window:
            raise Refused(
                f"The input token count ({length}) exceeds the maximum number of tokens allowed ({self.window})."
            )
        body = known(request.json, _TOP, "request")
        need(_is_unicode(body), "Invalid JSON payload received. Malformed surrogate pair.")
        need(not (body.get("cachedContent") and body.keys() & {"systemInstruction", "tools"}), "cachedContent: alone")
        declared = _check_tools(body.get("tools") or [])
        _check_tool_config(body.get("toolConfig") or {}, declared)
        _check_tier(body, found[1])
        _check_generation(body.get("generationConfig") or {}, found[1], bool(declared))
        if "systemInstruction" in body:
            system = known(body["systemInstruction"], {"role", "parts"}, "system_instruction")
            for part in system["parts"]:
                need(texts(part, "text", "system_instruction.parts"), "system_instruction: empty text")
        need(body.get("contents"), "* GenerateContentRequest.contents: contents is not specified")
        self._check_contents(body["contents"], found[1], declared)
        token = body.get("generationConfig", {}).get("continuationToken")
        if token is not None:
            need(self._paused.get(token) == _without_token(body), "Invalid continuation token.")

    def _check_contents(self, contents: list[Any], model: str, declared: set[str]) -> None:
        asked: list[dict[str, Any]] = []
        before = ""
        current = _current_turn(contents)
        for at, content in enumerate(contents):
            turn = known(content, {"role", "parts"}, f"contents[{at}]")
            need(turn.get("role") in ("user", "model"), "Please use a valid role: user, model.")
            need(turn.get("parts"), f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
            parts = [self._check_part(part, turn["role"], f"contents[{at}].parts", model) for part in turn["parts"]]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if calls:
                need(turn["role"] == "model", "function call in a user turn")
                need(
                    before == "user",
                    "Please ensure that function call turn comes immediately after a user turn or after a function "
                    "response turn.",
                )
                if not declared:
                    self.lint.append(f"contents[{at}]: calls, but no tools declared")
            if turn["role"] == "model" == before:
                self.lint.append(f"contents[{at}]: two model turns in a row")
            need(
                len(answers) == len(asked) if turn["role"] == "user" else not asked,
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
            for call, answer in zip(asked, answers, strict=False):
                if (call["name"], call.get("id")) != (answer["name"], answer.get("id")):
                    self.lint.append(f"contents[{at}]: {answer['name']} {answer.get('id')} answers {call}")
            kinds = ["functionResponse" in part for part in parts]
            if kinds != sorted(kinds, reverse=True):
                self.lint.append(f"contents[{at}]: text before function responses")
            if turn["role"] == "model":
                self._check_signatures(parts, model, at, required=at > current)
            asked, before = calls, turn["role"]
        need(not asked, "Please ensure that function call turn is followed by a function response turn.")

    def _check_part(self, part: Any, role: str, where: str, model: str) -> dict[str, Any]:
        part = known(part, _PART, where)
        need(len(part.keys() & _DATA) == 1, f"{where}: required oneof field 'data' must have one initialized field")
        if "text" in part:
            texts(part, "text", where)
            if not part["text"] and "thoughtSignature" not in part:
                self.lint.append(f"{where}: an empty text part without a signature")
        if part.get("thought") and role == "user":
            self.lint.append(f"{where}: a thought in a user turn")
        if "inlineData" in part:
            if role == "model":
                self.lint.append(f"{where}: a picture in a model turn")
            _check_picture(known(part["inlineData"], _BLOB, f"{where}.inline_data"))
        if "functionCall" in part:
            call = part["functionCall"] = known(part["functionCall"], {"id", "name", "args"}, f"{where}.function_call")
            need(call.get("name"), f"{where}.function_call.name: Name cannot be empty.")
            need(isinstance(call.get("args", {}), dict), f"{where}.function_call.args: an object is expected")
        if "functionResponse" in part:
            fields = {"id", "name", "response", "parts", "scheduling", "willContinue"}
            answer = part["functionResponse"] = known(part["functionResponse"], fields, f"{where}.function_response")
            need(answer.get("name"), f"{where}.function_response.name: Name cannot be empty.")
            need(isinstance(answer.get("response"), dict), f"{where}.function_response.response: an object is expected")
            need(
                "parts" not in answer or _is_3(model), "Multimodal function responses are not supported by this model."
            )
            for inner in answer.get("parts", ()):
                blob = known(known(inner, {"inlineData"}, f"{where}.parts")["inlineData"], _BLOB, f"{where}.parts")
                _check_picture(blob)
        return part

    def _check_signatures(self, parts: list[dict[str, Any]], model: str, at: int, *, required: bool) -> None:
        first = next((part for part in parts if "functionCall" in part), None)
        for part in parts:
            signature = part.get("thoughtSignature")
            content = _content(part)
            if signature is None:
                if _is_3(model) and required and part is first:
                    raise Refused(
                        f"Function call is missing a thought_signature in functionCall parts. Function call "
                        f"`default_api:{part['functionCall']['name']}` , position {at}."
                    )
                if content in self._signed:
                    self.lint.append(f"contents[{at}]: a part came back without its signature")
            elif signature == _SKIP:
                if not required:
                    self.lint.append(f"contents[{at}]: {_SKIP} outside the present loop")
                if content in self._signed and self._model_of(content) == model:
                    self.lint.append(f"contents[{at}]: {_SKIP} although a real signature was issued")
            else:
                issued = self._issued.get(_decoded(signature))
                if issued is None:
                    raise Refused("Corrupted thought signature.")
                if issued[0] != model:
                    self.lint.append(f"contents[{at}]: a signature of another model")
                if issued[1] != content:
                    self.lint.append(f"contents[{at}]: a signature moved to another part")

    def _model_of(self, content: str) -> str:
        return next(model for model, signed in self._issued.values() if signed == content)

    # what it says --------------------------------------------------------------------------------------

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        events = self._events(say, request)
        yield from events if "alt=sse" in request.query else [_whole(events)]

    def _events(self, say: Say, request: Received) -> Iterator[bytes]:
        model = request.path.rpartition("/")[2].partition(":")[0]
        self._made += 1
        parts: list[dict[str, Any]] = [{"text": text, "thought": True} for text in say.thoughts]
        parts += [{"text": text} for text in say.texts]
        for number, call in enumerate(say.calls):
            if isinstance(call.arguments, str):
                raise ValueError("Gemini's arguments are always an object")
            made: dict[str, Any] = {"name": call.tool, "args": call.arguments}
            if call.call_id or self.call_ids:
                made["id"] = call.call_id or f"fc_{self._made}_{number}"
            parts.append({"functionCall": made})
        signed = next((part for part in parts if "functionCall" in part), None)
        if say.thoughts and _is_3(model):
            if signed is None:  # the signature of a text reply comes on an empty part of its own
                signed = {"text": ""}
                parts.append(signed)
            signed["thoughtSignature"] = self._sign(signed, model)
        so_far = {"promptTokenCount": say.usage.get("input", 100) + say.usage.get("cache_read", 0)}
        for part in parts:
            yield self._event(model, {"content": {"parts": [part], "role": "model"}, "index": 0}, usageMetadata=so_far)
        stop = say.stop or ("calls" if say.calls else "end")
        counts = {
            **so_far,
            "candidatesTokenCount": say.usage.get("output", 20),
            "totalTokenCount": 120,
        }
        if "cache_read" in say.usage:
            counts["cachedContentTokenCount"] = say.usage["cache_read"]
        if "thoughts" in say.usage:
            counts["thoughtsTokenCount"] = say.usage["thoughts"]
        last: dict[str, Any] = {"content": {"role": "model"}, "finishReason": _STOPS.get(stop, stop), "index": 0}
        if last["finishReason"] == "CONTINUATION" and model.startswith("gemini-4"):
            last["continuationToken"] = base64.b64encode(f"long decode {self._made}".encode()).decode()
            self._paused[last["continuationToken"]] = _without_token(request.json)
        if say.cites:
            chunks = [_chunk(cite) for cite in say.cites]
            last["groundingMetadata"] = {"webSearchQueries": ["what was asked"], "groundingChunks": chunks}
        yield self._event(model, last, usageMetadata=counts)

    def headers_of(self, say: Say, request: Received) -> dict[str, str]:
        return {"x-gemini-service-tier": say.tier or request.json.get("serviceTier", "standard")}

    def _sign(self, part: dict[str, Any], model: str) -> str:
        """A signature with both characters in which standard and URL-safe base64 differ."""
        made = b"\xfb\xff\xbf" + hashlib.sha256(f"{self._made}{model}".encode()).digest()
        self._issued[made] = (model, _content(part))
        self._signed.add(_content(part))
        return base64.b64encode(made).decode()

    def issue(self, body: bytes, request: Received) -> None:
        model = request.path.rpartition("/")[2].partition(":")[0]
        for chunk in data_of(body):
            with contextlib.suppress(KeyError, TypeError, AttributeError, IndexError, Refused):
                if "continuationToken" in chunk["candidates"][0]:
                    self._paused[chunk["candidates"][0]["continuationToken"]] = _without_token(request.json)
                for part in chunk["candidates"][0]["content"]["parts"]:
                    if "thoughtSignature" in part:
                        self._issued[_decoded(part["thoughtSignature"])] = model, _content(part)
                        self._signed.add(_content(part))

    def _event(self, model: str, candidate: dict[str, Any], **more: Any) -> bytes:
        chunk = {"candidates": [candidate], "modelVersion": model, "responseId": f"r{self._made}", **more}
        return b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n"

    def error_body(self, status: int, message: str, code: str) -> bytes:
        words = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
        words |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
        error = {"code": status, "message": message, "status": code or words.get(status, "UNKNOWN")}
        return json.dumps({"error": error}).encode()

    def error_event(self, fault: Fault) -> bytes:
        return b"data: " + self.error_body(fault.status, fault.message, fault.code) + b"\r\n\r\n"

    def malformed_event(self) -> bytes:
        return b'data: {"candidates": [{"content": {"parts": [}\r\n\r\n'


def _without_token(body: dict[str, Any]) -> dict[str, Any]:
    generation = {**body.get("generationConfig", {})}
    generation.pop("continuationToken", None)
    return {**body, "generationConfig": generation}


def _chunk(cite: Cite) -> dict[str, Any]:
    if cite.url and not cite.quote:
        return {"web": {"uri": cite.url, "title": cite.title}}
    return {"retrievedContext": {"uri": cite.url, "title": cite.title, "text": cite.quote}}


def _pictures(body: dict[str, Any]) -> int:
    """Characters of all pictures."""
    contents = cast("list[dict[str, Any]]", body.get("contents") or [])
    parts = [part for content in contents for part in cast("list[dict[str, Any]]", content.get("parts") or [])]
    parts += [inner for part in parts for inner in part.get("functionResponse", {}).get("parts", ())]
    return sum(len(part["inlineData"]["data"]) for part in parts if "inlineData" in part)


def _check_picture(blob: dict[str, Any]) -> None:
    if blob.get("mimeType") == "application/pdf":
        need(pictures.is_pdf(texts(blob, "data", "inline_data")), "The document has no pages.")
        return
    match pictures.fault(texts(blob, "mimeType", "inline_data"), texts(blob, "data", "inline_data"), _PICTURES):
        case "type":
            raise Refused(f"Unsupported MIME type: {blob['mimeType']}")
        case "base64":
            raise Refused("Invalid value at 'contents.parts.inline_data.data' (TYPE_BYTES), Base64 decoding failed")
        case "mismatch" | "damaged":
            raise Refused("Unable to process input image. Please retry or report in a bug.")
        case None:
            pass


def _is_unicode(body: dict[str, Any]) -> bool:
    try:
        return bool(json.dumps(body, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return False


def _check_tool_config(config: Any, declared: set[str]) -> None:
    """`FunctionCallingConfig` in the reference of the service."""
    calling = known(config, {"functionCallingConfig", "retrievalConfig"}, "tool_config").get(
        "functionCallingConfig", {}
    )
    known(calling, {"mode", "allowedFunctionNames"}, "tool_config.function_calling_config")
    mode = calling.get("mode", "AUTO")
    allowed: list[str] = calling.get("allowedFunctionNames") or []
    need(mode in ("AUTO", "ANY", "NONE", "VALIDATED"), "Invalid value at 'tool_config.function_calling_config.mode'")
    need(not calling or declared, "Function calling config is set without function_declarations.")
    need(not allowed or mode in ("ANY", "VALIDATED"), "allowed_function_names should only be set in mode ANY.")
    need(declared.issuperset(allowed), "allowed_function_names: not a subset of function_declarations")


def _check_tools(tools: list[Any]) -> set[str]:
    names: set[str] = set()
    for tool in tools:
        tool = known(tool, {"functionDeclarations", "googleSearch", "codeExecution", "urlContext"}, "tools")
        if "googleSearch" in tool:
            known(tool["googleSearch"], {"searchTypes", "timeRangeFilter"}, "tools.google_search")
        for each in cast(list[Any], tool.get("functionDeclarations") or []):
            declaration = known(each, _DECLARATION, "tools.function_declarations")
            name = texts(declaration, "name", "tools.function_declarations")
            need(
                re.fullmatch(r"[a-zA-Z_][\w.:-]{0,127}", name),
                f"Invalid function name: {name}. Must start with a letter or an underscore.",
            )
            need(name not in names, f"Duplicate function declaration found: {name}")
            need(texts(declaration, "description", name), f"{name}: description is empty")
            names.add(name)
            both = {"parameters", "parametersJsonSchema"} <= declaration.keys()
            need(not both, f"{name}: only one of parameters and parameters_json_schema")
            if "parameters" in declaration:
                _check_openapi(declaration["parameters"], name)
    searched = any("googleSearch" in tool for tool in cast("list[dict[str, Any]]", tools))
    need(not (searched and names), "Built-in tools and Function Calling cannot be combined in the same request.")
    return names


def _check_openapi(schema: dict[str, Any], where: str) -> None:
    """`parameters` takes only the OpenAPI subset."""
    need(isinstance(schema.get("type"), str), f"{where}: Proto field is not repeating, cannot start list: type")
    need(schema["type"].lower() != "array" or "items" in schema, f"{where}.items: missing field.")
    need("enum" not in schema or schema["type"].lower() == "string", f"{where}.enum: only allowed for STRING type")
    properties: dict[str, Any] = schema.get("properties") or {}
    for name in cast(list[str], schema.get("required") or []):
        need(name in properties, f"{where}.required: property is not defined: {name}")
    for name, each in properties.items():
        _check_openapi(each, f"{where}.properties[{name}]")


def _check_tier(body: dict[str, Any], model: str) -> None:
    tier = body.get("serviceTier", "standard")
    need(tier in ("standard", "flex", "priority"), f"Invalid value at 'service_tier': {tier}")
    taken = tier == "standard" or re.match(r"gemini-(2\.5|3|4)", model) is not None
    need(taken, f"{tier.capitalize()} API is not supported for model {model}.")


def _check_generation(config: dict[str, Any], model: str, calling: bool) -> None:
    config = known(config, _GENERATION, "generation_config")
    need(0 <= config.get("temperature", 1) <= 2, "temperature must be in the range [0.0, 2.0]")
    most = 1_048_576 if model.startswith("gemini-4") else 65_536
    need(1 <= config.get("maxOutputTokens", 1) <= most, f"max_output_tokens must be positive, at most {most}")
    need("continuationToken" not in config or model.startswith("gemini-4"), "continuation_token is not supported.")
    if config.get("responseMimeType") == "application/json" and calling:
        need(_is_3(model), "Function calling with a response mime type: 'application/json' is unsupported")
    fields = {"includeThoughts", "thinkingBudget", "thinkingLevel"}
    thinking = known(config.get("thinkingConfig") or {}, fields, "generation_config.thinking_config")
    need(
        not {"thinkingBudget", "thinkingLevel"} <= thinking.keys(),
        "You can only set one of thinking budget and thinking level.",
    )
    if "thinkingLevel" in thinking:
        need(_is_3(model), "Thinking level is not supported for this model.")
        levels = ("MINIMAL",) if re.match(r"gemini-3(\.[1-6])?-flash", model) else ()
        levels += ("XHIGH",) if model.startswith(("gemini-4-hydrogen", "gemini-4-neon")) else ()
        need(
            str(thinking["thinkingLevel"]).upper() in (*levels, "LOW", "MEDIUM", "HIGH"),
            f"Thinking level {thinking['thinkingLevel']} is not supported for this model.",
        )
    if "thinkingBudget" in thinking:
        least = 128 if "pro" in model else 0
        need(
            thinking["thinkingBudget"] == -1 or least <= thinking["thinkingBudget"] <= 24_576,
            "Budget is invalid. This model only works in thinking mode."
            if not thinking["thinkingBudget"]
            else "The thinking budget is invalid. Please choose a value between 0 and 24576.",
        )
    thinks = bool(thinking.get("thinkingBudget")) or "thinkingLevel" in thinking
    need(
        thinks or not thinking.get("includeThoughts"),
        "Thinking_config.include_thoughts is only enabled when thinking is enabled.",
    )


def _is_3(model: str) -> bool:
    """Thinks by level and insists on signatures; the service's own rule, on purpose not the product's."""
    return not re.match(r"gemini-[12]\b", model)


def _current_turn(contents: list[Any]) -> int:
    """Index of the last user turn that is no function response."""
    return max(
        (
            at
            for at, content in enumerate(cast(list[dict[str, Any]], contents))
            if content.get("role") == "user"
            and not any("functionResponse" in part or "function_response" in part for part in content["parts"])
        ),
        default=0,
    )


def _content(part: dict[str, Any]) -> str:
    """What a signature is bound to."""
    return json.dumps({name: value for name, value in part.items() if name != "thoughtSignature"}, sort_keys=True)


def _decoded(signature: str) -> bytes:
    """Standard and URL-safe base64 both count."""
    plain = signature.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise Refused("Invalid thought_signature: Base64 decoding failed.") from None


def _whole(events: Iterator[bytes]) -> bytes:
    """The reply that these events make, as it comes where nothing is streamed."""
    *chunks, last = list(data_of(b"".join(events)))
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    candidate = {**last["candidates"][0], "content": {"role": "model", "parts": parts}}
    return json.dumps({**last, "candidates": [candidate]}).encode()


if __name__ == "__main__":
    main(Gemini)
