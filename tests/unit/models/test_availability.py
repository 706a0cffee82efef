"""For how long a model that failed is left alone."""

import pytest

from amanu.core.model import ModelError, Overloaded, QuotaExhausted, RateLimited, Unreachable
from amanu.models.availability import AT_LEAST, BUSY, LEARNT, USED_UP, Availability
from support.loop_harness import INFO, PlayedModel

CASES: list[tuple[ModelError, float, str]] = [
    (Overloaded("."), BUSY, "is overloaded"),
    (RateLimited("."), BUSY, "is taking no more requests for now"),
    (Unreachable("."), BUSY, "cannot be reached"),
    (QuotaExhausted("."), USED_UP, "has no quota or credit left"),
    (RateLimited(".", retry_after=34), 34, "is taking no more requests for now"),
    (Overloaded(".", retry_after=0.0), AT_LEAST, "is overloaded"),
    (QuotaExhausted(".", retry_after=7200), 7200, "has no quota or credit left"),
    (ModelError("."), BUSY, "cannot be used"),
]


@pytest.mark.parametrize(("error", "seconds", "why"), CASES)
def test_for_how_long(error: ModelError, seconds: float, why: str) -> None:
    now = 1000.0
    availability = Availability(lambda: now)
    model = PlayedModel([])
    availability.lost(model, INFO, error)
    now += seconds - 0.1
    assert availability.why_not(model, INFO) == why
    now += 0.2
    assert availability.why_not(model, INFO) is None


def test_it_is_the_model_by_that_key_and_no_other() -> None:
    availability = Availability()
    one, other = PlayedModel([]), PlayedModel([])
    availability.lost(one, INFO, Overloaded("."))
    assert availability.why_not(other, INFO) is None
    assert availability.why_not(one, INFO.model_copy(update={"model_id": "test:other"})) is None
    assert availability.why_not(one, INFO) == "is overloaded"


WINDOWS: dict[str, tuple[float, int, int]] = {
    # seconds later, the window that is believed by then → the window
    "at once": (0, 100_000, 30_000),
    "a day later": (LEARNT + 1, 100_000, 100_000),
    "the user sets another": (60, 50_000, 50_000),
    "the server was started with less": (60, 20_000, 20_000),
}


@pytest.mark.parametrize(("seconds", "believed", "window"), WINDOWS.values(), ids=WINDOWS)
def test_the_window_a_service_named(seconds: float, believed: int, window: int) -> None:
    now = 1000.0
    availability = Availability(lambda: now)
    model = PlayedModel([])
    availability.narrow(model, INFO, 30_000)
    now += seconds
    info = availability.fitted(model, INFO.model_copy(update={"context_window": believed}))
    assert info.context_window == window and info.max_output <= window // 4
    assert availability.fitted(PlayedModel([]), INFO) == INFO


def test_an_answer_makes_up_for_it() -> None:
    availability = Availability()
    model = PlayedModel([])
    availability.lost(model, INFO, QuotaExhausted("."))
    availability.answered(model, INFO)
    assert availability.why_not(model, INFO) is None


def test_a_window_that_turns_out_smaller_still_is_kept_as_well() -> None:
    availability, model = Availability(), PlayedModel([])
    for window in (30_000, 20_000):
        availability.narrow(model, availability.fitted(model, INFO), window)
    assert availability.fitted(model, INFO).context_window == 20_000
