"""A client that costs others much is read again when it has paid for it."""

import pytest

from amanu.frontends.lsp.flow_control import FREE_SECONDS, MAX_CREDIT, MAX_WAIT, REFILL_RATE, Credit


@pytest.mark.parametrize(
    ("charged", "waits"),
    [
        ([(0.0, FREE_SECONDS)] * 100, [0.0] * 100),  # small messages are free
        ([(0.0, MAX_CREDIT / 2), (0.0, MAX_CREDIT / 2)], [0.0, 0.0]),  # a person opens large files
        ([(0.0, MAX_CREDIT), (0.0, 2 * REFILL_RATE)], [0.0, 0.0]),  # below what costs
        ([(0.0, MAX_CREDIT), (0.0, 0.04)], [0.0, 8.0]),
        ([(0.0, MAX_CREDIT), (0.0, 9.0), (10.0, 0.04)], [0.0, MAX_WAIT, 8.0]),  # nobody is shut out for good
        ([(0.0, MAX_CREDIT), (400.0, MAX_CREDIT)], [0.0, 0.0]),  # it comes back
        ([(0.0, MAX_CREDIT), (1e9, MAX_CREDIT), (1e9, MAX_CREDIT)], [0.0, 0.0, MAX_WAIT]),  # but no more than there was
    ],
)
def test_credit(charged: list[tuple[float, float]], waits: list[float]) -> None:
    now = 0.0
    credit = Credit(lambda: now)
    found: list[float] = []
    for at, seconds in charged:
        now = at
        found.append(credit.charge(seconds))
    assert found == pytest.approx(waits)
