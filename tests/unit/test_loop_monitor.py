"""The log says when the event loop was held up."""

import asyncio
import logging
import time

import pytest

from amanu.system.loop_monitor import LOG_INTERVAL, StallMonitor, watched_loop


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([(0.0, 0.01), (1.0, 0.049)], []),
        ([(0.0, 0.05)], ["the event loop was blocked for up to 50 ms (1 times since the last report)"]),
        (
            [(0.0, 0.06), (1.0, 0.9), (2.0, 0.3)],
            ["the event loop was blocked for up to 60 ms (1 times since the last report)"],
        ),
        (
            [(0.0, 0.06), (1.0, 0.9), (LOG_INTERVAL, 0.3), (LOG_INTERVAL + 1, 0.01)],
            [
                "the event loop was blocked for up to 60 ms (1 times since the last report)",
                "the event loop was blocked for up to 900 ms (2 times since the last report)",
            ],
        ),
    ],
)
def test_what_is_said(turns: list[tuple[float, float]], said: list[str], caplog: pytest.LogCaptureFixture) -> None:
    at = iter([now for now, took in turns if took >= 0.05])
    stalls = StallMonitor(lambda: next(at))
    for _, took in turns:
        stalls.on_iteration(took)
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == said


def test_a_loop_tells_its_own() -> None:
    stalls = StallMonitor()

    async def work() -> None:
        await asyncio.sleep(0.08)  # waiting holds nobody up
        assert stalls.count == 0
        time.sleep(0.08)  # what must not happen
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: watched_loop(stalls)) as runner:
        runner.run(work())
    assert stalls.count >= 1 and stalls.longest >= 0.08
