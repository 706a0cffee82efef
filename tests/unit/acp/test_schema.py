"""What clients send: malformed optional fields take their default, bad items are left out, the rest is an error."""

from typing import Any

import pytest

from amanu.frontends.acp.handshake import initialize_result
from amanu.frontends.acp.peer import RpcError
from amanu.frontends.acp.schema import ClientFeatures, SetupParams, mcp_servers_of, parse


@pytest.mark.parametrize(
    ("servers", "names"),
    [
        (None, []),
        ("nonsense", []),
        ([{"name": "a", "command": "/x", "args": [], "env": []}], ["a"]),
        ([{"type": "stdio", "name": "a", "command": "/x"}], ["a"]),
        ([{"type": "http", "name": "b", "url": "https://x", "headers": [{"name": "A", "value": "B"}]}], ["b"]),
        ([{"type": "sse", "name": "c", "url": "https://x"}, {"name": "d"}, 3, {"name": "e", "command": "/x"}], ["e"]),
    ],
    ids=str,
)
def test_servers(servers: Any, names: list[str]) -> None:
    params = parse(SetupParams, {"cwd": "/w", "mcpServers": servers, "additionalDirectories": 7})
    assert params.additional_directories == []
    assert [server.name for server in mcp_servers_of(params)] == names


@pytest.mark.parametrize("params", [None, [], {}, {"cwd": 3}], ids=str)
def test_a_required_field_is_required(params: Any) -> None:
    with pytest.raises(RpcError) as caught:
        parse(SetupParams, params)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("params", "features"),
    [
        (None, ClientFeatures()),
        ({"clientInfo": 3, "clientCapabilities": []}, ClientFeatures()),
        ({"clientInfo": {"name": "zed", "title": "Zed"}}, ClientFeatures(name="Zed")),
        ({"clientInfo": {"name": "zed", "title": None}}, ClientFeatures(name="zed")),
        (
            {"clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": "yes"}, "elicitation": {"form": {}}}},
            ClientFeatures(reads=True, forms=True),
        ),
        (
            {"clientCapabilities": {"session": {"notices": {}, "compaction": None}}},
            ClientFeatures(notices=True),
        ),
    ],
    ids=str,
)
def test_features(params: Any, features: ClientFeatures) -> None:
    assert ClientFeatures.of(params) == features


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": "1"}, {"protocolVersion": True}], ids=str)
def test_initialize_needs_a_version(params: Any) -> None:
    with pytest.raises(TypeError, match="protocolVersion"):
        initialize_result(params)
