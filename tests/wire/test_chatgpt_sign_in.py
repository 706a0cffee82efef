"""Signing in with ChatGPT: the browser, the page on this machine, the exchange, and what can go wrong with each."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from amanu.models.chatgpt_login import sign_in
from amanu.models.openai_identity import ADDRESS, OpenAIIdentity
from amanu.text.redaction import MASK
from amanu_protocol.errors import AmanuError, ErrorKind
from support.chatgpt_user import ChatGPTUser, chatgpt_user
from support.fake_browser import Page, visit
from support.strict_services.openai_identity import FIRST, PLAN, SCOPE


async def test_the_user_is_signed_in_and_the_tokens_are_kept_privately(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:
        account = await at.sign_in()
        kept = at.tokens().kept()
        assert at.service.valid(await at.tokens().current())
        assert at.service.refused == []
    assert account == kept.account == "ada@example.org"
    assert kept.client_id.startswith("oaiapp_") and kept.host_id.startswith("urn:uuid:")
    assert at.path.stat().st_mode & 0o077 == 0
    assert (at.pages[-1].status, "close this page" in at.pages[-1].text) == (200, True)
    assert kept.access_token not in repr(kept) and kept.refresh_token not in repr(kept)
    assert at.secrets.mask_content(f"{kept.access_token} {kept.refresh_token}") == f"{MASK} {MASK}"


async def test_a_later_sign_in_is_of_the_same_client_and_installation(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:
        await at.sign_in()
        first = at.tokens().kept()
        assert await at.tokens().forget()
        assert not await at.tokens().forget()
        assert not at.tokens().signed_in and first.refresh_token not in at.path.read_text()
        at.service.callback = {"client_id": None}  # it is known
        await at.sign_in()
        second = at.tokens().kept()
        asked = [request.query for request in at.service.requests if request.method == "GET"]
        assert at.service.refused == []
    assert (first.client_id, first.host_id) == (second.client_id, second.host_id)
    assert FIRST in asked[0] and first.client_id in asked[1]
    assert first.access_token != second.access_token


HTML = b"<html>Bad Gateway, ada's secret</html>"
BAD: dict[str, tuple[dict[str, Any], ErrorKind, str]] = {
    "denied": ({"consent": "access_denied"}, "authRequired", "access was denied in the browser"),
    "another error": ({"consent": "server_error"}, "authRequired", "ChatGPT reported server_error"),
    "an error in markup": ({"consent": "<script>alert(1)</script>"}, "authRequired", "ChatGPT reported unknown"),
    "no code": ({"callback": {"code": None}}, "authRequired", "could not be read"),
    "an odd code": ({"callback": {"code": "two words"}}, "authRequired", "could not be read"),
    "no client id": ({"callback": {"client_id": None}}, "providerError", "no client id"),
    "the first client id": ({"callback": {"client_id": FIRST}}, "providerError", "no client id"),
    "an odd client id": ({"callback": {"client_id": "oaiapp_\n"}}, "authRequired", "could not be read"),
    "another's client id": ({"callback": {"client_id": "oaiapp_other"}}, "providerError", "invalid_client"),
    "another code": ({"callback": {"code": "not-issued"}}, "providerError", "unknown or revoked"),
    "400": ({"outages": [(400, b'{"error":"invalid_grant"}')]}, "providerError", "refused the sign-in: invalid_grant"),
    "403 in another form": ({"outages": [(403, b'{"error":{"code":"x","message":"Not here."}}')]}, "providerError",
                            "Not here."),
    "404": ({"outages": [(404, b"")]}, "providerError", "HTTP 404"),
    "500": ({"outages": [(500, HTML)]}, "providerError", "right now: HTTP 500"),
    "429": ({"outages": [(429, b"{}")]}, "providerError", "right now"),
    "a redirect": ({"outages": [(302, b"")]}, "providerError", "HTTP 302"),
    "markup": ({"outages": [(200, HTML)]}, "providerError", "no JSON"),
    "a list": ({"outages": [(200, b"[]")]}, "providerError", "no JSON object"),
    "deep": ({"outages": [(200, b"[" * 200_000)]}, "providerError", "no JSON"),
    "huge": ({"outages": [(200, b"x" * 300_000)]}, "providerError", "more than"),
    "no access token": ({"token": {"access_token": None}}, "providerError", "no access_token"),
    "an access token with a line break": ({"token": {"access_token": "abcdefgh\r\nx: y"}}, "providerError",
                                          "no access_token"),
    "no refresh token": ({"token": {"refresh_token": None}}, "providerError", "no refresh_token"),
    "an odd refresh token": ({"token": {"refresh_token": 7}}, "providerError", "refresh_token"),
    "the plan not granted": ({"scope": SCOPE.replace(PLAN, "")}, "authRequired", "did not let Amanu use your plan"),
    "another nonce": ({"nonce": "of another sign-in"}, "providerError", "another sign-in"),
}  # fmt: skip


@pytest.mark.parametrize(("answers", "kind", "said"), BAD.values(), ids=BAD)
async def test_what_goes_wrong_is_told_and_leaves_nothing(
    tmp_path: Path, answers: dict[str, Any], kind: ErrorKind, said: str
) -> None:
    async with chatgpt_user(tmp_path, **answers) as at:
        with pytest.raises(AmanuError) as caught:
            await at.sign_in()
        await answers_nowhere(at)
    told = f"{caught.value} {caught.value.data.hint or ''}"
    assert caught.value.kind == kind
    assert said in told and "amanu auth login openai" in told
    assert "<" not in told and "secret" not in told
    assert at.left() == []
    assert "<script" not in at.pages[-1].text


GOOD: dict[str, dict[str, Any]] = {
    "no scope told": {"scope": None},
    "no id_token": {"token": {"id_token": None}},
    "an id_token that is none": {"token": {"id_token": "a.b"}},
    "an id_token of no object": {"token": {"id_token": "e30.W10.x"}},
    "a name that would draw": {"email": "\x1b[31mada"},
    "a lifetime in words": {"expires_in": "3600"},
    "no lifetime": {"expires_in": None},
    "a lifetime that is none": {"expires_in": "soon"},
    "endless": {"expires_in": 10**400},
}


@pytest.mark.parametrize("answers", GOOD.values(), ids=GOOD)
async def test_what_is_odd_and_does_no_harm(tmp_path: Path, answers: dict[str, Any]) -> None:
    async with chatgpt_user(tmp_path, **answers) as at:
        account = await at.sign_in()
        assert at.tokens().signed_in and await at.tokens().current()
        assert at.service.renewals == 0
    assert account in ("ada@example.org", "")
    assert 60 <= json.loads(at.path.read_text())["lifetime"] <= 86400


async def test_a_wrong_state_changes_nothing(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:
        at.service.callback = {"state": "a-guess"}

        def twice(address: str) -> list[Page]:
            pages = visit(address)
            at.service.callback = {}
            return pages + visit(address)

        await at.sign_in(twice)
        assert at.tokens().signed_in
    assert [page.status for page in at.pages] == [302, 400, 302, 200]


async def test_an_answer_counts_once(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:

        def again(address: str) -> list[Page]:
            pages = visit(address)
            try:
                return pages + visit(pages[-1].address)
            except OSError:
                return pages  # nobody listens any more

        await at.sign_in(again)
        assert at.service.refused == []
    assert [page.status for page in at.pages][2:] in ([], [409])


async def test_nobody_answers(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:
        with pytest.raises(AmanuError, match="Nobody signed in within"):
            await at.sign_in(lambda address: [], seconds=0.1)
        await answers_nowhere(at)
        assert at.left() == [] and at.service.requests == []


async def test_a_sign_in_that_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    async with chatgpt_user(tmp_path) as at:
        began = asyncio.Event()
        addresses: list[str] = []

        def show(address: str) -> None:
            addresses.append(address)
            began.set()

        signing_in = asyncio.create_task(sign_in(at.tokens(), show))
        await began.wait()
        signing_in.cancel()
        with pytest.raises(asyncio.CancelledError):
            await signing_in
        with pytest.raises(OSError):
            await asyncio.to_thread(visit, addresses[0])
        assert at.left() == []


async def test_the_page_cannot_be_kept(tmp_path: Path) -> None:
    """The folder is a file: the user hears of it, and the tokens are nowhere."""
    async with chatgpt_user(tmp_path) as at:
        at.path = tmp_path / "file" / "chatgpt.json"
        at.path.parent.write_text("")
        with pytest.raises(AmanuError) as caught:
            await at.sign_in()
    assert caught.value.kind == "storageError"


@pytest.mark.parametrize(
    ("moved", "address"),
    [
        ("http://127.0.0.1:9/api/accounts/", "http://127.0.0.1:9/api/accounts"),
        ("https://evil.example/api/accounts", ADDRESS),
        ("http://127.0.0.1.evil.example", ADDRESS),
        ("http://127.0.0.1@evil.example", ADDRESS),
        ("", ADDRESS),
    ],
)
def test_the_service_is_moved_only_to_this_machine(monkeypatch: pytest.MonkeyPatch, moved: str, address: str) -> None:
    monkeypatch.setenv("AMANU_OPENAI_AUTH_URL", moved)
    assert OpenAIIdentity().address == address


async def answers_nowhere(at: ChatGPTUser) -> None:
    """Nobody listens where the browser was sent."""
    for page in at.pages:
        if "/auth/callback" in page.address and "/authorize" not in page.address:
            with pytest.raises(OSError):
                await asyncio.to_thread(visit, page.address)
