"""Bytes → frames: the header rules of the LSP base protocol, however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.system.frames import BrokenStream, FrameReader, frame


def check(sent: bytes, expected: list[bytes | str], max_body: int = 1000) -> None:
    """`expected`: bodies, and for a broken stream a piece of the sentence; whole and byte by byte."""
    for size in (len(sent) or 1, 1, 7):
        frames = FrameReader(max_body)
        found = [each for at in range(0, len(sent), size) for each in frames.feed(sent[at : at + size])]
        assert len(found) == len(expected), found
        for got, want in zip(found, expected, strict=True):
            if isinstance(want, bytes):
                assert got == want
            else:
                assert isinstance(got, BrokenStream) and want in got.why, got


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", []),
        (b"Content-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"content-length:2\r\n\r\n{}", [b"{}"]),
        (b"CONTENT-LENGTH :  2 \t\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n1", [b"", b"1"]),
        (b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 2\r\nContent-Type: nonsense\r\nX-Other:\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 02\r\n\r\n{}rest", [b"{}"]),
        (b"Content-Length: 5\r\n\r\n{}", []),  # not complete: nothing yet
        (b"Content-Length: 2", []),
        (b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", ["two different"]),
        (b"Content-Length: 2\n\n{}", ["LF alone"]),
        (b"Content-Length: 2\n", ["LF alone"]),
        (b"Content-Type: x\r\n\r\n{}", ["no Content-Length"]),
        (b"\r\n\r\n", ["not a message header"]),
        (b'{"jsonrpc":"2.0"}', ["not a message header"]),
        (b"hello world", ["not a message header"]),
        (b"\x00\x01", ["not a message header"]),
        (b"Content-Length: -1\r\n\r\n", ["not a number: '-1'"]),
        (b"Content-Length: +2\r\n\r\n{}", ["not a number"]),
        (b"Content-Length: 0x2\r\n\r\n{}", ["not a number"]),
        (b"Content-Length: two\r\n\r\n{}", ["not a number: 'two'"]),
        (b"Content-Length:\r\n\r\n{}", ["not a number"]),
        ("Content-Length: ٢\r\n\r\n{}".encode(), ["not a number"]),
        (b"Content-Length: 1001\r\n", ["exceeds the limit of 1000 bytes"]),
        (b"Content-Length: 10000000000\r\n\r\n", ["exceeds the limit"]),
        (b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", ["not a number"]),
        (b"X: " + b"a" * 9000, ["longer than 8192"]),
        (b"Content-Length: 2\r\n\r\n{}}", [b"{}", "not a message header"]),  # a length too small
    ],
)
def test_frames(sent: bytes, expected: list[bytes | str]) -> None:
    check(sent, expected)


@given(st.lists(st.binary(max_size=200)), st.lists(st.integers(1, 50), min_size=1))
def test_what_is_framed_comes_back_however_it_is_cut(bodies: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(map(frame, bodies))
    frames = FrameReader()
    found: list[bytes | BrokenStream] = []
    turn = 0
    while stream:
        size = sizes[turn % len(sizes)]
        turn += 1
        found += frames.feed(stream[:size])
        stream = stream[size:]
    assert found == bodies


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_give_the_same_whole_or_cut(data: bytes, at: int) -> None:
    whole = FrameReader(100).feed(data)
    frames = FrameReader(100)
    cut = frames.feed(data[:at]) + frames.feed(data[at:])
    assert [each for each in cut if isinstance(each, bytes)] == [each for each in whole if isinstance(each, bytes)]
    assert [type(each) for each in cut] == [type(each) for each in whole]
    if whole and isinstance(whole[-1], BrokenStream):
        assert frames.feed(b"Content-Length: 2\r\n\r\n{}") == []


def test_a_large_body_in_small_pieces_costs_its_length() -> None:
    body = b"x" * 8_000_000
    frames = FrameReader()
    stream = frame(body)
    found = [each for at in range(0, len(stream), 4096) for each in frames.feed(stream[at : at + 4096])]
    assert found == [body]
