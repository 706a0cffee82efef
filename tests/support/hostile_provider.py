"""A model service that means harm, or is badly broken. `python -m support.hostile_provider` serves until it is
terminated, and prints the port; what it does is said by the first part of the path
(`http://127.0.0.1:PORT/endless_line/…`), in the form of the wire that is asked for.

It is a process of its own: what it costs must not count as ours.
"""

import asyncio
import contextlib
import gzip
import itertools
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from recordings.shapes import a, a_block, a_call, a_end, a_start, a_text, g, g_call, g_chunk, o, o_call

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
_KB = b"a" * 1024


def text(wire: str, said: str) -> bytes:
    match wire:
        case "anthropic":
            return a("content_block_delta", index=0, delta={"type": "text_delta", "text": said})
        case "gemini":
            return g({"text": said})
        case _:
            return o(content=said)


def opening(wire: str) -> bytes:
    return a_start() + a_text(0)[0] if wire == "anthropic" else b""


def calls(wire: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        match wire:
            case "anthropic":
                yield b"".join(a_call(number, "read_file", "{}", call_id=f"toolu_{number}"))
            case "gemini":
                yield g(g_call("read_file", {}))
            case _:
                yield o_call("read_file", "{}", index=number, id=f"c{number}")


def one_call(wire: str, pieces: Iterator[str]) -> Iterator[bytes]:
    """A call whose arguments are those pieces; Gemini's come in one."""
    match wire:
        case "anthropic":
            start, *_ = a_block(0, {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}})
            yield a_start() + start
            for piece in pieces:
                yield a("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": piece})
            yield b"".join([a("content_block_stop", index=0), *a_end("tool_use")])
        case "gemini":
            yield g(g_call("read_file", {"path": "".join(pieces)}), finish="STOP")
        case _:
            yield o_call("read_file", "", index=0, id="x")
            for piece in pieces:
                yield o_call(None, piece, index=0)
            yield o("tool_calls") + b"data: [DONE]\n\n"


def finish(wire: str) -> bytes:
    match wire:
        case "anthropic":
            return b"".join([a("content_block_stop", index=0), *a_end()])
        case "gemini":
            return g(finish="STOP")
        case _:
            return o("stop") + b"data: [DONE]\n\n"


def _raw(*data: bytes) -> Callable[[str], Iterator[bytes]]:
    return lambda _: iter((HEAD + b"\r\n", *data))


def _told(*said: bytes) -> Callable[[str], Iterator[bytes]]:
    """In the place of a text, byte by byte as it stands in the JSON."""

    def case(wire: str) -> Iterator[bytes]:
        yield HEAD + b"\r\n" + opening(wire)
        for each in said:
            yield text(wire, "HERE").replace(b'"HERE"', each)
        yield finish(wire)

    return case


def _gzip(data: Callable[[], Iterator[bytes]]) -> Callable[[str], Iterator[bytes]]:
    def case(_: str) -> Iterator[bytes]:
        yield HEAD + b"content-encoding: gzip\r\n\r\n"
        yield from data()

    return case


def _bomb() -> Iterator[bytes]:
    """A thousand times as much as it seems, without end."""
    squeeze = zlib.compressobj(wbits=31)
    spaces = b" " * (1 << 18)
    while True:
        yield squeeze.compress(spaces) + squeeze.flush(zlib.Z_SYNC_FLUSH)


def _wrong(wire: str) -> Iterator[bytes]:
    yield HEAD + b"\r\n"
    odd: list[Any] = [
        None,
        5,
        "x",
        [],
        [1],
        {"choices": 5},
        {"candidates": "x"},
        {"type": 7},
        {"type": "content_block_start"},
    ]
    for each in odd:
        yield g_chunk(each) if wire == "gemini" else b"data: " + json.dumps(each).encode() + b"\n\n"


CASES: dict[str, Callable[[str], Iterator[bytes]]] = {
    "endless_headers": lambda _: itertools.chain([HEAD], (b"x-%d: %b\r\n" % (n, _KB) for n in itertools.count())),
    "endless_header": lambda _: itertools.chain([HEAD, b"x: "], itertools.repeat(_KB)),
    "endless_line": _raw(b"data: ", *itertools.repeat(_KB * 64, 4000)),
    "endless_comments": _raw(*itertools.repeat(b":\n" * 32_000, 4000)),
    "endless_blank_lines": _raw(*itertools.repeat(b"\r\n" * 32_000, 4000)),
    "endless_text": lambda wire: itertools.chain(
        [HEAD + b"\r\n" + opening(wire)], itertools.repeat(text(wire, "hm " * 9))
    ),
    "long_texts": lambda wire: itertools.chain(
        [HEAD + b"\r\n" + opening(wire)], itertools.repeat(text(wire, "x" * 9000))
    ),
    "deep_json": _told(b"[" * 1_000_000),
    "deep_and_closed": _told(b"[" * 900 + b"]" * 900, b"[" * 50_000 + b"]" * 50_000),
    "deep_arguments": lambda wire: itertools.chain(
        [HEAD + b"\r\n"], one_call(wire, iter(['{"path": ' * 400, "1", "}" * 400]))
    ),
    "wrong_types": _wrong,
    "huge_integers": _told(b"9" * 4000, b"9" * 10_000),
    "not_a_number": _told(b"NaN", b"-Infinity", b"1e999"),
    "invalid_utf8": _told(b'"\xff\xfe\xc3"', b'"\\ud800"'),
    "gzip_bomb": _gzip(_bomb),
    "gzip_damaged": _gzip(lambda: iter([gzip.compress(b"data: {}\n\n" * 100)[:-9] + b"\x00" * 50])),
    "other_encoding": lambda _: iter([HEAD + b"content-encoding: br\r\n\r\n", _KB]),
    "tiny_pieces": lambda wire: itertools.chain([HEAD + b"\r\n"], one_call(wire, itertools.repeat("a", 100_000))),
    "many_calls": lambda wire: itertools.chain(
        [HEAD + b"\r\n" + (a_start() if wire == "anthropic" else b"")], calls(wire, 5_000)
    ),
    "big_argument": lambda wire: itertools.chain(
        [HEAD + b"\r\n"], one_call(wire, itertools.repeat("x" * 50_000, 1_000))
    ),
    "no_http": lambda _: iter([b"SSH-2.0-OpenSSH_9.2\r\n" * 100]),
    "bad_chunks": lambda _: iter([HEAD + b"transfer-encoding: chunked\r\n\r\n", b"zz\r\nhello\r\n"]),
    "endless_error": lambda _: itertools.chain(
        [b"HTTP/1.1 500 No\r\nconnection: close\r\n\r\n"], itertools.repeat(_KB * 64, 4000)
    ),
    "elsewhere": lambda _: iter([b"HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:1/x\r\ncontent-length: 0\r\n\r\n"]),
}
"""Name → what is sent after the request came, in pieces."""
DRIP = "drip"
"""A byte of a comment now and then, for ever."""


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next((int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:")), 0)
        await reader.readexactly(length)
        path = head.split(" ", 2)[1]
        case = path.split("/")[1]
        wire = "gemini" if "GenerateContent" in path else "anthropic" if "messages" in path else "openai"
        if case == DRIP:
            writer.write(HEAD + b"\r\n: ")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        for piece in CASES[case](wire):
            writer.write(piece)
            await writer.drain()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
