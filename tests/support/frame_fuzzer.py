"""Frames that any program could send, right, nearly right and absurd, made from the table of methods: what no client of
ours sends and no other must be able to break us with. Deterministic: a seed gives the same frames."""

import json
import os
import random
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from amanu.frontends.lsp.connection import connect_in_process
from amanu.frontends.lsp.plain.client import PlainClient
from amanu.session.sessions import open_sessions
from amanu_protocol.methods import METHODS
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.raw_client import AMANU, RawClient
from support.scripted_session import TWELVE, TWO_HUNKS, call, step
from support.session_client import Client, until

INTERNAL = -32603
CLIENTS: tuple[dict[str, Any], ...] = (AMANU, {})
"""What they say of themselves: one with a plugin of ours, and a plain editor."""
ANSWER_SECONDS = 20.0
"""What is looked at in turn is answered in milliseconds; one that held everybody up took half a minute."""

SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 2**31, 2**53, 2**63, 2**64, -(2**63), 1e308, 10**400),
    *("", "x", " ", "\0", "a\0b", "..", "../../etc/passwd", "/", "//", "~", "%00", "\ud800", "\u202e", "é" * 300),
    *("/" + "a" * 300, "/" + "a/" * 3000, "x" * 200_000, "\n" * 9, "-rf", "$(touch x)", "user", "accept", "ask"),
    *("file:///", "file:///a%00b", "file://host/x", "file:///" + "a" * 5000, "untitled:1", "http://[", "file:///%zz"),
)
STRUCTURES: tuple[Any, ...] = ([], {}, [[]], [{}], [None], {"": ""}, {"a": None}, ["x"] * 2000, [[[[[[[[[[]]]]]]]]]])


@dataclass(frozen=True)
class Place:
    """What a session has that a frame may name."""

    session: str
    root: Path
    file: Path


class Odd:
    """Frames for one connection."""

    def __init__(self, seed: int, place: Place) -> None:
        self._random = random.Random(seed)
        self._place = place
        self._number = 0

    def frame(self) -> tuple[bytes, int | str | None]:
        """A body and the id its one answer must carry; None for a notification."""
        pick = self._random.random()
        if pick < 0.55:
            method, params = self._ours()
        elif pick < 0.75:
            method, params = "workspace/executeCommand", self._order()
        else:
            method, params = self._lsp()
        if self._random.random() < 0.1:
            params = self._junk()
        self._number += 1
        id: int | str = self._number if self._random.random() < 0.8 else f"{self._number}\ud800"
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if self._random.random() < 0.05:
            del message["params"]
        if self._random.random() < 0.15:
            return self._written(message), None
        return self._written({"id": id, **message} if self._random.random() < 0.5 else {**message, "id": id}), id

    def _written(self, message: Any) -> bytes:
        text = json.dumps(message)
        if self._random.random() < 0.03:  # what Python's own writer lets pass and JSON does not know
            text = text.replace("null", self._random.choice(["NaN", "-Infinity", "9" * 5000, "1e999"]), 1)
        return text.encode()

    def _ours(self) -> tuple[str, Any]:
        method = self._random.choice([each for each in METHODS if each.direction == "toDaemon"])
        if method.name in ("amanu/session/delete", "amanu/session/close") and self._random.random() < 0.9:
            return method.name, self._junk()
        return method.name, self._of(method.params.model_json_schema(by_alias=True))

    def _order(self) -> Any:
        name = self._random.choice([*PlainClient.COMMANDS, "amanu.unknown"])
        order, _ = PlainClient.COMMANDS.get(name, (None, None))
        given = self._junk() if order is None else self._of(order.model_json_schema(by_alias=True))
        return {"command": name, "arguments": self._mostly([given])}

    def _lsp(self) -> tuple[str, Any]:
        at = {"line": self._mostly(1), "character": self._mostly(2)}
        document = {"uri": self._mostly(self._random.choice([self._place.file.as_uri(), *SCALARS[-7:]]))}
        some = {"start": at, "end": {"line": self._mostly(3), "character": self._mostly(0)}}
        opened = {**document, "languageId": "x", "version": self._mostly(1), "text": self._mostly("one\ntwo\r\nthree")}
        changed = {"range": self._mostly(some), "text": self._mostly("é\n")}
        folders = {
            "added": self._mostly([{"uri": self._place.root.as_uri(), "name": "w"}]),
            "removed": self._mostly([]),
        }
        method, params = self._random.choice(
            [
                ("textDocument/didOpen", {"textDocument": self._mostly(opened)}),
                (
                    "textDocument/didChange",
                    {
                        "textDocument": {**document, "version": 2},
                        "contentChanges": self._mostly([changed, {"text": "a"}]),
                    },
                ),
                ("textDocument/didSave", {"textDocument": document}),
                ("textDocument/didClose", {"textDocument": document}),
                ("textDocument/hover", {"textDocument": document, "position": at}),
                ("textDocument/codeLens", {"textDocument": document}),
                (
                    "textDocument/codeAction",
                    {"textDocument": document, "range": some, "context": {"diagnostics": self._mostly([])}},
                ),
                ("workspace/didChangeWorkspaceFolders", {"event": self._mostly(folders)}),
                ("workspace/didChangeConfiguration", {"settings": self._junk()}),
                ("window/workDoneProgress/cancel", {"token": self._junk()}),
                ("$/setTrace", {"value": self._mostly("off")}),
                ("$/cancelRequest", {"id": self._mostly(self._number)}),
                ("initialize", {"processId": 1, "capabilities": {}}),
                ("amanu/event", self._junk()),
                (self._random.choice(["", "x" * 5000, "\0", "$/no", "textDocument/", "__class__"]), self._junk()),
            ]
        )
        return method, self._mostly(params)

    def _mostly(self, value: Any) -> Any:
        return value if self._random.random() < 0.85 else self._junk()

    def _junk(self) -> Any:
        pick = self._random.random()
        if pick < 0.7:
            return self._random.choice(SCALARS)
        if pick < 0.95:
            return self._random.choice(STRUCTURES)
        deep: Any = "x"
        for _ in range(self._random.choice([20, 500])):
            deep = [deep] if self._random.random() < 0.5 else {"a": deep}
        return deep

    def _of(self, schema: Mapping[str, Any], named: Mapping[str, Any] | None = None, name: str = "") -> Any:
        """A value for a schema of our protocol, here and there another."""
        named = named if named is not None else cast("Mapping[str, Any]", schema.get("$defs", {}))
        if self._random.random() < 0.06:
            return self._junk()
        if "$ref" in schema:
            return self._of(named[schema["$ref"].rpartition("/")[2]], named, name)
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self._of(self._random.choice(schema[choice]), named, name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                return {
                    key: self._of(each, named, key)
                    for key, each in schema.get("properties", {}).items()
                    if self._random.random() < (0.97 if key in required else 0.6)
                }
            case "array":
                return [
                    self._of(schema.get("items", {}), named, name) for _ in range(self._random.choice([0, 1, 1, 3]))
                ]
            case "integer":
                return self._random.choice([0, 1, 2, 10, -1, 2**40, 2**63])
            case "number":
                return self._random.choice([0, 0.5, -1, 1e300])
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case "string":
                return self._text(name)
            case _:
                return self._junk()

    def _text(self, name: str) -> Any:
        place = self._place
        if name in ("sessionId", "session"):
            return self._random.choice([place.session, place.session, place.session, "other", "..", "a" * 128])
        if name in ("root", "roots", "trustedRoots"):
            return self._random.choice([str(place.root), str(place.root), "/nowhere", *map(str, SCALARS[14:30])])
        if name == "path":
            return self._random.choice([str(place.file), str(place.root), "notes.txt", *map(str, SCALARS[14:30])])
        if name == "modelId":
            return self._random.choice(
                ["scripted:demo", "scripted:\0", "x", "nobody:nothing", "scripted:" + "a" * 5000]
            )
        return self._random.choice([*filter(lambda each: isinstance(each, str), SCALARS), "x1", "once", "allow"])


def frames(seed: int, place: Place, count: int) -> Iterator[tuple[bytes, int | str | None]]:
    odd = Odd(seed, place)
    return (odd.frame() for _ in range(count))


async def suffer(client: RawClient, seed: int, place: Place, count: int) -> int:
    """Send them, and see that each request is answered exactly once, under its id, never as a fault of ours, and soon.
    Returns how many were answered with a result."""
    good = 0
    for body, id in frames(seed, place, count):
        client.send_body(body)
        if id is None:
            continue
        try:
            answer = await client.reply(id, ANSWER_SECONDS)
        except TimeoutError:
            raise AssertionError(f"not answered in time: {body[:600]!r}") from None
        assert answer.get("error", {}).get("code") != INTERNAL, f"{body[:600]!r} → {answer!a}"
        good += "result" in answer
    await client.request("amanu/none")  # what was still to be said comes before its answer
    strays = [each for each in client.heard if "method" not in each and each.get("id") is not None]
    assert not strays, f"answered twice: {strays[:3]!a}"
    assert "internal error" not in json.dumps(client.heard)
    return good


@asynccontextmanager
async def played(capabilities: Any) -> AsyncGenerator[tuple[RawClient, Place]]:
    """A connection to a session in the middle of a turn."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, AMANU_HOME=f"{folder}/home", HOME=folder):
        root, script = Path(folder, "work"), Path(folder, "script.json")
        root.mkdir()
        (root / "notes.txt").write_text(TWELVE)
        steps = [step("I will.", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Done.")]
        script.write_text(json.dumps(steps))
        sessions = open_sessions()
        try:
            client = RawClient(*await connect_in_process(sessions, {}))
            await client.initialize(capabilities, workspaceFolders=[{"uri": root.as_uri(), "name": "w"}])
            user = Client(os.environ)
            made = SessionCreateParams(session_id="s", roots=[str(root)], model_id=f"scripted:{script}")
            await sessions.create(made, user)
            session = await sessions.get("s")
            await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p1", text="do it"), user)
            await until(session, lambda state: state.approvals)
            try:
                yield client, Place("s", root, root / "notes.txt")
            finally:
                client.writer.close()
                await client.writer.wait_closed()
        finally:
            await sessions.shutdown()
