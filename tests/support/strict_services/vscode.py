"""A VS Code that offers models of GitHub Copilot's, as strict as its API for models and the providers behind it: two
roles, no system message, every call followed by its results. It is a client of the daemon, not a server."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any, cast

from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.model_host import EditorModelHost
from amanu.frontends.lsp.wire import to_json
from amanu.models.offered import OfferedModels
from amanu_protocol.base import Wire
from amanu_protocol.requests import ModelPartParams, OfferedModel
from support.strict_services.http import Fault, Raw, Received, Refusal, Say, Service
from support.strict_services.refusals import Refused, known, need, texts

MODELS = [
    OfferedModel(vendor="copilot", vendor_title="GitHub Copilot", id=id, name=name, max_input_tokens=128_000)
    for id, name in (("gpt-5", "GPT-5"), ("claude-sonnet-4.5", "Claude Sonnet 4.5"))
]
_PARTS = {
    "text": ("user", {"kind", "text"}),
    "image": ("user", {"kind", "mediaType", "data"}),
    "call": ("assistant", {"kind", "callId", "tool", "arguments"}),
    "result": ("user", {"kind", "callId", "text"}),
}
"""Kind → who may say it (both may say text), and its fields."""


class VSCode(Service):
    vendor = "GitHub Copilot"
    window = 4_000_000
    """Characters of body above which the prompt is too long."""
    open: dict[str, "VSCode"] = {}

    async def start(self, port: int = 0) -> str:
        self.host = EditorModelHost(self.ask)
        self.offered = OfferedModels()
        self.offered.put(self.host, MODELS)
        self._made = 0
        url = f"vscode:{id(self)}"
        self.open[url] = self
        return url

    async def stop(self) -> None:
        self.open.pop(f"vscode:{id(self)}")
        assert self.open_streams == 0, "a request was not cancelled"

    async def ask(self, method: str, params: Any) -> Any:
        """The client's answer to a request of the daemon's."""
        body = json.loads(to_json(cast("Wire", params)))
        run_id = str(body.pop("runId"))  # of this attempt alone; the rest must stay the same
        request = Received("POST", method, "", {}, json.dumps(body).encode(), time.monotonic())
        self.requests.append(request)
        self.open_streams += 1
        try:
            return await self._run(request, run_id)
        except asyncio.CancelledError:
            request.dropped_at = time.monotonic()
            request.dropped.set()
            raise
        finally:
            self.open_streams -= 1

    # what it refuses ---------------------------------------------------------------------------------

    def check(self, request: Received) -> Refusal | None:
        try:
            self._check(request.path, request.json, len(request.body))
        except Refused as refused:
            return refused.refusal
        return None

    def _check(self, method: str, body: dict[str, Any], size: int) -> None:
        need(method == "amanu/model/run", f"Unhandled method {method}")
        known(body, {"vendor", "id", "messages", "tools"}, "params")
        need((body["vendor"], body["id"]) in [(model.vendor, model.id) for model in MODELS], "The model is unknown.")
        need(size <= self.window, f"prompt token count of {size} exceeds the limit of {self.window}")
        for tool in body["tools"]:
            known(tool, {"name", "description", "parameters"}, "tools")
            need(tool["parameters"].get("type") == "object", "Invalid schema: an object is expected")
        self._check_messages(body["messages"])

    def _check_messages(self, messages: list[dict[str, Any]]) -> None:
        need(messages and messages[0]["role"] == "user", "The first message is the user's.")
        waiting: list[str] = []
        seen: set[str] = set()
        for at, message in enumerate(messages):
            known(message, {"role", "parts"}, f"messages[{at}]")
            role, parts = message["role"], cast("list[dict[str, Any]]", message["parts"])
            need(role in ("user", "assistant"), f"Unexpected role {role}")
            need(parts, f"messages[{at}] is empty")
            need(not waiting or role == "user", "Calls must be followed by their results.")
            for part in parts:
                speaker, fields = _PARTS[part["kind"]]
                known(part, fields, f"messages[{at}].parts")
                need(role == speaker or part["kind"] == "text", f"{part['kind']} in a message of the {role}'s")
                if part["kind"] == "result":
                    texts(part, "text", "result")
                    need(part["callId"] in waiting, f"A result without its call: {part['callId']}")
                    if part["callId"] != waiting[0]:
                        self.lint.append(f"messages[{at}]: results not in call order")
                    waiting.remove(part["callId"])
                elif part["kind"] == "call":
                    need(isinstance(part["arguments"], dict), "The input of a call is an object.")
                    need(part["callId"] not in seen, f"Duplicate call id {part['callId']}")
                    seen.add(part["callId"])
                    waiting.append(part["callId"])
                elif part["kind"] == "text":
                    need(role == "assistant" or not waiting, "Results come before all else.")
                    need(texts(part, "text", "text").strip(), "text content blocks must contain non-whitespace text")
            need(role == "assistant" or not waiting, f"Calls without results: {waiting}")
        need(not waiting, "Calls must be followed by their results.")

    # what it says --------------------------------------------------------------------------------------

    async def _run(self, request: Received, run_id: str) -> Any:
        refusal = self.check(request)
        if refusal is not None:
            request.refused = refusal.message
            self.refused.append(refusal.message)
            return failed(f"Request Failed: {refusal.status} {refusal.message}")
        step = self._next(request)
        assert not isinstance(step, Raw), "VS Code has no wire of its own to write"
        say = Say(text=["Half ", "of ", "a ", "reply."], fault=step) if isinstance(step, Fault) else step
        fault = say.fault
        if fault is not None and fault.kind == "status":
            return failed(f"Request Failed: {fault.status} {fault.message}")
        await asyncio.sleep(say.wait)
        parts = list(self.events(say, request))
        for part in parts if fault is None or fault.kind == "unfinished" else parts[: fault.after]:
            if say.until is not None and part is parts[-1]:
                await say.until.wait()
            self.host.add_part(
                ModelPartParams.model_validate_json(b'{"runId":"%b","part":%b}' % (run_id.encode(), part))
            )
            await asyncio.sleep(say.delay)
        match fault:
            case None:
                return {"error": None, "message": ""}
            case Fault(kind="silence"):
                return await asyncio.Event().wait()
            case Fault(kind="errorEvent"):
                return failed(fault.message)
            case _:
                raise ClientError("The client has disconnected.")

    def events(self, say: Say, request: Received) -> Iterator[bytes]:
        """The parts of the reply."""
        for text in say.texts:
            yield json.dumps({"kind": "text", "text": text}).encode()
        for call in say.calls:
            self._made += 1
            call_id = call.call_id or f"call_{self._made:024}"
            part = {"kind": "call", "callId": call_id, "tool": call.tool, "arguments": call.arguments}
            yield json.dumps(part).encode()

    def error_body(self, status: int, message: str, code: str) -> bytes:
        raise NotImplementedError("there is no HTTP here")

    def error_event(self, fault: Fault) -> bytes:
        raise NotImplementedError("there is no HTTP here")


def failed(message: str, error: str = "other") -> dict[str, str]:
    """The answer when a request could not be made, or its reply broke off."""
    return {"error": error, "message": message}
