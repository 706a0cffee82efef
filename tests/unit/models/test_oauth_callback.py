"""The page on this machine that ends a sign-in: what it takes, and what it refuses without any effect."""

import asyncio

import pytest

from amanu.models.oauth_callback import Callback, CallbackListener

STATE = "the-state-of-this-attempt"
PATH = "/auth/callback"
GOOD = f"{PATH}?code=abc&state={STATE}&client_id=oaiapp_1"


def request(target: str, host: str = "127.0.0.1:{port}", method: str = "GET", more: str = "") -> str:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


async def said(port: int, text: str) -> str:
    """The answer to what is sent as it stands, but for `{port}`; "" when the connection is closed without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text.replace("{port}", str(port)).encode("latin-1"))
        return (await reader.read()).decode()
    except ConnectionError:
        return ""
    finally:
        writer.close()


REFUSED: dict[str, tuple[str, int]] = {
    "another path": (request(f"/other?state={STATE}&code=abc"), 404),
    "no path": (request("/"), 404),
    "an absolute address": (request(f"http://127.0.0.1{GOOD}"), 404),
    "another host in the path": (request(f"//evil.test{GOOD}"), 404),
    "a foreign host": (request(GOOD, host="evil.test:{port}"), 421),
    "a name for this machine": (request(GOOD, host="localhost:{port}"), 421),
    "another port": (request(GOOD, host="127.0.0.1:1"), 421),
    "two hosts": (request(GOOD, more="Host: evil.test\r\n"), 421),
    "no host": (f"GET {GOOD} HTTP/1.1\r\n\r\n", 421),
    "another method": (request(GOOD, method="POST"), 405),
    "a look ahead": (request(GOOD, method="HEAD"), 405),
    "another state": (request(f"{PATH}?code=abc&state=guessed&client_id=oaiapp_1"), 400),
    "a state that begins well": (request(f"{PATH}?code=abc&state={STATE[:-1]}&client_id=oaiapp_1"), 400),
    "no state": (request(f"{PATH}?code=abc&client_id=oaiapp_1"), 400),
    "two states": (request(f"{GOOD}&state={STATE}"), 400),
    "two codes": (request(f"{GOOD}&code=other"), 400),
    "an error without the state": (request(f"{PATH}?error=access_denied"), 400),
    "very many parameters": (request(f"{GOOD}{'&a=b' * 100}"), 400),
    "bytes that are no text": (request(f"{PATH}?state=%ff%fe\xff"), 400),
    "a very long address": (request(f"{GOOD}&x={'x' * 20_000}"), 431),
    "a very long head": (request(GOOD, more="X: y\r\n" * 5_000), 431),
    "no request": ("\r\n\r\n", 421),
}


@pytest.mark.parametrize(("text", "status"), REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_has_no_effect(text: str, status: int) -> None:
    async with CallbackListener(PATH).listening() as listener:
        waiting = asyncio.create_task(listener.received(STATE, 20))
        await asyncio.sleep(0)
        refusal = await said(listener.port, text)
        assert refusal.startswith(f"HTTP/1.1 {status} ") or (status == 431 and not refusal)
        assert "abc" not in refusal and "evil" not in refusal and not waiting.done()
        answer = await said(listener.port, request(GOOD))
        assert await waiting == Callback("abc", "oaiapp_1")
    assert answer.startswith("HTTP/1.1 200 ")
    for header in ("Cache-Control: no-store", "Referrer-Policy: no-referrer", "default-src 'none'"):
        assert header in answer


async def test_the_first_answer_counts() -> None:
    async with CallbackListener(PATH).listening() as listener:
        waiting = asyncio.create_task(listener.received(STATE, 20))
        await asyncio.sleep(0)
        first, second = await asyncio.gather(
            said(listener.port, request(GOOD)), said(listener.port, request(GOOD.replace("abc", "other")))
        )
        assert sorted((first[9:12], second[9:12])) == ["200", "409"]
        assert (await waiting).code == ("abc" if first[9:12] == "200" else "other")


async def test_nothing_is_taken_before_it_is_waited_for() -> None:
    async with CallbackListener(PATH).listening() as listener:
        assert (await said(listener.port, request(GOOD.replace(STATE, "")))).startswith("HTTP/1.1 400 ")


async def test_who_says_nothing_holds_nobody_up() -> None:
    async with CallbackListener(PATH).listening() as listener:
        silent = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(5)]
        waiting = asyncio.create_task(listener.received(STATE, 20))
        await asyncio.sleep(0)
        assert (await said(listener.port, request(GOOD))).startswith("HTTP/1.1 200 ")
        assert (await waiting).code == "abc"
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()


async def test_more_connections_than_a_browser_opens_are_closed() -> None:
    async with CallbackListener(PATH).listening() as listener:
        many = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(30)]
        ended = await asyncio.gather(
            *(asyncio.wait_for(gone(reader), 0.5) for reader, _ in many), return_exceptions=True
        )
        assert sum(each is None for each in ended) == 10
        for _, writer in many:
            writer.close()


async def gone(reader: asyncio.StreamReader) -> None:
    try:
        await reader.read()
    except ConnectionError:
        return


async def test_it_ends() -> None:
    async with CallbackListener(PATH).listening() as listener:
        with pytest.raises(TimeoutError):
            await listener.received(STATE, 0.01)
    with pytest.raises(OSError):
        await said(listener.port, request(GOOD))
