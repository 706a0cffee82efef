"""Questions to a client about code: clients that answer, and others. None keeps a caller waiting."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp import editor_queries as module
from amanu.frontends.lsp.buffers import Buffers, EditorClient
from amanu.frontends.lsp.editor_queries import EditorLanguage
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.workspace.overlay import Question
from amanu_protocol import requests as r

ALL = ("diagnostics", "definition", "references", "symbols", "apply")
PLACE = {"path": "/d/a.py", "startLine": 1, "endLine": 2}


class FakeClient:
    """What the client does with a question."""

    def __init__(
        self, answer: Callable[[], Any], *, offers: tuple[str, ...] = ALL, places: tuple[str, ...] = ()
    ) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answer = answer
        self.buffers = Buffers(EditorClient("Test", self.ask, "utf-16"))
        self.language = EditorLanguage("Test", self.ask, offers, self.buffers, lambda: map(Path, places))

    async def ask(self, method: str, params: Any) -> Any:
        self.asked.append((method, params.model_dump()))
        result = self._answer()
        return await result if asyncio.iscoroutine(result) else result


def gone() -> Any:
    raise ClientError("The client has disconnected.")


async def never() -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ({"status": "success", "locations": [PLACE]}, "success", None),
        ({"status": "success", "locations": [PLACE], "more": {"of": "a newer client"}}, "success", None),
        ({"status": "success"}, "success", None),
        ({"status": "starting"}, "starting", None),
        ({"status": "noServer"}, "noServer", None),
        ({"status": "error", "message": "broke"}, "error", "broke"),
        ({"status": "perhaps"}, "error", "its answer is invalid"),
        ({"locations": []}, "error", "its answer is invalid"),
        ({"status": "success", "locations": [{"path": 3, "startLine": "x"}]}, "error", "its answer is invalid"),
        ({"status": "success", "locations": {"path": "/d"}}, "error", "its answer is invalid"),
        ({"status": "success", "locations": None}, "error", "its answer is invalid"),
        ([], "error", "its answer is invalid"),
        (None, "error", "its answer is invalid"),
        ("x" * 99, "error", "its answer is invalid"),
        (gone, "error", "The client has disconnected."),
        (never, "error", "no answer within 0.05 seconds"),
    ],
)
async def test_answers(answer: Any, status: str, message: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER", 0.05)
    client = FakeClient(answer if callable(answer) else lambda: answer)
    result = await client.language.definition(r.EditorPositionParams(path="/d/a.py", line=3, character=4))
    assert (result.status, result.message) == (status, message)
    assert client.asked == [("amanu/editor/definition", {"path": "/d/a.py", "line": 3, "character": 4})]


async def test_a_file_is_named_as_its_editor_knows_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real" / "f"), str(tmp_path / "link" / "f")
    client = FakeClient(lambda: {"status": "success"})
    client.buffers.opened(Path(link).as_uri(), 1, "x")
    await client.language.diagnostics(r.EditorDiagnosticsParams(paths=[real, "/other"]))
    await client.language.references(r.EditorPositionParams(path=real, line=1, character=0))
    await client.language.symbols(r.EditorSymbolsParams(path=real))
    await client.language.symbols(r.EditorSymbolsParams(query="q"))
    await client.language.hover(r.EditorPositionParams(path=real, line=1, character=0))
    await client.language.call_hierarchy(
        r.EditorCallHierarchyParams(path=real, line=1, character=0, direction="incoming")
    )
    await client.language.rename(r.EditorRenameParams(path=real, line=1, character=0, new_name="x"))
    assert [params for _, params in client.asked] == [
        {"paths": [link, "/other"]},
        {"path": link, "line": 1, "character": 0},
        {"path": link, "query": None},
        {"path": None, "query": "q"},
        {"path": link, "line": 1, "character": 0},
        {"path": link, "line": 1, "character": 0, "direction": "incoming"},
        {"path": link, "line": 1, "character": 0, "newName": "x"},
    ]


@pytest.mark.parametrize(
    ("question", "path", "offers", "places", "answers"),
    [
        ("definition", "/d/a.py", ALL, ("/d",), True),
        ("definition", "/d/a.py", ("apply", "symbols"), ("/d",), False),
        ("definition", "/d/a.py", (), ("/d",), False),
        ("definition", "/d/a.py", ALL, ("/e", "/d/b"), False),
        ("definition", "/dd/a.py", ALL, ("/d",), False),
        ("definition", "/open/f.py", ALL, (), True),
        ("definition", "/open/g.py", ALL, (), False),
        ("symbols", "/d", ALL, ("/d/part",), True),  # it shows a part of the folder
    ],
)
def test_who_can_be_asked(
    question: Question, path: str, offers: tuple[str, ...], places: tuple[str, ...], answers: bool
) -> None:
    client = FakeClient(lambda: None, offers=offers, places=places)
    client.buffers.opened("file:///open/f.py", 1, "")
    assert client.language.answers(question, Path(path)) is answers
