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
from amanu.text.code_units import Encoding
from amanu.workspace.overlay import CodePlace, Question
from amanu_protocol import requests as r

ALL = ("diagnostics", "definition", "references", "symbols", "apply")
PLACE = {"path": "/d/a.py", "lines": {"start": 0, "end": 2}}


class FakeClient:
    """What the client does with a question."""

    def __init__(
        self,
        answer: Callable[[], Any],
        *,
        offers: tuple[str, ...] = ALL,
        places: tuple[str, ...] = (),
        encoding: Encoding = "utf-16",
    ) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answer = answer
        client = EditorClient("Test", self.ask, encoding)
        self.buffers = Buffers(client)
        self.language = EditorLanguage(client, offers, self.buffers, lambda: map(Path, places))

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
        (
            {"status": "success", "locations": [{"path": "/d/a.py", "lines": {"start": "x", "end": 2}}]},
            "error",
            "its answer is invalid",
        ),
        ({"status": "success", "locations": {"path": "/d"}}, "error", "its answer is invalid"),
        (
            {"status": "success", "locations": [{**PLACE, "lines": {"start": 2, "end": 1}}]},
            "error",
            "its answer is invalid",
        ),
        (
            {"status": "success", "locations": [{"path": "/d/a.py", "startLine": 1, "endLine": 2}]},
            "error",
            "its answer is invalid",
        ),
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
    result = await client.language.definition(CodePlace(Path("/d/a.py"), 3, "    "))
    assert (result.status, result.message) == (status, message)
    assert client.asked == [("amanu/editor/definition", {"path": "/d/a.py", "position": {"line": 3, "character": 4}})]


END = {"line": 0, "character": 2}
RENAMED = {"range": {"start": {"line": 0, "character": 1}, "end": END}, "newText": "x"}
BACKWARDS = {"start": {"line": 1, "character": 0}, "end": {"line": 0, "character": 2}}
FLAT = {"startLine": 0, "startCharacter": 1, "endLine": 0, "endCharacter": 2, "newText": "x"}


@pytest.mark.parametrize(
    ("edit", "status"),
    [
        (RENAMED, "success"),
        ({**RENAMED, "range": BACKWARDS}, "error"),
        ({**RENAMED, "range": {"start": {"line": -1, "character": 0}, "end": END}}, "error"),
        ({"range": {"start": {"line": 0}}, "newText": "x"}, "error"),
        (FLAT, "error"),  # of version 3
    ],
)
async def test_an_edit_has_a_range(edit: dict[str, Any], status: str) -> None:
    client = FakeClient(lambda: {"status": "success", "files": [{"path": "/d/a.py", "edits": [edit]}]})
    answer = await client.language.rename(CodePlace(Path("/d/a.py"), 0, "a"), "x")
    assert (answer.status, len(answer.files)) == (status, status == "success")
    assert answer.message == (None if status == "success" else "its answer is invalid")


@pytest.mark.parametrize(("encoding", "character"), [("utf-8", 7), ("utf-16", 4), ("utf-32", 3)])
async def test_characters_are_counted_as_the_client_does(encoding: Encoding, character: int) -> None:
    client = FakeClient(lambda: {"status": "success"}, encoding=encoding)
    await client.language.hover(CodePlace(Path("/d/a.py"), 2, "😀é "))
    ((_, asked),) = client.asked
    assert asked["position"] == {"line": 2, "character": character}


async def test_a_file_is_named_as_its_editor_knows_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = str(tmp_path / "real" / "f"), str(tmp_path / "link" / "f")
    client = FakeClient(lambda: {"status": "success"})
    place, position = CodePlace(Path(real), 1, ""), {"line": 1, "character": 0}
    client.buffers.opened(Path(link).as_uri(), 1, "x")
    await client.language.diagnostics(r.EditorDiagnosticsParams(paths=[real, "/other"]))
    await client.language.references(place)
    await client.language.symbols(r.EditorSymbolsParams(path=real))
    await client.language.symbols(r.EditorSymbolsParams(query="q"))
    await client.language.hover(place)
    await client.language.call_hierarchy(place, "incoming")
    await client.language.rename(place, "x")
    assert [params for _, params in client.asked] == [
        {"paths": [link, "/other"]},
        {"path": link, "position": position},
        {"path": link, "query": None},
        {"path": None, "query": "q"},
        {"path": link, "position": position},
        {"path": link, "position": position, "direction": "incoming"},
        {"path": link, "position": position, "newName": "x"},
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
