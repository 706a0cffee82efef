"""Opens the connection to a server: what is imported only when one starts."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from amanu.mcp.config import ServerConfig
from amanu.mcp.connection import Connection, Timing
from amanu.mcp.errors import first
from amanu.mcp.events import event_streams
from amanu.mcp.http import http_streams
from amanu.mcp.link import Link, Streams
from amanu.mcp.process import StartFailed
from amanu.mcp.server_log import ServerLog
from amanu.mcp.sign_in import CALLBACK_PATH, Browser, ServerAuth, TokenStore
from amanu.mcp.stdio import stdio_streams
from amanu.models.oauth_callback import CallbackListener
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from amanu.mcp.servers import Servers

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"([\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?)?")
"""What can be sent (RFC 9110, section 5), in ASCII."""


def make_connection(
    config: ServerConfig, roots: tuple[Path, ...], servers: "Servers", log: ServerLog, changed: Callable[[], None]
) -> Connection:
    """A connection that is not open yet."""

    @asynccontextmanager
    async def open_process(link: Link) -> AsyncGenerator[Streams]:
        if reason := await asyncio.to_thread(servers.check_files, config, roots):
            raise StartFailed(reason)
        command = await asyncio.to_thread(servers.variables.command, config, roots)
        async with stdio_streams(command, servers.sandbox, log, link) as streams:
            yield streams

    @asynccontextmanager
    async def open_address(link: Link) -> AsyncGenerator[Streams]:
        address, headers = _address(config, roots, servers)
        auth = ServerAuth(address, TokenStore(servers.tokens, address), link)
        async with _streams(config)(address, headers, auth, log, link) as streams:
            yield streams

    table = config.table
    open_streams = open_process if config.kind == "stdio" else open_address
    timing = Timing(table.start_seconds, table.call_seconds, table.idle_seconds)
    is_users = config.root is None
    return Connection(config.name, open_streams, roots, timing, log, changed, is_users, config.session_id)


async def sign_in(
    config: ServerConfig, roots: tuple[Path, ...], servers: "Servers", log: ServerLog, open_page: Callable[[str], None]
) -> None:
    """Sign in; returns when that is done, at once where it is not asked for. Raises `AmanuError` (authRequired)."""
    async with CallbackListener(CALLBACK_PATH, config.name).listening() as listener:
        link = Link()
        failure = ""
        auth: ServerAuth | None = None
        try:
            address, headers = _address(config, roots, servers)
            auth = ServerAuth(address, TokenStore(servers.tokens, address), link, Browser(listener, open_page))
            async with Client(_streams(config)(address, headers, auth, log, link), cache=None):  # pyright: ignore[reportArgumentType]
                return
        except* StartFailed as group:
            failure = str(first(group))
        except* (MCPError, OAuthFlowError, httpx2.HTTPError, RuntimeError, ValidationError) as group:
            failure = auth.failure if auth is not None and auth.failure else str(first(group))
    raise AmanuError("authRequired", f"You are not signed in to {config.name}: {failure.rstrip('.')}.")


def _streams(config: ServerConfig) -> Callable[..., AbstractAsyncContextManager[Streams]]:
    return event_streams if config.has_events else http_streams


def _address(config: ServerConfig, roots: tuple[Path, ...], servers: "Servers") -> tuple[str, dict[str, str]]:
    """Where the server is, and the headers of each request. Raises `StartFailed`."""
    variables = servers.variables
    headers = {name: variables.expanded(config, value, roots) for name, value in config.table.headers.items()}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):  # or an error would show the value
            raise StartFailed(f"The header {name!r} of {config.source} cannot be sent: its name or value is not valid.")
    return variables.expanded(config, config.table.url, roots), headers
