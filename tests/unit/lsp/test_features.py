"""LSP's requests of plain clients: their params become lsprotocol's types, or the client hears what is wrong; and who
does not need those types does not pay for them."""

import os
import subprocess
import sys
from typing import Any

import pytest
from lsprotocol import types

from amanu.frontends.lsp.handshake import BadParams
from amanu.frontends.lsp.plain.features import NAMED_SIZE, Features

POSITION = {"line": 1, "character": 2}


@pytest.fixture
def features() -> Features:
    made = Features()

    @made.server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(p: types.HoverParams) -> types.Hover:  # pyright: ignore[reportUnusedFunction]
        return types.Hover(f"{p.text_document.uri}:{p.position.line}", types.Range(p.position, p.position))

    return made


def test_a_request_is_a_call_with_typed_params(features: Features) -> None:
    call = features.call("textDocument/hover", {"textDocument": {"uri": "u"}, "position": POSITION, "new": 1}, 100)
    assert call is not None
    assert features.as_json(call()) == {"contents": "u:1", "range": {"start": POSITION, "end": POSITION}}
    assert features.call("textDocument/definition", {}, 2) is None


@pytest.mark.parametrize(
    ("params", "size", "path"),
    [
        ({"textDocument": {"uri": "u"}}, 100, "position"),
        ({"textDocument": {"uri": "u"}, "position": {"line": 1, "character": -1}}, 100, "position"),
        ({"textDocument": {"uri": "u"}}, NAMED_SIZE + 1, "params"),
        (None, 4, "params"),
    ],
)
def test_what_is_wrong_is_named(features: Features, params: Any, size: int, path: str) -> None:
    with pytest.raises(BadParams) as raised:
        features.call("textDocument/hover", params, size)
    assert raised.value.path == path


def test_what_wants_an_answer_is_known(features: Features) -> None:
    methods = ("textDocument/hover", "workspace/executeCommand", "textDocument/didOpen", "$/cancelRequest", "x/y")
    assert [features.is_request(method) for method in methods] == [True, True, False, False, False]


AMANU_CLIENT = """
import asyncio, sys
from amanu.frontends.lsp.connection import connect_in_process
from support.fake_sessions import FakeSessions
from support.raw_client import RawClient

async def main():
    client = RawClient(*await connect_in_process(FakeSessions(), {}))
    await client.initialize()
    document = {"uri": "file:///a.py", "languageId": "python", "version": 1, "text": "x"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    client.notify("textDocument/didSave", {"textDocument": {"uri": "file:///a.py"}})
    await client.request("amanu/session/create", {"sessionId": "s", "roots": ["/"]})
    await client.request("amanu/prompt/send", {"sessionId": "s", "promptId": "p", "text": "hi"})
    print(*{name.partition(".")[0] for name in sys.modules})

asyncio.run(main())
"""


def test_a_client_that_speaks_amanu_needs_neither_pygls_nor_lsprotocol() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", AMANU_CLIENT], env=environment, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & {"pygls", "lsprotocol", "cattrs", "attrs", "attr"} == set()
