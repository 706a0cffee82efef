"""Files through the client: what it shows, edits that fit what it shows, line ends."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.frontends.acp.files import ClientFiles, editor_requests
from amanu.frontends.acp.peer import ClientDisconnected, Peer, RpcError
from amanu.frontends.acp.schema import ClientFeatures
from amanu_protocol.requests import EditorApplyParams
from support.range_edits import text_edit


class Editor:
    """A client with one file."""

    def __init__(self, text: str | Exception) -> None:
        self.text = text

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        if isinstance(self.text, Exception):
            raise self.text
        if method == "fs/read_text_file":
            return {"content": self.text}
        self.text = params["content"]
        return {}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("features", "requests"),
    [
        (ClientFeatures(), []),
        (ClientFeatures(writes=True), []),
        (ClientFeatures(reads=True), ["read"]),
        (ClientFeatures(reads=True, writes=True), ["read", "apply"]),
        (ClientFeatures(name="CodeCompanion.nvim", reads=True, writes=True), []),
    ],
)
def test_requests_that_can_be_answered(features: ClientFeatures, requests: list[str]) -> None:
    assert editor_requests(features) == requests


@pytest.mark.parametrize(
    ("on_disk", "shown", "seen"),
    [
        ("a\nb\n", "a\nunsaved\n", "a\nunsaved\n"),
        ("a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n"),
        ("a\r\nb\n", "a\nb\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        (None, "new\n", "new\n"),
        ("a\n", RpcError(-32002, "no such file"), None),
    ],
)
async def test_reading(tmp_path: Path, on_disk: str | None, shown: str | Exception, seen: str | None) -> None:
    path = tmp_path / "f"
    if on_disk is not None:
        path.write_bytes(on_disk.encode())
    files = ClientFiles(cast("Peer", Editor(shown)), "s")
    assert await files.answer("amanu/editor/read", {"path": str(path)}) == {"text": seen}


@pytest.mark.parametrize(
    ("shown", "expected", "status", "written"),
    [
        ("a\nb\n", "a\r\nb\r\n", "success", "a\nB\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "success", "a\r\nB\r\n"),
        ("a\r\ntyped\r\n", "a\r\nb\r\n", "conflict", "a\r\ntyped\r\n"),
    ],
)
async def test_editing(tmp_path: Path, shown: str, expected: str, status: str, written: str) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\n")
    editor = Editor(shown)
    edit = EditorApplyParams(
        path=str(tmp_path / "f"),
        expected_sha256=sha256(expected),
        edits=[text_edit((1, 0), (1, 1), "B")],
        save=True,
    )
    answer = await ClientFiles(cast("Peer", editor), "s").answer("amanu/editor/apply", edit.model_dump(mode="json"))
    assert answer["status"] == status
    assert editor.text == written
    if status == "success":
        assert answer["sha256"] == sha256("a\r\nB\r\n"), "as it will be on the disk"


async def test_a_client_that_is_gone_has_not_said_that_there_is_no_file(tmp_path: Path) -> None:
    files = ClientFiles(cast("Peer", Editor(ClientDisconnected())), "s")
    with pytest.raises(ClientDisconnected):
        await files.answer("amanu/editor/read", {"path": str(tmp_path / "f")})
    edit = EditorApplyParams(path=str(tmp_path / "f"), expected_sha256="", edits=[], save=True)
    answer = await files.answer("amanu/editor/apply", edit.model_dump(mode="json"))
    assert answer["status"] == "error"


async def test_other_requests_are_unknown(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        await ClientFiles(cast("Peer", Editor("")), "s").answer("amanu/editor/hover", {})
