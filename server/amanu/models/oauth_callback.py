"""The page on this machine to which the browser is redirected after a sign-in, served only while Amanu waits for it
(RFC 8252, 7.3)."""

import asyncio
import contextlib
import hmac
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

_LONGEST = 8192
"""Bytes of a request's head."""
_PATIENCE = 10.0
"""Seconds a request may take to arrive."""
_MOST = 20
"""Connections at once: a browser opens a few."""
_ID = re.compile(r"[\w.-]{1,200}")
_CODE = re.compile(r"[\x21-\x7e]{1,4096}")


@dataclass(frozen=True)
class Callback:
    """The query of the redirect: a code, or an error code such as `access_denied`."""

    code: str = field(default="", repr=False)
    client_id: str = ""
    error: str = ""
    issuer: str = ""
    """Who answers (RFC 9207), if it says so."""


class CallbackListener:
    """Waits on a free port of 127.0.0.1 for `GET PATH?state=…`; everything else is refused and changes nothing."""

    def __init__(self, path: str, service: str = "ChatGPT") -> None:
        """`service`: to whom the user signs in, for the page they see."""
        self._path = path
        self._service = service
        self._state = ""
        self._received: asyncio.Future[Callback] = asyncio.get_running_loop().create_future()
        self._talking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._is_open = False
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def received(self, state: str, seconds: float) -> Callback:
        """The first answer that has this state. Raises `TimeoutError`."""
        self._state = state
        async with asyncio.timeout(seconds):
            callback = await asyncio.shield(self._received)
        if self._talking:  # the page is still on its way
            await asyncio.wait(self._talking, timeout=1)
        return callback

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator["CallbackListener"]:
        """Listen until the block ends; then close the port and all connections."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_LONGEST)
        self.port = server.sockets[0].getsockname()[1]
        self._is_open = True
        try:
            yield self
        finally:
            self._is_open = False
            try:
                await _stop(server)
            finally:
                for task, writer in self._talking.items():
                    task.cancel()
                    writer.transport.abort()  # a task that has not begun closes nothing
                await asyncio.gather(*self._talking, return_exceptions=True)
                self._received.cancel()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._talking) >= _MOST or not self._is_open:  # accepted while it was closed
            return writer.transport.abort()
        task = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._talking[task] = writer
        task.add_done_callback(self._talking.pop)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    status, words = 431, "This request is too long."
                else:
                    status, words = self._answer(head.decode("latin-1"))
                writer.write(_page(status, words))
                await writer.drain()
                if writer.can_write_eof():
                    writer.write_eof()
        except (OSError, asyncio.IncompleteReadError):  # a TimeoutError is one, too
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> tuple[int, str]:
        """Status and text of the page."""
        line, *headers = head.split("\r\n")
        method, _, target = line.partition(" ")
        target = target.rpartition(" ")[0]
        hosts = [
            value.strip() for name, _, value in (each.partition(":") for each in headers) if name.lower() == "host"
        ]
        if hosts != [f"127.0.0.1:{self.port}"]:
            return 421, "This page is only for signing in from this machine."
        address = urlsplit(target) if target.startswith("/") and not target.startswith("//") else None
        if address is None or address.path != self._path:
            return 404, "There is no page at this address."
        if method != "GET":
            return 405, "This page supports only GET requests."
        pairs = parse_qsl(address.query, max_num_fields=50) if address.query.count("&") < 50 else []
        query = dict(pairs)
        state = query.get("state", "")
        if not self._state or not hmac.compare_digest(state.encode(), self._state.encode()) or len(pairs) != len(query):
            return 400, "This does not belong to the sign-in that Amanu is waiting for. Start again in Amanu."
        if self._received.done():
            return 409, "Amanu already has this response. You can close this page."
        return self._taken(query)

    def _taken(self, query: dict[str, str]) -> tuple[int, str]:
        code, client_id, error = (query.get(name, "") for name in ("code", "client_id", "error"))
        if error:
            self._received.set_result(Callback(error=error if _ID.fullmatch(error) else "unknown"))
            return 200, f"{self._service} did not sign you in. You can close this page; Amanu shows what to do next."
        if not _CODE.fullmatch(code) or (client_id and not _ID.fullmatch(client_id)):
            self._received.set_result(Callback(error="malformed_answer"))
            return 400, "Amanu cannot read this response. Start again in Amanu."
        issuer = query.get("iss", "")
        self._received.set_result(Callback(code, client_id, issuer=issuer if _CODE.fullmatch(issuer) else ""))
        return 200, f"{self._service} has responded. You can close this page; Amanu shows whether you are signed in."


async def _stop(server: asyncio.Server) -> None:
    """Close it; first what it has accepted gets its transport, which CPython before 3.12 would lose."""
    try:
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    finally:
        server.close()


def _page(status: int, words: str) -> bytes:
    """A page of one text, with nothing from the request in it."""
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Amanu</title>'
        f"<h1>Amanu</h1><p>{words}</p></html>\n"
    ).encode()
    head = (
        f"HTTP/1.1 {status} Amanu\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n"
    )
    return head.encode() + body
