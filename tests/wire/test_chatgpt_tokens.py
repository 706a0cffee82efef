"""Tokens of a sign-in: when they are renewed, by whom, and what becomes of it when something fails."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model import AuthFailed, ModelError, Overloaded, StreamBroken, Unreachable
from amanu.models.openai_identity import SignInEnded
from amanu.system.private_file import PrivateFile
from amanu.text.redaction import MASK
from amanu_protocol.errors import AmanuError
from support.chatgpt_user import ChatGPTUser, chatgpt_user

HOUR, DAY = 3600.0, 86400.0


class Clocks:
    """The wall clock and the monotonic one."""

    def __init__(self) -> None:
        self.wall, self.steady = time.time(), time.monotonic()

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def __call__(self) -> Any:
        return {"wall": lambda: self.wall, "monotonic": lambda: self.steady}


@pytest.fixture
async def user(tmp_path: Path) -> AsyncGenerator[ChatGPTUser]:
    async with chatgpt_user(tmp_path) as user:
        await user.sign_in()
        yield user


@pytest.mark.parametrize(
    ("lifetime", "after", "renewals"),
    [(3600, 3200, 0), (3600, 3301, 1), (3600, 3 * DAY, 1), (400, 190, 0), (400, 201, 1), (1, 0, 0), (0, 31, 1)],
)
async def test_a_token_is_renewed_before_its_end(tmp_path: Path, lifetime: int, after: float, renewals: int) -> None:
    async with chatgpt_user(tmp_path, expires_in=lifetime) as user:
        await user.sign_in()
        clocks = Clocks()
        tokens = user.tokens(**clocks())
        first = await tokens.current()
        clocks.passes(after)
        second = await tokens.current()
        assert (user.service.renewals, first != second) == (renewals, bool(renewals))
        assert await tokens.current() == second == await user.tokens(**clocks()).current()
        assert user.service.refused == []


async def test_a_renewed_token_was_saved_before_it_is_used(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    old = tokens.kept()
    new = await tokens.renewed(old.access_token)
    kept = json.loads(user.path.read_text())
    assert kept["access_token"] == new != old.access_token
    assert kept["refresh_token"] != old.refresh_token
    assert user.service.valid(new) and user.service.refused == []
    assert kept["account"] == "ada@example.org"


async def test_many_ask_and_one_renews(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    given = await asyncio.gather(*(tokens.renewed(refused) for _ in range(20)))
    assert len(set(given)) == 1 and user.service.renewals == 1


PROCESS = """
import asyncio, sys
from pathlib import Path
from amanu.models.chatgpt_tokens import ChatGPTTokens
from amanu.models.openai_identity import OpenAIIdentity
from amanu.text.redaction import Secrets

tokens = ChatGPTTokens(Path(sys.argv[1]), Secrets(), OpenAIIdentity(sys.argv[2]))
print(asyncio.run(tokens.renewed(sys.argv[3])))
"""


async def test_several_processes_ask_and_one_renews(user: ChatGPTUser) -> None:
    refused = await user.tokens().current()
    user.service.pause = 0.3

    async def process() -> str:
        argv = ("-P", "-c", PROCESS, str(user.path), user.address, refused)
        started = await asyncio.create_subprocess_exec(
            sys.executable, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, complained = await started.communicate()
        assert complained == b""
        return said.decode().strip()

    given = await asyncio.gather(*(process() for _ in range(4)), user.tokens().renewed(refused))
    assert len(set(given)) == 1 and user.service.renewals == 1
    assert user.service.refused == [] and user.service.valid(given[0])


@pytest.mark.parametrize("off", [-DAY, DAY, -40 * DAY, 40 * DAY])
async def test_a_clock_that_is_wrong_costs_one_renewal(user: ChatGPTUser, off: float) -> None:
    """It was right at the sign-in, is wrong for two processes, and is then put right again."""
    clocks = Clocks()
    clocks.wall += off
    first, second = user.tokens(**clocks()), user.tokens(**clocks())
    for _ in range(5):
        for tokens in (first, second):
            assert user.service.valid(await tokens.current())
    assert user.service.renewals == 1
    clocks.wall -= off
    for _ in range(5):
        for tokens in (first, second, user.tokens(**clocks())):
            assert user.service.valid(await tokens.current())
    assert user.service.renewals <= 2 and user.service.refused == []


async def test_a_cancelled_request_does_not_lose_the_sign_in(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    user.service.pause = 0.2
    asking = asyncio.create_task(tokens.renewed(refused))
    while not user.service.renewals:
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await tokens.settle()
    assert user.tokens().kept().access_token != refused
    assert user.service.valid(await tokens.current()) and user.service.renewals == 1


FAILS: dict[str, tuple[tuple[int, bytes], type[ModelError]]] = {
    "500": ((500, b""), Overloaded),
    "429": ((429, b"{}"), Overloaded),
    "markup": ((200, b"<html>"), StreamBroken),
    "400 of a proxy": ((400, b"<html>"), AuthFailed),
    "another client": ((401, b'{"error":"invalid_client"}'), AuthFailed),
}


@pytest.mark.parametrize(("outage", "kind"), FAILS.values(), ids=FAILS)
async def test_a_renewal_that_fails_can_be_tried_again(
    user: ChatGPTUser, outage: tuple[int, bytes], kind: type[ModelError]
) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    user.service.outages = [outage]
    with pytest.raises(ModelError) as caught:
        await tokens.renewed(refused)
    assert type(caught.value) is kind
    assert user.service.valid(await tokens.renewed(refused))


@pytest.mark.parametrize(("outage", "kind"), FAILS.values(), ids=FAILS)
async def test_a_token_is_used_to_its_end_while_no_other_can_be_had(
    user: ChatGPTUser, outage: tuple[int, bytes], kind: type[ModelError]
) -> None:
    clocks = Clocks()
    tokens = user.tokens(**clocks())
    first = await tokens.current()
    clocks.passes(HOUR - 60)
    user.service.outages = [outage, outage]
    assert await tokens.current() == first
    clocks.passes(61)
    with pytest.raises(kind):
        await tokens.current()
    assert user.service.valid(await tokens.current())


async def test_nobody_answers(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    await user.service.stop()
    with pytest.raises(Unreachable):
        await tokens.renewed(refused)


async def test_a_sign_in_that_was_revoked_is_asked_about_once(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    user.service.revoke()
    for asked in (tokens, tokens, user.tokens()):
        with pytest.raises(SignInEnded, match="Run: amanu auth login openai"):
            await asked.renewed(refused)
    with pytest.raises(SignInEnded):
        await tokens.current()
    assert user.service.renewals == 1
    assert tokens.kept().ended and tokens.signed_in  # no key is used in its place unasked
    await user.sign_in()
    assert user.service.valid(await tokens.current())


async def test_an_answer_that_was_lost_ends_the_sign_in(user: ChatGPTUser) -> None:
    """The service has used the refresh token up, and takes its second use for theft."""
    tokens = user.tokens()
    refused = await tokens.current()
    user.service.faults = [(502, b"")]
    with pytest.raises(Overloaded):
        await tokens.renewed(refused)
    with pytest.raises(SignInEnded):
        await tokens.renewed(refused)
    assert not user.service.valid(refused)


async def test_what_could_not_be_saved_is_saved_the_next_time(
    user: ChatGPTUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = user.tokens()
    refused = await tokens.current()
    with monkeypatch.context() as patched:

        def full(self: PrivateFile, value: dict[str, Any]) -> None:
            raise AmanuError("storageError", "The disk is full.")

        patched.setattr(PrivateFile, "write", full)
        with pytest.raises(AuthFailed, match="disk is full"):
            await tokens.renewed(refused)
    assert user.service.valid(await tokens.renewed(refused))
    assert user.service.renewals == 1 and user.service.refused == []


@pytest.mark.parametrize("text", ["", "[]", '{"access_token": "cut off', "\xff"])
async def test_a_file_that_is_broken_is_named_and_not_quoted(user: ChatGPTUser, text: str) -> None:
    tokens = user.tokens()
    user.path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AuthFailed, match=r"chatgpt\.json") as caught:
        await tokens.current()
    assert "cut off" not in str(caught.value)


async def test_a_file_that_others_can_read_is_not_used(user: ChatGPTUser) -> None:
    user.path.chmod(0o644)
    with pytest.raises(AuthFailed, match=r"can be read by others.*chmod 600"):
        await user.tokens().current()


@pytest.mark.parametrize("kept", [{}, {"client_id": "oaiapp_1"}, {"access_token": 7, "lifetime": "x"}])
async def test_nobody_is_signed_in(tmp_path: Path, kept: dict[str, Any]) -> None:
    async with chatgpt_user(tmp_path) as user:
        PrivateFile(user.path).write(kept)
        assert not user.tokens().signed_in
        with pytest.raises(AuthFailed, match="not signed in"):
            await user.tokens().current()


async def test_old_tokens_do_not_pile_up_among_the_secrets(user: ChatGPTUser) -> None:
    tokens = user.tokens()
    for _ in range(3):
        token = await tokens.current()
        await tokens.renewed(token)
    size = repr(user.secrets)
    before = await tokens.current()
    now = await tokens.renewed(before)
    assert repr(user.secrets) == size
    assert user.secrets.mask_content(f"{before} {now}") == f"{MASK} {MASK}"
