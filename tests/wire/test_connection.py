"""Which way requests go: through the proxy the environment names, never through one to ourselves; over a connection
that is open already, where one can be."""

import asyncio
import datetime
import ipaddress
import ssl
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from amanu.core.model import Unreachable
from amanu.models.http import http_client, tls_for
from amanu.models.limits import KEPT
from support.strict_services.http import Say, Service
from support.vendor_sweeps import over_vendors
from support.vendors import KEY, Vendor, answer, request, running


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


async def connected(service: Service, count: int = 1) -> None:
    """Until the service has been connected to so often."""
    while service.connections < count:
        await asyncio.sleep(0.001)


@over_vendors("http")
async def test_a_connection_is_used_again_after_minutes_of_thought(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(vendor, [Say(text="One."), Say(text="Two."), Say(text="Three.")]) as (service, model):
        await answer(model, request(vendor))
        monkeypatch.setattr("httpcore2._async.http11.time", _clock(KEPT - 1))
        await answer(model, request(vendor))
        assert service.connections == 1
        monkeypatch.setattr("httpcore2._async.http11.time", _clock(2 * KEPT))
        await answer(model, request(vendor))
        assert service.connections == 2, "the pool looks at this clock"


def _clock(ahead: float) -> SimpleNamespace:
    return SimpleNamespace(monotonic=lambda: time.monotonic() + ahead)


@over_vendors("http")
async def test_the_connection_is_open_before_the_first_prompt(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="One."), Say(text="Two.")]) as (service, model):
        await model.connect()
        await connected(service)
        assert service.requests == []
        await answer(model, request(vendor))
        await model.connect()
        await answer(model, request(vendor))
        assert (service.connections, len(service.requests)) == (1, 2)


@over_vendors("http")
async def test_a_connection_that_the_service_closed_is_open_again_before_the_next_prompt(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="One."), Say(text="Two.")]) as (service, model):
        await answer(model, request(vendor))
        await service.hang_up()
        while service.connections == 1:
            await model.connect()
            await asyncio.sleep(0.001)
        await model.connect()
        await answer(model, request(vendor))
        assert service.connections == 2


@over_vendors("http")
async def test_a_prompt_waits_for_the_connection_that_is_being_opened(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="One.")]) as (service, model):
        await model.connect()
        await model.connect()
        await answer(model, request(vendor))
        assert service.connections == 1


@over_vendors("http")
async def test_a_connection_the_service_closed_before_the_first_prompt_is_not_used(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="One.")]) as (service, model):
        await model.connect()
        await connected(service)
        await service.hang_up()
        assert (await answer(model, request(vendor))).message.text == "One."
        assert service.connections == 2


@over_vendors("http")
async def test_no_connection_before_the_first_prompt_is_no_failure(vendor: Vendor) -> None:
    service = vendor.service([])
    url = await service.start()
    await service.stop()
    model = vendor.model(KEY, url)
    await model.connect()
    with pytest.raises(Unreachable):
        await answer(model, request(vendor))
    await model.connect()
    await model.close()


async def test_the_handshake_is_over_before_the_first_request(tmp_path: Path) -> None:
    handshakes: list[str | None] = []
    requests: list[str] = []
    open_now = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handshakes.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        open_now.set()
        while head := await reader.read(1 << 16):
            requests.append(head.split(b"\r\n")[0].decode())
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    here, there = _tls(tmp_path)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=there)
    base_url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, http_client(base_url, here) as http:
        http.connect()
        await open_now.wait()
        assert requests == []
        for _ in range(2):
            assert (await http.get(f"{base_url}/v1")).text == "ok"
    assert (handshakes, requests) == (["http/1.1"], ["GET /v1 HTTP/1.1"] * 2)


async def test_a_service_that_is_not_who_it_should_be_gets_no_connection(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("the handshake fails")

    _, there = _tls(tmp_path)
    here = ssl.create_default_context()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=there)
    base_url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, http_client(base_url, here) as http:
        http.connect()
        with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get(f"{base_url}/v1")


def _tls(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a client and of the server at 127.0.0.1 that it trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    file.write_bytes(
        pem
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(file)
    there.set_alpn_protocols(["http/1.1"])
    return ssl.create_default_context(cadata=pem.decode()), there
