"""A few hundred frames nobody should send, through the real connection to a real session; many more with
`python -m bench.soak frames`. And what a message may weigh."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.frontends.lsp import message_weight as weight
from amanu.frontends.lsp.message_weight import MAX_VALUES, weigh
from support.frame_fuzzer import Odd, Place, frames, played, suffer
from support.raw_client import AMANU
from support.sweeps import examples


@pytest.mark.parametrize("capabilities", [AMANU, {}], ids=["plugin", "plain"])
async def test_each_is_answered_once_and_never_by_a_fault_of_ours(capabilities: Any) -> None:
    async with played(capabilities) as (client, place):
        assert await suffer(client, 1, place, 250) > 20, "frames that all fail test nothing"


def request(method: str, params: str, id: str = "7") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}'.encode()


REFUSED: tuple[tuple[bytes, Any, int], ...] = (
    (request("amanu/session/list", "3"), 7, -32600),
    (request("amanu/session/list", '"x"'), 7, -32600),
    (request("amanu/session/list", "true"), 7, -32600),
    (request("amanu/session/list", "[]"), 7, -32602),
    (request("amanu/session/list", "NaN"), 7, -32700),
    (request("amanu/session/list", '{"limit":-Infinity}', '"a"'), "a", -32700),
    (request("amanu/session/list", '{"limit":%s}' % ("9" * 5000)), 7, -32700),
    (request("amanu/session/list", "{}", "9" * 5000), None, -32700),
    (request("amanu/session/list", "{}", "9" * 2000), None, -32600),
    (request("amanu/session/list", "{}", '"%s"' % ("i" * 2000)), None, -32600),
    (request("textDocument/didOpen", json.dumps({"textDocument": "x" * 200_000})), 7, -32602),
    (request("workspace/didChangeWorkspaceFolders", json.dumps({"event": {"added": "x" * 200_000}})), 7, -32602),
    (request("workspace/didChangeWorkspaceFolders", json.dumps({"event": {"added": [1] * 200_000}})), 7, -32602),
    (request("amanu/session/create", json.dumps({"sessionId": "a", "roots": [1] * 200_000})), 7, -32602),
    (request("amanu/session/create", json.dumps({"sessionId": "a", "roots": ["/" + "a" * 9000]})), 7, -32602),
    (request("amanu/session/list", json.dumps({"root": "/\0"})), 7, -32602),
    (request("amanu/session/list", '{"a":[%s0]}' % ("0," * MAX_VALUES)), None, -32600),
    (request("window/workDoneProgress/cancel", '{"token":[[]]}'), 7, -32601),
)
"""Body, id and code of the answer."""


async def test_is_refused_under_its_own_id() -> None:
    async with played(AMANU) as (client, _):
        for body, id, code in REFUSED:
            client.send_body(body)
            answer = await client.reply(id)
            assert answer["error"]["code"] == code, f"{body[:200]!r} → {answer}"
        assert "result" in await client.request("amanu/session/list")


async def test_a_request_without_an_id_has_no_effect() -> None:
    """It would answer a question, or start the connection anew, and nobody would hear what became of it."""
    async with played({}) as (client, _):
        shaken = {"processId": None, "capabilities": AMANU}
        client.notify("initialize", shaken)
        client.notify("shutdown", None)
        answer = await client.request("amanu/session/list")
        assert answer["error"]["data"]["kind"] == "unsupportedVersion", "still the plain client it said it was"
    async with played(AMANU) as (client, _):
        client.notify("amanu/session/setMode", {"sessionId": "s", "mode": "auto"})
        client.notify("amanu/session/delete", {"sessionId": "s"})
        state = (await client.request("amanu/session/attach", {"sessionId": "s"}))["result"]["state"]
        assert state["mode"] == "ask"


async def test_a_review_under_no_name_a_file_can_have() -> None:
    async with played({}) as (client, place):
        folder = place.root.parent / "home" / "state" / "documents" / "s-s"
        for name in ("\0", "a" * 300, "a/" * 3000 + "b", "\ud800"):
            command = {"command": "amanu.applyPatch", "arguments": [{"path": f"{folder}/{name}.patch"}]}
            assert "result" in await client.request("workspace/executeCommand", command)
            said = await client.notification("window/showMessage")
            assert "internal error" not in said["message"], said


# What a message weighs ------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\,[{é\n', max_size=12),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(alphabet='a"\\,', max_size=5), inner, max_size=5)
    ),
    max_leaves=30,
)


def count(value: Any) -> int:
    match value:
        case list():
            return 1 + sum(map(count, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case dict():
            return 1 + sum(map(count, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case _:
            return 1


@settings(max_examples=examples(60, 20), deadline=None)
@given(json_values, st.booleans(), st.sampled_from([1, 2, 3, 7, 1 << 18]))
def test_no_value_is_overlooked_and_no_text_is_taken_for_values(value: Any, ascii: bool, piece: int) -> None:
    body = json.dumps(value, ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight, "_PIECE", piece)
        asked = iter([True])  # never the short way, which counts the marks in texts too
        patch.setattr(weight, "_over", lambda values: next(asked, False))  # pyright: ignore[reportUnknownLambdaType]
        *_, found = weigh(body)
    assert count(value) <= found <= 2 * count(value) + 1


def test_a_text_is_one_value_whatever_is_in_it() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight, "MAX_VALUES", 1000)
        *_, found = weigh(json.dumps({"text": ',[{\\"' * 5000}).encode())
        assert found < 10
        *_, found = weigh(b"[" + b'"\\\\\\"",' * 5000 + b"0]")
        assert found > 1000


def test_the_frames_of_a_seed_are_always_the_same(tmp_path: Any) -> None:
    place = Place("s", tmp_path, tmp_path / "a")
    assert list(frames(3, place, 50)) == list(frames(3, place, 50)) != list(frames(4, place, 50))
    assert Odd(3, place).frame() == next(frames(3, place, 1))
