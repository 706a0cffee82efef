"""The answer to `initialize`, from the standard library alone, before anything heavy is imported.

`initialize_result` is the one place where our capabilities are said; the relay, `--alone` and a connection of the
daemon all use it. `answer_first` reads the first message of a client and answers it if it is `initialize`; the
bytes read are then given to the real server, which is told that this answer is already out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from amanu import __version__
from amanu.system.frames import BrokenStream, FrameReader, frame

PROTOCOL_VERSIONS = (4,)
"""Versions of the amanu protocol this daemon speaks. A test holds the last against `amanu_protocol`."""

BUILD = f"{__version__} (protocol {PROTOCOL_VERSIONS[-1]})"
"""The build, which must be the same for a relay and its daemon: the relay answers `initialize` in the daemon's name,
and between two releases the protocol may change while the version does not."""

METHODS = (
    "amanu/session/create",
    "amanu/session/list",
    "amanu/session/search",
    "amanu/session/attach",
    "amanu/session/detach",
    "amanu/session/rename",
    "amanu/session/archive",
    "amanu/session/close",
    "amanu/session/delete",
    "amanu/session/setMode",
    "amanu/session/setModel",
    "amanu/session/setEffort",
    "amanu/session/setServiceTier",
    "amanu/session/compact",
    "amanu/session/export",
    "amanu/session/fork",
    "amanu/session/record",
    "amanu/prompt/begin",
    "amanu/prompt/send",
    "amanu/prompt/steer",
    "amanu/prompt/unqueue",
    "amanu/turn/cancel",
    "amanu/rewrite/start",
    "amanu/rewrite/refine",
    "amanu/rewrite/continue",
    "amanu/commit/message",
    "amanu/approval/resolve",
    "amanu/question/answer",
    "amanu/proposal/resolve",
    "amanu/proposal/decide",
    "amanu/proposal/revise",
    "amanu/proposal/retry",
    "amanu/proposal/setReview",
    "amanu/proposal/undo",
    "amanu/proposal/diff",
    "amanu/proposal/preview",
    "amanu/proposal/baseline",
    "amanu/proposal/patch",
    "amanu/checkpoint/list",
    "amanu/checkpoint/preview",
    "amanu/checkpoint/restore",
    "amanu/job/begin",
    "amanu/job/output",
    "amanu/job/input",
    "amanu/job/stop",
    "amanu/agent/stop",
    "amanu/history/page",
    "amanu/blob/get",
    "amanu/command/list",
    "amanu/memory/list",
    "amanu/memory/strike",
    "amanu/mcp/list",
    "amanu/mcp/approve",
    "amanu/mcp/approveTools",
    "amanu/mcp/turnOff",
    "amanu/mcp/restart",
    "amanu/mcp/signIn",
    "amanu/mcp/offer",
    "amanu/mention/complete",
    "amanu/model/list",
    "amanu/model/offer",
    "amanu/model/part",
    "amanu/auth/status",
    "amanu/auth/set",
    "amanu/auth/check",
    "amanu/settings/list",
    "amanu/settings/set",
    "amanu/trust/get",
    "amanu/trust/set",
    "amanu/rule/list",
    "amanu/rule/add",
    "amanu/rule/remove",
    "amanu/rule/preview",
    "amanu/audit/query",
    "amanu/event/ack",
    "amanu/editor/contextChanged",
)
"""What a client may send, in the order of the method table. Written out, because the table imports pydantic; a
test holds it against the table."""

COMMANDS = (
    "amanu.prompt",
    "amanu.chat",
    "amanu.ask",
    "amanu.fix",
    "amanu.explain",
    "amanu.document",
    "amanu.test",
    "amanu.send",
    "amanu.new",
    "amanu.mode",
    "amanu.model",
    "amanu.effort",
    "amanu.stop",
    "amanu.answer",
    "amanu.question",
    "amanu.answerQuestion",
    "amanu.saveRule",
    "amanu.accept",
    "amanu.reject",
    "amanu.keep",
    "amanu.undo",
    "amanu.undoTurn",
    "amanu.review",
    "amanu.applyPatch",
    "amanu.job",
    "amanu.stopJob",
    "amanu.agent",
    "amanu.stopAgent",
    "amanu.audit",
    "amanu.trust",
    "amanu.setTrust",
)
"""For clients without a plugin of ours. Written out as well: `plain/client.py` has what they do."""

INVALID_PARAMS = -32602
ENCODINGS = ("utf-8", "utf-16", "utf-32")


class BadParams(Exception):
    """`initialize` with a missing or ill-typed field; `path` names it."""

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"initialize: {path} must be {expected}.")
        self.path = path

    def error(self) -> dict[str, Any]:
        """As a JSON-RPC error object."""
        return {
            "code": INVALID_PARAMS,
            "message": str(self),
            "data": {"kind": "invalidParams", "path": self.path},
        }


def initialize_result(params: object) -> dict[str, Any]:
    """The result of `initialize` for these params (as parsed from JSON). Raises `BadParams`."""
    tree = _object(params, "params", required=True)
    _typed(tree, "processId", "processId", "a number or null", int)
    for folder in _list(tree.get("workspaceFolders"), "workspaceFolders"):
        _typed(_object(folder, "workspaceFolders.*", required=True), "uri", "workspaceFolders.*.uri", "a string", str)
    capabilities = _object(tree.get("capabilities"), "capabilities", required=True)
    general = _object(capabilities.get("general"), "capabilities.general")
    offered = _strings(general.get("positionEncodings"), "capabilities.general.positionEncodings")
    answer: dict[str, Any] = {
        "positionEncoding": position_encoding(offered),
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    version = protocol_version(capabilities)
    if is_plain(tree):
        # A plugin has its own ways to prompt and review; what is said here every editor would show as well.
        answer["codeActionProvider"] = {"codeActionKinds": ["quickfix", "refactor.rewrite", "source.amanu"]}
        answer["hoverProvider"] = True
        answer["completionProvider"] = {"triggerCharacters": ["@"]}  # in the chat document
        answer["executeCommandProvider"] = {"commands": list(COMMANDS), "workDoneProgress": True}
        if pulls_diagnostics(capabilities):
            answer["diagnosticProvider"] = {
                "identifier": "amanu",
                "interFileDependencies": False,
                "workspaceDiagnostics": False,
            }
        if _object(capabilities.get("textDocument"), "capabilities.textDocument").get("codeLens") is not None:
            answer["codeLensProvider"] = {"resolveProvider": False}
    if version is not None:
        answer["experimental"] = {"amanu": {"protocol": version, "version": __version__, "methods": list(METHODS)}}
    return {"capabilities": answer, "serverInfo": {"name": "amanu", "version": __version__}}


def position_encoding(offered: Sequence[str]) -> Literal["utf-8", "utf-16", "utf-32"]:
    """The first of the client's encodings, which are in its order of preference; UTF-16 when it names none that
    the specification knows (LSP 3.17, `positionEncodings`)."""
    for encoding in offered:
        if encoding in ENCODINGS:
            return encoding
    return "utf-16"


def pulls_diagnostics(capabilities: Mapping[str, Any]) -> bool:
    """Whether the client asks for the diagnostics of open documents, and does so again when it is told that they have
    changed; one that cannot be told would show what was true when it last asked."""
    pulls = isinstance(_mapping(capabilities.get("textDocument")).get("diagnostic"), dict)
    refresh = _mapping(_mapping(capabilities.get("workspace")).get("diagnostics")).get("refreshSupport")
    return pulls and refresh is True


def protocol_version(capabilities: Mapping[str, Any]) -> int | None:
    """The highest version of the amanu protocol that both speak; None when there is none or the client says
    nothing (then it is a plain LSP client). Raises `BadParams` if what it says is malformed."""
    return max(set(declared_versions(capabilities)) & set(PROTOCOL_VERSIONS), default=None)


def declared_versions(capabilities: Mapping[str, Any]) -> list[int]:
    """The versions of the amanu protocol that the client speaks; none if it says nothing. Raises `BadParams` if what it
    says is malformed."""
    path = "capabilities.experimental.amanu"
    experimental = capabilities.get("experimental")
    if not isinstance(experimental, dict):
        return []  # `experimental` belongs to everybody: anything may be there
    declared = cast("dict[str, Any]", experimental).get("amanu")
    if declared is None:
        return []
    amanu = _object(declared, path)
    versions = amanu.get("protocol")
    if not isinstance(versions, list) or not all(type(version) is int for version in cast("list[Any]", versions)):
        raise BadParams(f"{path}.protocol", "a list of version numbers")
    _strings(amanu.get("editor"), f"{path}.editor")
    _strings(amanu.get("trustedRoots"), f"{path}.trustedRoots")
    _typed(amanu, "ripgrep", f"{path}.ripgrep", "a string or null", str)
    return cast("list[int]", versions)


def is_plain(params: Mapping[str, Any]) -> bool:
    """Whether this client reviews and prompts by standard LSP: it says nothing of amanu, or asks for it by
    `initializationOptions.amanu.standard`."""
    if options(params).get("standard") is True:
        return True
    experimental = _mapping(_mapping(params.get("capabilities")).get("experimental"))
    return experimental.get("amanu") is None


def options(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """`initializationOptions.amanu`."""
    return _mapping(_mapping(params.get("initializationOptions")).get("amanu"))


class EarlyRead(NamedTuple):
    """What was read before the real server took over, and whether `initialize` in it is answered."""

    received: bytes
    answered: bool


def answer_first(read: Callable[[], bytes], write: Callable[[bytes], None]) -> EarlyRead:
    """Read until the first message is whole; answer it if it is a good `initialize`. Blocking.

    `read` returns some bytes, or none at the end of the stream. Anything that is not a good `initialize` is left
    unanswered for the real server, which knows every error.
    """
    frames = FrameReader()
    received = bytearray()
    while True:
        data = read()
        received += data
        items = frames.feed(data)
        if items:
            reply = _reply(items[0])
            if reply is not None:
                write(frame(reply))
            return EarlyRead(bytes(received), reply is not None)
        if not data or frames.in_header:
            return EarlyRead(bytes(received), False)


def _reply(body: bytes | BrokenStream) -> bytes | None:
    if isinstance(body, BrokenStream):
        return None
    try:
        message = json.loads(body)
        if message["jsonrpc"] != "2.0" or message["method"] != "initialize":
            return None
        if type(message["id"]) not in (int, str):
            return None
        result = initialize_result(message["params"])
    except (ValueError, KeyError, TypeError, RecursionError, BadParams):
        return None
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


def _object(value: object, path: str, required: bool = False) -> dict[str, Any]:
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise BadParams(path, "an object")
    return cast("dict[str, Any]", value)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object, path: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadParams(path, "a list")
    return cast("list[Any]", value)


def _strings(value: object, path: str) -> list[str]:
    values = _list(value, path)
    if not all(isinstance(text, str) for text in values):
        raise BadParams(path, "a list of strings")
    return values


def _typed(tree: Mapping[str, Any], key: str, path: str, expected: str, kind: type) -> None:
    value = tree.get(key)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise BadParams(path, expected)
