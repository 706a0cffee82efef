"""The chat as a document, with an editor that refuses edits for a while, or is slow."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from amanu.frontends.lsp import buffers
from amanu.frontends.lsp.buffers import Buffers, EditorClient
from amanu.frontends.lsp.plain import chat_document as module
from amanu.frontends.lsp.plain import documents
from amanu.frontends.lsp.plain.chat_document import ChatDocument
from amanu.frontends.lsp.plain.transcript import YOUR_TURN
from amanu.workspace.overlay import Overlay
from amanu_protocol.events import Event, ItemCompleted, ItemDelta, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import Answer
from amanu_protocol.state import SessionState, fold


class Editor:
    """Has the chat open. `meanwhile` happens once, before it makes its next edit; it refuses as many as `refusing`
    says."""

    def __init__(self, path: Path) -> None:
        self.refusing = 0
        self.typing = False
        """The person types a letter before each edit arrives."""
        self.meanwhile: Callable[[], None] = lambda: None
        self.buffers = Buffers(EditorClient("Test", self._ask, "utf-16"))
        self.buffers.opened(path.as_uri(), 0, path.read_text())
        self._path = path

    @property
    def text(self) -> str:
        buffer = self.buffers.buffer(self._path)
        assert buffer is not None
        return buffer.text

    async def until(self, text: str) -> None:
        while text not in self.text:
            await asyncio.sleep(0.001)

    async def _ask(self, method: str, params: Any) -> Any:
        await asyncio.sleep(0)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if self.refusing:
            self.refusing -= 1
            return {"applied": False}
        ((uri, changes),) = params["edit"]["changes"].items()
        lines = [*self.text.splitlines(keepends=True), ""]
        for each in reversed(changes):
            start, end = each["range"]["start"], each["range"]["end"]
            assert start == end and not start["character"], "only whole lines are added"
            lines.insert(start["line"], each["newText"])
        self.buffers.changed(uri, 1, ["".join(lines) + "x" * self.typing])
        return {"applied": True}


async def test_all_is_written_once_whatever_comes_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.002)
    monkeypatch.setattr(documents, "PAUSE", 0.001)
    monkeypatch.setattr(buffers, "CONFIRM", 0.05)
    state = SessionState(
        session_id="s", title="", roots=["/p"], mode="ask", model_id="m", trusted=False, read_only=False
    )
    path, overlay = tmp_path / "chat.md", Overlay()
    chat = ChatDocument(cast("Any", SimpleNamespace(state=state)), documents.ManagedDocument(path, overlay))
    await chat.open()
    editor = Editor(path)
    overlay.add(editor.buffers)
    events = itertools.count(1)

    def on_event(event: Event) -> None:
        fold(state, event)
        chat.on_event(next(events), event)

    on_event(ItemStarted(item=Answer(item_id="b", turn_id="t", text="")))
    on_event(ItemDelta(item_id="b", text="gone\n"))
    await editor.until("gone\n")
    editor.meanwhile = lambda: on_event(ItemsWithdrawn(item_ids=["b"], reason="retry"))
    on_event(ItemDelta(item_id="b", text="gone, too\n"))
    await editor.until("Discarded")
    editor.typing = True
    on_event(ItemCompleted(item=Answer(item_id="c", turn_id="t", text="said once")))
    await editor.until("said once")
    editor.typing = False
    editor.refusing = 3 * documents.TRIES
    on_event(ItemCompleted(item=Answer(item_id="a", turn_id="t", text="all of it")))
    await editor.until("all of it")
    written = editor.text.partition("## Amanu\n\n")[2]
    withdrawn = "\n*(Discarded: the request failed and is being retried.)*\n\n"
    assert written == f"gone\ngone, too\n{withdrawn}said once\n\nall of it\n\n{YOUR_TURN}\n\nx"
