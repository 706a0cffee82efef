"""Messages to and from a server's process: one JSON object a line.

The SDK's own transport starts the process itself, outside any sandbox, and has no limit for a line.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import orjson
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage

from amanu.mcp.link import Link, Streams
from amanu.mcp.process import Command, ServerProcess, running
from amanu.mcp.repair import Traffic
from amanu.mcp.server_log import ServerLog
from amanu.mcp.streams import IncomingStream, Stream
from amanu.mcp.withheld import withheld
from amanu.sandbox.sandbox import Sandbox

MAX_LINE = 16 << 20
"""Bytes of a message; a longer one is skipped."""
_WRITE_SECONDS = 15.0
"""That a server may take to read a message."""
_CHUNK = 1 << 16
_IN_THREAD = 1 << 18
"""Bytes of a line whose parsing would hold up the event loop."""
_ID = re.compile(rb'"id"\s*:\s*(\d{1,9})\b')
_SEEN = 512
"""Bytes of the beginning and the end of a skipped line, to see which request it answers."""


_NOT_STARTED = (126, 127)
"""What a shell ends with when it may not, or cannot, start a program (POSIX, Shell Command Language, 2.8.2)."""
_HIDDEN = (
    "The sandbox does not show {program}, or a program it needs. Add its folder to `read` below [sandbox] in "
    "config.toml, or install it elsewhere."
)


@asynccontextmanager
async def stdio_streams(command: Command, sandbox: Sandbox, log: ServerLog, link: Link) -> AsyncGenerator[Streams]:
    """Start the server and exchange messages with it. Raises `StartFailed`."""
    log.forget_tail()
    async with running(command, sandbox, log) as process:
        traffic = Traffic(lambda line: log.write(f"amanu: {line}\n"))
        try:
            yield _Incoming(process, traffic, log, link), _Outgoing(process, traffic, link)
        finally:
            if link.ended.is_set() and not link.reason:
                link.explain(_why_it_ended(await process.code(), command, log))


def _why_it_ended(code: int | None, command: Command, log: ServerLog) -> str:
    program = Path(command.argv[0])
    if code in _NOT_STARTED and command.requirements.place.base != "machine" and program.exists():
        return _HIDDEN.format(program=program)
    ended = "It closed its output" if code is None else f"It ended with code {code}"
    reason = f"{ended}: {log.reason.rstrip('.')}." if log.reason else f"{ended}."
    return f"{reason} {withheld(command.access, log.tail)}".rstrip()


class _Outgoing(Stream):
    def __init__(self, process: ServerProcess, traffic: Traffic, link: Link) -> None:
        self._stdin = process.stdin
        self._traffic = traffic
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        self._traffic.outgoing(item.message)
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                self._stdin.write(data + b"\n")
                await self._stdin.drain()
        except TimeoutError:
            self._link.end(f"It has not read its input for {_WRITE_SECONDS:.0f} seconds.")
            raise anyio.BrokenResourceError from None
        except (OSError, RuntimeError):
            self._link.end()
            raise anyio.BrokenResourceError from None


class _Incoming(IncomingStream):
    def __init__(self, process: ServerProcess, traffic: Traffic, log: ServerLog, link: Link) -> None:
        self._stdout = process.stdout
        self._traffic = traffic
        self._log = log
        self._link = link
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._messages: deque[JSONRPCMessage] = deque()

    async def receive(self) -> SessionMessage | Exception:
        while not self._messages:
            if self._lines:
                await self._parse(self._lines.popleft())
                continue
            data = await self._read()
            if not data:
                self._link.end()
                raise anyio.EndOfStream
            first, *rest = data.split(b"\n")
            self._append(first)
            for part in rest:
                self._end_line()
                self._append(part)
        return SessionMessage(self._messages.popleft())

    async def _read(self) -> bytes:
        try:
            return await self._stdout.read(_CHUNK)
        except OSError:
            return b""

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        self._parts.append(part)
        if self._size > MAX_LINE:  # only its beginning and its end are of any use
            joined = b"".join(self._parts)
            self._parts = [joined[:_SEEN], joined[-_SEEN:]]

    def _end_line(self) -> None:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > MAX_LINE:
            self._log.write(f"amanu: skipped a message of {size:,} bytes; the limit is {MAX_LINE:,}\n")
            for match in _ID.finditer(line):
                self._add(
                    self._traffic.refused(int(match[1]), f"its answer has {size:,} bytes; the limit is {MAX_LINE:,}")
                )
        elif line.strip():
            self._lines.append(line)

    async def _parse(self, line: bytes) -> None:
        if line.lstrip()[:1] not in (b"{", b"["):
            self._log.write(b"(stdout) " + line[:2000] + b"\n")  # a banner, or a print that was left in
            return
        try:
            value = await asyncio.to_thread(_loads, line) if len(line) > _IN_THREAD else _loads(line)
        except ValueError:
            self._log.write(b"amanu: not a message: " + line[:2000] + b"\n")
            return
        # Revision 2025-03-26 had batches.
        for part in cast("list[Any]", value) if isinstance(value, list) else [value]:
            self._add(self._traffic.incoming(part))

    def _add(self, message: JSONRPCMessage | None) -> None:
        if message is not None:
            self._messages.append(message)


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return orjson.loads(line.decode("utf-8", "replace"))
