"""Open documents and edits through the editor, with editors that keep their word and others."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp import buffers as module
from amanu.frontends.lsp import edit_request
from amanu.frontends.lsp.buffers import Buffers, EditorClient, path_of, sha256
from amanu.frontends.lsp.document_text import Position
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.text.span_edits import SpanEdit
from amanu.workspace.overlay import Overlay
from amanu_protocol.base import Wire
from amanu_protocol.requests import EditorApplyParams, EditorApplyResult

URI = "file:///d/a%20b.txt"
PATH = Path("/d/a b.txt")
TEXT = "é𝄞 one\r\ntwo\r\n"
EDITS = [SpanEdit(start=3, end=6, new_text="ONE"), SpanEdit(start=8, end=11, new_text="2")]
NEW = "é𝄞 ONE\r\n2\r\n"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///d/a.txt", "/d/a.txt"),
        ("file://localhost/d/a.txt", "/d/a.txt"),
        ("FILE:///d/a.txt", "/d/a.txt"),
        ("file:///d/a%20b%25.txt", "/d/a b%.txt"),
        ("file:///d/%C3%A9.txt", "/d/é.txt"),
        ("file:///d/caf%E9.txt", os.fsdecode(b"/d/caf\xe9.txt")),
        ("file:///d/x/../y", "/d/y"),
        ("file:///d/a%23b%3Fc", "/d/a#b?c"),
        ("file:///d/a#b", "/d/a#b"),
        ("file:///c%3A/Users/x", "/c:/Users/x"),
        ("file://server/share/x", None),
        ("file:///d/a%00b", None),
        ("untitled:Untitled-1", None),
        ("git:/d/a.txt", None),
        ("vscode-remote://ssh/d/a", None),
        ("/d/a.txt", None),
        ("file:relative", None),
        ("file://[", None),
        ("", None),
    ],
)
def test_path_of(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))


SHORT = 0.03


class FakeEditor:
    """What the client does with a request: a function of the buffers and the params."""

    def __init__(
        self,
        answer: Callable[[Buffers, Any], Any],
        *,
        own_apply: bool = False,
        versions: bool = False,
        edits: bool = True,
    ) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answer = answer
        self.logged = asyncio.Event()
        self.buffers = Buffers(
            EditorClient(
                "Test",
                self.ask,
                "utf-16",
                own_apply=own_apply,
                takes_edits=edits,
                versions=versions,
                log=lambda line: self.logged.set(),
            )
        )
        self.buffers.opened(URI, 7, TEXT)

    async def ask(self, method: str, params: Any) -> Any:
        self.asked.append((method, params.model_dump() if isinstance(params, Wire) else params))
        await asyncio.sleep(0)
        result = self._answer(self.buffers, params)
        return await result if asyncio.iscoroutine(result) else result


def show(text: str) -> Callable[[Buffers, Any], Any]:
    def answer(buffers: Buffers, params: Any) -> Any:
        buffers.changed(URI, 8, [text])
        return {"applied": True}

    return answer


def late(text: str) -> Callable[[Buffers, Any], Any]:
    """It answers at once, and shows what it did later than is waited for."""

    def answer(buffers: Buffers, params: Any) -> Any:
        asyncio.get_running_loop().call_later(4 * SHORT, buffers.changed, URI, 8, [text])
        return {"applied": True}

    return answer


def fail(buffers: Buffers, params: Any) -> Any:
    raise ClientError("no")


async def never(buffers: Buffers, params: Any) -> Any:
    await asyncio.Event().wait()


def applied(buffers: Buffers, params: EditorApplyParams) -> Any:
    buffers.changed(URI, 8, [NEW])
    return {"status": "success", "sha256": sha256(NEW), "version": 8, "saved": True}


@pytest.mark.parametrize(
    ("answer", "offers", "status"),
    [
        (show(NEW), {}, "success"),
        (show(NEW), {"versions": True}, "success"),
        (show(NEW + "!"), {}, "conflict"),
        (lambda b, p: {"applied": True}, {}, "error"),  # Neovim says so of an edit it dropped
        (late(NEW), {}, "success"),
        (late(NEW + "!"), {}, "conflict"),
        (show(NEW), {"edits": False}, "error"),
        (lambda b, p: {"applied": False, "failureReason": "busy"}, {}, "conflict"),
        (lambda b, p: None, {}, "conflict"),
        (fail, {}, "conflict"),
        (never, {}, "error"),
        (applied, {"own_apply": True}, "success"),
        (lambda b, p: {"status": "conflict"}, {"own_apply": True}, "conflict"),
        (lambda b, p: {"status": "success", "sha256": "other"}, {"own_apply": True}, "conflict"),
        (lambda b, p: {"status": "success"}, {"own_apply": True}, "conflict"),
        (lambda b, p: {"status": "success", "sha256": sha256(NEW)}, {"own_apply": True}, "success"),
        (lambda b, p: {"state": 1}, {"own_apply": True}, "error"),
        (fail, {"own_apply": True}, "error"),
        (never, {"own_apply": True}, "error"),
    ],
)
async def test_apply(
    answer: Callable[[Buffers, Any], Any],
    offers: dict[str, bool],
    status: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CONFIRM", SHORT)
    monkeypatch.setattr(module, "LATE", 10 * SHORT)
    monkeypatch.setattr(edit_request, "APPLY_TIMEOUT", SHORT)
    editor = FakeEditor(answer, **offers)
    result = await editor.buffers.apply(PATH, sha256(TEXT), EDITS, NEW, save=True)
    assert result.status == status, result
    assert status == "success" or result.message or offers.get("own_apply")
    if status == "success":
        assert result.sha256 == sha256(NEW)
        assert result.saved is (answer is applied)


async def test_what_a_bare_client_is_asked() -> None:
    editor = FakeEditor(show(NEW), versions=True)
    await editor.buffers.apply(PATH, sha256(TEXT), EDITS, NEW, save=True)
    method, params = editor.asked[0]
    assert method == "workspace/applyEdit"
    change = params["edit"]["documentChanges"][0]
    assert change["textDocument"] == {"uri": URI, "version": 7}
    assert [each["range"] for each in change["edits"]] == [
        {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 7}},  # é 1, 𝄞 2 units of UTF-16
        {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}},
    ]


async def test_edits_with_another_base_are_not_sent() -> None:
    editor = FakeEditor(show(NEW))
    assert (await editor.buffers.apply(PATH, sha256("old"), EDITS, NEW, False)).status == "conflict"
    assert (await editor.buffers.apply(Path("/d/other"), sha256(TEXT), EDITS, NEW, False)).status == "notOpen"
    assert editor.asked == []


async def test_an_editor_that_stood_still_gets_no_edit_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still make the edit that we gave up: without versions, one that was sent again would be made on top."""
    monkeypatch.setattr(module, "CONFIRM", SHORT)
    monkeypatch.setattr(module, "LATE", SHORT)
    thawed = asyncio.Event()

    async def slow(buffers: Buffers, params: Any) -> Any:
        await thawed.wait()
        return show(NEW)(buffers, params)

    editor = FakeEditor(slow)

    async def apply(base: str, new: str) -> str:
        return (await editor.buffers.apply(PATH, sha256(base), EDITS, new, save=False)).status

    assert await apply(TEXT, NEW) == "error"
    assert await apply(TEXT, NEW) == "error"
    assert len(editor.asked) == 1
    thawed.set()
    assert await apply(TEXT, NEW) == "conflict", "that base is gone: the edit was made after all"
    assert len(editor.asked) == 1
    assert await apply(NEW, NEW) == "success"
    assert len(editor.asked) == 2


async def test_an_editor_that_reads_a_request_only_with_what_comes_next_is_sent_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eglot, where the request came together with a reply."""
    monkeypatch.setattr(module, "NUDGE", SHORT)

    async def unread(buffers: Buffers, params: Any) -> Any:
        await editor.logged.wait()
        return show(NEW)(buffers, params)

    editor = FakeEditor(unread)
    result = await editor.buffers.apply(PATH, sha256(TEXT), EDITS, NEW, save=False)
    assert result.status == "success"


async def test_while_an_edit_is_unconfirmed_no_further_one_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONFIRM", SHORT)
    monkeypatch.setattr(module, "LATE", SHORT)
    editor = FakeEditor(lambda buffers, params: {"applied": True})

    async def apply() -> EditorApplyResult:
        return await editor.buffers.apply(PATH, sha256(TEXT), EDITS, NEW, save=False)

    first, second = await asyncio.gather(apply(), apply())
    assert "may have applied the edit" in (first.message or "") and "has not yet confirmed" in (second.message or "")
    assert len(editor.asked) == 1
    editor.buffers.saved(URI)  # now it is known: it did not
    await apply()
    assert len(editor.asked) == 2


def test_documents(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    buffers = Buffers(EditorClient("", FakeEditor(fail).ask, "utf-16"))
    uri = (tmp_path / "link" / "f").as_uri()
    buffers.changed(uri, 1, ["not open: nothing happens"])
    buffers.opened("untitled:1", 1, "not a file")
    assert list(buffers.buffers()) == []
    buffers.opened(uri, 1, "a\n")
    buffers.changed(uri, 2, [(Position(0, 0), Position(0, 1), "b"), (Position(1, 0), Position(1, 0), "c")])
    for path in (tmp_path / "link" / "f", tmp_path / "real" / "f"):
        found = buffers.buffer(path)
        assert found is not None and (found.text, found.version) == ("b\nc", 2)
    assert [each.path for each in buffers.buffers()] == [tmp_path / "link" / "f"]
    buffers.opened(uri, 3, "again")
    assert [each.text for each in buffers.buffers()] == ["again"]
    buffers.closed(uri)
    buffers.closed(uri)
    assert buffers.buffer(tmp_path / "real" / "f") is None


def test_who_watches_a_path_is_told(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("x")
    link = tmp_path / "link"
    link.symlink_to(real)
    overlay, heard = Overlay(), list[str]()
    buffers = Buffers(EditorClient("Test", FakeEditor(fail).ask, "utf-16"), overlay.notify_changed)
    overlay.add(buffers)
    stop = overlay.watch(real.resolve(), lambda: heard.append("real"))
    stop_too = overlay.watch(tmp_path / "other", lambda: heard.append("other"))
    buffers.opened(link.as_uri(), 1, "x")
    buffers.changed(link.as_uri(), 2, ["y"])
    buffers.closed(link.as_uri())
    assert heard == ["real"] * 3
    buffers.opened(real.resolve().as_uri(), 1, "x")
    overlay.remove(buffers)
    assert heard == ["real"] * 5
    for each in (stop, stop_too, stop):
        each()
    overlay.notify_changed(real.resolve())
    assert heard == ["real"] * 5


def test_a_document_left_of_a_file_that_is_gone_is_no_unsaved_text(tmp_path: Path) -> None:
    file, fresh = tmp_path / "file", tmp_path / "fresh"
    file.write_text("x")
    buffers = Buffers(EditorClient("Test", FakeEditor(fail).ask, "utf-16"))
    for path in (file, fresh):
        buffers.opened(path.as_uri(), 1, "x")
    file.unlink()
    assert buffers.buffer(file) is None
    assert [each.path for each in buffers.buffers()] == [fresh]  # never was a file: the person's
    buffers.changed(file.as_uri(), 2, ["typed"])
    found = buffers.buffer(file)
    assert found is not None and found.text == "typed"
