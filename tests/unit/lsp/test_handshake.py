"""The early answer to `initialize`: the same as the real one, from nothing but the standard library."""

import json
import subprocess
import sys
from typing import Any

import pytest

from amanu.frontends.lsp import handshake as early
from amanu.frontends.lsp.handshake import BadParams, answer_first, initialize_result
from amanu.frontends.lsp.plain.client import PlainClient
from amanu.system.frames import frame
from amanu_protocol.methods import METHODS, PROTOCOL_VERSION
from amanu_protocol.requests import ServerCapabilities


def test_the_written_out_tables_are_the_tables() -> None:
    assert tuple(each.name for each in METHODS if each.direction == "toDaemon") == early.METHODS
    assert early.PROTOCOL_VERSIONS[-1] == PROTOCOL_VERSION


def test_commands_are_those_of_the_plain_front() -> None:
    assert tuple(PlainClient.COMMANDS) == early.COMMANDS


@pytest.mark.parametrize(
    ("experimental", "options", "plain"),
    [
        (None, None, True),
        ({}, {}, True),
        ({"somebody": 1}, {"amanu": 1}, True),
        ({"amanu": {"protocol": [4]}}, None, False),
        ({"amanu": {"protocol": [99]}}, None, False),
        ({"amanu": {"protocol": [4]}}, {"amanu": {"standard": True}}, True),
        ({"amanu": {"protocol": [4]}}, {"amanu": {"standard": "yes"}}, False),
    ],
)
def test_only_a_plain_client_is_shown_our_code_actions(experimental: Any, options: Any, plain: bool) -> None:
    given: dict[str, Any] = {"capabilities": {"experimental": experimental, "textDocument": {"codeLens": {}}}}
    said = initialize_result({**given, "initializationOptions": options})["capabilities"]
    offers = ("codeActionProvider", "hoverProvider", "executeCommandProvider", "codeLensProvider", "completionProvider")
    assert [each in said for each in offers] == [plain] * 5


def params(amanu: Any = None, **general: Any) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"general": general}
    if amanu is not None:
        capabilities["experimental"] = {"amanu": amanu}
    return {"processId": 1, "rootUri": None, "capabilities": capabilities}


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, "utf-16"),
        ([], "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-32", "utf-8"], "utf-32"),
        (["utf-7", "utf-8"], "utf-8"),
        (["utf-7"], "utf-16"),
    ],
)
def test_position_encoding(offered: Any, chosen: str) -> None:
    assert initialize_result(params(positionEncodings=offered))["capabilities"]["positionEncoding"] == chosen


@pytest.mark.parametrize(
    ("amanu", "version"),
    [
        ({"protocol": [4]}, 4),
        ({"protocol": [1, 2, 4, 99]}, 4),
        ({"protocol": [1, 2]}, None),
        ({"protocol": []}, None),
        (None, None),
    ],
)
def test_version(amanu: Any, version: int | None) -> None:
    capabilities = initialize_result(params(amanu))["capabilities"]
    if version is None:
        assert "experimental" not in capabilities
    else:
        said = ServerCapabilities.model_validate(capabilities["experimental"]["amanu"])
        assert said.protocol == version


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, "params"),
        ([], "params"),
        ({}, "capabilities"),
        ({"capabilities": 3}, "capabilities"),
        ({"capabilities": {}, "processId": "1"}, "processId"),
        ({"capabilities": {}, "processId": True}, "processId"),
        ({"capabilities": {}, "workspaceFolders": {}}, "workspaceFolders"),
        ({"capabilities": {}, "workspaceFolders": [{"uri": 1}]}, "workspaceFolders.*.uri"),
        (params(positionEncodings="utf-8"), "capabilities.general.positionEncodings"),
        (params({}), "capabilities.experimental.amanu.protocol"),
        (params({"protocol": "1"}), "capabilities.experimental.amanu.protocol"),
        (params({"protocol": [True]}), "capabilities.experimental.amanu.protocol"),
        (params({"protocol": [4], "editor": "apply"}), "capabilities.experimental.amanu.editor"),
        (params({"protocol": [4], "trustedRoots": [1]}), "capabilities.experimental.amanu.trustedRoots"),
        (params({"protocol": [4], "ripgrep": 1}), "capabilities.experimental.amanu.ripgrep"),
        (params([1]), "capabilities.experimental.amanu"),
    ],
)
def test_bad_params_name_the_field(given: Any, path: str) -> None:
    with pytest.raises(BadParams) as caught:
        initialize_result(given)
    assert caught.value.error()["data"] == {"kind": "invalidParams", "path": path}


def test_experimental_of_others_is_none_of_our_business() -> None:
    for experimental in (None, True, [1], {"other": 3}):
        initialize_result({"capabilities": {"experimental": experimental}})


INITIALIZE = frame(json.dumps({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params()}).encode())


@pytest.mark.parametrize(
    ("pieces", "answered"),
    [
        ([INITIALIZE], True),
        ([INITIALIZE + b"Content-Length: 2"], True),
        ([INITIALIZE[:60], INITIALIZE[60:]], True),
        ([INITIALIZE.replace(b'"initialize"', b'"shutdown"  ')], False),
        ([INITIALIZE.replace(b'"a"', b"1.5")], False),
        ([frame(b"nonsense")], False),
        ([frame(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')], False),
        ([frame(b"[" * 100_000)], False),
        ([b"garbage {"], False),
        ([b""], False),
        ([INITIALIZE[:70], b""], False),
    ],
)
def test_answer_first(pieces: list[bytes], answered: bool) -> None:
    written: list[bytes] = []
    rest = iter(pieces)
    first = answer_first(lambda: next(rest), written.append)
    assert first.answered is answered
    assert first.received == b"".join(pieces)
    assert len(written) == (1 if answered else 0)
    if answered:
        reply = json.loads(written[0].partition(b"\r\n\r\n")[2])
        assert reply == {"jsonrpc": "2.0", "id": "a", "result": initialize_result(params())}


@pytest.mark.parametrize("module", ["amanu.daemon.relay", "amanu.daemon.standalone"])
def test_nothing_heavy_before_the_answer(module: str) -> None:
    """Not a clock, which a busy machine makes lie, but what costs the time: imports."""
    heavy = ["pydantic", "pygls", "lsprotocol", "cattrs", "attrs", "dataclasses", "inspect"]
    if module == "amanu.daemon.standalone":
        heavy = heavy[:5]  # asyncio, which it needs anyway, brings the others
    code = f"import sys, {module}; print([each for each in {heavy} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
