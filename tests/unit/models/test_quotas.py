"""A used-up quota told from a busy minute, by what the services really say."""

import time

import pytest

from amanu.core.model import ModelError, Overloaded, QuotaExhausted, RateLimited, RequestRefused
from amanu.models.errors import status_error
from amanu.models.quotas import access_in, google_daily, google_wait, in_words, retry_in

SAID: list[tuple[int | None, str, float | None, type[ModelError]]] = [
    # status, words, Retry-After
    (429, "Number of request tokens has exceeded your per-minute rate limit", 12, RateLimited),
    (429, "You exceeded your current quota, please check your plan and billing details.", 34, RateLimited),  # Gemini
    (429, "Rate limit reached on requests per day (RPD): Limit 200, Used 200.", 432, QuotaExhausted),
    (429, "Quota exceeded for metric: free_tier_requests, limit: 0, model: x", 20, QuotaExhausted),
    (429, "Slow down.", 300, RateLimited),
    (429, "Slow down.", 301, QuotaExhausted),
    (400, "Your credit balance is too low to access the Anthropic API.", None, QuotaExhausted),
    (400, "You have reached your specified API usage limits. You will regain access on 2099-01-01 at 00:00 UTC.",
     None, QuotaExhausted),
    (402, "Insufficient Balance", None, QuotaExhausted),
    (403, "Key limit exceeded: insufficient credits", None, QuotaExhausted),
    (400, "max_tokens: limit: 0 is not allowed", None, RequestRefused),
    (529, "Overloaded", None, Overloaded),
]  # fmt: skip


@pytest.mark.parametrize(("status", "said", "wait", "kind"), SAID)
def test_what_the_services_say(status: int | None, said: str, wait: float | None, kind: type[ModelError]) -> None:
    error = status_error("Vendor", status, said, retry_after=wait)
    assert type(error) is kind
    if kind is QuotaExhausted:
        assert "used up" in error.message and "Choose another model" in error.message


def test_a_wait_in_seconds_is_no_news_about_a_quota() -> None:
    """Gemini names seconds also for a quota of the day."""
    assert status_error("V", 429, "limit: 0", retry_after=20).retry_after is None
    error = status_error("V", 429, "Slow.", retry_after=7200)
    assert (error.retry_after, "back in 2 hours" in error.message) == (7200, True)


def test_the_day_the_limit_is_lifted_is_read() -> None:
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 3 * 86400))
    assert access_in(f"You will regain access on {day} at 00:00 UTC.") == pytest.approx(2.5 * 86400, abs=0.6 * 86400)
    for said in ("regain access on 2026-99-99", "regain access soon", ""):
        assert access_in(said) is None


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please retry in 34.07s.", 34.07),
        ("try again in 250ms", 0.25),
        ("try again in 7m12s", 432),
        ("try again in 1h2m3.5s", 3723.5),
        ("retry in 2d", 172800),
        ("try again in a while", None),
        ("try again in 5 seconds", None),
    ],
)
def test_the_wait_in_the_words(said: str, seconds: float | None) -> None:
    assert retry_in(said) == seconds


@pytest.mark.parametrize("odd", [None, 5, "text", [], [1], {"violations": 3}])
def test_odd_details_say_nothing(odd: object) -> None:
    assert google_wait({"details": odd}, "") is None
    assert not google_daily({"details": odd})


def test_waits_in_words() -> None:
    assert [in_words(each) for each in (3, 119, 3600, 7200)] == ["3 seconds", "119 seconds", "60 minutes", "2 hours"]
