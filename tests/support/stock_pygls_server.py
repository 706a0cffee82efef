"""Stock pygls with the same features, to show which promises are ours: `test_lsp_conformance.py` fails on it."""

import json
from typing import Any

from pygls.lsp.server import LanguageServer

server = LanguageServer("stock", "1")


@server.feature("amanu/prompt/send")
async def send(params: Any) -> dict[str, Any]:
    if params.text == "crash":
        raise RuntimeError("secret-of-the-crash")
    return {"status": "started"}


@server.feature("amanu/session/list")
async def sessions(params: Any) -> dict[str, Any]:
    return {"sessions": []}


@server.feature("amanu/blob/get")
async def blob(params: Any) -> dict[str, Any]:
    documents = server.workspace.text_documents.values()
    return {"text": json.dumps({document.path: document.source for document in documents})}


@server.feature("amanu/session/create")
async def create(params: Any) -> dict[str, Any]:
    return {"state": {}}


@server.feature("amanu/rule/preview")
async def preview(params: Any) -> dict[str, Any]:
    return {"valid": True}


server.start_io()
