"""Which way requests go: through the proxy the environment names, never through one to ourselves."""

import asyncio

import pytest

from amanu.models.connection import http_client, tls_for


async def asked(base_url: str) -> list[str]:
    """The first lines that a proxy at `HTTP_PROXY` gets when something is asked of the address."""
    lines: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readuntil(b"\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
            patch.setenv("NO_PROXY", "inside.test")
            async with http_client(base_url.format(port=port), tls_for(base_url)) as http:
                answer = await http.post(f"{base_url.format(port=port)}/v1", content=b"{}")
    assert answer.text == "ok"
    return lines


async def test_the_proxy_of_the_environment_is_used() -> None:
    assert await asked("http://models.test") == ["POST http://models.test/v1 HTTP/1.1\r\n"]


async def test_what_is_here_is_asked_directly() -> None:
    assert await asked("http://127.0.0.1:{port}") == ["POST /v1 HTTP/1.1\r\n"]


async def test_hosts_that_want_no_proxy() -> None:
    with pytest.raises(Exception, match=r"the network, but one asked for inside\.test"):
        await asked("http://inside.test")
