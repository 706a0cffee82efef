"""The main job as any LSP client sees it, through pytest-lsp: a client without a plugin, whose open, unsaved buffer is
what the tools see, and through which an accepted edit goes."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

from support.plain_editor import WarmServer

SERVE = [sys.executable, "-P", "-m", "amanu", "serve", "--alone"]
DISK = "one\ntwo\nthree\n"
UNSAVED = "one\ntwo, nicht gespeichert: ü𝒳\nthree\n"
EDITED = "one\ntwo, nicht gespeichert: ü𝒳\nTHREE\n"


@pytest_lsp.fixture(  # pyright: ignore[reportUntypedFunctionDecorator]
    config=WarmServer(server_command=SERVE),
    params=["visual_studio_code", "neovim", "emacs"],
)
async def client(lsp_client: LanguageClient, request: pytest.FixtureRequest) -> AsyncGenerator[None]:
    capabilities = client_capabilities(request.param)
    capabilities.experimental = {"amanu": {"protocol": [4]}}
    await lsp_client.initialize_session(types.InitializeParams(capabilities=capabilities, process_id=os.getpid()))
    yield
    await lsp_client.shutdown_session()


async def test_an_edit_goes_through_the_editor_and_unsaved_text_is_what_counts(
    client: LanguageClient, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(DISK)
    script = tmp_path / "script.json"
    read: dict[str, Any] = {"tool": "read_file", "arguments": {"path": "notes.txt"}}
    edit: dict[str, Any] = {
        "tool": "edit_file",
        "arguments": {"path": "notes.txt", "old_text": "three", "new_text": "THREE"},
    }
    script.write_text(
        json.dumps(
            [
                {"calls": [read]},
                {"expect": "nicht gespeichert", "calls": [edit]},
                {"expect": "Applied to notes.txt: line 3", "text": "Done."},
            ]
        )
    )
    text = UNSAVED
    heard: asyncio.Queue[Any] = asyncio.Queue()

    @client.feature("amanu/event")  # pyright: ignore[reportUntypedFunctionDecorator]
    def on_event(params: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        heard.put_nowait(params.event)

    @client.feature(types.WORKSPACE_APPLY_EDIT)  # pyright: ignore[reportUntypedFunctionDecorator]
    def on_edit(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:  # pyright: ignore[reportUnusedFunction]
        nonlocal text
        edits = _edits(params.edit)
        assert len(edits) == 1
        assert edits[0].range.start.line == 2  # below the line with the wide characters
        text = text.replace("three", "THREE")
        document = types.VersionedTextDocumentIdentifier(uri=file.as_uri(), version=2)
        change = types.TextDocumentContentChangeWholeDocument(text=text)
        client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return types.ApplyWorkspaceEditResult(applied=True)

    async def until(kind: str) -> Any:
        async with asyncio.timeout(50):
            while True:
                event = await heard.get()
                if event.kind == kind:
                    return event

    async def ask(method: str, **params: Any) -> Any:
        return await client.protocol.send_request_async(f"amanu/{method}", {"sessionId": "s1", **params})

    opened = types.TextDocumentItem(uri=file.as_uri(), language_id="text", version=1, text=UNSAVED)
    client.text_document_did_open(types.DidOpenTextDocumentParams(opened))
    await ask("session/create", roots=[str(tmp_path)], modelId=f"scripted:{script}")
    await ask("prompt/send", promptId="p1", text="shout")
    question = await until("approvalRequested")
    await asyncio.sleep(0.55)
    asked = question.approval
    answer = await ask("approval/resolve", toolCallId=asked.toolCallId, decision="allow", digest=asked.digest)
    assert answer.status == "resolved"
    ended = await until("turnEnded")
    assert ended.reason == "completed"
    assert text == EDITED
    assert file.read_text() == DISK  # the file was not clean, so saving it is the user's
    page = await ask("session/attach")
    last = page.state.items[-1]
    assert last.text == "Done."  # not the complaint of an unmet expectation
    assert page.state.proposals[0].files[0].unsaved is True


def _edits(edit: types.WorkspaceEdit) -> list[types.TextEdit]:
    """All text edits, in whichever of the two forms they came."""
    if edit.document_changes:
        return [each for change in edit.document_changes for each in change.edits]  # pyright: ignore
    return [each for edits in (edit.changes or {}).values() for each in edits]
