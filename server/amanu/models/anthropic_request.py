"""Conversation → body of an Anthropic `messages` request, as bytes.

The wire form of each message is made once and kept as bytes: a step at the end of a long history costs what the
new messages cost, plus copying. Cache marks are put in while copying, so they do not spoil what is kept.
What the service refuses is listed in the module that plays it in the tests
(`tests/support/strict_services/anthropic.py`).
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, cast
from weakref import WeakKeyDictionary

from amanu.core.conversation import Assistant, Call, Conversation, Message, Native, Results, Text, User
from amanu.core.model import Request
from amanu.core.model_families import ModelFamily, family
from amanu.models.image_layout import WirePicture, laid_out, result_layout
from amanu.models.request_fields import extended
from amanu.models.wire_messages import dumps, loop_start, split_status
from amanu.system.file_kind import PDF
from amanu_protocol.items import ModelInfo

WIRE = "anthropic"
"""Marks what this translator wrote (`Native.wire`)."""

_MINUTES = {"type": "ephemeral"}
"""The service's default: a cache lasts five minutes after it was last used."""
_HOUR = {"type": "ephemeral", "ttl": "1h"}
THINKING = ("thinking", "redacted_thinking")
_GO_ON = b'{"role":"user","content":[{"type":"text","text":"Go on."}]}'
"""Newer models refuse a request that ends with the assistant."""


Dispensable = Literal[
    "updates",  # what is said between calls, without what is thought
    "eager",  # the arguments of calls as they are written: else they come whole, and nothing can be drawn meanwhile
    "hour",  # caches kept for an hour where the user may pause
    "system role",  # messages of their own that say how the session is run
]
"""What a request can do without."""


_ROLE = {role: b'{"role":"%b",' % role.encode() for role in ("assistant", "system", "user")}


class RequestBodies:
    """Makes request bodies; keeps the wire form of the messages it has seen, as long as their conversation lives."""

    def __init__(self, version: str | None = None) -> None:
        """`version`: of the API, for services that want it in the body, and the model elsewhere."""
        self._version = version
        self._kept: WeakKeyDictionary[Conversation, _History] = WeakKeyDictionary()
        self.left_out: set[Dispensable] = set()
        """What a gateway refused, and requests therefore go without."""

    def tells_progress(self, request: Request) -> bool:
        """Whether the thinking of the reply will be what the model says between calls, and nothing else."""
        facts = family(request.model.model_id)
        return request.progress and facts.tells_progress and "updates" not in self.left_out

    def body(self, request: Request) -> tuple[bytes, str]:
        """The body, and the digest of all that the model will have seen when it answers: a thinking block of the
        reply is valid only after exactly that."""
        facts = family(request.model.model_id)
        model = request.model.model_id.partition(":")[2]
        tools, system = _tools(request), _system(request)
        start = _digest(b"", dumps([model, request.model.images, tools, system]))
        history = self._kept.get(request.conversation)
        if history is None or history.start != start:
            history = self._kept[request.conversation] = _History(start, request.model, facts.prefix_checked)
        history.follow(request.conversation)
        head = _head(request, facts, history)
        if "display" in head.get("thinking", {}) and self.tells_progress(request):
            head["thinking"]["display"] = "updates"
        head |= {"model": model} if self._version is None else {"anthropic_version": self._version}
        # Neither marks nor wishes are part of the digest above: they change nothing the model sees. All marks of a
        # request are alike, for none may outlast one before it.
        mark = _HOUR if request.user_may_pause and "hour" not in self.left_out else _MINUTES
        if tools:
            tools = _marked(tools, mark)
            eager = {} if request.web_search or "eager" in self.left_out else {"eager_input_streaming": True}
            head["tools"] = [tool | eager for tool in tools]
            if not request.web_search and not request.callable_tools:
                head["tool_choice"] = {"type": "none"}
        if system:
            head["system"] = _marked(system, mark)
        messages, prefix = history.wire(
            b',"cache_control":' + dumps(mark), system_role="system role" not in self.left_out
        )
        pieces = (dumps(extended(head, request))[:-1], b',"messages":[', *messages, b"]}")
        return b"".join(pieces), prefix.hex()  # one copy of the history and its pictures, not one per `+`

    def forget_thinking(self, conversation: Conversation) -> bool:
        """From now on leave out all thinking that is in the conversation at this time. False if none was sent."""
        history = self._kept.get(conversation)
        return history is not None and history.forget_thinking()


def _head(request: Request, facts: ModelFamily, history: "_History") -> dict[str, Any]:
    most = min(request.model.max_output, request.max_output or facts.max_output)
    head: dict[str, Any] = {"max_tokens": most, "stream": not request.whole}
    match facts.effort_value(request.effort):
        case str() as word:
            head["thinking"] = {"type": "adaptive", "display": "summarized"}
            head["output_config"] = {"effort": word}
        case int() as budget if most >= 2_048 and not history.loop_without_thinking():
            head["thinking"] = {"type": "enabled", "budget_tokens": min(budget, most - 1_024)}
        case _:
            pass
    return head


_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
"""The form that every model takes, and that needs no code execution."""


def _tools(request: Request) -> list[dict[str, Any]]:
    if request.web_search:
        return [_SEARCH]
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in request.declared_tools
    ]


def _system(request: Request) -> list[dict[str, Any]]:
    if not request.system.strip():
        return []
    return [{"type": "text", "text": request.system}]


def _marked(blocks: list[dict[str, Any]], mark: dict[str, str]) -> list[dict[str, Any]]:
    """With a cache mark on the last."""
    return [*blocks[:-1], blocks[-1] | {"cache_control": mark}]


@dataclass(slots=True)
class _Wire:
    """One message as sent. `data` is empty when nothing of it can be sent."""

    message: Message
    role: str
    data: bytes
    status: bytes
    """Content of the message that goes right after it, from the daemon; empty if there is none."""
    prefix: bytes
    """Digest of everything up to and including it."""
    ids: dict[str, str] = field(default_factory=dict[str, str])
    """Our call ids → the ids in `data`."""
    holds_thinking: bool = False
    opens_with_thinking: bool = False
    foreign: bool = False
    """An assistant message another model wrote."""


class _History:
    """The messages of one conversation for one model, system prompt and tool list."""

    def __init__(self, start: bytes, info: ModelInfo, prefix_checked: bool) -> None:
        self.start = start
        self._info = info
        self._model = info.model_id.partition(":")[2]
        self._prefix_checked = prefix_checked
        self._kept: list[_Wire] = []
        self._messages: list[Message] = []
        self._rewrites = 0
        """The conversation's `rewrites` when its messages were last processed."""
        self._pieces: list[bytes] = []
        """Four of each of the first messages: comma, message, comma, status. What is sent of them stays."""
        self._system_role = True
        """The value given when `_pieces` were made."""
        self._unwelcome = 0
        """Of so many messages, thinking is left out: the service refused some of it."""

    def follow(self, conversation: Conversation) -> None:
        """Make what is new, drop what was replaced."""
        translated = self._kept
        same = conversation.unchanged(self._messages, self._rewrites)
        self._rewrites = conversation.rewrites
        if same < len(translated):
            del translated[same:], self._messages[same:]
            last = next((at for at in range(same - 1, -1, -1) if translated[at].data), 0)
            del self._pieces[4 * last :]  # a status goes by what comes after it
            self._unwelcome = min(self._unwelcome, same)
        for index in range(len(translated), len(conversation)):
            translated.append(self._translate(conversation[index], conversation))
            self._messages.append(conversation[index])

    def forget_thinking(self) -> bool:
        """Make everything anew, without thinking. False if there was none."""
        if not any(wire.holds_thinking for wire in self._kept):
            return False
        self._unwelcome = len(self._kept)
        self._kept.clear()
        self._messages.clear()
        self._pieces.clear()
        return True

    def loop_without_thinking(self) -> bool:
        """The present tool loop does not open with thinking, or holds a reply of another model: models with a budget
        refuse to think then. Later replies of their own may lack it."""
        sent = [wire for wire in self._kept if wire.data]
        # The service joins user messages in a row.
        start = loop_start([wire.message for wire in sent])
        replies = [wire for wire in sent[start:] if isinstance(wire.message, Assistant)]
        return any(wire.foreign for wire in replies) or (bool(replies) and not replies[0].opens_with_thinking)

    def wire(self, mark: bytes, *, system_role: bool = True) -> tuple[list[bytes | memoryview], bytes]:
        """All messages in pieces, cache marks on the last two of the user, and the digest of what they end with."""
        if self._system_role != system_role:
            self._pieces.clear()
            self._system_role = system_role
        settled = self._unmarked()
        del self._pieces[4 * settled :]  # there are fewer of them after a rewind
        for index in range(len(self._pieces) // 4, settled):
            self._pieces += self._placed(index)
        tail = [piece for index in range(settled, len(self._kept)) for piece in self._placed(index)]
        prefix = self._kept[-1].prefix if self._kept else self.start
        messages = [index for index, piece in enumerate(tail) if len(piece) > 1]
        if not messages or tail[messages[-1]].startswith(_ROLE["assistant"]):
            tail += [b"," if any(tail) or any(self._pieces) else b"", _GO_ON]
            messages.append(len(tail) - 1)
            prefix = _digest(prefix, _GO_ON)
        pieces: list[bytes | memoryview] = [*self._pieces, *tail]
        of_user = (index for index in reversed(messages) if tail[index].startswith(_ROLE["user"]))
        for index in islice(of_user, 2):  # ends with a text, image or tool_result block: …}]}
            at = len(self._pieces) + index
            pieces[at : at + 1] = [memoryview(tail[index])[:-3], mark, b"}]}"]
        return pieces, prefix

    def _unmarked(self) -> int:
        """The number of messages before the user's last two, which get cache marks."""
        of_user = (
            at for at in range(len(self._kept) - 1, -1, -1) if self._kept[at].data and self._kept[at].role == "user"
        )
        return next(islice(of_user, 1, None), 0)

    def _placed(self, index: int) -> tuple[bytes, bytes, bytes, bytes]:
        """The message among the others: comma, message, comma, status; each empty if there is none."""
        wire = self._kept[index]
        if not wire.data:
            return b"", b"", b"", b""
        comma = b"," if any(before.data for before in islice(self._kept, index)) else b""
        if not wire.status:
            return comma, wire.data, b"", b""
        # As the user's it is joined with what they say next. What a reply was made of does not change: which it is
        # depends on nothing that comes after the reply.
        after = next((later for later in islice(self._kept, index + 1, None) if later.data), None)
        alone = after is None or isinstance(after.message, Assistant)
        role = _ROLE["system" if self._system_role and alone else "user"]
        return comma, wire.data, b",", role + b'"content":' + wire.status + b"}"

    def _translate(self, message: Message, conversation: Conversation) -> _Wire:
        prefix = self._kept[-1].prefix if self._kept else self.start
        ids: dict[str, str] = {}
        foreign = False
        status = b""
        match message:
            case User() | Results():
                notes, status_text = split_status(message, self._info)
                said = _said(laid_out(notes, conversation, self._info))
                results = self._results(message, conversation) if isinstance(message, Results) else []
                role, blocks = "user", [*results, *said] or _said(["(no text)"])
                status = dumps(_said([status_text])) if status_text else b""
            case Assistant():
                role = "assistant"
                native = _own(message, self._model)
                foreign = native is None
                blocks, ids = _neutral(message) if native is None else self._native(native, prefix)
        data = dumps({"role": role, "content": blocks}) if blocks else b""
        for sent in filter(None, (data, status)):
            prefix = _digest(prefix, sent)
        thinking = [block["type"] in THINKING for block in blocks]
        return _Wire(
            message,
            role,
            data,
            status,
            prefix,
            ids,
            any(thinking),
            thinking[:1] == [True],
            foreign,
        )

    def _results(self, message: Results, conversation: Conversation) -> list[dict[str, Any]]:
        """The results, and after them what those show that are errors: "all content must be type text if is_error"."""
        ids = self._kept[-1].ids if self._kept else {}
        blocks: list[dict[str, Any]] = []
        after: list[dict[str, Any]] = []
        for result in message.results:
            text, _, parts = result_layout(result, conversation, self._info)
            content: str | list[dict[str, Any]] = text if text.strip() else "(no output)"
            shown = _said(parts)
            if shown and not result.is_error:
                content = [*_said([content]), *shown]
            elif shown:
                after += shown
            blocks.append(
                {
                    "type": "tool_result",
                    "tool_use_id": ids.get(result.call_id) or _wire_id(result.call_id),
                    **({"is_error": True} if result.is_error else {}),
                    "content": content,
                }
            )
        return [*blocks, *after]

    def _native(self, native: Native, prefix: bytes) -> tuple[list[dict[str, Any]], dict[str, str]]:
        content = cast("dict[str, Any]", native.blocks)
        blocks: list[dict[str, Any]] = content["content"]
        moved = self._prefix_checked and content["prefix"] != prefix.hex()
        if moved or len(self._kept) < self._unwelcome:
            blocks = [block for block in blocks if block["type"] not in THINKING]
        while blocks and blocks[-1]["type"] in THINKING:  # nothing was said after it; refused as the last block
            blocks = blocks[:-1]
        return blocks, {ours: theirs for theirs, ours in native.call_ids.items()}


def _own(message: Assistant, model: str) -> Native | None:
    """The reply as this very model gave it, if it is that; None when its calls were changed since."""
    native = message.native
    if native is None or native.wire != WIRE or native.model != model:
        return None
    return native if list(native.call_ids.values()) == [call.call_id for call in message.calls] else None


def _neutral(message: Assistant) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The reply of another model: text and calls; its thinking means nothing here."""
    blocks: list[dict[str, Any]] = []
    ids: dict[str, str] = {}
    for part in message.parts:
        match part:
            case Text():
                blocks += _said([part.text])
            case Call():
                ids[part.call_id] = _wire_id(part.call_id)
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": ids[part.call_id],
                        "name": re.sub(r"[^a-zA-Z0-9_-]", "_", part.tool)[:128] or "_",
                        "input": as_object(part.arguments),
                    }
                )
            case _:
                pass
    return blocks, ids


def as_object(arguments: dict[str, Any] | str) -> dict[str, Any]:
    """The input of a call as the object the service wants; text that was no JSON object is wrapped as its
    documentation of fine-grained tool streaming advises."""
    return {"INVALID_JSON": arguments} if isinstance(arguments, str) else arguments


def _said(parts: Sequence[str | WirePicture]) -> list[dict[str, Any]]:
    """Text, image and document blocks; the service refuses blank text."""
    return [
        {"type": "text", "text": part} if isinstance(part, str) else _shown(part)
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]


def _shown(picture: WirePicture) -> dict[str, Any]:
    kind = "document" if picture.media_type == PDF else "image"
    return {"type": kind, "source": {"type": "base64", "media_type": picture.media_type, "data": picture.data}}


def _wire_id(call_id: str) -> str:
    """`call_id` if the service takes it, else one like it that is as unique."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
    if plain == call_id and call_id:
        return call_id
    return f"{plain}_{hashlib.blake2b(call_id.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


def _digest(previous: bytes, data: bytes) -> bytes:
    digest = hashlib.blake2b(previous, digest_size=16)
    digest.update(data)  # not `before + data`: a picture has megabytes
    return digest.digest()
