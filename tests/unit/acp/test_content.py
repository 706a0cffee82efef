"""The content of a prompt → text and attachments."""

from typing import Any

import pytest

from amanu.frontends.acp.content import prompt_of
from amanu.frontends.acp.peer import RpcError
from amanu.frontends.acp.schema import PromptParams, blocks_of


def blocks(*content: Any) -> Any:
    return prompt_of(blocks_of(PromptParams.model_validate({"sessionId": "s", "prompt": list(content)})))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def link(uri: str, name: str = "a.py") -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": name}


def resource(uri: str, **content: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, **content}}


@pytest.mark.parametrize(
    ("content", "words", "attachments"),
    [
        ([text("Why?")], "Why?", []),
        (
            [text("Why does "), link("file:///w/a.py"), text(" fail?")],
            "Why does `a.py` fail?",
            [("file", "/w/a.py", None)],
        ),
        ([text("x"), link("file:///w/a%20b.py#L3-L9", "a b.py")], "x`a b.py`", [("file", "/w/a b.py", (3, 9))]),
        ([text("x"), link("file:///w/a.py#L3:9")], "x`a.py`", [("file", "/w/a.py", (3, 9))]),
        ([text("x"), link("/w/a.py")], "x`a.py`", [("file", "/w/a.py", None)]),
        ([text("See "), link("https://example.com/x", "x")], "See [x](https://example.com/x)", []),
        ([text("x "), resource("file:///w/a.py", text="1\n2\n")], "x `a.py`", [("selection", "/w/a.py", (1, 2))]),
        ([text("x "), resource("file:///w/a.py#L5-L6", text="5\n6")], "x `a.py`", [("selection", "/w/a.py", (5, 6))]),
        ([text("x "), resource("file:///w/a.bin", blob="AA==")], "x `a.bin`", [("file", "/w/a.bin", None)]),
        (
            [text("x"), resource("zed:///thread/1", text="earlier")],
            'x\n<resource uri="zed:///thread/1">\nearlier\n</resource>\n',
            [],
        ),
        (
            [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
            "See what is attached.",
            [("image", "Pasted image", None)],
        ),
    ],
    ids=str,
)
def test_prompts(content: list[Any], words: str, attachments: list[Any]) -> None:
    said, attached = blocks(*content)
    assert said == words
    assert [
        (
            each.kind,
            each.name if each.kind == "image" else each.path,
            None if each.kind == "image" or each.lines is None else (each.lines.first, each.lines.last),
        )
        for each in attached
    ] == attachments


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ([], None),
        ([text("  ")], None),
        ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], "prompt.0"),
        ([text("x"), {"type": "text"}], "prompt.1.text"),
        ([text("x"), 3], "prompt.1"),
        ([{"type": "image", "data": "", "mimeType": "image/tiff"}], None),
    ],
    ids=str,
)
def test_what_cannot_be_said(content: list[Any], path: str | None) -> None:
    with pytest.raises(RpcError) as caught:
        blocks(*content)
    assert caught.value.code == -32602
    assert path is None or str(caught.value).startswith(path)
